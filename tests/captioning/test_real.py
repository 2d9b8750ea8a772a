"""Every objective on real captions and boxes of a few photos, with the perfect detector's regions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from deixis.captioning import (
    AttentionConfig,
    Captioner,
    CaptionerConfig,
    CaptionerGrounder,
    DecoderConfig,
    EncoderConfig,
    InputSizes,
)
from deixis.data.batch import Batch
from deixis.data.collate import CaptionEncoder, collate, encode_example
from deixis.data.flickr30k_entities import Flickr30kEntities
from deixis.data.pad import pad_regions
from deixis.objectives import (
    Context,
    CrossEntropy,
    Cyclical,
    Distillation,
    Objective,
    SelfCritical,
    SelfCriticalOptions,
    Supervision,
)
from deixis.objectives.rewards import CaptionRewards
from deixis.objectives.targets import word_targets
from deixis.regions.perfect_detector import perfect_regions
from deixis.text.vocabulary import Vocabulary
from deixis.types import Example, Phrase, Sentence

pytestmark = pytest.mark.recipe
PHOTOS = 16


@dataclass
class Real:
    """Photos with their captions as one batch, and what belongs to them."""

    batch: Batch
    sizes: InputSizes
    vocabulary: Vocabulary
    references: Mapping[str, list[tuple[int, ...]]]

    def captioner(self, **attention: object) -> Captioner:
        torch.manual_seed(0)
        encoder = EncoderConfig(feature="class", dropout=0.1)
        decoder = DecoderConfig(word_dropout=0.1, output_dropout=0.1)
        config = CaptionerConfig(64, encoder, decoder, AttentionConfig(**attention))  # type: ignore[arg-type]
        return Captioner(config, self.sizes).train()

    def train(
        self, model: Captioner, objectives: Iterable[tuple[Objective, float]], steps: int, lr: float = 1e-2
    ) -> list[dict[str, float]]:
        parts = list(objectives)
        owned = [p for objective, _ in parts for p in objective.parameters()]
        optimizer = torch.optim.Adam([*model.parameters(), *owned], lr)
        source, seen = torch.Generator().manual_seed(0), []
        for step in range(steps):
            context = Context(model, self.batch, step=step, generator=source)
            losses = {}
            total = torch.zeros(())
            for objective, weight in parts:
                for name, value in objective(context).items():
                    losses[name] = value.item()
                    if not name.startswith("_"):
                        total = total + weight * value
            optimizer.zero_grad()
            total.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            seen.append(losses)
        return seen

    def accuracy(self, model: Captioner) -> float:
        """Share of annotated words whose most attended region is right."""
        attention = CaptionerGrounder(model, self.vocabulary).attention(self.batch)
        targets = word_targets(self.batch, "test")
        best = attention[targets.caption, targets.position].argmax(1, keepdim=True)
        return float(targets.positive().gather(1, best).float().mean())

    @property
    def chance(self) -> float:
        """What guessing a region gives."""
        targets = word_targets(self.batch, "test")
        real = self.batch.regions.mask[targets.image].sum(1)
        return float((targets.positive().sum(1) / real).mean())


def _heads_tagged(sentence: Sentence) -> Sentence:
    heads = {phrase.last - 1 for phrase in sentence.phrases}
    tokens = (replace(token, tag="NN" if at in heads else "IN") for at, token in enumerate(sentence.tokens))
    return replace(sentence, tokens=tuple(tokens))


@pytest.fixture(scope="module")
def real(shared: Path) -> Real:
    reader = Flickr30kEntities(shared / "data" / "flickr8k-entities")
    examples: list[Example] = []
    for example in reader.examples("val"):
        captions = tuple(_heads_tagged(sentence) for sentence in example.captions)
        examples.append(replace(example, captions=captions))
        if len(examples) == PHOTOS:
            break
    vocabulary = Vocabulary.build((sentence for one in examples for sentence in one.captions), 3)
    counts: dict[str, int] = {}
    for one in examples:
        for sentence in one.captions:
            for phrase in sentence.phrases:
                word = sentence.tokens[phrase.last - 1].text.lower()
                counts[word] = counts.get(word, 0) + 1
    classes = tuple(sorted(word for word, count in counts.items() if count > 2 and word in vocabulary))

    def label(sentence: Sentence, phrase: Phrase) -> int:
        word = sentence.tokens[phrase.last - 1].text.lower()
        return classes.index(word) if word in classes else -1

    regions = [perfect_regions(one, label, classes) for one in examples]
    encoder = CaptionEncoder(vocabulary, 16, supervision=True, label=label)
    encoded = [encode_example(one, encoder) for one in examples]
    batch = collate(encoded, pad_regions(regions, [one.id for one in examples]), supervision=True)
    references = {one.id: [caption.words for caption in one.captions] for one in encoded}
    return Real(batch, InputSizes.of(regions[0], len(vocabulary)), vocabulary, references)


@pytest.fixture(scope="module")
def baseline(real: Real) -> Captioner:
    model = real.captioner()
    seen = real.train(model, [(CrossEntropy(), 1.0)], 80)
    assert seen[-1]["cross_entropy"] < 0.7 * seen[0]["cross_entropy"]
    return model


def _copy(model: Captioner, make: Callable[[], Captioner]) -> Captioner:
    other = make()
    other.load_state_dict(model.state_dict())
    return other


def test_the_localizer_beats_chance(real: Real, baseline: Captioner) -> None:
    model = _copy(baseline, real.captioner)
    cyclical = Cyclical(model)
    seen = real.train(model, [(CrossEntropy(), 0.5), (cyclical, 0.5)], 80)
    assert seen[-1]["reconstruction"] < 0.8 * seen[0]["reconstruction"]
    model.eval()
    found = cyclical.eval().accuracy(Context(model, real.batch))
    assert found["localizer_accuracy"].item() > 1.3 * real.chance


def test_distillation_moves_attention_towards_the_teacher(real: Real, baseline: Captioner) -> None:
    teacher = _copy(baseline, real.captioner)
    supervised = real.train(teacher, [(CrossEntropy(), 1.0), (Supervision(), 0.2)], 40)
    assert supervised[-1]["supervision"] < 0.8 * supervised[0]["supervision"]
    assert real.accuracy(teacher) > real.accuracy(baseline)
    student = _copy(baseline, real.captioner)
    distillation = Distillation(teacher=CaptionerGrounder(teacher.eval(), real.vocabulary))
    seen = real.train(student, [(CrossEntropy(), 1.0), (distillation, 0.5)], 40)
    assert seen[-1]["distillation"] < 0.6 * seen[0]["distillation"]
    assert real.accuracy(student) > real.accuracy(baseline)


def test_self_critical_training_raises_the_reward(real: Real, baseline: Captioner) -> None:
    model = _copy(baseline, real.captioner)
    rewards = CaptionRewards(real.references, real.vocabulary)
    objective = SelfCritical(real.vocabulary, options=SelfCriticalOptions(max_length=14), rewards=rewards)
    seen = real.train(model, [(objective, 1.0)], 100, lr=4e-3)
    early = sum(step["_reward"] for step in seen[:20])  # of so many, because a step's samples earn more or less by luck
    late = sum(step["_reward"] for step in seen[-20:])
    assert late > 1.1 * early


def test_all_of_them_at_once(real: Real, baseline: Captioner) -> None:
    """Distributed attention, cyclical, distillation and self-critical training in one stage."""
    model = real.captioner(kind="distributed", branches=3)
    known = {name: value for name, value in baseline.state_dict().items() if ".attention." not in name}
    model.load_state_dict(known, strict=False)
    model.active_branches = 1
    real.train(model, [(CrossEntropy(), 1.0)], 10)
    model.active_branches = 3
    teacher = CaptionerGrounder(baseline, real.vocabulary)
    rewards = CaptionRewards(real.references, real.vocabulary, bleu=0.5, grounders={"teacher": (teacher, 0.1)})
    options = SelfCriticalOptions(max_length=14, samples=2)
    seen = real.train(
        model,
        [
            (CrossEntropy(), 0.5),
            (Cyclical(model), 0.5),
            (Distillation(teacher=teacher), 0.1),
            (SelfCritical(real.vocabulary, options=options, rewards=rewards), 0.1),
        ],
        12,
    )
    for name in ("cross_entropy", "reconstruction", "distillation"):
        assert seen[-1][name] < seen[0][name], name
    captions = model.caption(real.batch.regions, real.vocabulary)
    assert all(caption.text.endswith(".") for caption in captions)
    assert any(word.boxes for caption in captions for word in caption.words)
