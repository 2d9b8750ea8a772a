"""Relations read from left to right, without a parse: what lies between two phrases joins them.

For answering, where no parser is at hand. How often it finds what the parse finds is in ``docs/text.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from deixis.text.parsed import PLACES
from deixis.text.rules.lemmas import gerund, lemmatise_verb
from deixis.types import Phrase, Relation

_VERBS = frozenset(["VB", "VBD", "VBG", "VBN", "VBP", "VBZ"])
_BE = frozenset(["is", "are", "was", "were", "be", "been", "being", "'s", "'re"])
_JOINERS = frozenset(["and", "or", ",", "&"])
_OF_NOUNS = frozenset(
    ["of", "with", "behind", "like"]
)  # these tell more about the noun before them than about the verb
_PREPOSITION_PARTS = frozenset(["next", "close", "away", "out", "together", "up", "down", "off"])


def linear_relations(words: Sequence[str], tags: Sequence[str], phrases: Sequence[Phrase]) -> tuple[Relation, ...]:
    """Return the relations between neighbouring phrases, the verbs' subject being the one that opened the clause.

    Phrases that lie in one another are passed over.
    """
    order = sorted(range(len(phrases)), key=lambda index: phrases[index].first)
    found: dict[Relation, None] = {}
    subjects = order[:1]
    opening = True  # still before the first verb or preposition: "a man and a woman ..."
    last: tuple[tuple[int, ...], str] | None = None
    doing: str | None = None  # the verb of the clause, which later prepositions belong to as well
    for left, right in pairwise(order):
        gap = range(phrases[left].last, phrases[right].first)
        if phrases[right].first < phrases[left].last or any(words[at] in (".", ";") for at in gap):
            subjects, opening, last, doing = [right], True, None, None
            continue
        inner = [at for at in gap if words[at] not in _BE and tags[at] not in ("DT", "PRP$")]
        if inner and all(words[at] in _JOINERS for at in inner):
            if opening:
                subjects = [*subjects, right]
            elif last is not None:  # one more object of the same verb or preposition
                found |= dict.fromkeys(Relation(subject, last[1], right) for subject in last[0] if subject != right)
            continue
        verb = next((at for at in reversed(inner) if tags[at] in _VERBS), None)  # "begins to take" is taking
        names = [at for at in inner if verb is None or at > verb]
        preposition = " ".join(words[at] for at in names if _belongs(words[at], tags[at]))
        if any(words[at] in ("while", "as", "where", "when") for at in inner):
            # "while another man watches": the next phrase opens a clause, unless the verb comes before it
            if verb is None:
                subjects, opening, last, doing = [right], True, None, None
                continue
            preposition = " ".join(part for part in preposition.split() if part not in ("while", "as"))
        opening = False
        if verb is None:
            if not preposition:
                last = None
                continue
            after_verb = doing if doing is not None and preposition not in _OF_NOUNS else None
            last = ((left,), preposition) if after_verb is None else (tuple(subjects), f"{after_verb} {preposition}")
            found |= dict.fromkeys(Relation(subject, last[1], right) for subject in last[0] if subject != right)
            continue
        if tags[verb] == "VBN" and preposition == "by":
            found |= dict.fromkeys(
                Relation(right, gerund(lemmatise_verb(words[verb])), subject) for subject in subjects
            )
            continue
        form = words[verb] if tags[verb] in ("VBG", "VBN") else gerund(lemmatise_verb(words[verb]))
        if any(words[at] in ("that", "which", "who") for at in inner):
            subjects = [left]
        doing = form
        predicate = f"{form} {preposition}".strip()
        last = (tuple(subjects), predicate)
        found |= dict.fromkeys(Relation(subject, predicate, right) for subject in subjects if subject != right)
    return tuple(found)


def _belongs(word: str, tag: str) -> bool:
    return tag in ("IN", "TO", "RP") or word in PLACES or word in _PREPOSITION_PARTS
