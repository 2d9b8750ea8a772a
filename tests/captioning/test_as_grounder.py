from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from deixis.captioning import Captioner, CaptionerGrounder
from deixis.data.batch import Batch, PhraseBatch, WordKind
from deixis.errors import DeixisError
from deixis.interfaces import Grounder
from deixis.text.rules.chunker import chunk
from deixis.text.vocabulary import Vocabulary
from deixis.types import Regions


def test_attention_and_match_are_those_of_teacher_forcing(
    make_captioner: Callable[..., Captioner], batch: Batch, vocabulary: Vocabulary
) -> None:
    model = make_captioner().train()
    grounder = CaptionerGrounder(model, vocabulary)
    assert isinstance(grounder, Grounder)
    attention, match = grounder.attention(batch), grounder.match(batch)
    assert model.training  # dropout is off only while it answers
    assert model.encoder.dropout.training
    model.eval()
    decoded = model.decode(model.encode(batch.regions), batch.words, batch.image_of)
    assert torch.allclose(attention, decoded.attention[0])
    row = decoded.log_probs[0, 2]
    words = batch.words[2][batch.words[2] != 0]
    expected = torch.stack([row[t, word] for t, word in enumerate(words)]).mean()
    assert torch.allclose(match[2], expected, atol=1e-5)


def test_a_phrase_points_where_its_nouns_do(
    make_captioner: Callable[..., Captioner], batch: Batch, vocabulary: Vocabulary
) -> None:
    tags = torch.zeros_like(batch.tags)
    tags[0, 1] = int(WordKind.NOUN)
    phrases = PhraseBatch(torch.tensor([0, 1]), torch.tensor([0, 0]), torch.tensor([3, 2]), torch.tensor([1, 1]))
    spoken = replace(batch, tags=tags, phrases=phrases)
    grounder = CaptionerGrounder(make_captioner(), vocabulary)
    found, attention = grounder.phrase_attention(spoken), grounder.attention(spoken)
    assert torch.allclose(found[0], attention[0, 1])
    assert torch.allclose(found[1], attention[1, :2].mean(0))


def test_grounding_a_sentence(make_captioner: Callable[..., Captioner], batch: Batch, vocabulary: Vocabulary) -> None:
    own = batch.regions
    assert own.class_probs is not None
    assert own.global_features is not None
    assert own.feature_map is not None
    regions = Regions(
        own.boxes[0], own.features[0], own.objectness[0], (100, 120), "x", class_probs=own.class_probs[0],
        global_features=own.global_features[0], feature_map=own.feature_map[0],
    )  # fmt: skip
    sentence = chunk("A man holds the dog.", vocabulary)
    grounder = CaptionerGrounder(make_captioner(), vocabulary)
    answer = grounder.ground(regions, sentence)
    assert [phrase.text for phrase in answer.phrases] == ["A man", "the dog"]
    boxes = {tuple(box) for box in own.boxes[0].tolist()}
    assert all(phrase.boxes[0] in boxes for phrase in answer.phrases)
    assert grounder.ground(regions, sentence, [1]).phrases == answer.phrases[1:]
    with pytest.raises(DeixisError, match="phrase 7"):
        grounder.ground(regions, sentence, [7])
