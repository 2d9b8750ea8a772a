"""COCO files as pycocotools reads them."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.errors import BadFileError, DeixisError
from deixis.export import coco
from deixis.export.things import Answer, things_of
from tests.export.answers import CLIP, DOG, PHRASES, caption, captions

pycocotools = pytest.importorskip("pycocotools.coco", reason="pycocotools comes with the extra java")


def loaded(data: dict[str, Any], folder: Path) -> Any:
    (folder / "instances.json").write_text(json.dumps(data))
    with contextlib.redirect_stdout(io.StringIO()):
        return pycocotools.COCO(str(folder / "instances.json"))


def evaluated(truth: Any, results: list[dict[str, Any]]) -> list[float]:
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        task = COCOeval(truth, truth.loadRes(results), "bbox")
        task.evaluate()
        task.accumulate()
        task.summarize()
    return [float(value) for value in task.stats]


def test_results_score_perfectly_on_their_own_instances(tmp_path: Path) -> None:
    answers: list[Answer] = [DOG, caption("b.jpg", "a dog", {"dog": (5, 5, 90, 95)})]
    truth = loaded(coco.dataset(answers), tmp_path)
    stats = evaluated(truth, coco.results(answers))
    assert stats[0] == pytest.approx(1.0), "AP of what was found against itself"
    moved = [answers[0], caption("b.jpg", "a dog", {"dog": (100, 5, 190, 95)})]
    assert evaluated(truth, coco.results(moved))[0] < 0.9


def test_instances_hold_images_categories_and_phrases(tmp_path: Path) -> None:
    tools = loaded(coco.dataset([DOG, PHRASES]), tmp_path)
    assert {c["name"]: c["id"] for c in tools.loadCats(tools.getCatIds())} == {
        "ball": 1, "dog": 2, "ghost": 3, "hat": 4,
    }  # fmt: skip
    assert [image["file_name"] for image in tools.loadImgs(tools.getImgIds())] == ["photos/dog.jpg", "photos/cat.png"]
    (dogs,) = tools.loadAnns(tools.getAnnIds(catIds=[2]))
    assert dogs["bbox"] == [20, 10, 100, 80]
    assert dogs["area"] == 8000
    assert int(tools.annToMask(dogs).sum()) == 8000, "the outline is the box"
    (ghost,) = tools.loadAnns(tools.getAnnIds(catIds=[3]))
    assert ghost["trusted"] is False
    assert ghost["sentence"][ghost["start"] : ghost["end"]] == ghost["phrase"] == "a ghost"
    assert {row["category_id"] for row in coco.results([DOG, PHRASES])} == {1, 2, 4}, "what is doubted is no result"


def test_ids_of_a_dataset_are_used(tmp_path: Path) -> None:
    reference = {
        "images": [{"id": 391895, "file_name": "COCO_val2014_000000391895.jpg"}, {"id": 7, "file_name": "cat.png"}],
        "categories": [{"id": 18, "name": "dog"}, {"id": 37, "name": "sports ball"}],
    }
    file = tmp_path / "instances.json"
    file.write_text(json.dumps(reference))
    ids = coco.CocoIds.read(file)
    for name in ("391895", "COCO_val2014_000000391895", "val/COCO_val2014_000000391895.jpg", "000000391895.jpg"):
        assert ids.image(name) == 391895
    named = caption("000000391895.jpg", "two dogs chase a ball", {"dogs": (1, 2, 5, 8), "ball": (0, 0, 3, 3)})
    assert coco.results([named], ids) == [{"image_id": 391895, "category_id": 18, "bbox": [1, 2, 4, 6], "score": 0.5}]
    assert coco.captions([named], ids) == [{"image_id": 391895, "caption": "two dogs chase a ball"}]
    with pytest.raises(DeixisError, match=r"no image 'photos/dog.jpg'"):
        coco.results([DOG], ids)
    file.write_text("[]")
    with pytest.raises(BadFileError, match=r"instances\.json"):
        coco.CocoIds.read(file)


def test_labels_for_review_come_most_doubtful_first(tmp_path: Path) -> None:
    data = coco.labels([DOG, PHRASES])
    first, second = data["images"]
    assert (first["file_name"], first["doubt"], first["not_found"]) == ("photos/cat.png", 1.0, ["a ghost"])
    assert (second["file_name"], second["doubt"]) == ("photos/dog.jpg", 0.5)
    assert [row["phrase"] for row in data["annotations"]] == ["a ghost", "a red hat", "dogs", "ball"]
    loaded(data, tmp_path)


def test_clips_and_lonely_phrases_are_refused() -> None:
    with pytest.raises(DeixisError, match=r"is a clip.*use anet, csv or json"):
        coco.dataset([CLIP])
    with pytest.raises(DeixisError, match="no captions"):
        coco.captions([PHRASES])


@settings(max_examples=30)
@given(st.lists(captions(), min_size=1, max_size=4, unique_by=lambda answer: answer.image))
def test_boxes_come_back_from_instances(answers: list[Answer]) -> None:
    data = json.loads(json.dumps(coco.dataset(answers)))
    names = {image["id"]: image["file_name"] for image in data["images"]}
    found = [
        (names[row["image_id"]], row["phrase"], row["score"], *row["bbox"][:2], row["bbox"][0] + row["bbox"][2])
        for row in data["annotations"]
    ]
    given_ = [
        (answer.image, thing.text, thing.score, *thing.box[:2], pytest.approx(thing.box[2], abs=1e-6))
        for answer in answers
        for thing in things_of(answer, doubtful=True)
    ]
    assert found == given_
