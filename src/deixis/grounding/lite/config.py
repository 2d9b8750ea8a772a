"""The options of the grounder we ship; ``grounding/lite`` is the recipe with those of today's regions."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import torch
from torch import Tensor

from deixis.grounding.base import AnswerOptions
from deixis.grounding.lite.labels import LabelOptions
from deixis.grounding.lite.word_groups import WordGroup


@dataclass(frozen=True, slots=True)
class GroupWeights:
    """What the teacher adds up for a group of words, in logarithms. Chosen on validation photos from coarse grids."""

    evidence: float = 0.25
    modifiers: float = 0.2
    prior: float = 1.0
    """Objectness for things, else the better of regionness and half of it."""
    coverage: float = 1.0
    size: float = 0.0
    """Exponent of a box's share of the picture."""
    attached: float = 0.0
    """Exponent of how surely a box is part of a larger thing."""
    middle: float = 0.6
    sharpness: float = 8.0


@dataclass(frozen=True, slots=True)
class TeacherOptions:
    """The weights of each group of words, by the names of :class:`WordGroup`.

    The defaults belong to regions that name less surely (those of 0.1.0); ``grounding/lite`` has those of today's.
    """

    thing: GroupWeights = GroupWeights(evidence=0.4, prior=2.0, coverage=0.0, size=0.3)
    worn: GroupWeights = GroupWeights(coverage=0.0, size=0.3, attached=0.5)
    body: GroupWeights = GroupWeights(size=-0.6, middle=0.8)
    place: GroupWeights = GroupWeights(evidence=0.15, size=0.3, sharpness=4.0)
    other: GroupWeights = GroupWeights(size=-0.3, middle=0.3)

    def table(self) -> Tensor:
        """Return the weights as rows of numbers, (groups, fields)."""
        groups = [getattr(self, group.name.lower()) for group in WordGroup]
        return torch.tensor([[getattr(group, item.name) for item in fields(GroupWeights)] for group in groups])


@dataclass(frozen=True, slots=True)
class LiteConfig:
    """Options of the grounder."""

    width: int = 192
    dropout: float = 0.1
    teacher: TeacherOptions = field(default_factory=TeacherOptions)
    grid: int = 14
    """Cells along a side of the picture, on which evidence is spread out."""
    mix: float = 0.0
    """Weight of the teacher in the answer, beside the pupil."""
    voting: float = 0.0
    """Overlap from which regions vote on each other's boxes (``voting.py``); 0 leaves boxes as they are."""
    agreement: float = 0.0
    """Answer with the box that most shares agree with, moved by all that overlap it so much (``voting.py``); 0: with
    the likeliest region's."""
    position: float = 9.0
    """Weight of words such as "left" and "middle" (``positions.py``), in logits from the middle to a side."""
    labels: LabelOptions = field(default_factory=LabelOptions)
    """How the detector's classes take part in answers (``labels.py``); training does not see them."""
    answers: AnswerOptions = field(default_factory=AnswerOptions)
