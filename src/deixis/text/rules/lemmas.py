"""Lemmas of common English without any dependency: plurals, verb forms, and back to the -ing form.

Used at answering time for words that no ``vocabulary.json`` knows, and by metrics when no table of lemmas is given.
Agreement with spaCy on captions is measured in ``tests/text/test_lemmas.py``.
"""

from __future__ import annotations

from deixis.text.rules.english import IRREGULAR_NOUNS, IRREGULAR_VERBS, UNCHANGED_NOUNS

_VOWELS = frozenset("aeiou")


def lemmatise_noun(word: str) -> str:
    """Return the singular of a noun in lower case; a word that is no plural comes back as it is."""
    word = word.lower()
    if word in IRREGULAR_NOUNS:
        return IRREGULAR_NOUNS[word]
    if word.endswith(("men", "children")) and len(word) > 5:  # firemen, grandchildren; but ramen, specimen
        return word[:-2] + "an" if word.endswith("men") else word[:-3]
    if word in UNCHANGED_NOUNS or len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "'s")):
        return word
    if word.endswith("shelves"):
        return word[:-3] + "f"
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return word[:-2]
    return word[:-1]


def lemmatise_verb(word: str) -> str:
    """Return the plain form of a verb form in lower case."""
    word = word.lower()
    if word in IRREGULAR_VERBS:
        return IRREGULAR_VERBS[word]
    for ending in ("ing", "ed"):
        stem = word[: -len(ending)]
        if word.endswith(ending) and len(stem) >= 2 and any(letter in "aeiouy" for letter in stem):
            return _plain(stem, ending)
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        return word[:-1]
    return word


def lemmatise(word: str, tag: str | None = None) -> str:
    """Return the lemma of a word given its Penn Treebank tag, or take it for a noun where there is none."""
    if tag is None or tag in ("NNS", "NNPS"):
        return lemmatise_noun(word)
    # A singular name keeps its s (Thomas, Paris), and so does a noun that a tagger saw as one thing (bus, tennis).
    return lemmatise_verb(word) if tag.startswith("VB") else word.lower()


def gerund(lemma: str) -> str:
    """Return the -ing form of a plain verb: hold, holding; ride, riding; sit, sitting; lie, lying."""
    if lemma.endswith("ie"):
        return lemma[:-2] + "ying"
    if lemma.endswith("e") and not lemma.endswith(("ee", "oe", "ye")) and len(lemma) > 2:
        return lemma[:-1] + "ing"
    if _doubles(lemma):
        return lemma + lemma[-1] + "ing"
    return lemma + "ing"


def _doubles(stem: str) -> bool:
    """Whether a plain verb of one syllable doubles its last letter: sit, run, hug; not look, play, throw."""
    if len(stem) < 3 or stem[-1] in "aeiouwxy" or stem[-2] not in _VOWELS or stem[-3] in _VOWELS:
        return stem in ("quit", "equip", "squat")
    return sum(letter in _VOWELS for letter in stem) == 1 or stem in ("begin", "forget", "snowplow")


def _plain(stem: str, ending: str) -> str:
    if ending == "ed" and stem.endswith("i"):
        return stem[:-1] + "y"
    if len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in "aeiouflsz":
        return stem[:-1]  # sitt-ing
    if stem[-1] in "cvuz" or stem.endswith(
        ("dg", "rs", "ns", "bl", "dl", "gl", "kl", "pl", "tl", "zl", "rg", "ang", "ung", "ud")
    ):
        return stem + "e" if stem not in ("hang", "bang", "clang", "thud") else stem
    if _ends_short(stem) and (_doubles(stem) or stem.endswith(("at", "id", "ok", "ak", "os", "us", "ut", "ir", "ar"))):
        return stem + "e"  # had it lost no e, a short stem would have doubled its last letter: bak-ing, skat-ing
    return stem


def _ends_short(stem: str) -> bool:
    return (
        len(stem) > 1
        and stem[-1] not in "aeiouwxy"
        and stem[-2] in _VOWELS
        and (len(stem) < 3 or stem[-3] not in _VOWELS)
    )


def repair(word: str, tag: str, lemma: str) -> str:
    """Return the lemma a tagger gave, unless it is among those known to be wrong (clothes: clothe, riding: rid)."""
    word = word.lower()
    if tag in ("NN", "NNS"):
        return word if word in UNCHANGED_NOUNS else IRREGULAR_NOUNS.get(word, lemma.lower())
    return IRREGULAR_VERBS.get(word, lemma.lower()) if tag.startswith("VB") else lemma.lower()
