"""The small captioner of the captioning tests, whose captions are chosen among."""

from tests.captioning.conftest import make_captioner, make_regions, vocabulary

__all__ = ["make_captioner", "make_regions", "vocabulary"]
