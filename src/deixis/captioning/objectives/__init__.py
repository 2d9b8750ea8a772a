"""Objectives: one file each, all called with a :class:`Context`, all returning named losses."""

from deixis.captioning.objectives.attention_consistency import AttentionConsistency, AttentionConsistencyOptions
from deixis.captioning.objectives.base import Context, Objective
from deixis.captioning.objectives.cross_entropy import CrossEntropy, CrossEntropyOptions
from deixis.captioning.objectives.cyclical import Cyclical, CyclicalOptions
from deixis.captioning.objectives.distillation import Distillation, DistillationOptions
from deixis.captioning.objectives.grounding import Grounding
from deixis.captioning.objectives.region_classification import RegionClassification
from deixis.captioning.objectives.self_critical import SelfCritical, SelfCriticalOptions
from deixis.captioning.objectives.supervision import Supervision, SupervisionOptions

__all__ = [
    "AttentionConsistency",
    "AttentionConsistencyOptions",
    "Context",
    "CrossEntropy",
    "CrossEntropyOptions",
    "Cyclical",
    "CyclicalOptions",
    "Distillation",
    "DistillationOptions",
    "Grounding",
    "Objective",
    "RegionClassification",
    "SelfCritical",
    "SelfCriticalOptions",
    "Supervision",
    "SupervisionOptions",
]
