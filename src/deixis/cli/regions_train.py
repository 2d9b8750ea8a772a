"""``deixis regions train``: a recipe in, the weights of a `lite` extractor out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deixis.errors import BadRecipeError
from deixis.locks import only_writer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deixis.regions.training.names_run import NamesRecipe
    from deixis.regions.training.prepare import Photo
    from deixis.regions.training.run import DataSource, LiteRecipe

LICENCES = {
    "TinyViT-5M (ImageNet-22k, distilled)": "Microsoft, MIT",
    "EfficientNet-Lite0 (ImageNet)": "Google, Apache-2.0",
    "DINOv2 ViT-S/14, a teacher or the namer": "Meta, Apache-2.0",
    "YOLOX-nano and MobileSAM, teachers": "Apache-2.0",
    "COCO's boxes": "COCO Consortium, CC BY 4.0",
}


def train(
    recipe: Annotated[str, typer.Argument(help="regions/lite, regions/names, or a YAML file of your own.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Run folder; the extractor comes to lie in its lite/.")
    ],
    cache: Annotated[Path | None, typer.Option(help="Folder for decoded photos and pseudo-boxes.")] = None,
    stop_after: Annotated[int | None, typer.Option(help="Stop after so many steps, to go on later.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Train the extractor from captions, boxes and teachers. Killed at any time, the same command goes on."""
    from rich.console import Console

    from deixis.data.locations import find
    from deixis.home import cache_home
    from deixis.regions.training.names_run import NamesRecipe, teach_names
    from deixis.regions.training.prepare import cache_name, prepare
    from deixis.regions.training.run import learn
    from deixis.regions.training.train import Report
    from deixis.training.recipe_files import recipe_path

    plan = read_recipe(recipe_path(recipe))
    weights, teachers = find(plan.weights, "data"), find(plan.teachers, "data")
    segmented, more = (None, 0) if isinstance(plan, NamesRecipe) else (plan.boxes, plan.more_boxes)
    boxes = find(segmented, "data") if segmented else None
    photos = photos_of(plan.data)
    console = Console(stderr=True)

    def progress(part: str, done: int, total: int) -> None:
        if done == total or done % 500 == 0:
            console.print(f"{part}: {done:,} of {total:,}", highlight=False)

    folder = cache or cache_home() / "regions" / cache_name(photos)
    prepare(photos, folder, teachers, plan.words, boxes, more, progress)
    about = {"licences": LICENCES, "photos": len(photos)}
    output.mkdir(parents=True, exist_ok=True)
    with only_writer(output):
        if isinstance(plan, NamesRecipe):
            losses = Report(output / "losses.jsonl")
            written = teach_names(
                plan,
                photos,
                folder,
                weights,
                output,
                about,
                losses,
                lambda name, seen: progress(f"looking at {name}", seen.done, seen.total),
                stop_after,
            )
        else:
            written = learn(plan, folder, weights, output, about, stop_after)
    if as_json:
        typer.echo(json.dumps({"run": str(output), "extractor": str(written), "photos": len(photos)}))
    else:
        console.print(f"extractor in {written}", soft_wrap=True, highlight=False)


def read_recipe(path: Path) -> LiteRecipe | NamesRecipe:
    """Read the YAML strictly: an unknown key is an error that names the nearest right one.

    A recipe that names a `finder` teaches a namer on its boxes; any other trains a network from its trunk on.
    """
    from deixis.reading.yaml import read_yaml
    from deixis.regions.training.names_run import NamesRecipe
    from deixis.regions.training.run import LiteRecipe
    from deixis.strict import to_dataclass

    data = read_yaml(path)
    if isinstance(data, dict) and "finder" in data:
        return to_dataclass(NamesRecipe, data, str(path))
    return to_dataclass(LiteRecipe, data, str(path))


def photos_of(sources: Sequence[DataSource]) -> list[Photo]:
    """The photos of all sources, in a fixed order."""
    from deixis.data.locations import find
    from deixis.data.open import open_dataset
    from deixis.regions.training.prepare import Photo
    from deixis.regions.training.run import THINGS

    photos: list[Photo] = []
    for source in sources:
        if source.things not in THINGS:
            raise BadRecipeError(f"things: {source.things!r} of {source.path} should be one of {', '.join(THINGS)}")
        dataset = open_dataset(find(source.path, "data"))
        for split in source.splits:
            examples = (dataset[id] for id in dataset.ids(split)[: source.limit])
            photos += [Photo(dataset.name, split, example, source.things == "annotated") for example in examples]
    if not photos:
        raise BadRecipeError("the recipe's data name no photo")
    return photos
