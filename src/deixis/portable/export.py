"""Writing a model as ONNX files: each network of ``parts.py`` traced once, with small weights and names of its own."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from deixis.answering.load import Deixis
from deixis.atomic import whole_folder, write_json
from deixis.captioning.model.captioner import Captioner
from deixis.captioning.search.fluent import fluent_search
from deixis.defaults import BEAM
from deixis.errors import DeixisError, MissingExtraError
from deixis.grounding.base import WordGrounder
from deixis.portable import parts
from deixis.portable.manifest import FILE, NEXT, PARTS, READ, SAID, Curves, Manifest, file_facts
from deixis.portable.operators import OPSET, known_operators
from deixis.portable.page import write_page
from deixis.portable.smaller import in_half, in_int8
from deixis.regions.lite import LiteExtractor
from deixis.text.vocabulary import END

Told = Callable[[str], None]
Weights = Literal["half", "int8", "smallest"]
SAFE = ("begin", "choose", "match")
"""Networks with which eight bits a weight rarely change an answer, as was measured: docs/anywhere.md."""
EIGHT: Mapping[Weights, tuple[str, ...]] = {"half": (), "int8": SAFE, "smallest": PARTS}
FEW = 12
"""Regions of the second call of each network: fewer than any model looks at."""


@dataclass(frozen=True, slots=True)
class Traced:
    """A network, what it is called with, and the same with other numbers of regions, words and phrases."""

    network: nn.Module
    given: Mapping[str, Tensor]
    other: Mapping[str, Tensor]
    gives: Sequence[str]


def export_model(
    model: Deixis,
    folder: Path,
    *,
    beam: int = BEAM,
    weights: Weights = "half",
    runtime: Mapping[str, bytes] | None = None,
    told: Told = lambda name: None,
) -> Manifest:
    """Write a model that captions and grounds as ONNX files with ``model.json``; the folder must not exist yet.

    Args:
        model: Its regions must be those of :class:`~deixis.regions.lite.LiteExtractor`.
        folder: Where to.
        beam: Width of the search, which is fixed in the files.
        weights: "half" changes no number; "int8" keeps eight bits in the networks whose answers rarely change with
            them, "smallest" in all of them.
        runtime: Files of onnxruntime-web (:mod:`deixis.portable.runtime`); with them a page is written that answers
            in the browser.
        told: Hears the name of each file before it is made.
    """
    if folder.exists():
        raise DeixisError(f"{folder} exists already: choose another folder for the exported model")
    try:
        import onnx
    except ImportError as error:
        raise MissingExtraError("onnx", "onnx", "exporting a model") from error
    loaded = _Exportable(model, beam)
    made_with = {"torch": torch.__version__, "onnx": onnx.__version__, "opset": str(OPSET)}
    made_with["weights"] = weights
    with whole_folder(folder) as place:
        files = {}
        for name, traced in loaded.networks():
            told(f"{name}.onnx")
            data = onnx_bytes(traced)
            data = in_int8(data) if name in EIGHT[weights] else in_half(data)
            (place / f"{name}.onnx").write_bytes(data)
            files[f"{name}.onnx"] = file_facts(data)
        for name, words in ((SAID, model.captioner.vocabulary), (READ, model.words)):
            words.save(place / name)
            files[name] = file_facts((place / name).read_bytes())
        manifest = loaded.manifest(files, made_with)
        write_json(place / FILE, manifest.to_json())
        if runtime is not None:
            write_page(place, runtime)
    return manifest


class _Exportable:
    """The parts of a model, after the check that all of them can be written."""

    def __init__(self, model: Deixis, beam: int) -> None:
        if beam < 1:
            raise DeixisError(f"beam should be at least 1, got {beam}")
        extractor, captioner, grounder = model.extractor, model.captioner, model.grounder
        if not isinstance(extractor, LiteExtractor):
            raise DeixisError(f"only regions of the lite extractor are exported, and {model.name} has others")
        if grounder is None or not isinstance(grounder.model, WordGrounder) or grounder.model.reads_relations:
            raise DeixisError(f"{model.name} has no grounder that can be exported: take one that reads words, as lite")
        assert isinstance(captioner.model, Captioner)
        pointing = captioner.model.pointing(model.card.pointing)
        inputs = captioner.config.inputs, grounder.config.inputs
        if (
            captioner.model.branches
            or pointing.rule not in ("auto", "argmax")
            or captioner.model.decoder.cell_attention
        ):
            raise DeixisError(f"the captioner of {model.name} looks in a way that is not exported: soft attention is")
        if not all(one.whole_image for one in inputs):
            raise DeixisError(f"{model.name} does not look at the whole photo as a region, which the files need")
        self.model, self.beam, self.pointing = model, beam, pointing
        self.extractor, self.captioner, self.grounder = extractor, captioner.model, grounder.model
        self.looked, self.judged = inputs[0].regions, inputs[1].regions
        chosen = model.chooser is not None
        self.strategy = fluent_search(captioner.vocabulary, beam, chosen=chosen)

    def manifest(self, files: Mapping[str, Any], made_with: Mapping[str, str]) -> Manifest:
        """Return what stands in ``model.json``."""
        model, curves = self.model, self.grounder.calibration
        return Manifest(
            name=model.name,
            fingerprint=self.extractor.fingerprint,
            beam=self.beam,
            steps=self.strategy.max_length + 1,
            method=model.card.method,
            presence=model.card.presence,
            calibration=None if curves is None else Curves(curves.right, curves.found, curves.threshold),
            files=files,
            made_with=made_with,
        )

    @torch.no_grad()
    def networks(self) -> Any:
        """Yield each network by name; they are traced on noise, in which there are regions enough."""
        model = self.model
        look = parts.Look(self.extractor, model.max_regions)
        photo, wider = noise(256, 192), noise(320, 256)
        yield "look", Traced(look, photo, wider, parts.SEEN)
        seen = dict(zip(parts.SEEN, look(*photo.values()), strict=True))
        fewer = {name: value if name == "global_features" else value[-FEW:] for name, value in seen.items()}
        size = {"size": photo["size"]}
        begin = parts.Begin(self.captioner, self.strategy, self.looked)
        started = begin(*size.values(), *seen.values())
        yield "begin", Traced(begin, size | seen, size | fewer, begin.names)
        memory = begin.remember(seen, photo["size"])
        beams = begin.first(memory)
        step = parts.Step(begin, memory, beams)
        again = dict(zip(begin.names, begin(*size.values(), *fewer.values()), strict=True))
        now = dict(zip(begin.names, started, strict=True))
        yield "step", Traced(step, now, again, [*(f"{NEXT}{name}" for name in step.after), "finished"])
        after = dict(zip(step.after, step(*now.values()), strict=False))
        after_again = dict(zip(step.after, step(*again.values()), strict=False))
        choose = parts.Choose(begin, beams, model.chooser if self.beam > 1 else None, self.pointing, self.judged)
        steps = {"steps": torch.tensor(1)}
        yield (
            "choose",
            Traced(
                choose,
                size | steps | seen | {name: after[name] for name in choose.names},
                size | steps | fewer | {name: after_again[name] for name in choose.names},
                choose.gives,
            ),
        )
        one, two = _phrases([4, 5, 6], [(0, 2, 1)]), _phrases([4, 5, 6, 7, 8], [(0, 2, 1), (3, 5, 4)])
        yield (
            "point",
            Traced(parts.Point(self.grounder, self.judged), size | seen | one, size | fewer | two, parts.Point.gives),
        )
        words, more = {"words": torch.tensor([4, 5])}, {"words": torch.tensor([4, 5, 6])}
        yield (
            "match",
            Traced(parts.Match(self.grounder, self.judged), size | seen | words, size | fewer | more, ("matches",)),
        )


def noise(width: int, height: int) -> dict[str, Tensor]:
    """Return a photo of coloured squares, to trace *look* with."""
    made = torch.Generator().manual_seed(0)
    coarse = torch.randint(0, 256, (height // 32, width // 32, 3), generator=made)
    pixels = coarse.repeat_interleave(32, 0).repeat_interleave(32, 1).to(torch.uint8)
    return {"pixels": pixels, "size": torch.tensor([width, height], dtype=torch.float32)}


def _phrases(words: Sequence[int], spans: Sequence[tuple[int, int, int]]) -> dict[str, Tensor]:
    first, last, head = torch.tensor(spans).t().contiguous()
    tags = torch.ones(len(words) + 1, dtype=torch.long)
    return {"words": torch.tensor([*words, END]), "tags": tags, "first": first, "last": last, "head": head}


def onnx_bytes(traced: Traced) -> bytes:
    """Trace a network; axes whose length differs between the two calls are free in the file."""
    first, second = traced.network(*traced.given.values()), traced.network(*traced.other.values())
    first, second = ((out,) if isinstance(out, Tensor) else out for out in (first, second))
    pairs = [(key, value, traced.other[key]) for key, value in traced.given.items()]
    pairs += list(zip(traced.gives, first, second, strict=True))
    axes = {
        key: {at: f"{key}_{at}" for at, (a, b) in enumerate(zip(one.shape, two.shape, strict=True)) if a != b}
        for key, one, two in pairs
    }
    file = io.BytesIO()
    with warnings.catch_warnings(), known_operators():
        warnings.simplefilter("ignore")  # the tracer warns of every size it takes as given; the tests compare answers
        torch.onnx.export(
            traced.network,
            tuple(traced.given.values()),
            file,  # type: ignore[arg-type]
            input_names=list(traced.given),
            output_names=list(traced.gives),
            dynamic_axes={key: own for key, own in axes.items() if own},
            opset_version=OPSET,
            training=torch.onnx.TrainingMode.PRESERVE,  # keeps weights as they are: half of each is enough
            dynamo=False,
        )
    return file.getvalue()
