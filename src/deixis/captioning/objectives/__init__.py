"""Objectives: one file each, all called with a :class:`Context`, all returning named losses."""

from deixis.captioning.objectives.base import Context, Objective
from deixis.captioning.objectives.cross_entropy import CrossEntropy, CrossEntropyOptions

__all__ = ["Context", "CrossEntropy", "CrossEntropyOptions", "Objective"]
