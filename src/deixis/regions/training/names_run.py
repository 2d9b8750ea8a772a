"""The whole of `deixis regions train` for a recipe with a finder: look at every photo once, teach names, write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from deixis.regions.extraction.extract import Progress as Extracted
from deixis.regions.extraction.extract import extract
from deixis.regions.extraction.tasks import Settings, Source
from deixis.regions.lite import LiteExtractor, Precision, save_lite
from deixis.regions.network.detector import LiteNetwork
from deixis.regions.store.reader import RegionStore
from deixis.regions.training.data import Corpus
from deixis.regions.training.names import Looks, NamesSchedule, Told, learn_names
from deixis.regions.training.prepare import Photo
from deixis.regions.training.run import DataSource
from deixis.regions.training.untaught import TAUGHT, write_untaught


@dataclass(frozen=True, slots=True)
class NamesRecipe:
    """Everything that decides how a namer comes out."""

    data: tuple[DataSource, ...]
    teachers: str
    weights: str
    """Folder of the published weights of DINOv2."""
    finder: str = "lite"
    """The extractor whose boxes and maps stay: the shipped one, or the folder of another."""
    words: int = 2000
    stride: int = 24
    hidden: int = 1024
    learned: int = 384
    max_regions: int = 100
    precision: Precision = "float32"
    """In which photos are looked at; bf16 on processors that compute in it."""
    processes: int = 2
    schedule: NamesSchedule = field(default_factory=NamesSchedule)


def teach_names(
    recipe: NamesRecipe,
    photos: Sequence[Photo],
    cache: Path,
    weights: Path,
    run: Path,
    about: dict[str, Any],
    told: Told,
    looking: Callable[[str, Extracted], None],
    stop_after: int | None = None,
) -> Path:
    """Look at all photos, learn and write the extractor to ``run/lite``; called again after a kill, it goes on."""
    finder = LiteExtractor.load(None if recipe.finder == "lite" else Path(recipe.finder))
    untaught = run / "untaught"
    write_untaught(untaught, finder, weights, recipe.stride)
    stores = {name: look_once(recipe, name, photos, untaught, run, looking) for name in {one.data for one in photos}}
    corpus = Corpus(cache)
    looks = Looks(corpus, [(stores[one.data], one.example.id) for one in photos], recipe.schedule.regions)
    seen = LiteExtractor.load(untaught)
    shape = replace(
        seen.network.shape, learned=recipe.learned, namer_hidden=recipe.hidden, words=len(corpus.word_names)
    )
    heads = learn_names(looks, shape, recipe.schedule, run / "state", told, stop_after)
    network = LiteNetwork(shape)
    places = {
        "hidden": "namer.hidden",
        "learned": "namer.learned",
        "words": "regions.words",
        "classes": "regions.classes",
    }
    taught = {f"{places[name.split('.')[0]]}.{name.split('.')[1]}": value for name, value in heads.items()}
    kept = {
        name: value
        for name, value in seen.network.state_dict().items()
        if not name.startswith(TAUGHT) or name.startswith("namer.network.")
    }
    network.load_state_dict(kept | taught)
    about = about | {"recipe": asdict(recipe), "untaught": seen.fingerprint}
    save_lite(run / "lite", network, corpus.word_names, seen.ranking, about)
    LiteExtractor.load(run / "lite")  # what was written can be read
    return run / "lite"


def look_once(
    recipe: NamesRecipe,
    data: str,
    photos: Sequence[Photo],
    untaught: Path,
    run: Path,
    looking: Callable[[str, Extracted], None],
) -> RegionStore:
    """Extract the photos of one dataset with the untaught extractor into a store of the run."""
    sources: dict[str, Source] = {}
    for photo in photos:
        if photo.data == data:
            sources[photo.example.id] = photo.example.source
    settings = Settings(f"lite:{untaught}", recipe.max_regions, feature_map=False, precision=recipe.precision)
    path = run / "looked" / data.replace("/", "-")
    return extract(
        list(sources),
        sources.__getitem__,
        path,
        settings,
        processes=recipe.processes,
        progress=lambda progress: looking(data, progress),
    )
