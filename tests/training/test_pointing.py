"""What is logged of where a localizer looks, on a case worked by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from deixis.data.batch import Batch, PhraseBatch, PhraseBoxes
from deixis.objectives.base import Context, Objective
from deixis.training.pointing import measure_pointing
from tests.grounding.test_scan import DOG, RED, RUNS, A, batch_of

FOUND = [True, True, False, False]
"""Of four annotated words: three of class 0 or head ``dog``, one of no class or head ``red``."""


class Looks(Objective):
    """Says what it found of the phrases that have a box."""

    def hits(self, context: Context) -> dict[str, Tensor]:
        return {"accuracy": torch.tensor(FOUND)}


class Images:
    """Two batches of one and the same images."""

    def __len__(self) -> int:
        return 2

    def batch(self, rows: Any) -> Batch:
        whole = batch_of(words=[[A, DOG, RUNS, 0], [A, RED, DOG, 0]])
        caption, head = torch.tensor([0, 0, 1, 1, 1]), torch.tensor([1, 1, 2, 2, 1])
        mask = torch.tensor([[True], [True], [False], [True], [True]])  # the third phrase has no box
        label = torch.tensor([0, 0, 2, 0, -1])
        boxes = PhraseBoxes(torch.zeros(5, 1, 4), mask, torch.zeros(5, 1, dtype=torch.long), label)
        return replace(whole, phrases=PhraseBatch(caption, head, head + 1, head), phrase_boxes=boxes)


@pytest.mark.parametrize(
    ("classes", "by_class"),
    [
        (3, 2 / 3),  # class 0 has two of three; class 2 has no box and what has no class does not count
        (0, (2 / 3 + 0) / 2),  # head words: dog two of three, red none of one
    ],
)
def test_accuracy_over_words_and_over_classes(classes: int, by_class: float) -> None:
    stage: Any = SimpleNamespace(model=None, objectives={"looks": Looks()})
    alone: Any = SimpleNamespace(num_processes=1, process_index=0, device="cpu", reduce=lambda table, how: table)
    images: Any = Images()
    measured = measure_pointing(stage, images, alone, 1, words=8, classes=classes)
    assert measured == pytest.approx({"accuracy": 2 / 4, "accuracy_by_class": by_class})
