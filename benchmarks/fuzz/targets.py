"""Everything that reads a user's file, and how the fuzzer reads it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image

from benchmarks.fuzz import attacks, datasets, indexes, labels, made
from benchmarks.fuzz.harness import Target
from deixis.answering.resumable_lines import AnswerLines
from deixis.answering.segments import read_segments
from deixis.cli.main import main
from deixis.data import open_dataset
from deixis.data.clips import write_clip
from deixis.errors import DeixisError
from deixis.images import image_size, load_image
from deixis.metrics.captions.hallucination import ObjectVocabulary
from deixis.metrics.files import densecap, results
from deixis.metrics.files.json_lines import read_json_file
from deixis.models.bundle import find_bundle
from deixis.models.names import load
from deixis.regions.imports import import_regions
from deixis.regions.lite import LiteExtractor
from deixis.regions.store.reader import RegionStore
from deixis.serve import draw
from deixis.text.classes import ObjectClasses, read_lemmas
from deixis.text.relations import RelationVocabulary
from deixis.training.recipe_files import find_recipe, recipe_path
from deixis.training.run import Run
from deixis.training.state import Position, RunState
from deixis.types import GroundedCaption
from deixis.video import read_clip, sample_frames

Read = Callable[[Path], Any]


def all_of(*reads: Callable[[], Any]) -> None:
    """Read in several ways; a file that one way refuses is still read in the others."""
    refused: DeixisError | None = None
    for read in reads:
        try:
            read()
        except DeixisError as error:
            refused = error
    if refused is not None:
        raise refused


def command(*arguments: str) -> None:
    """Run the command line; it leaves with 0 or, for what it refuses, with 2."""
    try:
        main(list(arguments))
    except SystemExit as left:
        if left.code == 2:
            raise DeixisError("refused by the command line") from left
        if left.code not in (0, None):
            raise RuntimeError(f"exit code {left.code}") from left


def image(format: str) -> Target:
    """Return photos of a format, as a file and as bytes."""

    def make(root: Path) -> None:
        (root / "photo").write_bytes(attacks.photo(format, (200, 150)))

    def read(root: Path) -> None:
        all_of(lambda: image_size(root / "photo"), lambda: load_image((root / "photo").read_bytes()))

    return Target(f"image-{format.lower()}", make, read, weight=5)


def progressive(root: Path) -> None:
    """Write a progressive JPEG of twenty scans."""
    (root / "photo").write_bytes(attacks.many_scans(400, 20))


def clip(root: Path) -> None:
    """Write two seconds of a moving ramp."""
    ramp = np.linspace(0, 255, 64 * 48 * 3).astype(np.uint8)
    frames = [Image.fromarray(np.roll(ramp, 9 * at).reshape(48, 64, 3)) for at in range(20)]
    for name in ("clip.mp4", "clip.mkv"):
        write_clip(root / name, frames, 10)


def read_clips(root: Path) -> None:
    for path in (root / "clip.mp4", root / "clip.mkv"):
        all_of(lambda path=path: read_clip(path), lambda path=path: sample_frames(path, count=3))  # type: ignore[misc]


def read_dataset(root: Path) -> None:
    dataset = open_dataset(next(root.iterdir()) if (root / "photos").is_dir() else root)
    for _ in dataset.examples():
        pass


def imported(format: str, *paths: str, sizes: str | None = None) -> Read:
    """Return how features of a format are imported."""

    def read(root: Path) -> None:
        given = [root / path for path in paths] or [root]
        try:
            import_regions(given, root / "out", format=format, sizes=root / sizes if sizes else None)
        finally:
            shutil.rmtree(root / "out", ignore_errors=True)

    return read


def both_npz(root: Path) -> None:
    all_of(lambda: imported("npz", "plain")(root), lambda: imported("bottom-up-npz", "bottom-up")(root))


def read_store(root: Path) -> None:
    store = RegionStore.open(root / "store")
    ids = list(store.ids)[:5]
    all_of(store.verify, lambda: [store.get(image) for image in ids], lambda: store.batch(ids, max_regions=3))
    command("regions", "info", str(root / "store"), "--json")


def recipe(root: Path) -> None:
    (root / "recipe.yaml").write_text(recipe_path("captioning/baseline").read_text())
    (root / "other.yaml").write_text("extends: recipe.yaml\nabout: {title: other}\nchange: {seed: 3}\n")


def read_recipes(root: Path) -> None:
    def resolved(name: str) -> None:
        file, row = find_recipe(str(root / name))
        for size in ("paper", *file.sizes):
            file.resolve([f"size={size}"], row=row)

    all_of(lambda: resolved("recipe.yaml"), lambda: resolved("other.yaml"))


def read_models(root: Path) -> None:
    all_of(
        lambda: find_bundle(str(root)),
        lambda: load(str(root / "captioner")),
        lambda: load(str(root / "grounder")),
    )


def read_answers(root: Path) -> None:
    def resume() -> None:
        with AnswerLines.open(root / "caption.jsonl", GroundedCaption.from_json, model="lite"):
            pass

    def export(name: str, format: str) -> None:
        try:
            command("export", str(root / name), "--format", format, "-o", str(root / "out.json"))
        finally:
            (root / "out.json").unlink(missing_ok=True)

    all_of(
        resume,
        lambda: export("caption.json", "coco"),
        lambda: export("clip.jsonl", "csv"),
        lambda: export("caption.jsonl", "labelstudio"),
        lambda: export("phrases.jsonl", "coco"),
        lambda: results.read_captions(read_json_file(root / "caption.json")),
        lambda: results.read_phrases(read_json_file(root / "phrases.jsonl")),
    )


def read_drawings(root: Path) -> None:
    photo = attacks.photo()
    reads: list[Callable[[], Any]] = []
    for name in ("caption.json", "phrases.json"):
        text = (root / name).read_bytes().decode("utf-8", "replace")
        reads += [
            lambda text=text, format=format: draw._photo(photo, "a.jpg", draw._parsed(text), format, 10**6)  # type: ignore[misc]
            for format in ("png", "html")
        ]
    all_of(*reads)


def small_files(root: Path) -> None:
    """Write the small files that commands take or runs keep."""
    (root / "segments.json").write_text(json.dumps({"timestamps": [[0, 1.5], [1.5, 3]]}))
    (root / "segments.csv").write_text("start,end\n0,1\n1,00:02\n")
    (root / "classes.txt").write_text("dog\ncat, kitten\n")
    (root / "lemmas.json").write_text(json.dumps({"dogs": "dog"}))
    relations = {"deixis_relations": 1, "more_than": 1, "predicates": {"on": 5}}
    (root / "relations.json").write_text(json.dumps(relations))
    (root / "objects.json").write_text(json.dumps({"person": ["man", "woman"]}))
    events = {"results": {"v_a": [{"sentence": "a dog", "timestamp": [0, 1]}]}, "version": "1", "external_data": {}}
    (root / "dense.json").write_text(json.dumps(events))
    run = root / "run"
    run.mkdir()
    (run / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0}\n')
    (run / "checkpoints.json").write_text(json.dumps({"last": "1", "best": None}))
    plain = find_recipe("captioning/baseline")[0].resolve().plain()
    (run / "recipe.yaml").write_text(yaml.safe_dump(plain, sort_keys=False))
    (run / "checkpoints" / "1").mkdir(parents=True)
    import torch

    RunState(Position(), {}, [], 1, {"a": torch.zeros(2)}).save(run / "checkpoints" / "1")


def read_small(root: Path) -> None:
    run = Run(root / "run")
    all_of(
        lambda: read_segments(root / "segments.json", "clip.mp4"),
        lambda: read_segments(root / "segments.csv", "clip.mp4"),
        lambda: ObjectClasses.from_list(root / "classes.txt"),
        lambda: read_lemmas(root / "lemmas.json"),
        lambda: RelationVocabulary.load(root / "relations.json"),
        lambda: ObjectVocabulary.load(root / "objects.json"),
        lambda: densecap.read_dense_submission(root / "dense.json"),
        lambda: run.cut_back(1),
        lambda: run.pointer("last"),
        run.recipe,
        lambda: RunState.load(root / "run" / "checkpoints" / "1"),
    )


def extractor(root: Path) -> None:
    """Copy the card of the extractor that ships; its weights are too many to damage again and again."""
    shipped = Path(draw.__file__).parents[1] / "weights" / "lite"
    for name in ("regions.json", "regions.safetensors"):
        shutil.copyfile(shipped / name, root / name)


TARGETS: list[Target] = [
    *(image(format) for format in ("JPEG", "PNG", "WEBP", "GIF")),
    *(replace(image(format), weight=1.5) for format in ("TIFF", "BMP", "AVIF")),
    Target("image-progressive", progressive, lambda root: load_image(root / "photo"), weight=2),
    Target("clips", clip, read_clips, weight=3),
    Target("flickr30k-entities", datasets.entities, read_dataset, weight=5),
    Target("coco", datasets.coco, read_dataset, spare=(".jpg",), weight=5),
    Target("folder", datasets.folder, read_dataset, weight=4),
    Target("tables", datasets.tables, read_dataset, spare=(".jpg",), weight=3),
    Target("captions-tsv", datasets.lines, read_dataset, weight=3),
    Target("webdataset", datasets.shards, read_dataset, weight=4),
    Target("activitynet", datasets.activitynet, read_dataset, weight=3),
    Target("referit", datasets.referit, read_dataset, spare=(".jpg",), weight=3),
    Target("npz", made.npz, both_npz, weight=4),
    Target("tsv", made.tsv, imported("bottom-up-tsv", "features.tsv"), weight=2),
    Target("gvd", made.gvd, imported("gvd", "proposals.h5", "dic.json", "features", sizes="sizes.json"), weight=4),
    Target("store", made.store, read_store, mend=made.mend_store, weight=6),
    Target("recipes", recipe, read_recipes, weight=6),
    Target("models", made.models, read_models, mend=made.mend_models, weight=6),
    Target("extractor", extractor, lambda root: LiteExtractor.load(root), spare=(".safetensors",), weight=0.3),
    Target("answers", made.answers, read_answers, weight=5),
    Target("drawings", made.answers, read_drawings, spare=(".jsonl", "clip.json"), weight=4),
    Target("labels", labels.labels, lambda root: all_of(*labels.reads(root)), spare=(".jpg",), weight=5),
    Target("index", indexes.index, indexes.read_index, mend=indexes.mend_index, spare=(".jpg",), weight=1),
    Target("small-files", small_files, read_small, weight=6),
]
