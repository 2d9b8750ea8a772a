"""A thing followed through the frames of a clip: one box a frame, chosen so that they belong to one thing.

Each frame is looked at by itself, so a word may hop between two things that are about equally likely. Among the
candidates of all frames the path is chosen that is likely in every frame and whose boxes overlap from frame to
frame (Viterbi's algorithm), and the boxes on it are averaged a little with their neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from deixis.geometry import iou
from deixis.types import Box

STEADINESS = 2.0
"""What a whole overlap with the box before is worth, in log-probability: a region a seventh as likely as the best one
may still be taken if it goes on where the last box was."""
SAME_THING = 0.5
"""Boxes of neighbouring frames that overlap less are not averaged: something else moves there."""
_FLOOR = 1e-6


@dataclass(frozen=True, slots=True)
class Candidates:
    """Where a thing may be on one frame: boxes with their weights, the best one first."""

    boxes: tuple[Box, ...]
    weights: tuple[float, ...]


def follow(frames: Sequence[Candidates | None], *, smooth: bool = True) -> list[tuple[Box, float] | None]:
    """Return the box and weight chosen on each frame; None where a frame has no candidate.

    Without ``smooth``, every frame takes its best candidate.
    """
    if not smooth:
        return [None if one is None else (one.boxes[0], one.weights[0]) for one in frames]
    chosen: list[tuple[Box, float] | None] = []
    at = 0
    while at < len(frames):
        run: list[Candidates] = []
        while at < len(frames) and (one := frames[at]) is not None:
            run.append(one)
            at += 1
        if not run:
            chosen.append(None)
            at += 1
            continue
        path = best_path(run)
        boxes = averaged([one.boxes[place] for one, place in zip(run, path, strict=True)])
        chosen += [(box, one.weights[place]) for box, one, place in zip(boxes, run, path, strict=True)]
    return chosen


def best_path(frames: Sequence[Candidates], steadiness: float = STEADINESS) -> list[int]:
    """Return which candidate of each frame lies on the best path: the sum of log-weights and overlaps is largest."""
    scores: list[torch.Tensor] = []
    for one in frames:
        weights = torch.tensor(one.weights, dtype=torch.float64)
        scores.append((weights / weights.max().clamp(min=_FLOOR)).clamp(min=_FLOOR).log())  # (n,)
    best = scores[0]
    came_from: list[torch.Tensor] = []
    for before, after, own in zip(frames, frames[1:], scores[1:], strict=False):
        overlap = iou(torch.tensor(before.boxes, dtype=torch.float64), torch.tensor(after.boxes, dtype=torch.float64))
        total = best.unsqueeze(1) + steadiness * overlap  # (n before, n after)
        value, place = total.max(0)
        came_from.append(place)
        best = value + own
    path = [int(best.argmax())]
    for place in reversed(came_from):
        path.append(int(place[path[-1]]))
    return path[::-1]


def averaged(boxes: Sequence[Box]) -> list[Box]:
    """Return boxes averaged with their neighbours, weights 1 2 1, where both neighbours are of the same thing.

    A box that moves evenly stays where it is; one that trembles is calmed. The first and the last are kept.
    """
    out: list[Box] = list(boxes)
    for at in range(1, len(boxes) - 1):
        before, here, after = boxes[at - 1], boxes[at], boxes[at + 1]
        near = iou(torch.tensor([here]), torch.tensor([before, after]))[0]
        if float(near.min()) >= SAME_THING:
            sides = ((a + 2 * b + c) / 4 for a, b, c in zip(before, here, after, strict=True))
            x1, y1, x2, y2 = sides
            out[at] = (x1, y1, x2, y2)
    return out
