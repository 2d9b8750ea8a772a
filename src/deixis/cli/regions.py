"""``deixis regions``: find and store the regions of photos, take over regions made elsewhere, measure their recall."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from deixis.errors import DeixisError

if TYPE_CHECKING:
    from deixis.regions.extraction.tasks import Source
    from deixis.regions.lite import Precision

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Find and store the regions of photos; measure their recall."
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
StorePath = Annotated[Path, typer.Argument(help="Folder of a region store.")]


@app.command()
def extract(
    data: Annotated[str, typer.Argument(help="A dataset, or a folder of photos.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the store.")],
    extractor: Annotated[
        str, typer.Option(help="lite, selective-search, torchvision:NAME, hf:NAME, or package.module:Class.")
    ] = "lite",
    format: Annotated[str | None, typer.Option("--format", help="The dataset's format, if not recognised.")] = None,
    split: Annotated[
        list[str] | None, typer.Option(help="Only this split, or several (`train+val`); all if not given.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many photos.")] = None,
    max_regions: Annotated[int, typer.Option(help="Regions per photo or frame, beside the whole image.")] = 100,
    suppress: Annotated[
        float | None, typer.Option(help="Overlap from which on the lesser of two proposals of lite goes, such as 0.8.")
    ] = None,
    processes: Annotated[int, typer.Option(min=0, help="Workers; 0 works in this process.")] = 2,
    engine: Annotated[str, typer.Option(help="local, or ray for many machines.")] = "local",
    device: Annotated[str, typer.Option(help="Where networks run: cpu, cuda, cuda:1 ...")] = "cpu",
    dense: Annotated[
        bool, typer.Option("--dense", help="Store word distributions whole, not their 16 largest entries.")
    ] = False,
    feature_map: Annotated[bool, typer.Option(help="Store the coarse feature map of each photo.")] = True,
    precision: Annotated[
        str, typer.Option(help="How lite computes: int8 as answers do, float32, or bf16 (AMX, AVX512-BF16).")
    ] = "int8",
    json_output: AsJson = False,
) -> None:
    """Extract the regions of all photos of DATA into a store.

    Run the same command again after a crash or a kill: it goes on where it stopped. A photo that cannot be read is
    reported and counted, and the others go on.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers are processes: threads would only get in their way
    from deixis.data.locations import find
    from deixis.regions.extraction.extract import extract as run
    from deixis.regions.extraction.tasks import Settings
    from deixis.regions.registry import with_overlap

    if engine not in ("local", "ray"):
        raise DeixisError(f"unknown --engine {engine!r}; there are local and ray")
    ids, source = _images(find(data, "data"), "+".join(split or ()) or None, format)
    ids = ids[:limit]
    extractor = with_overlap(extractor, suppress)
    settings = Settings(extractor, max_regions, dense, feature_map, cast("Precision", precision))  # it refuses others
    with _ProgressBar(quiet=json_output) as bar:
        store = run(
            ids,
            source,
            output,
            settings,
            engine="ray" if engine == "ray" else "local",
            processes=processes,
            device=device,
            progress=bar.update,
        )
    for item in store.header.failed:
        print(f"deixis: left out {item['id']}: {item['reason']}", file=sys.stderr)
    summary = {
        "store": str(output),
        "images": len(store),
        "failed": len(store.header.failed),
        "resumed": bar.resumed if bar.seconds else len(ids),
        "seconds": round(bar.seconds, 1),
        "regions": sum(int(shard["regions"]) for shard in store.header.shards),
        "fingerprint": store.fingerprint,
    }
    if json_output:
        typer.echo(json.dumps(summary))
    else:
        typer.echo(
            f"{summary['images']:,} images, {summary['regions']:,} regions in {output} ({store.fingerprint}); "
            f"{summary['failed']} failed; {summary['seconds']} s"
        )


@app.command("import")
def import_(
    files: Annotated[list[Path], typer.Argument(help="Files or a folder, as docs/regions.md describes.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the store.")],
    format: Annotated[str, typer.Option(help="bottom-up-tsv, bottom-up-npz, gvd or npz.")],
    class_names: Annotated[Path | None, typer.Option(help="Text file with one class name per line.")] = None,
    sizes: Annotated[
        Path | None, typer.Option(help="For gvd: a folder with the photos, or a JSON of {id: [width, height]}.")
    ] = None,
    maps: Annotated[Path | None, typer.Option(help="Folder of conv maps of the photos, ID.npy or ID.npz.")] = None,
    vectors: Annotated[Path | None, typer.Option(help="Folder of global features of the photos, ID.npy.")] = None,
    frames: Annotated[
        Path | None, typer.Option(help="Folder of frame features of clips: VIDEO_resnet.npy and VIDEO_bn.npy.")
    ] = None,
    times: Annotated[
        Path | None, typer.Option(help="ActivityNet-Entities' annotations: which frames belong to a segment.")
    ] = None,
    name: Annotated[str, typer.Option(help="What to call the detector; part of the fingerprint.")] = "",
    json_output: AsJson = False,
) -> None:
    """Take over regions that were made elsewhere: bottom-up attention, GVD, or plain npz."""
    from deixis.regions.imports import Beside, import_regions

    beside = Beside(maps, vectors, frames, times)
    store, notes = import_regions(
        files, output, format=format, class_names=class_names, sizes=sizes, name=name, beside=beside
    )
    for note in (*(f"left out {item['id']}: {item['reason']}" for item in store.header.failed), *notes):
        print(f"deixis: {note}", file=sys.stderr)
    if json_output:
        typer.echo(json.dumps({"store": str(output), "images": len(store), "failed": len(store.header.failed)}))
    else:
        typer.echo(f"{len(store):,} images in {output} ({store.fingerprint})")


@app.command()
def info(
    store: StorePath,
    verify: Annotated[bool, typer.Option("--verify", help="Read every byte and compare the checksums.")] = False,
    json_output: AsJson = False,
) -> None:
    """Say what a store holds and where it came from."""
    from deixis.regions.store.reader import RegionStore

    opened = RegionStore.open(store)
    wrong = opened.verify() if verify else []
    if wrong:
        raise DeixisError("; ".join(wrong) + ": delete the store and extract or import it again")
    header = opened.header
    facts: dict[str, Any] = {
        "store": str(store),
        "fingerprint": header.fingerprint,
        "settings": dict(header.settings),
        "images": len(opened),
        "regions": sum(int(shard["regions"]) for shard in header.shards),
        "fields": {name: opened.width(name) for name in opened.fields},
        "classes": len(header.class_names),
        "words": len(header.word_names),
        "shards": len(header.shards),
        "bytes": sum(int(shard["bytes"]) for shard in header.shards),
        "failed": [dict(item) for item in header.failed],
        "verified": verify,
    }
    if json_output:
        typer.echo(json.dumps(facts, ensure_ascii=False))
        return
    typer.echo(f"{store}: regions of {facts['fingerprint']}")
    typer.echo(f"  {facts['images']:,} images, {facts['regions']:,} regions, {facts['bytes'] / 2**20:,.0f} MB")
    typer.echo("  fields    " + ", ".join(f"{name} {width}" for name, width in facts["fields"].items()))
    typer.echo("  settings  " + ", ".join(f"{key} {value}" for key, value in facts["settings"].items()))
    typer.echo(f"  names     {facts['classes']} classes, {facts['words']} words")
    typer.echo(f"  shards    {facts['shards']}{', all checksums right' if verify else ''}")
    for item in header.failed:
        typer.echo(f"  left out  {item['id']}: {item['reason']}")


@app.command()
def recall(
    store: StorePath,
    data: Annotated[Path, typer.Argument(help="A dataset with phrase boxes.")],
    split: Annotated[str, typer.Option(help="Split to measure on.")] = "val",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Draw the curve into this .svg, .png or .html file.")
    ] = None,
    json_output: AsJson = False,
) -> None:
    """Measure which share of annotated phrases the regions of a store can reach.

    A phrase is reached at K if one of the K best regions, or the whole image, overlaps its box enough. Both protocols
    are given and never mixed: any-box (any box of the phrase, +1 areas) and merged-box (the union of its boxes).
    """
    from deixis.data import open_dataset
    from deixis.data.locations import find
    from deixis.regions.recall import draw_curve, measure_recall, recall_table
    from deixis.regions.store.reader import RegionStore

    if output is not None and output.suffix not in (".svg", ".png", ".html"):
        raise DeixisError(f"the curve is drawn as .svg, .png or .html, not {output.suffix or output.name!r}")
    opened = RegionStore.open(find(str(store), "stores"))
    dataset = open_dataset(find(str(data), "data"))
    result = measure_recall(opened, dataset.examples(split), name=f"{dataset.name} {dataset.find_split(split)}")
    if output is not None:
        draw_curve(result, output)
    typer.echo(json.dumps(result.to_json()) if json_output else recall_table(result))


def _images(data: Path, split: str | None, format: str | None = None) -> tuple[list[str], Callable[[str], Source]]:
    """Return the ids of a dataset or folder, and what finds the file of each."""
    from deixis.data import open_dataset
    from deixis.errors import BadFileError
    from deixis.regions.extraction.extract import folder_images

    try:
        dataset = open_dataset(data, format)
    except BadFileError:
        photos = folder_images(data) if data.is_dir() else {}
        if not photos:
            raise
        if split is not None:
            raise DeixisError(f"{data} is a plain folder of photos and has no split {split!r}") from None
        return list(photos), photos.__getitem__
    parts: list[str | None] = [None] if split is None else [*split.split("+")]
    ids = dict.fromkeys(id for part in parts for id in dataset.ids(part))
    return list(ids), lambda id: dataset[id].source


class _ProgressBar:
    """Shows images done, speed and the time left; silent for ``--json``."""

    def __init__(self, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self.seconds, self.resumed = 0.0, 0
        self._bar = Progress(
            TextColumn("regions"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True),
            disable=quiet,
        )
        self._task = self._bar.add_task("regions", total=None, note="starting")

    def __enter__(self) -> _ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, progress: Any) -> None:
        """Take the state of a :class:`deixis.regions.extraction.extract.Progress`."""
        self.seconds, self.resumed = progress.seconds, progress.resumed
        speed = (progress.done - progress.resumed) / max(progress.seconds, 1e-9)
        left = progress.remaining
        note = f"{speed:.1f} images/s" + ("" if left is None else f", {int(left // 60)}:{int(left % 60):02} left")
        self._bar.update(self._task, completed=progress.done, total=progress.total, note=note)


def _register_more() -> None:
    """Add ``teach``, ``train``, ``truth`` and ``whole``, which live in files of their own."""
    for name in ("teach", "train", "truth", "whole"):
        if importlib.util.find_spec(f"deixis.cli.regions_{name}") is not None:
            app.command(name)(getattr(importlib.import_module(f"deixis.cli.regions_{name}"), name))


_register_more()
