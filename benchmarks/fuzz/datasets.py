"""Small datasets in the formats of the field, made anew for the fuzzer."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

from benchmarks.fuzz.attacks import photo

XML = """<annotation><filename>7.jpg</filename><size><width>64</width><height>48</height><depth>3</depth></size>
<object><name>1</name><bndbox><xmin>10</xmin><ymin>5</ymin><xmax>30</xmax><ymax>25</ymax></bndbox></object>
<object><name>1</name><name>2</name><bndbox><xmin>40</xmin><ymin>10</ymin><xmax>60</xmax><ymax>40</ymax></bndbox></object>
<object><name>3</name><scene>1</scene><nobndbox>1</nobndbox></object></annotation>"""
SENTENCES = "[/EN#1/people Two girls] with [/EN#2/clothing/other red hats] in [/EN#3/scene a park] .\nNobody knows\n"


def _json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def _text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _photo(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(photo())


def entities(root: Path) -> None:
    """Flickr30k Entities."""
    _text(root / "Annotations" / "7.xml", XML)
    _text(root / "Sentences" / "7.txt", SENTENCES)
    _photo(root / "images" / "7.jpg")
    _text(root / "val.txt", "7\n")


def coco(root: Path) -> None:
    """COCO's captions and boxes, and Karpathy's division of them."""
    images = [{"id": 11, "file_name": "COCO_val2014_000000000011.jpg", "width": 64, "height": 48}]
    captions = [
        {"id": 1, "image_id": 11, "caption": "A dog  on a\nsofa."},
        {"id": 2, "image_id": 11, "caption": "A sofa."},
    ]
    boxes = [{"id": 1, "image_id": 11, "category_id": 18, "bbox": [10, 10, 20, 30], "iscrowd": 0}]
    categories = [{"id": 18, "name": "dog"}]
    _json(root / "annotations" / "captions_val2014.json", {"images": images, "annotations": captions})
    everything = {"images": images, "annotations": boxes, "categories": categories}
    _json(root / "annotations" / "instances_val2014.json", everything)
    _json(root / "dataset_coco.json", {"images": [{"filename": images[0]["file_name"], "split": "test", "cocoid": 11}]})
    _photo(root / "val2014" / "COCO_val2014_000000000011.jpg")


def activitynet(root: Path) -> None:
    """ActivityNet-Entities."""
    segment = {
        "timestamps": [1.0, 11.0], "tokens": ["A", "man", "throws", "the", "ball"],
        "process_bnd_box": [[100, 50, 300, 350], [400, 10, 700, 60]], "process_clss": [["man"], ["ball"]],
        "process_idx": [[1], [4]], "frame_ind": [0, 7], "crowds": [0, 0],
    }  # fmt: skip
    video = {"duration": 60.0, "rwidth": 720, "rheight": 400, "segments": {"0": segment}}
    both = {"vocab": ["man", "ball"], "annotations": {"v_a": video}}
    _json(root / "anet_entities_cleaned_class_thresh50_trainval.json", both)
    _json(root / "split_ids_anet_entities.json", {"training": ["v_a"], "validation": []})


def referit(root: Path) -> None:
    """ReferItGame."""
    _json(root / "metadata" / "referit_imcrop_bbox_dict.json", {"103_1": [10, 5, 30, 25], "103_2": [0, 0, 63, 47]})
    _json(root / "metadata" / "referit_imsize_dict.json", {"103": [64, 48]})
    _text(root / "ReferitData" / "RealGames.txt", "103_1.jpg~the dog on the left~.33~.02\n103_2.jpg~sky~.5~.5\n")
    _text(root / "split" / "referit_test_imlist.txt", "103\n")
    _photo(root / "images" / "103.jpg")


def folder(root: Path) -> None:
    """A folder with ``metadata.jsonl``."""
    _photo(root / "b.jpg")
    phrases = [
        {"text": "a dog", "boxes": [[10, 10, 60, 40]]},
        {"start": 12, "end": 18, "box": [0, 0, 60, 40], "label": "couch"},
    ]
    objects = {"bbox": [[10, 20, 30, 10]], "categories": ["cup"]}
    lines = [{"file_name": "b.jpg", "text": "I see a dog a sofa.", "width": 64, "height": 48, "phrases": phrases},
             {"file_name": "b.jpg", "text": "One.", "objects": objects}]  # fmt: skip
    _text(root / "metadata.jsonl", "".join(json.dumps(line) + "\n" for line in lines))


def tables(root: Path) -> None:
    """A folder of photos with a table of captions."""
    _photo(root / "photos" / "a.jpg")
    out = io.StringIO()
    csv.writer(out).writerows([["image", "caption"], ["a.jpg", "a dog, running"], ["a.jpg", "two\ndogs"]])
    _text(root / "photos" / "captions.csv", out.getvalue())


def lines(root: Path) -> None:
    """Captions alone, packed."""
    rows = "7\t[/EN#1/people Two girls] in [/EN#3/scene a park] .\n8\tA dog .\n"
    (root / "train.tsv.gz").write_bytes(gzip.compress(rows.encode()))
    _text(root / "val.tsv", rows)


def shards(root: Path) -> None:
    """WebDataset."""
    record = {"caption": "A red bus.", "phrases": [{"text": "A red bus", "boxes": [[0, 0, 50, 40]]}]}
    members = {"a.jpg": photo(), "a.json": json.dumps(record).encode(), "b.jpg": photo(), "b.txt": b"two buses\n"}
    with tarfile.open(root / "train-000.tar", "w") as archive:
        for name, data in members.items():
            facts = tarfile.TarInfo(name)
            facts.size = len(data)
            archive.addfile(facts, io.BytesIO(data))
