"""What a person changed: boxes of the draft and of the corrected labels, matched photo by photo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from deixis.geometry import iou
from deixis.labels.read import LabelledThing, PhotoLabels

KEPT = 0.95
"""From this overlap on a box was left where it was: tools round, people's hands shake."""
MOVED, RELABELLED = 0.1, 0.5
"""Boxes of one class that overlap at all are one box that was moved; those of two classes must overlap by half."""
SAME = 0.9
"""Boxes of one class that overlap by more, in one file, are one thing that several captions name."""


@dataclass(slots=True)
class Changes:
    """How many boxes were kept, moved, relabelled (moved too, or not), deleted and added."""

    photos: int = 0
    changed_photos: int = 0
    kept: int = 0
    moved: int = 0
    relabelled: int = 0
    deleted: int = 0
    added: int = 0
    overlaps: list[float] = field(default_factory=list)
    """IoU of each moved box with where the draft had it."""
    renamed: dict[tuple[str, str], int] = field(default_factory=dict)
    new_labels: dict[str, int] = field(default_factory=dict)
    """Labels that the draft does not know, with how often they are used: new classes, or slips of the hand."""

    @property
    def mean_overlap(self) -> float | None:
        """Mean IoU of moved boxes with where they were."""
        return sum(self.overlaps) / len(self.overlaps) if self.overlaps else None


def compare(draft: Mapping[str, PhotoLabels], corrected: Mapping[str, PhotoLabels]) -> Changes:
    """Compare the corrected photos with their drafts; a photo without a draft had no boxes."""
    changes = Changes(photos=len(corrected))
    known = {thing.label for photo in draft.values() for thing in photo.things}
    for image, photo in corrected.items():
        before = distinct(draft[image].things) if image in draft else []
        after = distinct(photo.things)
        for thing in after:
            if thing.label not in known:
                changes.new_labels[thing.label] = changes.new_labels.get(thing.label, 0) + 1
        old = changes.moved, changes.relabelled, changes.deleted, changes.added
        _count(before, after, changes)
        changes.changed_photos += old != (changes.moved, changes.relabelled, changes.deleted, changes.added)
    return changes


def distinct(things: Sequence[LabelledThing]) -> list[LabelledThing]:
    """Return each thing once, also where five captions name it."""
    found: list[LabelledThing] = []
    for thing in things:
        alike = [other for other in found if other.label == thing.label]
        if not alike or not (_overlaps([thing], alike) > SAME).any():
            found.append(thing)
    return found


def _count(before: Sequence[LabelledThing], after: Sequence[LabelledThing], changes: Changes) -> None:
    overlap = _overlaps(before, after)  # (D, C)
    same = np.array([[one.label == other.label for other in after] for one in before]).reshape(overlap.shape)
    pairs = _pairs(np.where(same, overlap, 0.0), MOVED)
    rest = overlap.copy()
    for one, other in pairs:
        changes.kept += bool(overlap[one, other] >= KEPT)
        if overlap[one, other] < KEPT:
            changes.moved += 1
            changes.overlaps.append(float(overlap[one, other]))
        rest[one], rest[:, other] = 0.0, 0.0
    renamed = _pairs(rest, RELABELLED)
    for one, other in renamed:
        names = before[one].label, after[other].label
        changes.renamed[names] = changes.renamed.get(names, 0) + 1
    changes.relabelled += len(renamed)
    changes.deleted += len(before) - len(pairs) - len(renamed)
    changes.added += len(after) - len(pairs) - len(renamed)


def _overlaps(some: Sequence[LabelledThing], others: Sequence[LabelledThing]) -> NDArray[np.float64]:
    a, b = (np.array([thing.box for thing in things]).reshape(-1, 4) for things in (some, others))
    return iou(a, b)


def _pairs(scores: NDArray[np.float64], least: float) -> list[tuple[int, int]]:
    """Match rows with columns, the largest score first; each is used once."""
    scores, found = scores.copy(), []
    while scores.size and scores.max() >= least:
        one, other = np.unravel_index(int(scores.argmax()), scores.shape)
        found.append((int(one), int(other)))
        scores[one], scores[:, other] = 0.0, 0.0
    return found
