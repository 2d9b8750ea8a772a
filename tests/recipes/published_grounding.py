"""Small files in the formats that papers 4 and 5 publish: Entities, COCO, ReferItGame, RefCOCO, bottom-up features."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

NOUNS = [
    *("dog", "cat", "man", "woman", "boy", "girl", "child", "horse", "bird", "car", "bus", "truck", "boat", "bench"),
    *("table", "chair", "tree", "ball", "hat", "shirt", "bike", "kite", "house", "wall", "door", "street", "beach"),
    *("lake", "field", "fence", "guitar", "camera", "bottle", "plate"),
]
SIZE = (500, 375)
BOXES = 8
CLASSES = 1600
"""Names that the detector of bottom-up attention knows."""

Pair = tuple[str, str]


def pairs(count: int) -> list[Pair]:
    """Two nouns for each photo."""
    return [(NOUNS[at % len(NOUNS)], NOUNS[(7 * at + 3) % len(NOUNS)]) for at in range(count)]


def boxes_of(image: str) -> np.ndarray:
    """The proposals of a photo; the first two are those of its nouns."""
    rng = np.random.default_rng(int(image))
    corner = rng.integers(0, 200, (BOXES, 2))
    side = rng.integers(60, 170, (BOXES, 2))
    return np.concatenate([corner, corner + side], 1).astype(np.float32)


def write_tsv(path: Path, images: Sequence[str], nouns: Sequence[Pair], *, labels: bool) -> None:
    """Bottom-up attention as a TSV: 6 columns, or 10 with the detector's labels."""
    lines = []
    for image, own in zip(images, nouns, strict=True):
        rng = np.random.default_rng(int(image) + 1)
        arrays = [boxes_of(image), rng.random((BOXES, 2048), dtype=np.float32)]
        data = [base64.b64encode(np.ascontiguousarray(array).tobytes()).decode() for array in arrays]
        width, height = SIZE
        if labels:
            ids = np.array([NOUNS.index(own[0]), NOUNS.index(own[1]), *range(40, 40 + BOXES - 2)], dtype=np.int64)
            score = np.linspace(0.9, 0.3, BOXES, dtype=np.float32)
            known = [base64.b64encode(array.tobytes()).decode() for array in (ids, score, ids, score)]
            lines.append("\t".join([image, str(height), str(width), *known, str(BOXES), *data]))
        else:
            lines.append("\t".join([image, str(width), str(height), str(BOXES), *data]))
    path.write_text("\n".join(lines) + "\n")


def write_names(path: Path) -> None:
    """The detector's classes, one a line."""
    path.write_text("\n".join([*NOUNS, *(f"thing {at}" for at in range(CLASSES - len(NOUNS)))]) + "\n")


def write_entities(folder: Path, splits: Mapping[str, Sequence[str]], nouns: Mapping[str, Pair]) -> None:
    """Flickr30k Entities with Plummer's lists; five captions a photo, two phrases with a box each. No photos."""
    for name in ("Annotations", "Sentences"):
        (folder / name).mkdir(parents=True)
    for split, images in splits.items():
        (folder / f"{split}.txt").write_text("\n".join(images) + "\n")
        for image in images:
            first, second = nouns[image]
            objects = ""
            for chain, box in zip((1, 2), boxes_of(image), strict=False):
                x1, y1, x2, y2 = (int(side) for side in box)
                corners = f"<xmin>{x1}</xmin><ymin>{y1}</ymin><xmax>{x2}</xmax><ymax>{y2}</ymax>"
                objects += f"<object><name>{chain}</name><bndbox>{corners}</bndbox></object>"
            size = f"<size><width>{SIZE[0]}</width><height>{SIZE[1]}</height><depth>3</depth></size>"
            (folder / "Annotations" / f"{image}.xml").write_text(f"<annotation>{size}{objects}</annotation>")
            where = ("behind", "under")[int(image) % 2]
            line = f"[/EN#1/other A {first}] is {where} [/EN#2/other a red {second}] .\n"
            (folder / "Sentences" / f"{image}.txt").write_text(line * 5)


def write_coco(folder: Path, images: Sequence[str], nouns: Sequence[Pair]) -> None:
    """COCO's captions of train2014, without photos."""
    (folder / "annotations").mkdir(parents=True)
    known = [
        {"id": int(image), "file_name": f"COCO_train2014_{int(image):012}.jpg", "width": SIZE[0], "height": SIZE[1]}
        for image in images
    ]
    captions = [
        {"id": 5 * at + nth, "image_id": int(image), "caption": f"A {first} next to a small {second}."}
        for at, (image, (first, second)) in enumerate(zip(images, nouns, strict=True))
        for nth in range(5)
    ]
    data = json.dumps({"images": known, "annotations": captions})
    (folder / "annotations" / "captions_train2014.json").write_text(data)


def write_referit(folder: Path, splits: Mapping[str, Sequence[str]], nouns: Mapping[str, Pair]) -> None:
    """ReferItGame's dictionaries and lists: two objects of a photo with expressions."""
    for name in ("metadata", "split"):
        (folder / name).mkdir(parents=True)
    crops, queries, sizes = {}, {}, {}
    for images in splits.values():
        for image in images:
            sizes[image] = list(SIZE)
            for at, (noun, box) in enumerate(zip(nouns[image], boxes_of(image), strict=False), 1):
                crops[f"{image}_{at}"] = [int(side) for side in box]
                queries[f"{image}_{at}"] = [f"red {noun} on the left", f"the {noun}"]
    for name, data in (("imcrop_bbox", crops), ("query", queries), ("imsize", sizes)):
        (folder / "metadata" / f"referit_{name}_dict.json").write_text(json.dumps(data))
    for split, images in splits.items():
        (folder / "split" / f"referit_{split}_imlist.txt").write_text("\n".join(images) + "\n")


def write_refcoco(folder: Path, splits: Mapping[str, Sequence[str]], nouns: Mapping[str, Pair]) -> None:
    """RefCOCO's references as JSON beside COCO's instances."""
    folder.mkdir(parents=True)
    images: list[dict[str, object]] = []
    things: list[dict[str, object]] = []
    refs: list[dict[str, object]] = []
    for split, own in splits.items():
        for image in own:
            images.append({"id": int(image), "file_name": f"{image}.jpg", "width": SIZE[0], "height": SIZE[1]})
            for noun, box in zip(nouns[image], boxes_of(image), strict=False):
                x1, y1, x2, y2 = (float(side) for side in box)
                thing = {"id": len(things), "image_id": int(image), "bbox": [x1, y1, x2 - x1, y2 - y1]}
                things.append(thing)
                sentences = [{"sent": f"red {noun} on the left"}, {"sent": f"the {noun}"}]
                refs.append({"image_id": int(image), "ann_id": thing["id"], "split": split, "sentences": sentences})
    (folder / "instances.json").write_text(json.dumps({"images": images, "annotations": things}))
    (folder / "refs.json").write_text(json.dumps(refs))


def write_bert(folder: Path) -> Path:
    """A tiny BERT that has the nouns as whole words."""
    transformers, tokenizers = pytest.importorskip("transformers"), pytest.importorskip("tokenizers")
    tokens = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "a",
        "is",
        "behind",
        "under",
        "next",
        "to",
        "red",
        "small",
        *NOUNS,
    ]
    cut = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({token: at for at, token in enumerate(tokens)}, unk_token="[UNK]")
    )
    cut.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    cut.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}
    transformers.PreTrainedTokenizerFast(tokenizer_object=cut, **names).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(tokens), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    torch.manual_seed(0)
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    return folder
