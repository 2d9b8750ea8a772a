"""Objectives: one file each, all called with a :class:`Context`, all returning named losses."""

from deixis.objectives.attention_consistency import AttentionConsistency, AttentionConsistencyOptions
from deixis.objectives.base import Context, Objective
from deixis.objectives.cross_entropy import CrossEntropy, CrossEntropyOptions
from deixis.objectives.cyclical import Cyclical, CyclicalOptions
from deixis.objectives.distillation import Distillation, DistillationOptions
from deixis.objectives.gvd_grounding import Grounding
from deixis.objectives.region_classification import RegionClassification
from deixis.objectives.self_critical import SelfCritical, SelfCriticalOptions
from deixis.objectives.supervision import Supervision, SupervisionOptions

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
