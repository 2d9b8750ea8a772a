from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

from deixis.errors import DeixisError
from deixis.regions.recall import draw_curve, measure_recall, recall_table
from deixis.regions.store.reader import RegionStore
from deixis.regions.store.writer import write_store
from deixis.types import Example, ImageFile, Phrase, Regions, Sentence
from deixis.types.sentence import Box


def regions(boxes: list[Box], size: tuple[int, int] = (100, 100), frame: list[int] | None = None) -> Regions:
    return Regions(
        boxes=torch.tensor(boxes),
        features=torch.zeros(len(boxes), 2),
        objectness=torch.linspace(1, 0, len(boxes)),
        frame=torch.zeros(len(boxes), dtype=torch.long) if frame is None else torch.tensor(frame),
        size=size,
        fingerprint="made",
    )


def example(name: str, *phrases: Phrase, size: tuple[int, int] | None = (100, 100)) -> Example:
    return Example(name, ImageFile(Path(name)), size, (Sentence("", (), phrases),))


def phrase(*boxes: Box, types: tuple[str, ...] = ("people",), frames: tuple[int, ...] = ()) -> Phrase:
    return Phrase(0, 1, types=types, boxes=boxes, frames=frames)


def make_store(path: Path, images: dict[str, Regions]) -> RegionStore:
    return write_store(path / "store", images.items(), list(images), "made", {})


WHOLE = (0.0, 0.0, 100.0, 100.0)


def test_a_hand_worked_case(tmp_path: Path) -> None:
    store = make_store(
        tmp_path, {"a": regions([(80.0, 80.0, 90.0, 90.0), (0.0, 0.0, 40.0, 10.0), (0.0, 0.0, 20.0, 10.0), WHOLE])}
    )
    data = [
        example(
            "a",
            # Two halves of the second region: each reaches .5 alone, the union all of it.
            phrase((0.0, 0.0, 20.0, 10.0), (20.0, 0.0, 40.0, 10.0)),
            phrase((0.0, 0.0, 100.0, 60.0), types=("scene", "other")),  # only the whole image: .6
            phrase((50.0, 0.0, 60.0, 10.0), types=("other",)),  # nothing
            phrase(types=("other",)),  # no boxes: does not count
        )
    ]
    result = measure_recall(store, data, "made")
    assert result.phrases == {"all": 3, "other": 2, "people": 1, "scene": 1}
    # With +1 areas: 41 x 11 against 21 x 11 is .51, so the second region reaches the phrase's first box.
    assert result.curves["any-box", 0.5, "people"].tolist() == [0, 0, 1, 1]
    assert result.curves["any-box", 0.7, "people"].tolist() == [0, 0, 0, 1]  # the third region is the box itself
    assert result.curves["merged-box", 0.5, "people"].tolist() == [0, 0, 1, 1]
    assert result.curves["merged-box", 0.7, "people"].tolist() == [0, 0, 1, 1]
    assert result.curves["any-box", 0.5, "scene"].tolist() == [1, 1, 1, 1]
    assert result.curves["any-box", 0.7, "scene"].tolist() == [0, 0, 0, 0]
    assert result.curves["any-box", 0.5, "other"].tolist() == [0.5] * 4
    assert result.at("any-box", 0.5, 1) == pytest.approx(1 / 3)
    assert result.at("any-box", 0.5, 100) == pytest.approx(2 / 3)
    table = recall_table(result)
    assert "merged-box, IoU >= 0.7" in table
    assert "people" in table


def test_protocols_differ_in_the_plus_one_and_the_union(tmp_path: Path) -> None:
    store = make_store(tmp_path, {"a": regions([(0.0, 0.0, 9.0, 9.0), WHOLE])})
    # 9 x 9 inside 9 x 18: exactly half. With +1 areas it is 10 x 10 of 10 x 19: a little more than half.
    result = measure_recall(store, [example("a", phrase((0.0, 0.0, 9.0, 18.0)))], "made")
    assert result.at("any-box", 0.5, 10) == result.at("merged-box", 0.5, 10) == 1
    # 9 x 9 inside 9 x 19: .474; with +1 exactly half. So only any-box reaches it.
    result = measure_recall(store, [example("a", phrase((0.0, 0.0, 9.0, 19.0)))], "made")
    assert (result.at("any-box", 0.5, 10), result.at("merged-box", 0.5, 10)) == (1, 0)


def test_images_missing_from_the_store_count_as_not_reached(tmp_path: Path) -> None:
    store = make_store(tmp_path, {"a": regions([(0.0, 0.0, 9.0, 9.0), WHOLE])})
    data = [example("a", phrase((0.0, 0.0, 9.0, 9.0))), example("b", phrase((0.0, 0.0, 9.0, 9.0)))]
    result = measure_recall(store, data, "made")
    assert result.missing == 1
    assert result.at("any-box", 0.5, 10) == 0.5
    assert "1 images are not in the store" in recall_table(result)


def test_boxes_of_another_size_are_scaled(tmp_path: Path) -> None:
    store = make_store(tmp_path, {"a": regions([(0.0, 0.0, 10.0, 10.0), (0.0, 0.0, 50.0, 25.0)], size=(50, 25))})
    result = measure_recall(store, [example("a", phrase((0.0, 0.0, 20.0, 40.0)), size=(100, 100))], "made")
    assert result.at("merged-box", 0.7, 10) == 1


def test_regions_of_another_frame_do_not_reach(tmp_path: Path) -> None:
    clip = regions([(0.0, 0.0, 9.0, 9.0), WHOLE, (50.0, 50.0, 60.0, 60.0), WHOLE], frame=[0, 0, 1, 1])
    store = make_store(tmp_path, {"a": clip})
    box = (0.0, 0.0, 9.0, 9.0)
    assert measure_recall(store, [example("a", phrase(box, frames=(0,)))], "x").at("any-box", 0.5, 10) == 1
    assert measure_recall(store, [example("a", phrase(box, frames=(1,)))], "x").at("any-box", 0.5, 10) == 0


def test_data_without_boxes_is_refused(tmp_path: Path) -> None:
    store = make_store(tmp_path, {"a": regions([WHOLE])})
    with pytest.raises(DeixisError, match="no boxed phrases"):
        measure_recall(store, [example("a", phrase())], "captions only")


def test_the_curve_is_drawn(tmp_path: Path) -> None:
    store = make_store(tmp_path, {"a": regions([(0.0, 0.0, 9.0, 9.0), (0.0, 0.0, 50.0, 50.0), WHOLE])})
    data = [example("a", phrase((0.0, 0.0, 50.0, 50.0)), phrase((0.0, 0.0, 9.0, 9.0), types=("<b>",)))]
    result = measure_recall(store, data, "made & named")
    for suffix in (".svg", ".html", ".png"):
        draw_curve(result, tmp_path / f"curve{suffix}")
    root = ElementTree.parse(tmp_path / "curve.svg").getroot()
    lines = [line for line in root.iter("{http://www.w3.org/2000/svg}polyline") if line.get("stroke") == "#0072B2"]
    # First line of the first panel: any-box at IoU .5, half of the phrases with one region and all with two.
    heights = [float(point.split(",")[1]) for point in (lines[0].get("points") or "").split()]
    assert heights == [356, 206, 56]
    pixels = np.asarray(Image.open(tmp_path / "curve.png").convert("RGB"))
    assert (pixels == (0, 0x72, 0xB2)).all(-1).any()
    assert "&lt;b&gt;" in (tmp_path / "curve.html").read_text()
