"""Search for captions: greedy with a vote among branches, and sampling here; beams in ``beam.py``.

Every search returns the attention of the words it kept, so each of them is grounded.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from deixis.captioning.model.config import AttentionConfig
from deixis.captioning.model.decoded import mean_log_probs
from deixis.captioning.model.decoder import Decoder
from deixis.captioning.model.encoder import Encoded
from deixis.captioning.search.beam import beam_search
from deixis.captioning.search.rules import Rules, advance
from deixis.captioning.search.sampling import draw, narrow
from deixis.captioning.search.strategy import Generated, Strategy
from deixis.text.vocabulary import BEGIN, END, PAD


def run_search(
    decoder: Decoder,
    encoded: Encoded,
    strategy: Strategy,
    generator: torch.Generator | None,
    attention: AttentionConfig,
) -> Generated:
    """Search as the strategy says. Beams and samples go by the mean over branches, greedy search by their vote."""

    def sampled(logs: Tensor) -> Tensor:
        mean = mean_log_probs(logs)
        return draw(narrow(mean, strategy.temperature, strategy.top_k, strategy.top_p), generator)

    if strategy.kind == "greedy":
        return _word_by_word(decoder, encoded, strategy, 1, lambda logs: vote(logs, attention))
    if strategy.kind == "sample":
        return _word_by_word(decoder, encoded, strategy, strategy.samples, sampled)
    return beam_search(decoder, encoded, strategy)


def vote(log_probs: Tensor, config: AttentionConfig) -> Tensor:
    """The word that most branches say (Distributed section 3.3), (K, R, V) -> (R,).

    Ties, which the paper leaves open, go to the word with the larger mean probability, or to the first branch's.
    """
    branches = len(log_probs)
    if branches == 1 or config.vote == "mean":
        return mean_log_probs(log_probs).argmax(-1)
    said = log_probs.argmax(-1)  # (K, R)
    votes = (said.unsqueeze(0) == said.unsqueeze(1)).sum(0).to(log_probs.dtype)  # (K, R) for each branch's word
    if config.ties == "mean":
        mean = mean_log_probs(log_probs).exp()
        votes = 2 * votes + mean.gather(-1, said.T).T  # a probability never outweighs a vote
    else:
        votes = branches * votes - torch.arange(branches, device=votes.device).unsqueeze(1)
    return said.gather(0, votes.argmax(0, keepdim=True)).squeeze(0)


def voters(log_probs: Tensor, words: Tensor, rows: int) -> Tensor:
    """Which rows of attention belong to the kept words, (rows, R): branches that would have said it, else all.

    Heads of multi-head attention say one word together, so all of them count.
    """
    if rows != len(log_probs):
        return torch.ones(rows, len(words), dtype=torch.bool, device=words.device)
    agree = log_probs.argmax(-1) == words
    return agree | ~agree.any(0)


def _word_by_word(
    decoder: Decoder, encoded: Encoded, strategy: Strategy, group: int, choose: Callable[[Tensor], Tensor]
) -> Generated:
    memory = decoder.remember(encoded, uses=group * strategy.max_length)
    state = decoder.start(memory, group)
    rules = Rules(strategy)
    rows = len(encoded) * group
    device = encoded.regions.device
    said = torch.full((rows, 1), BEGIN, device=device)
    done = torch.zeros(rows, dtype=torch.bool, device=device)
    logs: list[Tensor] = []
    attention: list[Tensor] = []
    voted: list[Tensor] = []
    for _ in range(strategy.max_length + 1):
        log_probs, weights, state = advance(decoder, memory, state, said[:, -1])
        log_probs = rules(log_probs, said)
        word = choose(log_probs)
        attention.append(weights)
        voted.append(voters(log_probs, word, len(weights)))
        logs.append(mean_log_probs(log_probs).gather(-1, word.unsqueeze(-1)).squeeze(-1).masked_fill(done, 0.0))
        said = torch.cat([said, word.masked_fill(done, PAD).unsqueeze(1)], 1)
        done = done | (word == END)
        if bool(done.all()):
            break
    words = rules.trimmed(said[:, 1:])
    step_logs = torch.stack(logs, 1).masked_fill(words == PAD, 0.0)
    shape = (len(encoded), group)
    return Generated(
        torch.unflatten(words, 0, shape),
        torch.unflatten(step_logs, 0, shape),
        torch.unflatten(step_logs.sum(1), 0, shape),
        torch.unflatten(torch.stack(attention, 2), 1, shape),
        torch.unflatten(torch.stack(voted, 2), 1, shape),
    )
