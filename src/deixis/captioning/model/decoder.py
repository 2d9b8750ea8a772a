"""The two-LSTM decoder (GVD, Up-Down, Cyclical eqs. 1-3), arranged so that a step does as little as possible.

The same model without any arranging is in ``textbook.py``; tests hold the two together.

An attention LSTM reads the image and the last word; its state asks the attention; a language LSTM reads what was seen
and says the word. Both are kept as ``nn.LSTMCell``s, so the weights have their textbook meaning, but a step of all
captions runs two matrix products: the attention LSTM's new state goes at once through the queries, the language LSTM's
input and its own recurrence; the language LSTM's new state through both recurrences. What depends on words and images
alone is multiplied for all steps before the loop. Weighted means commute with linear maps, so regions can go through
the language LSTM's input weights before the loop, once per image, and not each attended vector once per step.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.captioning.model.attention import Attention, Looked, SoftAttention
from deixis.captioning.model.config import AttentionConfig, DecoderConfig
from deixis.captioning.model.distributed_attention import DistributedAttention
from deixis.captioning.model.encoder import Encoded
from deixis.captioning.model.few_rows import linear
from deixis.captioning.model.multi_head import MultiHeadAttention
from deixis.registry import find_class


@dataclass(frozen=True, slots=True)
class Attend:
    """Weights given from outside, such as the localizer's, in place of the decoder's own attention."""

    regions: Tensor  # (C, T, N)
    cells: Tensor | None = None  # (C, T, M)


@dataclass(frozen=True, slots=True)
class State:
    """Where R = B * G rows stand between two steps. The recurrent parts of the next gates are already computed."""

    attention_cell: Tensor  # (R, H)
    attention_gates: Tensor  # (R, 4H) what both last states give to the attention LSTM
    language_cell: Tensor  # (K, R, H)
    language_gates: Tensor  # (K, R, 4H)
    query: Tensor  # (R, Q) of the last step, for attention that reads the previous state

    def select(self, rows: Tensor) -> State:
        """Return the state of other rows, as beam search needs."""
        return State(
            self.attention_cell[rows],
            self.attention_gates[rows],
            self.language_cell[:, rows],
            self.language_gates[:, rows],
            self.query[rows],
        )

    def first(self, count: int) -> State:
        """Return the state of the first ``count`` rows, as captions in order of length need when some have ended."""
        if count == len(self.attention_cell):
            return self
        return State(
            self.attention_cell[:count],
            self.attention_gates[:count],
            self.language_cell[:, :count],
            self.language_gates[:, :count],
            self.query[:count],
        )


@dataclass(frozen=True, slots=True)
class Memory:
    """What a pass over given images computes once: projected regions, gates of the image, and fused weights."""

    encoded: Encoded
    looked: Looked
    looked_cells: Looked | None
    image_gates: Tensor  # (B, 4H)
    region_gates: Tensor | None  # (B, N, 4H) regions through the language LSTM's input
    cell_gates: Tensor | None  # (B, M, 4H)
    from_attention: Tensor  # (Q + 8H, H)
    attention_bias: Tensor  # (Q + 8H,) the language LSTM's bias, at its place
    from_language: Tensor  # (4H or 8H, H)
    query_width: int


@dataclass(frozen=True, slots=True)
class Step:
    """What one step gives."""

    hidden: Tensor  # (K, R, H) of the language LSTM
    attention_hidden: Tensor  # (R, H)
    weights: Tensor  # (rows, R, N)
    state: State


def build_attention(config: AttentionConfig, width: int) -> Attention:
    """Return the attention a config names."""
    score = config.width or width
    if config.kind == "distributed":
        return DistributedAttention(
            width,
            width,
            score,
            config.branches,
            project_regions=config.project_regions,
            elimination=config.elimination,
            join=config.join,
            exclusion=config.exclusion,
        )
    if config.kind == "multi_head":
        return MultiHeadAttention(width, width, config.branches)
    if config.kind == "soft":
        return SoftAttention(width, width, score, project_regions=config.project_regions)
    own: Attention = find_class("attention", config.kind, "model.attention.kind")(width, config)
    return own


class Decoder(nn.Module):
    """Two LSTMs, an attention, a word embedding and an output layer."""

    def __init__(self, config: DecoderConfig, attention: AttentionConfig, width: int, words: int, *, cells: bool):
        super().__init__()
        self.config, self.width = config, width
        self.feedback = config.form != "gvd"
        self.reads_previous = attention.state == "previous"
        self.shares_state = attention.kind == "distributed" and attention.language_state == "shared"
        word_width = config.word_width or width
        self.embedding = nn.Embedding(words, word_width)
        # input columns: [word, image] and, unless GVD, the language LSTM's last state
        self.attention_lstm = nn.LSTMCell(word_width + width + (width if self.feedback else 0), width)
        # input columns: [attended regions, attention LSTM's state]
        self.language_lstm = nn.LSTMCell(2 * width, width)
        self.attention = build_attention(attention, width)
        self.cell_attention = SoftAttention(width, width, attention.width or width) if cells else None
        self.output = nn.Linear(width, words)
        if config.tie_embeddings:
            self.output.weight = self.embedding.weight
        self.word_dropout = nn.Dropout(config.word_dropout)
        self.output_dropout = nn.Dropout(config.output_dropout)
        nn.init.normal_(self.embedding.weight, std=word_width**-0.5 if config.tie_embeddings else 0.1)
        nn.init.zeros_(self.output.bias)

    def remember(self, encoded: Encoded, uses: int) -> Memory:
        """Prepare for ``uses`` looks at each image (captions times steps); many make it pay to map regions first."""
        width, word_width = self.width, self.embedding.embedding_dim
        looked = self.attention.prepare(encoded.regions, encoded.mask, encoded.frame)
        looked_cells: Looked | None = None
        if self.cell_attention is not None:
            assert encoded.cells is not None
            assert encoded.cell_mask is not None
            looked_cells = self.cell_attention.prepare(encoded.cells, encoded.cell_mask, encoded.cell_mask)
        attention, language = self.attention_lstm, self.language_lstm
        seen = language.weight_ih[:, :width]  # (4H, D)
        queries = [self.attention.query_weight]
        if self.cell_attention is not None:
            queries.append(self.cell_attention.query_weight)
        from_language = [language.weight_hh]
        if self.feedback:
            from_language.append(attention.weight_ih[:, word_width + width :])
        first = self.attention.mixes_regions and uses * self.attention.branches > encoded.regions.shape[1]
        return Memory(
            encoded=encoded,
            looked=looked,
            looked_cells=looked_cells,
            image_gates=F.linear(
                encoded.pooled,
                attention.weight_ih[:, word_width : word_width + width],
                attention.bias_ih + attention.bias_hh,
            ),
            region_gates=F.linear(encoded.regions, seen) if first else None,
            cell_gates=None if encoded.cells is None or self.cell_attention is None else F.linear(encoded.cells, seen),
            from_attention=torch.cat([*queries, language.weight_ih[:, width:], attention.weight_hh]),
            attention_bias=F.pad(
                language.bias_ih + language.bias_hh, (sum(len(query) for query in queries), 4 * width)
            ),
            from_language=torch.cat(from_language),
            query_width=sum(len(query) for query in queries),
        )

    def start(self, memory: Memory, group: int, *, branches: int | None = None) -> State:
        """Return the state before the first word of ``group`` captions per image: all zero."""
        rows, width = len(memory.encoded) * group, self.width
        count = self.attention.branches if branches is None else branches
        zeros = memory.image_gates.new_zeros
        return State(
            zeros(rows, width),
            zeros(rows, 4 * width),
            zeros(count, rows, width),
            zeros(count, rows, 4 * width),
            zeros(rows, memory.query_width),
        )

    def word_gates(self, memory: Memory, words: Tensor, image_of: Tensor | None = None) -> Tensor:
        """What words and images give to the attention LSTM: (S, R) for S steps -> (S, R, 4H).

        ``image_of`` (R,) names each row's image; None: R / B rows per image, in order.
        """
        embedded = self.word_dropout(self.embedding(words))
        gates = linear(embedded, self.attention_lstm.weight_ih[:, : embedded.shape[-1]])
        if image_of is not None:
            return gates + memory.image_gates[image_of]
        by_image = torch.unflatten(gates, 1, (len(memory.image_gates), -1))  # (S, B, G, 4H)
        return (by_image + memory.image_gates.unsqueeze(1)).flatten(1, 2)

    def step(
        self,
        memory: Memory,
        state: State,
        word_gates: Tensor,
        given_gates: Tensor | None = None,
        *,
        rows: Tensor | None = None,
        group: int = 1,
        look_at_cells: bool = True,
    ) -> Step:
        """Go one word on, (R, 4H) from :meth:`word_gates`.

        ``rows`` (R,) says at which of the B * ``group`` captions each row stands, where only some take part; weights
        are then given for all B * ``group``. None: all, in order.
        ``given_gates``: what regions chosen from outside give to the language LSTM, (R, 4H), in place of attention;
        ``look_at_cells`` then says whether the decoder still attends map cells itself.
        """
        width = self.width
        images = len(memory.encoded)
        attention_hidden, attention_cell = lstm(state.attention_gates + word_gates, state.attention_cell)  # (R, H)
        mapped = linear(attention_hidden, memory.from_attention, memory.attention_bias)
        query, to_language, recurrent = torch.split_with_sizes(mapped, [memory.query_width, 4 * width, 4 * width], -1)
        asked = state.query if self.reads_previous else query
        if rows is not None:  # attention works on whole images: put the queries at their places
            asked = asked.new_zeros(images * group, asked.shape[1]).index_copy(0, rows, asked)
        asked = torch.unflatten(asked, 0, (images, -1))  # (B, G, Q)
        if given_gates is None:
            weights, seen = self._look(memory, asked)  # (rows, B, G, N), (K, B, G, 4H)
            seen = _at(seen, rows)
        else:
            weights = query.new_zeros(0, *asked.shape[:2], memory.encoded.mask.shape[1])
            seen = given_gates.unsqueeze(0)
            if look_at_cells and memory.looked_cells is not None:
                seen = seen + _at(self._look_at_cells(memory, asked), rows)
        gates = state.language_gates + seen + to_language
        hidden, language_cell = lstm(gates, state.language_cell)  # (K, R, H)
        kept = hidden
        if self.shares_state and len(hidden) > 1:
            kept = hidden.mean(0, keepdim=True).expand_as(hidden)
            language_cell = language_cell.mean(0, keepdim=True).expand_as(hidden)
        language_gates, attention_gates = self._recur(memory, kept, recurrent)
        after = State(attention_cell, attention_gates, language_cell, language_gates, query)
        return Step(hidden, attention_hidden, weights.flatten(1, 2), after)

    def _recur(self, memory: Memory, hidden: Tensor, recurrent: Tensor) -> tuple[Tensor, Tensor]:
        """What the language LSTM's state gives to its own next gates and to the attention LSTM's."""
        width = self.width
        if len(hidden) == 1:
            mapped = linear(hidden, memory.from_language)
            if not self.feedback:
                return mapped, recurrent
            own, back = mapped.chunk(2, -1)
            return own, recurrent + back[0]
        if self.shares_state:
            own = F.linear(hidden[:1], memory.from_language[: 4 * width]).expand(len(hidden), -1, -1)
        else:
            own = F.linear(hidden, memory.from_language[: 4 * width])
        if not self.feedback:
            return own, recurrent
        # one attention LSTM serves all branches and reads the mean of their language states
        return own, recurrent + F.linear(hidden.mean(0), memory.from_language[4 * width :])

    def _look(self, memory: Memory, query: Tensor) -> tuple[Tensor, Tensor]:
        """Attend regions, and cells where there are any: (B, G, Q) -> weights (rows, B, G, N), gates (K, B, G, 4H)."""
        weights = self.attention(query[..., : len(self.attention.query_weight)], memory.looked)
        if memory.region_gates is not None:
            seen = weights @ memory.region_gates
        else:
            seen = F.linear(
                self.attention.attend(weights, memory.looked), self.language_lstm.weight_ih[:, : self.width]
            )
        if memory.looked_cells is not None:
            seen = seen + self._look_at_cells(memory, query)  # Distributed eq. 4
        return weights, seen

    def _look_at_cells(self, memory: Memory, query: Tensor) -> Tensor:
        assert self.cell_attention is not None
        assert memory.looked_cells is not None
        assert memory.cell_gates is not None
        own = query[..., len(self.attention.query_weight) :]
        gates: Tensor = self.cell_attention(own, memory.looked_cells) @ memory.cell_gates  # (1, B, G, 4H)
        return gates

    def given_gates(self, memory: Memory, attend: Attend) -> Tensor:
        """What outside weights give to the language LSTM at all steps at once, -> (C, T, 4H)."""
        images = len(memory.encoded)
        weights = torch.unflatten(attend.regions, 0, (images, -1))  # (B, G, T, N)
        flat = weights.flatten(1, 2)  # (B, G*T, N)
        if memory.region_gates is not None:
            seen = flat @ memory.region_gates
        else:
            mixed = self.attention.attend(flat.unsqueeze(0), memory.looked)[0]
            seen = F.linear(mixed, self.language_lstm.weight_ih[:, : self.width])
        if attend.cells is not None:
            assert memory.cell_gates is not None
            seen = seen + torch.unflatten(attend.cells, 0, (images, -1)).flatten(1, 2) @ memory.cell_gates
        return torch.unflatten(seen, 1, weights.shape[1:3]).flatten(0, 1)

    def words(self, hidden: Tensor) -> Tensor:
        """Logits of words, (..., H) -> (..., V)."""
        return linear(hidden, self.output.weight, self.output.bias)


def _at(seen: Tensor, rows: Tensor | None) -> Tensor:
    """Pick rows of what all captions saw, (K, B, G, 4H) -> (K, R, 4H)."""
    flat = seen.flatten(1, 2)
    return flat if rows is None else flat.index_select(1, rows)


def lstm(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """The LSTM's elementwise part, gates in PyTorch's order: (..., 4H), (..., H) -> hidden, cell."""
    i, f, g, o = gates.chunk(4, -1)
    cell = torch.addcmul(f.sigmoid() * cell, i.sigmoid(), g.tanh())
    return o.sigmoid() * cell.tanh(), cell
