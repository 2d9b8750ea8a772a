"""MAF on our regions against loops over words and regions."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from deixis.data.batch import Batch, PhraseBatch
from deixis.errors import DeixisError
from deixis.grounding.maf import Maf, MafConfig, label_words
from deixis.objectives.base import Context
from deixis.objectives.phrase_contrast import PhraseContrast
from tests.grounding.conftest import DOG, LABELS, MAN, RED, SIZES, VOCABULARY, A, batch_of


def maf(**options: object) -> Maf:
    torch.manual_seed(0)
    return Maf(MafConfig(width=6, **options), SIZES, VOCABULARY, LABELS).eval()  # type: ignore[arg-type]


def test_labels_are_words_where_the_vocabulary_knows_them() -> None:
    table = label_words(["dog", "fire hydrant", "red dog"], 3, VOCABULARY)
    assert table.tolist() == [[DOG, 0, 0], [0, 0, 0], [RED, DOG, 0]]


@torch.no_grad()
def test_phrases_are_sums_of_their_words_weighted_by_their_best_region() -> None:
    model, batch = maf(), batch_of()
    phrases = batch.phrases
    assert phrases is not None
    found = model.phrase_similarities(batch, phrases)
    seen = model.regions(batch.regions)
    for row in range(len(phrases.head)):
        span = range(int(phrases.first[row]), int(phrases.last[row]))
        words = [int(batch.words[phrases.caption[row], at]) for at in span]
        words = [word for word in words if word != A] or words
        for image in range(2):
            real = int(batch.regions.mask[image].sum())
            sims = [
                [float(model.words.weight[word] @ seen[image, at]) / math.sqrt(6) for at in range(real)]
                for word in words
            ]
            weights = [math.exp(max(row_sims)) for row_sims in sims]
            expected = [
                sum(w * row_sims[at] for w, row_sims in zip(weights, sims, strict=True)) / sum(weights)
                for at in range(real)
            ]
            assert found[row, image, :real].tolist() == pytest.approx(expected, abs=1e-4)
            assert torch.isinf(found[row, image, real:]).all()


@torch.no_grad()
def test_a_phrase_finds_its_label_before_training() -> None:
    model, batch = maf(), batch_of()
    torch.nn.init.zeros_(model.look.weight)
    torch.nn.init.zeros_(model.look.bias)
    labels = torch.zeros(2, 4, 3)
    labels[0, 2, 0] = 1.0  # region 2 is a dog
    batch = replace(batch, regions=replace(batch.regions, class_probs=labels))
    phrases = PhraseBatch(torch.tensor([0]), torch.tensor([4]), torch.tensor([6]), torch.tensor([5]))  # "red dog"
    assert int(model.phrase_logits(replace(batch, phrases=phrases)).argmax()) == 2


def test_the_interface_is_masked_and_sums_to_one() -> None:
    model, batch = maf(), batch_of()
    attention = model.attention(batch)
    assert torch.allclose(attention.sum(-1), torch.ones(3, 7), atol=1e-5)
    assert (attention[batch.image_of == 1][..., 3] == 0).all()
    assert model.match(batch).shape == (3,)
    assert torch.isfinite(model.match(replace(batch, phrases=None))).all()


def test_regions_without_labels_are_refused_unless_asked_for() -> None:
    with pytest.raises(DeixisError, match="labels to false"):
        Maf(MafConfig(), replace(SIZES, classes=0), VOCABULARY)
    bare = replace(batch_of().regions, class_probs=None)
    assert maf(labels=False).regions(bare).shape == (2, 4, 6)
    with pytest.raises(DeixisError, match="have none"):
        maf().regions(bare)


def test_the_contrast_learns_which_image_a_caption_is_of() -> None:
    model, batch = maf().train(), batch_of()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses: list[float] = []
    for _ in range(30):
        loss = PhraseContrast()(Context(model, batch))["phrase_contrast"]
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] < losses[0] / 2
    assert MAN in batch.words


def test_the_loss_is_the_cross_entropy_over_images() -> None:
    model, batch = maf(), batch_of()
    scores = model.caption_similarities(batch)
    expected = torch.stack([-torch.log_softmax(scores[c], 0)[batch.image_of[c]] for c in range(3)]).mean()
    assert torch.allclose(PhraseContrast()(Context(model, batch))["phrase_contrast"], expected, atol=1e-5)


def test_captions_without_phrases_are_left_out() -> None:
    batch: Batch = replace(batch_of(), phrases=PhraseBatch(*(torch.zeros(0, dtype=torch.long) for _ in range(4))))
    assert PhraseContrast()(Context(maf(), batch)) == {}
