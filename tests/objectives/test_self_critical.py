"""Self-critical training: eq. 18's gradient written out, eq. 19's reward, and that the reward rises."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from deixis.captioning import AttentionConfig, Captioner, CaptionerGrounder, Strategy
from deixis.data.batch import Batch, WordKind
from deixis.errors import BadRecipeError
from deixis.metrics.captions.cider import CiderD
from deixis.objectives import Context, SelfCritical, SelfCriticalOptions
from deixis.objectives.rewards import CaptionRewards
from deixis.text.vocabulary import END, PAD, UNKNOWN, Vocabulary

Make = Callable[..., Captioner]


def _references(batch: Batch) -> dict[str, list[list[int]]]:
    found: dict[str, list[list[int]]] = {name: [] for name in batch.regions.ids}
    for row, image in zip(batch.words, batch.image_of.tolist(), strict=True):
        found[batch.regions.ids[image]].append(row[row != PAD].tolist())
    return found


@pytest.fixture
def rewards(batch: Batch, vocabulary: Vocabulary) -> CaptionRewards:
    return CaptionRewards(_references(batch), vocabulary)


def test_rewards_are_a_weighted_sum_of_one_call_each(
    make_captioner: Make, batch: Batch, vocabulary: Vocabulary
) -> None:
    grounder = CaptionerGrounder(make_captioner(), vocabulary)
    calls: list[Batch] = []

    class Counting(CaptionerGrounder):
        def match(self, batch: Batch) -> Tensor:
            calls.append(batch)
            return super().match(batch)

    counting = Counting(make_captioner(), vocabulary)
    references = _references(batch)
    both = CaptionRewards(references, vocabulary, cider=1.0, bleu=0.5, grounders={"self": (counting, 2.0)})
    words = batch.words.flip(0)
    total, parts = both(words, batch.image_of, batch)
    ids = [batch.regions.ids[image] for image in batch.image_of.tolist()]
    said = [row[row != PAD].tolist() for row in words]
    cider = torch.from_numpy(CiderD.from_references(references, end=END).rewards(said, ids)).float()
    assert torch.allclose(parts["cider"], cider)
    assert torch.allclose(total, parts["cider"] + 0.5 * parts["bleu"] + 2.0 * parts["self"], atol=1e-5)
    assert len(calls) == 1
    assert torch.equal(calls[0].tags, torch.tensor(vocabulary.kinds)[words])  # tagged from the vocabulary
    assert torch.allclose(parts["self"], grounder.match(calls[0]))


def test_kinds_come_from_the_vocabulary(vocabulary: Vocabulary) -> None:
    kinds = torch.tensor(vocabulary.kinds)
    assert kinds[vocabulary.id("dog")] == WordKind.NOUN
    assert kinds[vocabulary.id("runs")] == WordKind.VERB
    assert kinds[vocabulary.id("red")] == WordKind.ADJECTIVE
    assert kinds[[PAD, END, vocabulary.id("of")]].tolist() == [0, 0, 0]


@pytest.mark.parametrize("attention", [AttentionConfig(), AttentionConfig(kind="distributed", branches=2)])
@pytest.mark.parametrize("baseline", ["greedy", "others"])
def test_gradient_is_that_of_equation_18(
    baseline: str,
    attention: AttentionConfig,
    rewards: CaptionRewards,
    make_captioner: Make,
    batch: Batch,
    vocabulary: Vocabulary,
) -> None:
    model = make_captioner(attention=attention).train()
    options = SelfCriticalOptions(samples=3, baseline=baseline, max_length=5)  # type: ignore[arg-type]
    objective = SelfCritical(vocabulary, options=options, rewards=rewards)
    loss = objective(Context(model, batch, generator=torch.Generator().manual_seed(4)))["self_critical"]
    loss.backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    assert model.training

    model.zero_grad()
    model.eval()
    encoded = model.encode(batch.regions)
    sampling = Strategy("sample", 5, samples=3, allow_unknown=True)
    drawn = model.search(encoded, sampling, torch.Generator().manual_seed(4)).words
    greedy = model.search(encoded, Strategy("greedy", 5)).words[:, 0]
    total, count = torch.zeros(()), 0
    for image in range(3):
        one = torch.tensor([image])
        scores = [float(rewards(drawn[image, s : s + 1], one, batch)[0]) for s in range(3)]
        for s in range(3):
            if baseline == "greedy":
                base = float(rewards(greedy[image : image + 1], one, batch)[0])
            else:
                base = (sum(scores) - scores[s]) / 2
            words = drawn[image, s]
            logs = model.decode(encoded.select(one), words.unsqueeze(0)).log_probs[:, 0]  # (K, T, V)
            for t, word in enumerate(words.tolist()):
                if word != PAD and t < 5:  # an end after five words was put there, not drawn
                    total = total - (scores[s] - base) * logs[:, t, word].exp().mean().log()
                    count += 1
    (total / count).backward()  # type: ignore[no-untyped-call]
    assert torch.allclose(loss, total / count, atol=1e-4)
    for name, p in model.named_parameters():
        if p.grad is not None:
            assert torch.allclose(found[name], p.grad, atol=1e-4), name


def test_a_baseline_out_of_reach_pushes_nowhere(make_captioner: Make, batch: Batch, vocabulary: Vocabulary) -> None:
    """If all samples are equally bad, the gradient is 0 on average: words that cannot be drawn must not gain by it."""
    model = make_captioner()

    def bad(words: Tensor, image_of: Tensor, _: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        greedy = torch.arange(len(words)) >= len(words) - 3  # the baselines of the three images come last
        return greedy.float(), {}

    options = SelfCriticalOptions(samples=4000, max_length=2)
    objective = SelfCritical(vocabulary, options=options, rewards=bad)  # type: ignore[arg-type]
    objective(Context(model, batch, generator=torch.Generator().manual_seed(0)))["self_critical"].backward()
    gradient = model.decoder.output.bias.grad
    assert gradient is not None
    assert gradient[[END, UNKNOWN]].abs().max() < 0.01  # either rule broken gives more than .03


def test_training_raises_the_reward(
    rewards: CaptionRewards, make_captioner: Make, batch: Batch, vocabulary: Vocabulary
) -> None:
    model = make_captioner()
    objective = SelfCritical(vocabulary, options=SelfCriticalOptions(samples=8, max_length=6), rewards=rewards)
    optimizer = torch.optim.Adam(model.parameters(), 0.03)
    source = torch.Generator().manual_seed(0)
    seen = []
    for _ in range(60):
        losses = objective(Context(model, batch, generator=source))
        optimizer.zero_grad()
        losses["self_critical"].backward()
        optimizer.step()
        seen.append(losses["_reward"].item())
    assert sum(seen[-5:]) > 1.25 * sum(seen[:5])
    assert losses["_reward_cider"].item() == pytest.approx(seen[-1])


def test_what_is_missing_is_named(vocabulary: Vocabulary) -> None:
    with pytest.raises(BadRecipeError, match="references"):
        SelfCritical(vocabulary)
    with pytest.raises(ValueError, match="samples 1"):
        SelfCriticalOptions(samples=1, baseline="others")
