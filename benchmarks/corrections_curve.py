"""What correcting pays: R@1 after 20, 50 and 100 corrected photos of Flickr8k, by the loop that people walk.

    python -m benchmarks.corrections_curve DATA -o FOLDER [--counts 20 50 100] [--test 300] [--order doubt]

``lite`` drafts boxes for the captions of val photos. The person is Flickr30k Entities: a phrase gets the boxes that its
annotators drew, and loses its box where they drew none. The corrected COCO file is read back (``deixis.labels``), and
``grounding/own:corrected`` learns from its first photos, in the order of doubt in which a person would see them. R@1
and pointing (any box) are those of test photos, no box of which is ever seen. DATA is the folder ``flickr8k-entities``.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from deixis.answering.label import groundable
from deixis.answering.load import Deixis, load
from deixis.data.collate import RegionSource
from deixis.data.dataset import Dataset
from deixis.data.open import open_dataset
from deixis.export import coco
from deixis.grounding.base import WordGrounder
from deixis.grounding.phrase_cases import phrase_cases
from deixis.labels.compare import compare
from deixis.labels.read import Album, PhotoLabels, read_labels
from deixis.labels.training import write_dataset
from deixis.metrics.grounding.phrases import ANY_BOX, score_phrases
from deixis.models.names import load as load_part
from deixis.regions.extraction.extract import extract
from deixis.regions.extraction.tasks import Settings
from deixis.training.recipe_files import find_recipe
from deixis.training.train import train
from deixis.types import Example, GroundedPhrases, ImageFile


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--counts", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--test", type=int, default=300)
    parser.add_argument("--measure", choices=["test", "val"], default="test", help="val: other photos, to choose by")
    parser.add_argument("--order", choices=["doubt", "random"], default="doubt")
    parser.add_argument("--model", default="lite")
    parser.add_argument("--set", nargs="*", default=[], help="overrides of the recipe, key=value")
    options = parser.parse_args()
    console = Console(stderr=True)
    dataset = open_dataset(options.data)
    model = load(options.model)
    pool = list(dataset.ids("val"))[: max(options.counts)]
    album = _album(dataset, pool, options.out / "photos")
    order = _corrected(model, dataset, pool, album, options.out, console)
    if options.order == "random":
        random.Random(1).shuffle(order)
    part = load_part(options.model, part="grounder")
    settings = Settings(**{k: v for k, v in part.config.extractor.items() if k in Settings.__dataclass_fields__})
    others = [id for id in dataset.ids(options.measure) if id not in pool]
    tested = tuple(dataset[id] for id in others[: options.test])
    regions = RegionSource(
        (extract([e.id for e in tested], lambda id: dataset[id].source, options.out / options.measure, settings),)
    )
    rows: list[dict[str, float]] = [{"photos": 0, **_scores(options.model, tested, regions)}]
    console.print(rows[-1])
    for count in options.counts:
        file = album.folder / f"corrected-{count}.jsonl"
        write_dataset(file, order[:count], album)
        run = options.out / f"run-{options.order}-{count}"
        plan, row = find_recipe("grounding/own:corrected")
        given = [f"data.dataset={file}", "data.train=all", f"start_from={options.model}", *options.set]
        train(plan.resolve(given, row=row), run, threads=1, tensorboard=False)
        rows.append({"photos": count, **_scores(str(run), tested, regions)})
        console.print(rows[-1])
    print(json.dumps({"test_photos": len(tested), "order": options.order, "curve": rows}, indent=1))


def _album(dataset: Dataset, ids: list[str], folder: Path) -> Album:
    """Put links to the photos into a folder of their own, as a person has them."""
    folder.mkdir(parents=True, exist_ok=True)
    for id in ids:
        source = dataset[id].source
        assert isinstance(source, ImageFile)
        if not (folder / source.path.name).exists():
            (folder / source.path.name).symlink_to(source.path.resolve())
    return Album(folder)


def _corrected(
    model: Deixis, dataset: Dataset, ids: list[str], album: Album, out: Path, console: Console
) -> list[PhotoLabels]:
    """Draft labels, correct them by the annotators' boxes, read them back, and say what was corrected."""
    answers: list[GroundedPhrases] = []
    drafted, done = out / "draft.json", out / "corrected.json"
    for id in ids:
        example = dataset[id]
        sentences = [one for caption in example.captions if (one := groundable(caption, model.words)).phrases]
        assert isinstance(example.source, ImageFile)
        seen = model.regions([example.source.path])[0]
        answers += model.ground_sentences(seen, sentences, name=example.source.path.name)
    data = coco.labels(answers)
    drafted.write_text(json.dumps(data))
    person = {_name(dataset[id]): dataset[id] for id in ids}
    done.write_text(json.dumps(as_person(data, person)))
    before, after = read_labels(drafted, album), read_labels(done, album)
    console.print(compare(before.photos, after.photos))
    names = [image["file_name"] for image in data["images"]]  # the most doubtful first
    return [after.photos[name] for name in names if name in after.photos]


def _name(example: Example) -> str:
    assert isinstance(example.source, ImageFile)
    return example.source.path.name


def as_person(draft: dict[str, Any], people: dict[str, Example]) -> dict[str, Any]:
    """Return the draft with the boxes that annotators drew for each phrase of each caption."""
    names = {image["id"]: image["file_name"] for image in draft["images"]}
    boxes = {
        (name, caption.text, *caption.phrase_span(phrase)): phrase.boxes
        for name, example in people.items()
        for caption in example.captions
        for phrase in caption.phrases
    }
    notes = []
    for note in draft["annotations"]:
        drawn = boxes.get((names[note["image_id"]], note["sentence"], note["start"], note["end"]), ())
        notes += [{**note, "bbox": coco.as_xywh(box), "trusted": True} for box in drawn]
    return {**draft, "annotations": notes}


def _scores(name: str, examples: tuple[Example, ...], regions: RegionSource) -> dict[str, float]:
    loaded = load_part(name, part="grounder")
    assert isinstance(loaded.model, WordGrounder)
    inputs = loaded.config.inputs
    sizes = {example.id: example.size for example in examples if example.size is not None}
    asked = RegionSource(regions.stores, inputs.regions, whole=inputs.whole_image, sizes=sizes)
    with torch.inference_mode():
        scores = score_phrases(phrase_cases(loaded.model, loaded.vocabulary, examples, asked), ANY_BOX).scores
    return {key: round(float(scores[key]), 4) for key in ("R@1", "R@5", "pointing")}


if __name__ == "__main__":
    main()
