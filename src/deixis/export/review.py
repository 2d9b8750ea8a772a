"""The order in which a person should look at draft boxes: what is most doubtful first."""

from __future__ import annotations

from collections.abc import Iterable

from deixis.export.things import Answer
from deixis.types import GroundedCaption


def doubt(answer: Answer) -> float:
    """Return how much an answer needs a look, 0 to 1: one minus the score of its least sure word or phrase.

    What was not found, or has no box, counts as doubted altogether; an answer that names nothing needs no look.
    """
    if isinstance(answer, GroundedCaption):
        scores = [
            (word.score if word.presence is None else word.presence) if word.trusted and word.boxes else 0.0
            for word in answer.words
            if word.groundable
        ]
    else:
        scores = [phrase.score if phrase.found and phrase.boxes else 0.0 for phrase in answer.phrases]
    return 1.0 - min(max(min(scores, default=1.0), 0.0), 1.0)


def in_review_order(answers: Iterable[Answer]) -> list[Answer]:
    """Return the answers with the most doubtful first; equals stay in the order they came in."""
    return sorted(answers, key=lambda answer: -doubt(answer))
