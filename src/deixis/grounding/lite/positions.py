"""Referring words: "the man on the left" is the man furthest to the left.

Captions hardly ever say where in the picture a thing is, so contrast between pictures cannot teach these words; but
what they mean is geometry. A phrase's position words add up to a direction, and every region is scored by how far it
lies in it. Only the phrase's other candidates matter: the term is added to logits, where a man and a tree are further
apart than two men are. "The second man from the right" counts the candidates instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from deixis.data.batch import RegionBatch
from deixis.geometry import iou
from deixis.text.vocabulary import SPECIAL_WORDS, Vocabulary

DIRECTIONS: dict[str, tuple[float, float, float]] = {
    "left": (-1, 0, 0),
    "leftmost": (-1, 0, 0),
    "right": (1, 0, 0),
    "rightmost": (1, 0, 0),
    "top": (0, -1, 0),
    "upper": (0, -1, 0),
    "bottom": (0, 1, 0),
    "lower": (0, 1, 0),
    "middle": (0, 0, 1),
    "center": (0, 0, 1),
    "centre": (0, 0, 1),
    "front": (0, 0.5, 0),  # who stands nearer stands lower in the picture
    "closest": (0, 0.5, 0),
    "nearest": (0, 0.5, 0),
    "back": (0, -0.5, 0),
}
"""Right, down, and towards the middle."""
AXES = 3
ORDINALS = {"second": 1, "third": 2, "fourth": 3, "2nd": 1, "3rd": 2, "4th": 3}
"""How many come before; "first from the left" is the leftmost, which needs no counting."""
LIKELY = 3.0
"""Logits below the best region at which a region is still one of those that are counted."""
SAME = 0.4
"""Overlap from which on two regions are one thing."""
EMPTY = frozenset(
    ("corner", "edge", "end", "far", "image", "most", "one", "ones", "photo", "picture", "screen", "side")
)
EMPTY_TAGS = frozenset(("DT", "IN", "TO", "PRP$"))


def direction_table(vocabulary: Vocabulary) -> Tensor:
    """Return the direction of every word of a vocabulary, zero for those that have none, (V, AXES)."""
    table = torch.zeros(len(vocabulary), AXES)
    for word, direction in DIRECTIONS.items():
        if word in vocabulary:
            table[vocabulary.id(word)] = torch.tensor(direction, dtype=torch.float32)
    return table


def ordinal_table(vocabulary: Vocabulary) -> Tensor:
    """Return for every word how many come before, 0 for those that count nothing, (V,)."""
    table = torch.zeros(len(vocabulary))
    for word, before in ORDINALS.items():
        if word in vocabulary:
            table[vocabulary.id(word)] = before
    return table


def empty_words(vocabulary: Vocabulary) -> Tensor:
    """Return which words name nothing beside a position: "the one at the far left side", (V,)."""
    return torch.tensor(
        [True] * len(SPECIAL_WORDS)
        + [entry.tag in EMPTY_TAGS or entry.word in EMPTY | {*DIRECTIONS, *ORDINALS} for entry in vocabulary.entries]
    )


@dataclass(frozen=True, slots=True)
class Positions:
    """What phrases say about where their thing is."""

    says: Tensor  # (P, T) words that say a position
    nameless: Tensor  # (P,) the phrase says nothing else: "the left one"


def read_positions(
    words: Tensor, inside: Tensor, head: Tensor, directions: Tensor, empty: Tensor, of: int
) -> Positions:
    """Find the words of phrases that say a position.

    "in front of the car" is about the car, so a word before "of" does not count. Neither does a head ("a black top"),
    unless the phrase names nothing ("the top one").

    Args:
        words: The sentence of each phrase, (P, T).
        inside: Which of its words are the phrase's, (P, T).
        head: Place of each phrase's head, (P,).
        directions: Of all words, (V, AXES).
        empty: Which words name nothing, (V,).
        of: The number of the word "of".
    """
    following = torch.cat([words[:, 1:], torch.zeros_like(words[:, :1])], 1)
    says = directions[words].any(-1) & inside & (following != of)
    nameless = says.any(1) & ~(inside & ~empty[words]).any(1)
    is_head = torch.arange(words.shape[1], device=words.device) == head.unsqueeze(1)
    return Positions(says & (~is_head | nameless.unsqueeze(1)), nameless)


def region_positions(regions: RegionBatch) -> Tensor:
    """Return how far each region lies to the right, down, and from the sides, -1 to 1, (B, N, AXES)."""
    boxes = regions.boxes_normalised.float()
    middle = boxes[..., :2] + boxes[..., 2:] - 1  # (B, N, 2), -1 to 1
    return torch.cat([middle, 1 - 2 * middle[..., :1].abs()], -1)


def ranks(logits: Tensor, boxes: Tensor, along: Tensor) -> Tensor:
    """Return how many likely things come before each region, (P, N).

    A thing is a region nearly as likely as the best one that no likelier region covers.

    Args:
        logits: Of phrases over regions, (P, N).
        boxes: Of the regions, (P, N, 4).
        along: Where they lie in the order in which they are counted, (P, N).
    """
    same = iou(boxes, boxes) >= SAME  # (P, N, N)
    likelier = logits.unsqueeze(1) > logits.unsqueeze(2)
    counted = (logits >= logits.amax(1, keepdim=True) - LIKELY) & ~(same & likelier).any(2)
    before = along.unsqueeze(1) < along.unsqueeze(2)
    return (counted.unsqueeze(1) & before & ~same).sum(2).to(logits.dtype)
