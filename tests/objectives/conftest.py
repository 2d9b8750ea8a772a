"""Objectives of captioners and of grounders are tried on the models and batches of their own rooms."""

from tests.captioning.conftest import (
    batch,
    make_batch,
    make_captioner,
    make_regions,
    regions,
    textbook,
    vocabulary,
    with_boxes,
)
from tests.grounding.conftest import cases

__all__ = [
    "batch",
    "cases",
    "make_batch",
    "make_captioner",
    "make_regions",
    "regions",
    "textbook",
    "vocabulary",
    "with_boxes",
]
