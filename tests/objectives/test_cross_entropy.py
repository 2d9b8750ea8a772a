from __future__ import annotations

from collections.abc import Callable

import torch

from deixis.captioning import AttentionConfig, Captioner
from deixis.data.batch import Batch
from deixis.objectives import Context, CrossEntropy, CrossEntropyOptions


def test_mean_over_words_and_branches(make_captioner: Callable[..., Captioner], batch: Batch) -> None:
    model = make_captioner(attention=AttentionConfig(kind="distributed", branches=3)).train()
    model.decode(model.encode(batch.regions), batch.words, batch.image_of)
    model.eval()
    context = Context(model, batch)
    loss = CrossEntropy()(context)["cross_entropy"]
    logs = context.first().log_probs  # (K, C, T, V)
    total, count = 0.0, 0
    for k in range(3):
        for c in range(len(batch)):
            for t, word in enumerate(batch.words[c].tolist()):
                if word != 0:
                    total -= float(logs[k, c, t, word])
                    count += 1
    assert abs(loss.item() - total / count) < 1e-4


def test_scheduled_sampling_rises_in_steps(make_captioner: Callable[..., Captioner], batch: Batch) -> None:
    options = CrossEntropyOptions(sampling_rise=0.05, sampling_every=5, sampling_most=0.25)
    objective = CrossEntropy(options).train()
    model = make_captioner()
    found = []
    for epoch in (0.0, 4.9, 5.0, 12.0, 24.9, 25.0, 70.0):
        sampling = objective.sampling(Context(model, batch, epoch=epoch))
        found.append(0.0 if sampling is None else round(sampling.probability, 4))
    assert found == [0.0, 0.0, 0.05, 0.1, 0.2, 0.25, 0.25]
    assert objective.eval().sampling(Context(model, batch, epoch=30.0)) is None


def test_the_first_pass_is_computed_once_and_learns(make_captioner: Callable[..., Captioner], batch: Batch) -> None:
    model = make_captioner()
    context = Context(model, batch)
    assert context.first() is context.first()
    assert context.encoded() is context.encoded()
    optimizer = torch.optim.Adam(model.parameters(), 0.03)
    losses = []
    for _ in range(40):
        loss = CrossEntropy()(Context(model, batch))["cross_entropy"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
