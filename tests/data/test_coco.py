"""COCO captions and instances in their layouts, with Karpathy's division."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from deixis.data import BadExampleError, open_dataset
from deixis.data.coco import Coco
from deixis.errors import BadFileError, DeixisError


def test_captions_and_instances(coco: Path) -> None:
    dataset = open_dataset(coco)
    assert isinstance(dataset, Coco)
    assert dataset.splits == ("val2014",)
    assert dataset.ids("val") == ("11", "12"), "the beginning of a split's name is enough"
    example = dataset["11"]
    assert [caption.text for caption in example.captions] == ["A dog on a sofa.", "A sofa with a dog."]
    assert example.size == (200, 100), "the file's own size"
    # x y width height on 100x50, in a file twice as large; the crowd is left out.
    assert [(thing.label, thing.box) for thing in example.objects] == [("dog", (20.0, 20.0, 60.0, 80.0))]
    other = dataset["12"]
    assert other.size == (100, 50)
    assert [thing.box for thing in other.objects] == [(90.0, 40.0, 100.0, 50.0)], "cut at the border"
    problems = dataset.problems
    assert {kind: problems.count(kind) for kind in problems.kinds} == {
        "empty caption": 1,
        "missing image": 1,
        "box outside the image": 1,
    }


def test_one_gzip_file_and_karpathy_lists(coco: Path) -> None:
    plain = coco / "annotations" / "captions_val2014.json"
    packed = coco / "captions_val2014.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    lines = "val2014/COCO_val2014_000000000012.jpg 12\nval2014/COCO_val2014_000000000099.jpg 99\n"
    (coco / "karpathy_test_images.txt").write_text(lines)
    dataset = open_dataset(packed)
    assert dataset.splits == ("val2014", "karpathy-test")
    assert dataset.ids("karpathy-test") == ("12", "99")
    assert [example.id for example in dataset.examples("karpathy-test")] == ["12"]
    assert dataset.problems.count("id in a split list that does not exist") == 1


def test_karpathys_json_alone_holds_the_captions(tmp_path: Path) -> None:
    names = [("train", 5), ("restval", 6), ("val", 7)]
    images = [
        {
            "filename": f"COCO_val2014_{id:012d}.jpg",
            "cocoid": id,
            "split": split,
            "sentences": [{"raw": f"Photo {id}."}],
        }
        for split, id in names
    ]
    (tmp_path / "dataset_coco.json").write_text(json.dumps({"images": images}))
    dataset = open_dataset(tmp_path)
    assert dataset.splits == ("karpathy-train", "karpathy-val")
    assert dataset.ids("karpathy-train") == ("5", "6"), "restval belongs to training"
    assert dataset["6"].captions[0].text == "Photo 6."


def test_karpathys_captions_are_read_where_cocos_files_are_of_another_split(tmp_path: Path) -> None:
    """Papers 2 and 5 use one folder: Karpathy's JSON, and captions_train2014 alone of COCO's own files."""
    entries = [("train", "train2014", 5), ("restval", "val2014", 6), ("test", "val2014", 7)]
    images = [
        {
            "filename": f"COCO_{year}_{id:012d}.jpg",
            "cocoid": id,
            "split": split,
            "sentences": [{"raw": f"Photo {id} by Karpathy."}],
        }
        for split, year, id in entries
    ]
    (tmp_path / "dataset_coco.json").write_text(json.dumps({"images": images}))
    (tmp_path / "annotations").mkdir()

    def write(name: str, known: list[tuple[int, str]], annotations: list[dict[str, object]]) -> None:
        listed = [{"id": id, "file_name": name, "width": 9, "height": 9} for id, name in known]
        data = {"images": listed, "annotations": annotations}
        (tmp_path / "annotations" / name).write_text(json.dumps(data))

    write("captions_train2014.json", [(5, "COCO_train2014_000000000005.jpg")], [{"image_id": 5, "caption": "Own."}])
    write("instances_val2014.json", [(7, "COCO_val2014_000000000007.jpg")], [])
    dataset = open_dataset(tmp_path)
    assert dataset.splits == ("train2014", "val2014", "karpathy-train", "karpathy-test")
    said = {
        example.id: [caption.text for caption in example.captions] for example in dataset.examples("karpathy-train")
    }
    assert said == {"5": ["Own."], "6": ["Photo 6 by Karpathy."]}
    for _ in range(2):  # boxes without captions: said once however often it is read
        assert [caption.text for caption in dataset["7"].captions] == ["Photo 7 by Karpathy."]
    with pytest.raises(BadExampleError, match="no image '8'"):
        dataset["8"]


def test_broken_entries_are_noted_and_the_rest_is_read(coco: Path) -> None:
    file = coco / "annotations" / "captions_val2014.json"
    data = json.loads(file.read_text())
    data["images"] += [{"id": 11, "file_name": "other.jpg"}, {"file_name": "no id"}, 5]
    data["annotations"] += [{"image_id": 77, "caption": "Gone."}, {"image_id": 11, "caption": 5}, "text"]
    file.write_text(json.dumps(data))
    dataset = open_dataset(coco)
    assert len(dataset["11"].captions) == 2
    problems = dataset.problems
    assert problems.count("two images with one id") == 1
    assert problems.count("annotation of an image that does not exist") == 1
    assert problems.count("broken annotation") == 4
    assert "annotations[4].caption" in " ".join(problems.places("broken annotation", None))


@pytest.mark.parametrize("text", ["[]", '{"images": 5}', '{"images": []}', "{", '{"images": [], "annotations": {}}'])
def test_a_file_of_another_kind_is_an_error(coco: Path, text: str) -> None:
    (coco / "annotations" / "captions_val2014.json").write_text(text)
    with pytest.raises(BadFileError, match=r"captions_val2014\.json"):
        open_dataset(coco).ids("val")


def test_unknown_ids_and_splits(coco: Path) -> None:
    dataset = open_dataset(coco)
    with pytest.raises(BadExampleError, match="no image '99'"):
        dataset["99"]
    with pytest.raises(DeixisError, match="no split 'train'; it has val2014"):
        dataset.ids("train")


def test_the_real_files(shared: Path) -> None:
    mini = open_dataset(shared / "data" / "coco" / "mini")
    assert mini.splits == ("train2017", "val2017")
    examples = list(mini.examples())
    assert len(examples) == 60
    assert sum(len(example.captions) for example in examples) == 300
    labels = {thing.label for example in examples for thing in example.objects}
    assert "person" in labels
    assert len(mini.problems) == 0
    photos = open_dataset(shared / "data" / "coco" / "photos5k")
    assert [len(photos.ids(split)) for split in photos.splits] == [4700, 300]
    assert photos[photos.ids("val")[0]].size == (256, 256)


def test_captions_without_images(shared: Path) -> None:
    dataset = open_dataset(shared / "data" / "coco" / "captions_val2014.json.gz")
    assert dataset.splits == ("val2014", "karpathy-val", "karpathy-test")
    assert [len(dataset.ids(split)) for split in dataset.splits] == [40504, 5000, 5000]
    example = dataset[dataset.ids("karpathy-test")[0]]
    assert example.size is None
    assert len(example.captions) >= 5
    assert len(dataset.problems) == 0, "a dataset of captions alone misses no images"
