"""The small captioner of the captioning tests, which learns from the regions of a perfect detector."""

from tests.captioning.conftest import batch, make_captioner, regions, with_boxes

__all__ = ["batch", "make_captioner", "regions", "with_boxes"]
