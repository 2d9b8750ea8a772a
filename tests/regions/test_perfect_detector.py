from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from deixis.captioning import Captioner, EncoderConfig, InputSizes
from deixis.data.batch import Batch
from deixis.data.pad import pad_regions
from deixis.errors import DeixisError
from deixis.objectives import Context, CrossEntropy, RegionClassification
from deixis.regions.perfect_detector import perfect_regions
from deixis.types import Example, ImageFile, Phrase, Sentence, Token

CLASSES = ("man", "dog")


def _example() -> Example:
    text = "man dog sky"
    tokens = (Token("man", 0, 3), Token("dog", 4, 7), Token("sky", 8, 11))
    phrases = (
        Phrase(0, 1, boxes=((1, 2, 30, 40),), frames=(0,)),
        Phrase(1, 2, boxes=((5, 5, 9, 9), (1, 2, 30, 40)), frames=(0, 0)),
        Phrase(2, 3, boxes=((0, 0, 50, 10),), frames=(0,)),
    )
    sentence = Sentence(text, tokens, phrases)
    return Example("x", ImageFile(Path("x.jpg")), (50, 60), (sentence, sentence))


def _label(sentence: Sentence, phrase: Phrase) -> int:
    word = sentence.phrase_text(phrase)
    return CLASSES.index(word) if word in CLASSES else -1


def test_perfect_regions_by_hand() -> None:
    regions = perfect_regions(_example(), _label, CLASSES)
    assert regions.boxes.tolist() == [[1, 2, 30, 40], [5, 5, 9, 9], [0, 0, 50, 60]]
    assert regions.class_probs is not None
    assert regions.class_probs.tolist() == [[0.5, 0.5], [0, 1], [0, 0]]
    assert regions.class_names == CLASSES
    with pytest.raises(DeixisError, match="no known size"):
        perfect_regions(Example("x", ImageFile(Path("x")), None, ()), _label, CLASSES)


def test_a_captioner_learns_class_embeddings_from_them(make_captioner: Callable[..., Captioner]) -> None:
    regions = pad_regions([perfect_regions(_example(), _label, CLASSES)])
    model = make_captioner(
        sizes=InputSizes(words=24, features=2, classes=2, global_features=2), encoder=EncoderConfig(feature="class")
    )
    batch = Batch(regions, torch.tensor([[5, 6, 2]]), torch.tensor([0]), torch.zeros(1, 3, dtype=torch.long))
    CrossEntropy()(Context(model, batch))["cross_entropy"].backward()
    assert model.encoder.feature.weight.shape == (16, 2)
    assert model.encoder.feature.weight.grad is not None
    assert model.generate(regions).attention.shape[-1] == 3


def test_the_biased_detector_is_trained_on_boxes_then_frozen(
    make_captioner: Callable[..., Captioner], batch: Batch, with_boxes: Callable[[Batch], Batch]
) -> None:
    model = make_captioner(encoder=EncoderConfig(detector_width=10, similarity="learned"))
    RegionClassification()(Context(model, with_boxes(batch)))["region_classification"].backward()
    for part in (model.encoder.detector, model.encoder.classifier):
        assert part.weight.grad is not None
        assert part.weight.grad.any()
    model.zero_grad()
    model.freeze_detector = True
    CrossEntropy()(Context(model, batch))["cross_entropy"].backward()
    assert model.encoder.detector.weight.grad is None
    assert model.encoder.classifier.weight.grad is None
    assert model.encoder.feature.weight.grad is not None
