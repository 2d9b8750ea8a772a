"""What a search is told and what it gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from deixis.text.vocabulary import PAD


@dataclass(frozen=True, slots=True)
class Strategy:
    """How to search."""

    kind: Literal["greedy", "beam", "diverse_beam", "sample"] = "greedy"
    max_length: int = 20
    """Words, the end not counted."""
    width: int = 3
    """Beams."""
    groups: int = 3
    """Groups of a diverse beam search; ``width`` must divide into them."""
    diversity: float = 0.5
    """What each use of a word by an earlier group takes from its log-probability at the same step."""
    length_power: float = 0.0
    """Beams are ranked by log-probability / length ** this."""
    samples: int = 1
    """Captions sampled per image."""
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    allow_unknown: bool = False
    """False: where UNK would be said, the runner-up is."""
    block_trigrams: bool = False
    """Never say the same three words in a row twice."""
    bad_endings: tuple[int, ...] = ()
    """Ids of words after which the caption may not end; see :func:`deixis.captioning.search.fluent.bad_endings`."""
    joining: tuple[int, ...] = ()
    """Ids of words such as "and": what they join is not said twice, neither "white and white" nor "a cup and a cup"."""
    once: tuple[int, ...] = ()
    """Ids of words that are not said again ("a kitchen with a stove in a kitchen") unless something was joined since
    ("a black dog and a brown dog")."""

    def __post_init__(self) -> None:
        if self.max_length < 1 or self.width < 1 or self.samples < 1 or self.groups < 1:
            raise ValueError("max_length, width, samples and groups should be at least 1")
        if self.kind == "diverse_beam" and self.width % self.groups:
            raise ValueError(f"width {self.width} does not divide into {self.groups} groups")
        if self.temperature <= 0 or not 0 < self.top_p <= 1 or self.top_k < 0:
            raise ValueError("temperature should be above 0, top_p in (0, 1] and top_k not negative")


@dataclass(frozen=True, slots=True)
class Generated:
    """G captions for each of B images, best first where they are ranked; words end with the end token, then padding."""

    words: Tensor  # (B, G, T)
    log_probs: Tensor  # (B, G, T) of each word, 0 where padded
    scores: Tensor  # (B, G) what they are ranked by
    attention: Tensor  # (K, B, G, T, N) rows of branches or heads
    voted: Tensor  # (K, B, G, T) whether a branch's regions belong to the word that was kept

    @property
    def mask(self) -> Tensor:
        """True for words and end tokens, (B, G, T)."""
        return self.words != PAD
