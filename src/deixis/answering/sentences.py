"""A captioner of sentences: photos in, plain text out. Where its words are is for our regions and grounder to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from deixis.errors import DeixisError
from deixis.text.rules.chunker import chunk
from deixis.text.tokens import normal_word
from deixis.text.vocabulary import NOUN_TAGS, Vocabulary, is_groundable
from deixis.types import GroundedCaption, GroundedWord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence, and the mean log-probability of its words."""

    text: str
    score: float = 0.0


class Teller(Protocol):
    """Says what is in a photo. The same photo is told the same, whatever else is asked."""

    @property
    def name(self) -> str:
        """What answers call it, such as ``hf:OWNER/NAME``."""
        ...

    def say(self, image: NDArray[np.uint8], *, beam: int, count: int = 1) -> list[Said]:
        """Return at most ``count`` sentences about an RGB image, best first."""
        ...


def load_teller(name: str, *, device: str = "cpu") -> Teller:
    """Load a captioner by name: ``hf:OWNER/NAME`` or ``hf:FOLDER``."""
    kind, colon, rest = name.partition(":")
    if kind != "hf" or not colon or not rest:
        raise DeixisError(
            f"unknown captioner {name!r}: name one of transformers as hf:OWNER/NAME or hf:FOLDER; a captioner of "
            "Deixis is a model (--model)"
        )
    from deixis.answering.hf_captioners import HfCaptioner

    return HfCaptioner.load(rest, device=device)


def spoken_words(said: Said, size: tuple[int, int], vocabulary: Vocabulary) -> GroundedCaption:
    """Return what was said as a caption without boxes: a capital letter, a full stop, and which words name things."""
    text = " ".join(said.text.split())
    if not text:
        return GroundedCaption("", size, "", (), said.score)
    text = text[0].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
    words = tuple(
        GroundedWord(
            token.text,
            token.start,
            token.end,
            groundable=token.tag in NOUN_TAGS and is_groundable(token.tag, token.lemma or ""),
        )
        for token in chunk(text, vocabulary).tokens
        if normal_word(token.text) is not None
    )
    return GroundedCaption("", size, text, words, said.score)
