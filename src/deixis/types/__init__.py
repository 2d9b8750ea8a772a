"""What flows through the house: regions, sentences, examples, grounded captions and phrases."""

from deixis.types.example import ClipSegment, Example, ImageFile, LabelledBox
from deixis.types.grounded import GroundedCaption, GroundedPhrase, GroundedPhrases, GroundedWord
from deixis.types.regions import Regions
from deixis.types.sentence import Box, Phrase, Relation, Sentence, Token

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
]
