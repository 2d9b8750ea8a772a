"""The captioner as a textbook writes it: read this first, and ``decoder.py`` for how it is made quick.

``LSTMCell`` per step, projections inside the loop, one caption per row. Regions are encoded as in GVD (Zhou et al.,
*Grounded Video Description*, CVPR 2019, section 3.2), the two LSTMs are those of Up-Down (Anderson et al., CVPR 2018,
section 3.2; Cyclical, equations 1 to 3). It has the parameters of :class:`deixis.captioning.Captioner` (form
``cyclical``, ``updown`` or ``gvd``, soft attention, region features and locations), under the same names, so both can
hold the same weights. ``benchmarks.captioner_speed`` compares their speed, the tests their results.

>>> book = TextbookCaptioner(features=12, words=24, width=16)
>>> log_probs, attention = book(features, places, mask, words)  # doctest: +SKIP
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class TextbookEncoder(nn.Module):
    """Feature and location, each layer-normalised, joined and projected."""

    def __init__(self, features: int, width: int, location: int, *, pool_regions: bool, dropout: float) -> None:
        super().__init__()
        self.pool_regions = pool_regions
        self.feature = nn.Linear(features, width)
        self.feature_norm = nn.LayerNorm(width)
        self.location = nn.Linear(5, location)
        self.location_norm = nn.LayerNorm(location)
        self.join = nn.Linear(width + location, width)
        self.dropout = nn.Dropout(dropout)
        if not pool_regions:
            self.image = nn.Linear(features, width)

    def forward(self, features: Tensor, places: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(C, N, D), (C, N, 5), (C, N) -> encoded regions (C, N, W), global vector (C, W)."""
        feature = self.feature_norm(self.dropout(F.relu(self.feature(features))))
        place = self.location_norm(self.dropout(F.relu(self.location(places))))
        encoded = self.dropout(F.relu(self.join(torch.cat([feature, place], -1))))
        share = mask.float().unsqueeze(-1) / mask.float().sum(1).view(-1, 1, 1)
        if self.pool_regions:
            return encoded, (encoded * share).sum(1)
        return encoded, self.dropout(F.relu(self.image((features * share).sum(1))))


class TextbookAttention(nn.Module):
    """w . tanh(W_h h + W_r r), softmax over regions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width)
        self.score = nn.Parameter(torch.empty(width).uniform_(-1, 1) * width**-0.5)

    def forward(self, state: Tensor, regions: Tensor, mask: Tensor) -> Tensor:
        """(C, H), (C, N, W), (C, N) -> (C, N)."""
        z = torch.tanh(self.key(regions) + self.query(state).unsqueeze(1)) @ self.score
        return z.masked_fill(~mask, -torch.inf).softmax(-1)


class TextbookDecoder(nn.Module):
    """Two LSTM cells, step by step."""

    def __init__(self, width: int, words: int, *, form: str, dropout: float) -> None:
        super().__init__()
        self.form, self.width = form, width
        self.embedding = nn.Embedding(words, width)
        self.attention_lstm = nn.LSTMCell(2 * width + (0 if form == "gvd" else width), width)
        self.language_lstm = nn.LSTMCell(2 * width, width)
        self.attention = TextbookAttention(width)
        self.output = nn.Linear(width, words)
        self.dropout = nn.Dropout(dropout)

    def start(self, rows: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Zero states."""
        return (
            torch.zeros(rows, self.width),
            torch.zeros(rows, self.width),
            torch.zeros(rows, self.width),
            torch.zeros(rows, self.width),
        )

    def step(
        self,
        word: Tensor,
        state: tuple[Tensor, Tensor, Tensor, Tensor],
        regions: Tensor,
        pooled: Tensor,
        mask: Tensor,
        attend: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Return logits (C, V), attention (C, N), states."""
        h1, c1, h2, c2 = state
        inputs = [self.dropout(self.embedding(word)), pooled] + ([] if self.form == "gvd" else [h2])
        h1, c1 = self.attention_lstm(torch.cat(inputs, -1), (h1, c1))
        weights = self.attention(h1, regions, mask) if attend is None else attend
        attended = (weights.unsqueeze(-1) * regions).sum(1)
        h2, c2 = self.language_lstm(torch.cat([attended, h1], -1), (h2, c2))
        return self.output(self.dropout(h2)), weights, (h1, c1, h2, c2)


class TextbookCaptioner(nn.Module):
    """Encoder and decoder, every caption with its own copy of the regions."""

    def __init__(
        self,
        features: int,
        words: int,
        width: int = 512,
        *,
        form: str = "cyclical",
        dropout: float = 0.5,
        begin: int = 1,
    ) -> None:
        super().__init__()
        self.begin = begin
        self.encoder = TextbookEncoder(features, width, 300, pool_regions=form == "updown", dropout=dropout)
        self.decoder = TextbookDecoder(width, words, form=form, dropout=dropout)

    def forward(
        self, features: Tensor, places: Tensor, mask: Tensor, words: Tensor, attend: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """One row per caption: (C, N, D), (C, N, 5), (C, N), (C, T) -> log-probs (C, T, V), attention (C, T, N)."""
        regions, pooled = self.encoder(features, places, mask)
        state = self.decoder.start(len(words))
        word = torch.full_like(words[:, 0], self.begin)
        logs, weights = [], []
        for t in range(words.shape[1]):
            given = None if attend is None else attend[:, t]
            logits, weight, state = self.decoder.step(word, state, regions, pooled, mask, given)
            logs.append(F.log_softmax(logits, -1))
            weights.append(weight)
            word = words[:, t]
        return torch.stack(logs, 1), torch.stack(weights, 1)

    def loss(self, features: Tensor, places: Tensor, mask: Tensor, words: Tensor) -> Tensor:
        """Mean cross entropy over real words."""
        logs, _ = self(features, places, mask, words)
        chosen = logs.gather(-1, words.unsqueeze(-1)).squeeze(-1)
        real = (words != 0).float()
        mean: Tensor = -(chosen * real).sum() / real.sum()
        return mean
