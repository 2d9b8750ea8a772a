"""What may be said next, and one step of any search."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from deixis.captioning.model.decoder import Decoder, Memory, State
from deixis.captioning.search.strategy import Strategy
from deixis.text.vocabulary import BEGIN, END, PAD, UNKNOWN


class Rules:
    """What may be said next, given what was said: applied to log-probabilities before any search looks at them."""

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.never = [PAD, BEGIN] if strategy.allow_unknown else [PAD, BEGIN, UNKNOWN]

    def __call__(self, log_probs: Tensor, said: Tensor) -> Tensor:
        """Return (K, R, V) with forbidden words at -inf; ``said`` is (R, t)."""
        strategy, length = self.strategy, said.shape[1]
        log_probs[..., self.never] = -torch.inf
        if length == strategy.max_length:  # only the end is left to say
            end = log_probs[..., END].clone()
            log_probs.fill_(-torch.inf)
            log_probs[..., END] = end
            return log_probs
        if strategy.bad_endings and length:
            bad = torch.isin(said[:, -1], torch.tensor(strategy.bad_endings, device=said.device))
            log_probs[..., END] = log_probs[..., END].masked_fill(bad, -torch.inf)
        if strategy.joining and length > 1:
            joining = torch.tensor(strategy.joining, device=said.device)
            small = torch.tensor(strategy.bad_endings, device=said.device)  # "a", "in": nothing that is joined
            row = (torch.isin(said[:, -1], joining) & ~torch.isin(said[:, -2], small)).nonzero().squeeze(1)
            log_probs[:, row, said[row, -2]] = -torch.inf  # "white and", so not "white"
            if length > 3:  # "a cup and a", so not "cup"
                again = torch.isin(said[:, -2], joining) & (said[:, -1] == said[:, -4])
                row = (again & ~torch.isin(said[:, -3], small)).nonzero().squeeze(1)
                log_probs[:, row, said[row, -3]] = -torch.inf
        if strategy.once and length:
            row, at = self._said_for_good(said).nonzero(as_tuple=True)
            log_probs[:, row, said[row, at]] = -torch.inf
        if strategy.block_trigrams and length > 2:
            seen = (said[:, :-2] == said[:, -2:-1]) & (said[:, 1:-1] == said[:, -1:])  # (R, t - 2)
            row, at = seen.nonzero(as_tuple=True)
            log_probs[:, row, said[row, at + 2]] = -torch.inf
        return log_probs

    def _said_for_good(self, said: Tensor) -> Tensor:
        """Which words (R, t) are not to be said again: those to be said once, with nothing joined since."""
        once = torch.isin(said, torch.tensor(self.strategy.once, device=said.device))
        joins = torch.isin(said, torch.tensor(self.strategy.joining, dtype=torch.long, device=said.device))
        joined_since = joins.flip(1).cumsum(1).flip(1) > 0  # a joining word here or later
        return once & ~joined_since

    def trimmed(self, words: Tensor) -> Tensor:
        """Cut bad endings off captions that ran into the length limit, and were ended there by force, (R, T)."""
        limit = self.strategy.max_length
        if not self.strategy.bad_endings or words.shape[1] <= limit:
            return words
        bad = torch.isin(words[:, :limit], torch.tensor(self.strategy.bad_endings, device=words.device))
        run = bad.flip(1).to(torch.long).cumprod(1).sum(1)  # bad words at the limit, (R,)
        end = torch.where(words[:, limit] == END, limit - run, limit).unsqueeze(1)  # (R, 1)
        at = torch.arange(words.shape[1], device=words.device)
        return words.masked_fill(at > end, PAD).masked_fill((at == end) & (words != PAD), END)


def advance(decoder: Decoder, memory: Memory, state: State, words: Tensor) -> tuple[Tensor, Tensor, State]:
    """Feed one word per row, (R,) -> log-probabilities (K, R, V), weights (rows, R, N), state."""
    step = decoder.step(memory, state, decoder.word_gates(memory, words.unsqueeze(0))[0])
    return F.log_softmax(decoder.words(step.hidden).float(), -1), step.weights, step.state
