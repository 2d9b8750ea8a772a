"""From human boxes to the regions that a word should point at. Only recipes that say ``supervision`` get here."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from deixis.data.batch import Batch
from deixis.errors import BadRecipeError
from deixis.geometry import iou_aligned


@dataclass(frozen=True, slots=True)
class WordTargets:
    """P annotated words: where they stand, which regions fit their boxes, and their object class."""

    caption: Tensor  # (P,)
    position: Tensor  # (P,) of the phrase's head word
    image: Tensor  # (P,)
    overlap: Tensor  # (P, N) best IoU of each region with a box of the phrase in the same frame; 0 for padding
    label: Tensor  # (P,) object class, -1 for none
    annotated: Tensor  # (P, N) whether a region is on a frame that carries a box of the word

    def positive(self, min_iou: float = 0.5) -> Tensor:
        """Regions that count as right, (P, N): IoU above ``min_iou``."""
        return self.overlap > min_iou

    def best(self, min_iou: float = 0.5) -> Tensor:
        """Only the region with the largest IoU, if that is above ``min_iou``, (P, N)."""
        top = torch.zeros_like(self.overlap, dtype=torch.bool)
        if self.overlap.shape[1]:
            top.scatter_(1, self.overlap.argmax(1, keepdim=True), True)
        return top & self.positive(min_iou)


def word_targets(batch: Batch, objective: str) -> WordTargets:
    """Compare the regions of a batch with the human boxes of its phrases."""
    phrases, boxes = batch.phrases, batch.phrase_boxes
    if phrases is None or boxes is None:
        raise BadRecipeError(f"the objective '{objective}' learns from human boxes: set data.supervision to true")
    regions = batch.regions
    image = batch.image_of[phrases.caption]  # (P,)
    overlap = iou_aligned(
        regions.boxes[image].unsqueeze(2), boxes.boxes.unsqueeze(1).to(regions.boxes), plus_one=True
    )  # (P, N, M)
    fits = boxes.mask.unsqueeze(1) & (regions.frame[image].unsqueeze(2) == boxes.frame.unsqueeze(1))
    overlap = overlap.masked_fill(~fits, 0.0)
    best = overlap.amax(2) if overlap.shape[2] else overlap.new_zeros(overlap.shape[:2])
    best = best.masked_fill(~regions.mask[image], 0.0)
    return WordTargets(phrases.caption, phrases.head, image, best, boxes.label, _on_annotated_frames(batch, image))


def _on_annotated_frames(batch: Batch, image: Tensor) -> Tensor:
    """Return which regions are on a frame with a box, (P, N); for a photo all that are real."""
    boxes = batch.phrase_boxes
    assert boxes is not None
    same = batch.regions.frame[image].unsqueeze(2) == boxes.frame.unsqueeze(1)  # (P, N, M)
    return (same & boxes.mask.unsqueeze(1)).any(2) & batch.regions.mask[image]
