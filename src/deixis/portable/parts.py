"""The answer to a photo cut into six networks, each of which becomes one ONNX file.

What the answering room does with tensors is inside them, so that whoever runs them, in Python or in a browser, writes
none of it again: *look* finds regions, *begin* and *step* search for captions (whoever runs them repeats *step* until
it says that all are done), *choose* takes the best, *point* finds phrases, and *match* says how surely a word is there.
All of it is for one photo: nothing is padded. Each network calls the code that torch answers with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from deixis.answering.choosing import Chooser
from deixis.captioning.answer import Pointing, priors
from deixis.captioning.model.captioner import Captioner
from deixis.captioning.model.decoder import Memory, State
from deixis.captioning.search.beam import Beams, first_beams, next_beams, ranked
from deixis.captioning.search.rules import Rules
from deixis.captioning.search.strategy import Strategy
from deixis.data.batch import Batch, PhraseBatch, RegionBatch
from deixis.grounding.base import WordGrounder
from deixis.grounding.calibration import signals
from deixis.portable.operators import suppress
from deixis.regions.lite import LiteExtractor
from deixis.regions.network.select import select
from deixis.regions.store.as_stored import as_stored
from deixis.text.vocabulary import BEGIN, END, PAD
from deixis.types import Regions

SEEN = ("boxes", "features", "objectness", "regionness", "class_probs", "global_features")
"""What *look* gives and the others take, each of them as much of it as it needs."""

MANY = 10**6
"""Looks at a photo for which its regions surely go through the language LSTM first: no file depends on their number."""


def region_batch(seen: Mapping[str, Tensor], size: Tensor, most: int | None = None) -> RegionBatch:
    """Return what *look* gave as a batch of one photo; with ``most``, its best so many regions and the whole photo."""

    def rows(value: Tensor) -> Tensor:
        kept = value if most is None else torch.cat([value[:-1][:most], value[-1:]])
        return kept.unsqueeze(0)

    objectness = rows(seen["objectness"])  # (1, N)
    real = torch.ones_like(objectness, dtype=torch.bool)
    return RegionBatch(
        ids=("",),
        features=rows(seen["features"]),
        boxes=rows(seen["boxes"]),
        mask=real,
        sizes=size.unsqueeze(0),
        objectness=objectness,
        frame=torch.zeros_like(real, dtype=torch.long),
        regionness=rows(seen["regionness"]),
        class_probs=rows(seen["class_probs"]),
        global_features=seen["global_features"].unsqueeze(0),
        frame_mask=torch.ones_like(real[:, :1]),
    )


class Look(nn.Module):
    """Pixels to regions."""

    def __init__(self, extractor: LiteExtractor, count: int) -> None:
        super().__init__()
        self.network, self.ranking, self.count = extractor.exact_network(), extractor.ranking, count

    def forward(self, pixels: Tensor, size: Tensor) -> tuple[Tensor, ...]:
        """Find the regions of pixels 0-255 (H, W, 3), sides multiples of 32, of a photo of ``size`` (2,)."""
        network = self.network
        image = pixels.permute(2, 0, 1).unsqueeze(0).float()
        shape = image.shape[-1], image.shape[-2]
        dense = network(image)
        kept = select(dense.scores[0], dense.boxes[0], shape, self.count, self.ranking, suppress)
        shown = network.describe_boxes(dense, kept.boxes, torch.zeros_like(kept.objectness, dtype=torch.long))
        scale = size / kept.boxes[-1, 2:]  # the last box is the whole of the input
        found = Regions(
            kept.boxes * scale.repeat(2),
            shown.features,
            kept.objectness,
            (0, 0),
            "",
            regionness=kept.regionness,
            class_probs=shown.classes,
            global_features=network.describe_whole(dense),
        )
        stored = as_stored(found)
        return tuple(getattr(stored, name).float() for name in SEEN)


class Searching(nn.Module):
    """What *begin* and *step* share: a captioner, its search, and what depends on the photo, as plain tensors.

    Beams have a fixed length here: padding, BEGIN, and what was said stands at the end.
    """

    def __init__(self, captioner: Captioner, strategy: Strategy, regions: int) -> None:
        super().__init__()
        self.captioner, self.strategy, self.rules, self.regions = captioner, strategy, Rules(strategy), regions

    def remember(self, seen: Mapping[str, Tensor], size: Tensor) -> Memory:
        """Do what is done once for a photo."""
        encoded = self.captioner.encode(region_batch(seen, size, self.regions))
        return self.captioner.decoder.remember(encoded, uses=MANY)

    def first(self, memory: Memory) -> Beams:
        """Return beams that have said nothing, at their full length."""
        beams, length = first_beams(self.captioner.decoder, memory, self.strategy), self.strategy.max_length + 1
        padding = torch.full((len(beams.said), length), PAD)
        rows = self.captioner.decoder.attention.rows
        shape = (rows, len(beams.said), length)
        nowhere = torch.zeros_like(memory.encoded.mask[0], dtype=torch.float32)  # (N,)
        return replace(
            beams,
            said=torch.cat([padding, beams.said], 1),
            logs=torch.zeros(shape[1:]),
            attention=nowhere.expand(*shape, -1),
            voted=torch.zeros(shape, dtype=torch.bool),
        )


class Begin(Searching):
    """Regions to the tensors that *step* takes: what the decoder remembers of the photo, and empty beams."""

    names: tuple[str, ...] = ()

    def forward(self, size: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        """Take the size of the photo (2,) and the regions."""
        memory = self.remember(dict(zip(SEEN, given, strict=True)), size)
        found = photo_tensors(memory) | beam_tensors(self.first(memory))
        self.names = tuple(found)
        return tuple(found.values())


class Step(Searching):
    """Beams to beams that have said one word more; the last output says whether all are done."""

    def __init__(self, begin: Begin, memory: Memory, beams: Beams) -> None:
        super().__init__(begin.captioner, begin.strategy, begin.regions)
        self.memory, self.beams = memory, beams
        self.names = (*photo_tensors(memory), *beam_tensors(beams))
        self.after = tuple(beam_tensors(beams))

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        """Take what *begin* or the step before gave."""
        tensors = dict(zip(self.names, given, strict=True))
        memory, beams = with_photo(self.memory, tensors), with_beams(self.beams, tensors)
        later = next_beams(self.captioner.decoder, memory, beams, self.rules)
        later = replace(
            later,
            said=later.said[:, 1:],
            logs=later.logs[:, 1:],
            attention=later.attention[:, :, 1:],
            voted=later.voted[:, :, 1:],
        )
        found = beam_tensors(later)
        return *(found[name] for name in self.after), later.done.all()


class Choose(nn.Module):
    """The beams of a photo to its caption, and where the captioner looked for each word."""

    names = ("said", "logs", "attention", "voted", "score", "length")
    gives = ("word_ids", "word_boxes", "word_shares", "caption_score")

    def __init__(self, begin: Begin, beams: Beams, chooser: Chooser | None, pointing: Pointing, judged: int) -> None:
        super().__init__()
        self.begin, self.beams, self.chooser, self.pointing, self.judged = begin, beams, chooser, pointing, judged
        if chooser is not None and isinstance(chooser.grounder, nn.Module):
            self.grounder = chooser.grounder

    def forward(self, size: Tensor, steps: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        """Return ids of words (T,), the box of each (T, 4), the weight behind it (T,) and the caption's score."""
        seen = dict(zip(SEEN, given[: len(SEEN)], strict=True))
        found: dict[str, Any] = dict(zip(self.names, given[len(SEEN) :], strict=True))
        beams = self._from_the_start(replace(self.beams, **found), steps)
        generated = ranked(beams, self.begin.rules)
        if self.chooser is not None:
            generated = self.chooser(generated, region_batch(seen, size, self.judged))
        words, logs = generated.words[0, 0], generated.log_probs[0, 0]  # (T,)
        regions = region_batch(seen, size, self.begin.regions)
        weights, voted = generated.attention[:, 0, 0], generated.voted[:, 0, 0].unsqueeze(-1)  # (K, T, N), (K, T, 1)
        mean = (weights * voted).sum(0) / voted.sum(0).clamp(min=1) * priors(regions, self.pointing)  # (T, N)
        real = words != PAD
        score = (logs * real).sum() / real.sum().clamp(min=1)
        return words, regions.boxes[0][mean.argmax(1)], mean.amax(1), score

    def _from_the_start(self, beams: Beams, steps: Tensor) -> Beams:
        """Return beams whose captions stand at the start of their rows, padded at the end."""
        length = self.begin.strategy.max_length + 1
        place = torch.arange(length) + length - steps
        real, place = place < length, place.clamp(max=length - 1)  # (T,)
        words = torch.where(real, beams.said[:, 1:][:, place], PAD)
        return replace(
            beams,
            said=torch.cat([torch.full((len(words), 1), BEGIN), words], 1),
            logs=torch.where(real, beams.logs[:, place], 0.0),
            attention=beams.attention[:, :, place],
            voted=beams.voted[:, :, place],
        )


class Point(nn.Module):
    """Phrases of a sentence to boxes."""

    names = ("words", "tags", "first", "last", "head")
    gives = ("ranked_boxes", "ranked_shares", "signals")

    def __init__(self, grounder: WordGrounder, judged: int) -> None:
        super().__init__()
        self.grounder, self.judged = grounder, judged

    def forward(self, size: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        """Return for each phrase its best boxes (P, R, 4), their shares (P, R), and what a calibration asks (P, 3)."""
        seen = dict(zip(SEEN, given[: len(SEEN)], strict=True))
        words, tags, first, last, head = given[len(SEEN) :]
        phrases = PhraseBatch(torch.zeros_like(first), first, last, head)
        batch = Batch(
            region_batch(seen, size, self.judged),
            words.unsqueeze(0),
            torch.zeros(1, dtype=torch.long),
            tags.unsqueeze(0),
            phrases,
        )
        logits, boxes = self.grounder.ranked_boxes(batch)
        shares = torch.softmax(logits.float(), -1)  # (P, N)
        order = torch.argsort(shares, descending=True, stable=True)[:, : self.grounder.answers.ranked]  # (P, R)
        asked = signals(logits, boxes, self.grounder.phrase_presence(batch)).float()
        return boxes.gather(1, order.unsqueeze(-1).expand(-1, -1, 4)), shares.gather(1, order), asked


class Match(nn.Module):
    """How well each word alone fits the photo."""

    def __init__(self, grounder: WordGrounder, judged: int) -> None:
        super().__init__()
        self.grounder, self.judged = grounder, judged
        self.register_buffer("kinds", torch.tensor(grounder.vocabulary.kinds))

    def forward(self, size: Tensor, *given: Tensor) -> Tensor:
        """Take ids of words (C,), after the regions; return their matching scores (C,)."""
        words = given[-1].unsqueeze(1)
        words = torch.cat([words, torch.full_like(words, END)], 1)  # (C, 2)
        kinds = self.get_buffer("kinds")[words]
        regions = region_batch(dict(zip(SEEN, given[:-1], strict=True)), size, self.judged)
        return self.grounder.match(Batch(regions, words, torch.zeros_like(words[:, 0]), kinds))


def photo_tensors(memory: Memory) -> dict[str, Tensor]:
    """Return what a decoder remembers of a photo; the rest of it is weights."""
    found = {"image_gates": memory.image_gates, "region_gates": memory.region_gates, "cell_gates": memory.cell_gates}
    for name, looked in (("regions", memory.looked), ("cells", memory.looked_cells)):
        if looked is not None:
            found |= {f"{name}_seen": looked.regions, f"{name}_keys": looked.keys, f"{name}_values": looked.values}
            found |= {f"{name}_real": looked.mask, f"{name}_frame": looked.frame}
    return {name: value for name, value in found.items() if value is not None}


def with_photo(memory: Memory, tensors: Mapping[str, Tensor]) -> Memory:
    """Return what is remembered of another photo."""

    def looked(name: str, before: Any) -> Any:
        if before is None:
            return None
        own = {"regions": "seen", "keys": "keys", "values": "values", "mask": "real", "frame": "frame"}
        return replace(before, **{key: tensors.get(f"{name}_{value}") for key, value in own.items()})

    regions = looked("regions", memory.looked)
    gates: dict[str, Any] = {name: tensors.get(name) for name in ("image_gates", "region_gates", "cell_gates")}
    return replace(
        memory,
        encoded=replace(memory.encoded, regions=regions.regions, mask=regions.mask, frame=regions.frame),
        looked=regions,
        looked_cells=looked("cells", memory.looked_cells),
        **gates,
    )


def beam_tensors(beams: Beams) -> dict[str, Tensor]:
    """Return beams as named tensors."""
    own = {item.name: getattr(beams, item.name) for item in fields(Beams) if item.name != "state"}
    return own | {f"state_{item.name}": getattr(beams.state, item.name) for item in fields(State)}


def with_beams(beams: Beams, tensors: Mapping[str, Tensor]) -> Beams:
    """Return beams made of named tensors."""
    state = State(**{item.name: tensors[f"state_{item.name}"] for item in fields(State)})
    own: dict[str, Any] = {item.name: tensors[item.name] for item in fields(Beams) if item.name != "state"}
    return replace(beams, state=state, **own)
