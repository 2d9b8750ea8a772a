"""Beam search, and diverse beam search (beams in groups that avoid each other's words), for all images at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from deixis.captioning.model.decoded import mean_log_probs
from deixis.captioning.model.decoder import Decoder, Memory, State
from deixis.captioning.model.encoder import Encoded
from deixis.captioning.search.rules import Rules, advance
from deixis.captioning.search.strategy import Generated, Strategy
from deixis.text.vocabulary import BEGIN, END, PAD


@dataclass(frozen=True, slots=True)
class Beams:
    """The W best beginnings of B captions, R = B * W rows, and where the decoder stands after them."""

    said: Tensor  # (R, 1 + t) BEGIN, then the words so far
    logs: Tensor  # (R, t) log-probability of each word
    attention: Tensor  # (K, R, t, N) where each word looked
    voted: Tensor  # (K, R, t) whether a branch's regions belong to the word that was kept
    score: Tensor  # (B, W) sum of log-probabilities
    length: Tensor  # (B, W) words with the end
    done: Tensor  # (B, W)
    state: State


def beam_search(decoder: Decoder, encoded: Encoded, strategy: Strategy) -> Generated:
    """Keep the W best beginnings of each image; finished captions stay in the race with the score they have.

    Branches are averaged (DESIGN: "beam search ranks by the mean").
    """
    memory = decoder.remember(encoded, uses=strategy.width * strategy.max_length)
    beams, rules = first_beams(decoder, memory, strategy), Rules(strategy)
    for _ in range(strategy.max_length + 1):
        beams = next_beams(decoder, memory, beams, rules)
        if bool(beams.done.all()):
            break
    return ranked(beams, rules)


def first_beams(decoder: Decoder, memory: Memory, strategy: Strategy) -> Beams:
    """Return beams that have said nothing yet."""
    images, width, device = len(memory.encoded), strategy.width, memory.encoded.regions.device
    rows, regions = images * width, memory.encoded.mask.shape[1]
    score = torch.full((images, width), -torch.inf, device=device)
    score[:, :: width // _groups(strategy)] = 0.0  # all beams of a group start alike: only one of them counts
    return Beams(
        torch.full((rows, 1), BEGIN, device=device),
        torch.empty(rows, 0, device=device),
        torch.empty(decoder.attention.rows, rows, 0, regions, device=device),
        torch.empty(decoder.attention.rows, rows, 0, dtype=torch.bool, device=device),
        score,
        torch.zeros(images, width, device=device),
        torch.zeros(images, width, dtype=torch.bool, device=device),
        decoder.start(memory, width),
    )


def next_beams(decoder: Decoder, memory: Memory, beams: Beams, rules: Rules) -> Beams:
    """Say one word more."""
    images, width = beams.score.shape
    log_probs, weights, state = advance(decoder, memory, beams.state, beams.said[:, -1])
    log_probs = rules(log_probs, beams.said)
    branch_words = log_probs.argmax(-1)  # (K, R)
    mean = torch.unflatten(mean_log_probs(log_probs), 0, (images, width))  # (B, W, V)
    pad = torch.arange(mean.shape[-1], device=mean.device) == PAD  # a finished caption goes on as it is
    mean = torch.where(beams.done.unsqueeze(-1), torch.where(pad, 0.0, -torch.inf), mean)
    beam, word = _choose(beams.score, mean, beams.length, beams.done, rules.strategy)
    first_row = torch.arange(images, device=mean.device).unsqueeze(1) * width  # (B, 1)
    rows, last = (first_row + beam).flatten(), word.flatten()
    step_log = mean.flatten(0, 1)[rows, last]  # (R,)
    agree = branch_words[:, rows] == last
    agree = (agree | ~agree.any(0)).expand(len(weights), -1)  # heads say one word together: all of them count
    return Beams(
        torch.cat([beams.said[rows], last.unsqueeze(1)], 1),
        torch.cat([beams.logs[rows], step_log.unsqueeze(1)], 1),
        torch.cat([beams.attention[:, rows], weights[:, rows].unsqueeze(2)], 2),
        torch.cat([beams.voted[:, rows], agree.unsqueeze(2)], 2),
        beams.score.gather(1, beam) + torch.unflatten(step_log, 0, (images, width)),
        beams.length.gather(1, beam) + ~beams.done.gather(1, beam),
        beams.done.gather(1, beam) | (word == END),
        state.select(rows),
    )


def ranked(beams: Beams, rules: Rules) -> Generated:
    """Return the captions of all beams, best first."""
    images, width = beams.score.shape
    ranking = beams.score / beams.length.clamp(min=1) ** rules.strategy.length_power
    order = ranking.argsort(stable=True, dim=1, descending=True)
    rows = (torch.arange(images, device=order.device).unsqueeze(1) * width + order).flatten()
    words = rules.trimmed(beams.said[rows, 1:])
    return Generated(
        torch.unflatten(words, 0, (images, width)),
        torch.unflatten(beams.logs[rows].masked_fill(words == PAD, 0.0), 0, (images, width)),
        ranking.gather(1, order),
        torch.unflatten(beams.attention[:, rows], 1, (images, width)),
        torch.unflatten(beams.voted[:, rows], 1, (images, width)),
    )


def _groups(strategy: Strategy) -> int:
    return strategy.groups if strategy.kind == "diverse_beam" else 1


def _choose(score: Tensor, mean: Tensor, length: Tensor, done: Tensor, strategy: Strategy) -> tuple[Tensor, Tensor]:
    """Pick the next beams: which beam each comes from and which word it says, (B, W) both.

    The penalty of a diverse search ranks candidates but does not enter their scores.
    """
    images, width, words = mean.shape
    groups = _groups(strategy)
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
