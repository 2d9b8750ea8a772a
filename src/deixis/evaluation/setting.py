"""What is measured, on what, and how: a model, the images of a dataset with their regions, and the options."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypedDict

from deixis.answering.asking import Asking, Typed
from deixis.answering.load import Deixis
from deixis.answering.work import Source
from deixis.data.collate import RegionSource, fields_to_read, sizes_of
from deixis.data.dataset import Dataset
from deixis.data.locations import find
from deixis.data.open import open_dataset
from deixis.data.region_cache import regions_of
from deixis.engines import Engine
from deixis.errors import DeixisError, TooFewError
from deixis.metrics.report import Report, Section, write_texts
from deixis.models.names import LoadedModel
from deixis.regions.extraction.tasks import Settings
from deixis.regions.store.reader import RegionStore
from deixis.types import Example, GroundedCaption, Regions

AMONG = 100
"""Images among which captions are found when a captioner and a grounder are measured together."""
FEW = 30
"""Below so many photos in a drawn split a report says that they tell nothing of two models."""


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """How to measure; the fields are the options of ``deixis evaluate``."""

    split: str | None = None
    """None: ``test``, drawn where the dataset has no splits; else the only split there is."""
    store: str | None = None
    reader: str | None = None
    classes: Path | None = None
    limit: int | None = None
    skip: int = 0
    """Images at the beginning of the split that are left out, such as those that something was fitted on."""
    asking: Asking | None = None
    """None: as people ask a bundle; a captioner alone greedily and without rules of fluency, as papers report."""
    typed: Typed = field(default_factory=Typed)
    """What is asked otherwise than that."""
    metrics: tuple[str, ...] = ("bleu", "rouge", "cider")
    replicates: int = 1000
    seed: int = 0
    batch: int = 64
    retrieval: int | None = None
    """Images among which a grounder has to find the right one for a caption, and the other way round; 0 for none.
    None: 100 for a captioner with a grounder, else none."""
    engine: Engine = "local"
    """Where regions are found if there is no store of them; ``ray`` captions there too, if ``source`` is given."""
    processes: int = 2
    source: Source | None = None
    """What workers on other machines load."""

    def asked_of(self, model: Deixis) -> Asking:
        """Return how the model is asked."""
        usual = self.asking or (Asking() if model.grounder is not None else Asking(beam=1, fluent=False))
        return self.typed.asked_of(model, usual)

    def among(self, model: Deixis) -> int:
        """Return how many images captions are found among."""
        both = model.grounder is not None and "attention" in model.methods
        return (AMONG if both else 0) if self.retrieval is None else self.retrieval


class Drawing(TypedDict):
    """How intervals are drawn, as the sections take it."""

    replicates: int
    seed: int


@dataclass(slots=True)
class Evaluation:
    """A model, the images to measure it on with their regions, and what came out so far."""

    model: Deixis
    dataset: Dataset
    examples: tuple[Example, ...]
    store: RegionStore
    options: EvaluationOptions
    sections: list[Section] = field(default_factory=list)
    captions: list[GroundedCaption] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds per image of each part."""

    @property
    def asking(self) -> Asking:
        """How the model is asked."""
        return self.options.asked_of(self.model)

    @property
    def drawing(self) -> Drawing:
        """How intervals are drawn."""
        return Drawing(replicates=self.options.replicates, seed=self.options.seed)

    def seen(self, images: Sequence[str]) -> list[Regions]:
        """Return the regions of images, with all that any part of the model looks at."""
        sizes = sizes_of(self.examples)
        return regions_for(self.model, self.store, [(image, sizes.get(image)) for image in images])

    def source(self, part: LoadedModel) -> RegionSource:
        """Return the regions as batches of what one part of the model is fed."""
        inputs = part.config.inputs
        fields = fields_to_read(self.store, maps=inputs.maps, word_probs=inputs.word_probs)
        return RegionSource((self.store,), inputs.regions, fields, inputs.whole_image, sizes_of(self.examples))

    def report(self) -> Report:
        """Return everything as a report."""
        times = [f"{name}: {1000 * value:.0f} ms per image" for name, value in self.seconds.items()]
        return Report(
            submission=f"{self.model.part.kind} {self.model.name}",
            reference=str(self.dataset.path),
            split=str(self.options.split),
            region_source=self.store.fingerprint,
            sections=tuple(self.sections),
            lemmas="rules for nouns; spaCy for the references where it is installed",
            model=self.model.name,
            notes=(*self.notes, *times),
        )

    def write(self, folder: Path) -> list[Path]:
        """Write the report and the captions into a folder, and return the files."""
        written = self.report().write(folder)
        if self.captions:
            lines = "".join(json.dumps(caption.to_json(), ensure_ascii=False) + "\n" for caption in self.captions)
            written += write_texts(folder, {"captions.jsonl": lines})
        return written


def regions_for(
    model: Deixis, store: RegionStore, images: Sequence[tuple[str, tuple[int, int] | None]]
) -> list[Regions]:
    """Return the regions of images, in pixels of the given sizes, with all that any part of a model looks at."""
    parts = [part.config.inputs for part in (model.part, model.grounder) if part is not None]
    maps, words = any(part.maps for part in parts), any(part.word_probs for part in parts)
    fields = fields_to_read(store, maps=maps, word_probs=words)
    return [store.get(image, fields, size=size) for image, size in images]


def prepare(model: Deixis, dataset: str, options: EvaluationOptions) -> Evaluation:
    """Open a dataset and find its regions; what the model cannot be asked is refused before."""
    options.asked_of(model)
    data = open_dataset(find(dataset, "data"), options.reader)
    asked, options = options.split, replace(options, split=choose_split(data, options.split))
    examples = [example for example in data.examples(options.split) if example.captions]
    if not examples:
        raise TooFewError(f"split '{options.split}' of {data.path} has no image with a caption: nothing to measure on")
    examples = examples[options.skip :][: options.limit]
    if not examples:
        raise TooFewError(f"split '{options.split}' of {data.path} has nothing left after the first {options.skip}")
    store = _regions(model, data, examples, options)
    missing = [example for example in examples if example.id not in store]
    work = Evaluation(model, data, tuple(examples), store, options)
    if asked is None and options.split in data.drawn_splits:
        work.notes.append(note_on_drawn(data, options.split, len(examples)))
    if missing:
        if len(missing) == len(examples):
            raise DeixisError(f"{store.path} holds the regions of none of the {len(examples)} images")
        work.examples = tuple(example for example in examples if example.id in store)
        work.notes.append(f"{len(missing)} images have no regions ({missing[0].id} for one) and were left out")
    return work


def note_on_drawn(data: Dataset, split: str, count: int) -> str:
    """Return the note on a split drawn from a folder without splits, of which ``count`` images are measured."""
    note = (
        f"{data.path.name} has no splits: measured on the {count} images drawn as {split}, which training leaves out; "
        "--split all takes every image"
    )
    drawn = len(data.ids(split))
    if drawn < FEW:
        note += f". {drawn} are too few to tell models apart: mark {FEW} or more as {split} in a column `split`"
    return note


def choose_split(data: Dataset, asked: str | None) -> str:
    """Return the split to measure on: the one asked for, else ``test``, else the only one there is.

    Of a dataset without splits it is the ``test`` that is drawn from it, whatever the model: a model that was trained
    on the rest can then be compared with one that was not. Where that is empty, everything is measured on.
    """
    if asked is not None:
        return data.find_split(asked)
    if data.drawn_splits:
        return "test" if data.ids("test") else data.splits[0]
    return data.splits[0] if len(data.splits) == 1 else data.find_split("test")


def _regions(model: Deixis, data: Dataset, examples: Sequence[Example], options: EvaluationOptions) -> RegionStore:
    """Open the given store, or find the regions with the model's extractor and keep them for the next time."""
    config = model.part.config
    if options.store is not None:
        store = RegionStore.open(find(options.store, "stores"))
        config.require(store.fingerprint, store.path)
        return store
    model.extractor.fingerprint  # noqa: B018 - a model without one says so
    known = {item: value for item, value in config.extractor.items() if item in Settings.__dataclass_fields__}
    ids, engine, processes = [example.id for example in examples], options.engine, options.processes
    return regions_of(data, Settings(**known), ids, device=model.device, engine=engine, processes=processes)
