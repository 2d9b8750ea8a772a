"""Beam search, and diverse beam search (beams in groups that avoid each other's words), for all images at once."""

from __future__ import annotations

import torch
from torch import Tensor

from deixis.captioning.model.decoded import mean_log_probs
from deixis.captioning.model.decoder import Decoder
from deixis.captioning.model.encoder import Encoded
from deixis.captioning.search.rules import Rules, advance
from deixis.captioning.search.strategy import Generated, Strategy
from deixis.text.vocabulary import BEGIN, END, PAD


def beam_search(decoder: Decoder, encoded: Encoded, strategy: Strategy) -> Generated:
    """Keep the W best beginnings of each image; finished captions stay in the race with the score they have.

    Branches are averaged (DESIGN: "beam search ranks by the mean"). Attention is kept per step and followed back along
    the beam that each kept caption came through.
    """
    images, width = len(encoded), strategy.width
    groups = strategy.groups if strategy.kind == "diverse_beam" else 1
    memory = decoder.remember(encoded, uses=width * strategy.max_length)
    state = decoder.start(memory, width)
    rules = Rules(strategy)
    device = encoded.regions.device
    first_row = torch.arange(images, device=device).unsqueeze(1) * width  # (B, 1)
    said = torch.empty(images * width, 0, dtype=torch.long, device=device)
    logs = torch.empty(images * width, 0, device=device)
    last = torch.full((images * width,), BEGIN, device=device)
    done = torch.zeros(images, width, dtype=torch.bool, device=device)
    score = torch.full((images, width), -torch.inf, device=device)
    score[:, :: width // groups] = 0.0  # all beams of a group start alike: only one of them counts
    length = torch.zeros(images, width, device=device)
    came_from: list[Tensor] = []
    attention: list[Tensor] = []
    voted: list[Tensor] = []
    for _ in range(strategy.max_length + 1):
        log_probs, weights, state = advance(decoder, memory, state, last)
        log_probs = rules(log_probs, said)
        branch_words = log_probs.argmax(-1)
        mean = torch.unflatten(mean_log_probs(log_probs), 0, (images, width))  # (B, W, V)
        mean = mean.masked_fill(done.unsqueeze(-1), -torch.inf)
        mean[..., PAD] = torch.where(done, 0.0, mean[..., PAD])  # a finished caption goes on as it is
        beam, word = _choose(score, mean, length, done, groups, strategy)
        rows = (first_row + beam).flatten()
        step_log = mean[torch.arange(images, device=device).unsqueeze(1), beam, word]  # (B, W)
        score = score.gather(1, beam) + step_log
        length = length.gather(1, beam) + ~done.gather(1, beam)
        last = word.flatten()
        said = torch.cat([said[rows], last.unsqueeze(1)], 1)
        logs = torch.cat([logs[rows], step_log.flatten().unsqueeze(1)], 1)
        came_from.append(rows)
        attention.append(weights)
        agree = branch_words[:, rows] == last
        agree = agree | ~agree.any(0)
        voted.append(agree.expand(len(weights), -1))
        done = done.gather(1, beam) | (word == END)
        state = state.select(rows)
        if bool(done.all()):
            break
    ranking = score / length.clamp(min=1) ** strategy.length_power
    order = ranking.argsort(stable=True, dim=1, descending=True)
    rows = (first_row + order).flatten()
    shape = (images, width)
    words = rules.trimmed(said[rows])
    at = rows
    for step in reversed(range(len(came_from))):  # back along the beams that each kept caption came through
        voted[step] = voted[step][:, at]
        at = came_from[step][at]
        attention[step] = attention[step][:, at]
    return Generated(
        torch.unflatten(words, 0, shape),
        torch.unflatten(logs[rows].masked_fill(words == PAD, 0.0), 0, shape),
        ranking.gather(1, order),
        torch.unflatten(torch.stack(attention, 2), 1, shape),
        torch.unflatten(torch.stack(voted, 2), 1, shape),
    )


def _choose(
    score: Tensor, mean: Tensor, length: Tensor, done: Tensor, groups: int, strategy: Strategy
) -> tuple[Tensor, Tensor]:
    """Pick the next beams: which beam each comes from and which word it says, (B, W) both.

    The penalty of a diverse search ranks candidates but does not enter their scores.
    """
    images, width, words = mean.shape
    each = width // groups
    used = mean.new_zeros(images, words)  # how often earlier groups said a word at this step
    beams: list[Tensor] = []
    chosen: list[Tensor] = []
    new_length = (length + ~done).clamp(min=1) ** strategy.length_power  # (B, W)
    for group in range(groups):
        own = slice(group * each, (group + 1) * each)
        total = (score[:, own].unsqueeze(-1) + mean[:, own]) / new_length[:, own].unsqueeze(-1)  # (B, w, V)
        if groups > 1:
            total = total - strategy.diversity * used.unsqueeze(1)
        _, flat = total.flatten(1).topk(each, dim=1)
        beams.append(flat // words + group * each)
        chosen.append(flat % words)
        if groups > 1:
            said = chosen[-1]
            used.scatter_add_(1, said, (said != PAD).to(used.dtype))
    return torch.cat(beams, 1), torch.cat(chosen, 1)
