"""The captioner: encode images once, decode given captions in one pass, search for new ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.captioning.answer import Pointing, grounded_captions
from deixis.captioning.model.adopt import adopt
from deixis.captioning.model.config import CaptionerConfig
from deixis.captioning.model.decoded import Decoded
from deixis.captioning.model.decoder import Attend, Decoder, Memory
from deixis.captioning.model.distributed_attention import DistributedAttention
from deixis.captioning.model.encoder import Encoded, RegionEncoder
from deixis.captioning.model.packing import Places
from deixis.captioning.search.run import run_search
from deixis.captioning.search.sampling import draw
from deixis.captioning.search.strategy import Generated, Strategy
from deixis.data.batch import RegionBatch
from deixis.data.sizes import InputSizes
from deixis.interfaces import Grounder, Model
from deixis.text.vocabulary import BEGIN, Vocabulary
from deixis.types import GroundedCaption

ATTENTION = "decoder.attention."
"""Where the attention's weights stand among a captioner's."""


@dataclass(frozen=True, slots=True)
class ScheduledSampling:
    """With this probability a step is fed a word sampled from the model in place of the ground truth's."""

    probability: float
    generator: torch.Generator | None = None


class Captioner(Model):
    """An encoder, a decoder and an attention (``config``) for data of given ``sizes``."""

    part = "captioner"
    reads_regions = tuple(f"encoder.{name}." for name in ("feature", "detector", "classifier", "image", "cell"))

    def __init__(self, config: CaptionerConfig, sizes: InputSizes) -> None:
        super().__init__()
        self.config, self.sizes = config, sizes
        regions = config.region_width or config.width
        self.encoder = RegionEncoder(
            config.encoder, sizes, regions, pool_regions=config.decoder.form == "updown", image_width=config.width
        )
        self.decoder = Decoder(
            config.decoder,
            config.attention,
            config.width,
            sizes.words,
            cells=config.encoder.map != "none",
            region_width=regions,
        )

    @property
    def branches(self) -> bool:
        """Whether its rows of attention are branches of distributed attention, each with a word of its own."""
        return isinstance(self.decoder.attention, DistributedAttention)

    @property
    def active_branches(self) -> int:
        """How many branches of distributed attention are in use; settable, for a staged start."""
        attention = self.decoder.attention
        return attention.active if isinstance(attention, DistributedAttention) else 1

    @active_branches.setter
    def active_branches(self, count: int) -> None:
        attention = self.decoder.attention
        if not isinstance(attention, DistributedAttention):
            raise ValueError(f"active_branches {count} needs attention: distributed")
        if not 1 <= count <= attention.total:
            raise ValueError(f"active_branches {count} is not between 1 and {attention.total}")
        attention.active = count

    @property
    def freeze_detector(self) -> bool:
        """Whether the encoder's detector layer and classifiers stay as they are; settable per stage."""
        return self.encoder.freeze_detector

    @freeze_detector.setter
    def freeze_detector(self, frozen: bool) -> None:
        self.encoder.freeze_detector = frozen

    def adopt(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return another captioner's weights in the form of this one, whose attention may be of another kind."""
        own = {name.removeprefix(ATTENTION): value for name, value in weights.items() if name.startswith(ATTENTION)}
        rest = {name: value for name, value in weights.items() if not name.startswith(ATTENTION)}
        return rest | {ATTENTION + name: value for name, value in adopt(self.decoder.attention, own).items()}

    def as_grounder(self, vocabulary: Vocabulary) -> Grounder:
        """Return the captioner as a grounder, which points where it looks."""
        from deixis.captioning.as_grounder import CaptionerGrounder  # it holds a captioner

        return CaptionerGrounder(self, vocabulary)

    def encode(self, regions: RegionBatch) -> Encoded:
        """Do all region work, once per image."""
        encoded: Encoded = self.encoder(regions)
        return encoded

    def decode(
        self,
        encoded: Encoded,
        words: Tensor,
        image_of: Tensor | None = None,
        *,
        attend: Attend | None = None,
        feed: ScheduledSampling | None = None,
    ) -> Decoded:
        """Run C captions with teacher forcing, (C, T).

        ``image_of`` (C,) says which image each caption is about; None: C / B captions each, in order. ``attend``
        replaces the attention (then there is one branch); ``feed`` replaces some of the fed words by samples.
        """
        encoded = encoded.for_captions(image_of, len(words))
        group = len(words) // max(len(encoded), 1)
        decoder, places = self.decoder, Places.of(words)
        memory = decoder.remember(encoded, uses=len(places.caption) // max(len(encoded), 1))
        state = decoder.start(memory, group, branches=None if attend is None else 1)
        begun = torch.cat([torch.full_like(words[:, :1], BEGIN), words[:, :-1]], 1)
        fed = begun[places.caption, places.time].unsqueeze(0)  # (1, M)
        gates = places.split(decoder.word_gates(memory, fed, places.caption // max(group, 1))[0])
        given: tuple[Tensor, ...] | None = None
        if attend is not None:
            given = places.split(decoder.given_gates(memory, attend)[places.caption, places.time])
        hidden: list[Tensor] = []
        states: list[Tensor] = []
        weights: list[Tensor] = []
        for t, count in enumerate(places.counts):
            now, state = gates[t], state.first(count)
            rows = None if places.in_order and count == len(words) else places.order[:count]
            if feed is not None and t > 0 and feed.probability > 0:
                now = self._sampled(now, memory, hidden[-1][:, :count], feed, places.order[:count] // group)
            step = decoder.step(
                memory,
                state,
                now,
                None if given is None else given[t],
                rows=rows,
                group=group,
                look_at_cells=attend is None or attend.cells is None,
            )
            state = step.state
            hidden.append(step.hidden)
            states.append(step.attention_hidden)
            weights.append(step.weights)
        return Decoded(
            decoder,
            places.mask,
            decoder.output_dropout(places.joined(hidden, 1)),
            _over_time(weights, places.mask, encoded.mask.shape[1]),
            places.joined(states, 0),
        )

    def search(
        self,
        encoded: Encoded,
        strategy: Strategy = Strategy(),  # noqa: B008 - frozen
        generator: torch.Generator | None = None,
    ) -> Generated:
        """Find captions for B encoded images, without gradient and without dropout in the decoder."""
        with torch.no_grad(), answering(self.decoder):
            return run_search(self.decoder, encoded, strategy, generator, self.config.attention)

    def generate(
        self,
        regions: RegionBatch,
        strategy: Strategy = Strategy(),  # noqa: B008 - frozen
        generator: torch.Generator | None = None,
    ) -> Generated:
        """Encode and search, for answering."""
        with torch.no_grad(), answering(self):
            return self.search(self.encode(regions), strategy, generator)

    def caption(
        self,
        regions: RegionBatch,
        vocabulary: Vocabulary,
        strategy: Strategy = Strategy(),  # noqa: B008 - frozen
        pointing: Pointing = Pointing(),  # noqa: B008 - frozen
        generator: torch.Generator | None = None,
    ) -> list[GroundedCaption]:
        """Return for each image its best caption, with the boxes of its words."""
        generated = self.generate(regions, strategy, generator)
        return grounded_captions(generated, regions, vocabulary, self.pointing(pointing), branches=self.branches)

    def pointing(self, asked: Pointing) -> Pointing:
        """Return how its attention becomes boxes: as asked, and as its branches were made to."""
        return replace(asked, agreeing=asked.agreeing or self.config.attention.union == "agreeing")

    def _sampled(
        self, gates: Tensor, memory: Memory, hidden: Tensor, feed: ScheduledSampling, image_of: Tensor
    ) -> Tensor:
        """Replace the word gates of some captions by those of words sampled from the last step, (R, 4H)."""
        chosen = torch.rand(len(gates), generator=feed.generator) < feed.probability
        rows = chosen.nonzero().squeeze(1).to(gates.device)
        if len(rows) == 0:
            return gates
        decoder = self.decoder
        with torch.no_grad():
            probabilities = decoder.words(hidden[:, rows]).float().softmax(-1).mean(0)
            words = draw(probabilities, feed.generator)
        sampled = decoder.word_gates(memory, words.unsqueeze(0), image_of[rows])[0]
        return gates.index_copy(0, rows, sampled.to(gates.dtype))


def _over_time(weights: list[Tensor], mask: Tensor, regions: int) -> Tensor:
    """Stack the attention of the steps, zero where padded, (rows, C, N) each -> (rows, C, T, N)."""
    captions, steps = mask.shape
    if not weights:
        return torch.zeros(1, captions, steps, regions, device=mask.device)
    stacked = F.pad(torch.stack(weights, 2), (0, 0, 0, steps - len(weights)))
    return stacked * mask.unsqueeze(-1)


@contextmanager
def answering(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode, and every part of it back afterwards."""
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True
