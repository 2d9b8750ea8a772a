"""A small noun-phrase chunker that needs only a vocabulary: what answering uses instead of spaCy.

Each word takes its usual tag from the vocabulary (or one guessed from its ending), a few rules look at its neighbours
("a run", "people surf"), and phrases are read off the tags. How well it agrees with spaCy is in ``docs/text.md``.
"""

from __future__ import annotations

from dataclasses import replace

from deixis.text.parsed import NOUN_TAGS, noun_phrases
from deixis.text.rules.lemmas import gerund, lemmatise, lemmatise_verb
from deixis.text.rules.linear_relations import linear_relations
from deixis.text.tokens import normal_word, tokenise
from deixis.text.vocabulary import ADJECTIVE_TAGS, VERB_TAGS, Vocabulary
from deixis.types import Sentence

CLOSED = {
    **dict.fromkeys(
        ["a", "an", "the", "this", "these", "those", "some", "any", "each", "every", "another", "no"], "DT"
    ),
    **dict.fromkeys(["his", "her", "its", "their", "my", "your", "our"], "PRP$"),
    **dict.fromkeys(["he", "she", "it", "they", "him", "them", "i", "you", "we", "me", "us"], "PRP"),
    **dict.fromkeys(["himself", "herself", "itself", "themselves"], "PRP"),
    **dict.fromkeys(["is", "'re", "'m", "has", "does"], "VBZ"),
    **dict.fromkeys(["are", "have", "do"], "VBP"),
    **dict.fromkeys(["who", "what", "whom"], "WP"),
    **dict.fromkeys(["in", "on", "at", "of", "with", "by", "from", "for", "near", "behind", "over", "under"], "IN"),
    **dict.fromkeys(["into", "onto", "through", "across", "along", "beside", "between", "above", "below"], "IN"),
    **dict.fromkeys(["while", "as", "outside", "inside", "around", "down", "up", "off", "against", "that"], "IN"),
    **dict.fromkeys(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], "CD"),
    **dict.fromkeys(["and", "or", "but"], "CC"),
    **dict.fromkeys(["all", "both", "half"], "PDT"),
    "'s": "POS",
    "'": "POS",
    "to": "TO",
    "there": "EX",
    "which": "WDT",
    "n't": "RB",
    "not": "RB",
}

_OPENS = frozenset(["DT", "PRP$", "CD", "POS", "PDT", *ADJECTIVE_TAGS])
_MODIFIES = _OPENS | NOUN_TAGS
_AFTER_ADJECTIVE = frozenset(["VBG", "VBN", "VBD", "CC", ",", "RB"])
BE = frozenset(["is", "are", "was", "were", "be", "been", "'s", "'re"])
_AFTER_VERB = frozenset(["DT", "IN", "PRP$", "TO", "RB", "RP", "PRP"])


def chunk(text: str | Sentence, vocabulary: Vocabulary) -> Sentence:
    """Return the text as a sentence with tags, lemmas and noun phrases; annotated phrases stay and get heads."""
    sentence = Sentence(text, tokenise(text)) if isinstance(text, str) else text
    words = [normal_word(token.text) or token.text for token in sentence.tokens]
    tags = tag_words(words, vocabulary)
    tokens = tuple(
        replace(token, tag=tag, lemma=_lemma(word, tag, vocabulary))
        for token, word, tag in zip(sentence.tokens, words, tags, strict=True)
    )
    if sentence.phrases:
        phrases = tuple(
            phrase if phrase.head is not None else replace(phrase, head=_head(tags, phrase.first, phrase.last))
            for phrase in sentence.phrases
        )
    else:
        phrases = noun_phrases(words, _spans(tags), tags)
    return Sentence(sentence.text, tokens, phrases, sentence.relations or linear_relations(words, tags, phrases))


def tag_words(words: list[str], vocabulary: Vocabulary) -> list[str]:
    """Return a Penn Treebank tag for each word in lower case: its usual one, set right by its neighbours."""
    tags = [_usual_tag(word, vocabulary) for word in words]
    for at, (word, tag) in enumerate(zip(words, tags, strict=True)):
        before = tags[at - 1] if at else ""
        after = tags[at + 1] if at + 1 < len(tags) else ""
        if tag == "POS" and before in ("EX", "PRP", "WP", "WDT"):
            tags[at] = "VBZ"  # it's, there's, who's
        elif word == "her" and after not in _MODIFIES | {"VBG", "VBN", "VBD"}:
            tags[at] = "PRP"
        elif word == "to" and after in _MODIFIES and not _could_be_verb(words[at + 1], vocabulary):
            tags[at] = "IN"
        elif word == "back" and before in VERB_TAGS:
            tags[at] = "RB"
        elif word in CLOSED:
            continue
        elif tag in ("NN", "NNS"):
            tags[at] = _noun_or_verb(words, tags, at, vocabulary)
        elif tag in ("VB", "VBP", "VBZ"):
            tags[at] = _verb_or_noun(words, tags, at)
        elif tag in ("VBG", "VBN", "VBD"):
            tags[at] = _participle(tags, at, before, after)
        elif tag in ADJECTIVE_TAGS and before in ("DT", "PRP$") and after not in _MODIFIES | _AFTER_ADJECTIVE:
            tags[at] = "NN"  # a blond, the young
    return tags


def _noun_or_verb(words: list[str], tags: list[str], at: int, vocabulary: Vocabulary) -> str:
    word, tag = words[at], tags[at]
    before = tags[at - 1] if at else ""
    after = tags[at + 1] if at + 1 < len(tags) else ""
    if word.endswith("ing") and words[at - 1 : at] and words[at - 1] in BE:
        return "VBG"  # they are fencing
    if tag == "NNS" and (before == "PRP" or words[max(0, at - 1)] in ("that", "who", "which")) and after in _AFTER_VERB:
        return "VBZ"  # it moves over
    if tag == "NNS" and before == "NN" and after in ("DT", "PRP$"):
        return "VBZ"  # a girl offers a
    if not _could_be_verb(word, vocabulary):
        return tag
    if tag == "NNS" and before == "NN" and (after in _AFTER_VERB or after == "NNS"):
        return "VBZ"  # a man skateboards down
    if tag == "NN" and (before == "NNS" or words[max(0, at - 1)] == "people") and after in _AFTER_VERB:
        return "VBP"  # people surf in
    return "VB" if tag == "NN" and before == "TO" and after in _AFTER_VERB else tag


def _verb_or_noun(words: list[str], tags: list[str], at: int) -> str:
    noun = "NNS" if words[at].endswith("s") and not words[at].endswith("ss") else "NN"
    before = tags[at - 1] if at else ""
    opened = at > 1 and tags[at - 2] in _OPENS
    if before in ("DT", "PRP$", "POS") or (before in ADJECTIVE_TAGS and opened):
        return noun  # a run, his last looks
    if tags[at] != "VBZ" and before == "NN" and opened and "CC" not in tags[max(0, at - 5) : at]:
        return noun  # a fruit stand: with a verb it would be "stands"
    return tags[at]


def _participle(tags: list[str], at: int, before: str, after: str) -> str:
    """Tell a modifier (a smiling man, parked cars) from a verb (a man smiling, cars parked)."""
    modifies = after in NOUN_TAGS or after in ADJECTIVE_TAGS
    if before in _OPENS and before != "POS" and (modifies or after in ("VBG", "VBN")):
        return "JJ"
    if (
        before in ("RB", "NN")
        and after in NOUN_TAGS
        and at > 1
        and tags[at - 2] in ("DT", "PRP$")
        and tags[at] != "VBG"
    ):
        return "JJ"  # a well stocked bar, a snow covered street
    if before in ("DT", "PRP$") and not modifies:
        return "NN"  # the setting, a painting
    if tags[at] == "VBN" and modifies and (at == 0 or before in ("IN", "CC", ",")):
        return "JJ"
    return tags[at]


def _usual_tag(word: str, vocabulary: Vocabulary) -> str:
    if word in CLOSED:
        return CLOSED[word]
    entry = vocabulary.entry(word)
    if entry is not None and entry.tag is not None:
        return entry.tag
    if not any(map(str.isalnum, word)):
        return word
    if word[0].isdigit():
        return "CD" if word[-1].isdigit() else "JJ"
    if word.endswith(("ly", "wards")):
        return "RB"
    if word.endswith("ing") and len(word) > 5:
        return "VBG"
    if word.endswith("ed") and len(word) > 4:
        return "JJ" if "-" in word else "VBN"
    if "-" in word and word.rsplit("-", 1)[1] in ("year", "old", "style", "size", "like", "way", "free"):
        return "JJ"
    return "NNS" if word != lemmatise(word) else "NN"


def _could_be_verb(word: str, vocabulary: Vocabulary) -> bool:
    entry = vocabulary.entry(gerund(lemmatise_verb(word)))
    return entry is not None and entry.tag in ("VBG", "NN")


def _lemma(word: str, tag: str, vocabulary: Vocabulary) -> str:
    entry = vocabulary.entry(word)
    same_kind = entry is not None and entry.tag is not None and entry.tag[:2] == tag[:2]
    return entry.lemma if entry is not None and same_kind else lemmatise(word, tag)


def _spans(tags: list[str]) -> list[tuple[int, int, int]]:
    """Return noun chunks as (first, last not included, head)."""
    spans: list[tuple[int, int, int]] = []
    at = 0
    while at < len(tags):
        end = at
        noun = -1
        while end < len(tags) and (step := _continues(tags, at, end)):
            end += step
            if tags[end - 1] in NOUN_TAGS:
                noun = end - 1
        if noun >= 0:
            spans.append((at, noun + 1, noun))
            at = noun + 1
        elif tags[at] == "PRP" or tags[at] in ("WP", "EX"):
            spans.append((at, at + 1, at))
            at += 1
        else:
            at += 1
    return spans


def _continues(tags: list[str], start: int, at: int) -> int:
    """Return how many tokens from ``at`` on belong to a chunk that began at ``start``, 0 where it ends before."""
    tag = tags[at]
    noun_before = at > start and tags[at - 1] in NOUN_TAGS
    after = tags[at + 1] if at + 1 < len(tags) else ""
    if tag in NOUN_TAGS:
        return 1
    if tag == "POS":
        return int(noun_before and (after in _MODIFIES or after in VERB_TAGS))
    if noun_before:  # after its noun a chunk goes on with more nouns, a possessive, or as in "a snow covered street"
        return int(tag in ADJECTIVE_TAGS and after in NOUN_TAGS and tags[start] in ("DT", "PRP$"))
    if tag in ADJECTIVE_TAGS or tag == "CD":
        return 1
    if tag in ("DT", "PRP$", "PDT"):
        return int(at == start or tags[at - 1] in ("PDT", "POS"))
    if tag in ("RB", "RBR", "RBS"):
        opens = at == start and (at == 0 or tags[at - 1] in ("IN", "CC"))
        return int(after in ADJECTIVE_TAGS and (at > start or opens))  # a very large, of partially naked
    if tag in ("CC", ",") and at > start and tags[at - 1] in ADJECTIVE_TAGS:
        return int(after in ADJECTIVE_TAGS)  # black and white, small, brown
    return 0


def _head(tags: list[str], first: int, last: int) -> int:
    """Return the last noun of the first unbroken run of them: the head of "a man in a hat" is "man"."""
    for _, end, head in _spans(tags[first:last]):
        if end:
            return first + head
    return last - 1
