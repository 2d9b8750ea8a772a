"""Human boxes for a grounder, against a plain formula."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from deixis.data.batch import Batch
from deixis.errors import BadRecipeError
from deixis.grounding.base import AnswerOptions, WordGrounder
from deixis.objectives.base import Context
from deixis.objectives.phrase_supervision import PhraseSupervision
from deixis.objectives.targets import word_targets
from deixis.text.vocabulary import Vocabulary


class Fixed(WordGrounder):
    """A grounder whose scores are its weights: what is asked of them can be worked out by hand."""

    def __init__(self, scores: torch.Tensor) -> None:
        super().__init__(Vocabulary(()), AnswerOptions(content_words=False))
        self.scores = torch.nn.Parameter(scores)

    def word_scores(self, batch: Batch) -> torch.Tensor:
        return self.scores.masked_fill(~batch.regions.mask[batch.image_of].unsqueeze(1), -torch.inf)


def test_answers_are_pulled_to_the_human_boxes(batch: Batch, with_boxes: Callable[[Batch], Batch]) -> None:
    boxed = with_boxes(batch)
    shape = (*batch.words.shape, batch.regions.mask.shape[1])
    model = Fixed(torch.randn(shape, generator=torch.Generator().manual_seed(1)))
    objective = PhraseSupervision()
    value = objective(Context(model, boxed))["phrase_supervision"]
    shares = torch.softmax(model.phrase_logits(boxed), -1)
    overlap = word_targets(boxed, "test").overlap
    expected = [
        -torch.stack([shares[p, n] for n in range(shape[2]) if overlap[p, n] > 0.5]).sum().log()
        for p in range(len(boxed))
    ]
    assert value.item() == pytest.approx(torch.stack(expected).mean().item())
    value.backward()
    assert model.scores.grad is not None
    assert (model.scores.grad[0, 0, overlap[0] > 0.5] < 0).all(), "a step raises the right regions"
    with pytest.raises(BadRecipeError, match=r"set data\.supervision"):
        objective(Context(model, batch))
