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
        """Return (K, R, V) with forbidden words at -inf; ``said`` is (R, 1 + t): BEGIN, then what was said.

        A search of a fixed length has padding before that; neither is a word that any rule is about.
        """
        strategy, length = self.strategy, said.shape[1]
        never = torch.tensor(self.never, device=said.device)
        log_probs = _forbid(log_probs, never.expand(len(said), -1))
        end = log_probs[..., END]  # (K, R)
        if strategy.bad_endings and length:
            bad = torch.isin(said[:, -1:], torch.tensor(strategy.bad_endings, device=said.device))
            log_probs = _forbid(log_probs, torch.full_like(said[:, -1:], END), bad)
        if strategy.joining and length > 1:
            joining = torch.tensor(strategy.joining, device=said.device)
            small = torch.tensor(strategy.bad_endings, device=said.device)  # "a", "in": nothing that is joined
            joined = torch.isin(said[:, -1], joining) & ~torch.isin(said[:, -2], small)
            log_probs = _forbid(log_probs, said[:, -2:-1], joined.unsqueeze(1))  # "white and", so not "white"
            if length > 3:  # "a cup and a", so not "cup"
                again = torch.isin(said[:, -2], joining) & (said[:, -1] == said[:, -4])
                again = again & ~torch.isin(said[:, -3], small)
                log_probs = _forbid(log_probs, said[:, -3:-2], again.unsqueeze(1))
        if strategy.once and length:
            log_probs = _forbid(log_probs, said, self._said_for_good(said))
        if strategy.block_trigrams and length > 2:
            seen = (said[:, :-2] == said[:, -2:-1]) & (said[:, 1:-1] == said[:, -1:])  # (R, t - 2)
            log_probs = _forbid(log_probs, said[:, 2:], seen)
        return self._ended(log_probs, end, said)

    def _ended(self, log_probs: Tensor, end: Tensor, said: Tensor) -> Tensor:
        """Leave only the end to say where as much was said as may be, (K, R, V)."""
        limit = self.strategy.max_length
        if said.shape[1] <= limit:
            return log_probs
        full = said[:, -limit - 1] == BEGIN  # (R,)
        is_end = torch.arange(log_probs.shape[-1], device=said.device) == END  # (V,)
        only = torch.where(is_end, end.unsqueeze(-1), -torch.inf)  # (K, R, V)
        return torch.where(full.unsqueeze(-1), only, log_probs)

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


def _forbid(log_probs: Tensor, words: Tensor, where: Tensor | None = None) -> Tensor:
    """Put words (R, m) of each row to -inf in (K, R, V) where they are meant; the others become PAD, never said."""
    meant = words if where is None else torch.where(where, words, PAD)
    return log_probs.scatter(-1, meant.expand(len(log_probs), -1, -1), -torch.inf)


def advance(decoder: Decoder, memory: Memory, state: State, words: Tensor) -> tuple[Tensor, Tensor, State]:
    """Feed one word per row, (R,) -> log-probabilities (K, R, V), weights (rows, R, N), state."""
    step = decoder.step(memory, state, decoder.word_gates(memory, words.unsqueeze(0))[0])
    return F.log_softmax(decoder.words(step.hidden).float(), -1), step.weights, step.state
