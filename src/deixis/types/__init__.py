"""What flows through the house: regions, sentences, examples, grounded captions and phrases."""

from typing import TYPE_CHECKING

from deixis.types.example import ClipSegment, Example, ImageFile, LabelledBox
from deixis.types.grounded import GroundedCaption, GroundedPhrase, GroundedPhrases, GroundedWord
from deixis.types.sentence import Box, Phrase, Relation, Sentence, Token, box_of

if TYPE_CHECKING:
    from deixis.types.regions import Regions

__all__ = [
    "Box",
    "ClipSegment",
    "Example",
    "GroundedCaption",
    "GroundedPhrase",
    "GroundedPhrases",
    "GroundedWord",
    "ImageFile",
    "LabelledBox",
    "Phrase",
    "Regions",
    "Relation",
    "Sentence",
    "Token",
    "box_of",
]


def __getattr__(name: str) -> object:
    """Import ``Regions`` when first asked for: it needs torch, and readers, parsers and scores do not."""
    if name == "Regions":
        from deixis.types.regions import Regions

        return Regions
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
