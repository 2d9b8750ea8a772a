"""Small files in the published formats, under the names that the recipes give them in ``$DEIXIS_HOME``.

Numbers are random, widths and layouts are those of the real files: bottom-up features (36 x 2,048), GVD's proposals of
photos (100 x 2,048, with conv maps beside) and of clips (ten frames, with frame features of 2,048 + 1,024 beside).
Regions lie on the annotated boxes at another photo size than the annotations', as the published features do.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np

WIDE, HIGH = 400, 300
LARGER = 2
"""The features were made on photos this many times larger than the annotated ones."""
CLASSES = ("man", "dog", "ball", "street")
CAPTIONS = (
    "[/EN#1/people A man] plays with [/EN#2/animals a dog] on [/EN#3/other the street] .",
    "[/EN#2/animals A dog] runs after [/EN#4/other a ball] near [/EN#1/people the man] .",
    "[/EN#1/people The man] throws [/EN#4/other a ball] on [/EN#3/other a street] .",
)
BOXES = {"1": (10, 20, 110, 260), "2": (150, 120, 260, 280), "3": (0, 200, 399, 299), "4": (300, 40, 340, 80)}


def photo_ids(count: int) -> list[str]:
    return [str(1000 + at) for at in range(count)]


def flickr30k(folder: Path, count: int = 12) -> list[str]:
    """Flickr30k Entities with Karpathy's division, without photos."""
    ids = photo_ids(count)
    (folder / "Annotations").mkdir(parents=True)
    (folder / "Sentences").mkdir()
    for name in ids:
        objects = "".join(
            f"<object><name>{chain}</name><bndbox><xmin>{x1}</xmin><ymin>{y1}</ymin><xmax>{x2}</xmax><ymax>{y2}</ymax>"
            "</bndbox></object>"
            for chain, (x1, y1, x2, y2) in BOXES.items()
        )
        size = f"<size><width>{WIDE}</width><height>{HIGH}</height><depth>3</depth></size>"
        (folder / "Annotations" / f"{name}.xml").write_text(f"<annotation>{size}{objects}</annotation>")
        (folder / "Sentences" / f"{name}.txt").write_text("\n".join(CAPTIONS) + "\n")
    _karpathy(folder / "dataset_flickr30k.json", [f"{name}.jpg" for name in ids])
    return ids


def coco(folder: Path, count: int = 12) -> list[str]:
    """COCO's captions as Karpathy's JSON has them."""
    folder.mkdir(parents=True)
    names = [f"COCO_val2014_{int(name):012d}.jpg" for name in photo_ids(count)]
    _karpathy(folder / "dataset_coco.json", names, ids=photo_ids(count))
    return photo_ids(count)


def _karpathy(path: Path, files: list[str], ids: list[str] | None = None) -> None:
    splits = [
        "test" if at % 6 == 5 else "val" if at % 6 == 4 else "restval" if at % 6 == 3 else "train"
        for at in range(len(files))
    ]
    texts = ["A man plays with a dog on the street.", "A dog runs after a ball.", "The man throws a ball on a street."]
    images: list[dict[str, Any]] = [
        {"filename": name, "split": split, "sentences": [{"raw": text} for text in texts]}
        for name, split in zip(files, splits, strict=True)
    ]
    for image, id in zip(images, ids or [], strict=False):
        image["cocoid"] = int(id)
    path.write_text(json.dumps({"images": images}))


def regions(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Boxes and features: the annotated things first, then random ones; a thing's feature tells its chain."""
    corner = rng.uniform(0, [[0.6 * WIDE, 0.6 * HIGH]], (count, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(20, 100, (count, 2))], 1)
    features = rng.normal(0, 0.1, (count, 2048))
    for at, box in enumerate(BOXES.values()):
        boxes[at] = box
        features[at, at * 100 : at * 100 + 100] += 1
    return (boxes * LARGER).astype(np.float32), features.astype(np.float32)


def bottom_up(path: Path, ids: list[str], count: int = 36, *, labels: bool = False) -> None:
    """The original TSV of bottom-up attention, of 6 columns, or of 10 with the detector's labels."""
    rng = np.random.default_rng(1)

    def packed(array: np.ndarray, kind: str = "<f4") -> str:
        return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode()

    wide, high = str(LARGER * WIDE), str(LARGER * HIGH)
    known = [packed(np.arange(count) % len(CLASSES), "<i8"), packed(np.linspace(0.9, 0.3, count))]

    rows = []
    for name in ids:
        boxes, features = regions(rng, count)
        head = [name, high, wide, *known, *known] if labels else [name, wide, high]
        rows.append("\t".join([*head, str(count), packed(boxes), packed(features)]))
    path.write_text("\n".join(rows) + "\n")


def gvd_photos(folder: Path, ids: list[str], h5py: Any, count: int = 100) -> tuple[list[Path], Path, Path, Path]:
    """GVD's proposals of photos: h5, dictionary and features; then sizes, class names and conv maps."""
    rng = np.random.default_rng(2)
    for name in ("features", "maps"):
        (folder / name).mkdir(parents=True)
    table = np.zeros((len(ids), count, 6), dtype=np.float32)
    for at, name in enumerate(ids):
        boxes, features = regions(rng, count)
        table[at, :, :4] = boxes
        table[at, :, 4] = 1 + np.arange(count) % len(CLASSES)  # 0 is the background
        table[at, :, 5] = np.linspace(0.99, 0.01, count)
        np.save(folder / "features" / f"{name}.npy", features)
        np.save(folder / "maps" / f"{name}.npy", rng.normal(0, 1, (3, 3, 2048)).astype(np.float32))
    with h5py.File(folder / "proposals.h5", "w") as file:
        file["dets_labels"], file["nms_num"] = table, np.full(len(ids), count)
    (folder / "dic_flickr30k.json").write_text(json.dumps({"images": [{"id": name, "split": "train"} for name in ids]}))
    sizes, names = folder / "sizes.json", folder / "names.txt"
    sizes.write_text(json.dumps({name: [LARGER * WIDE, LARGER * HIGH] for name in ids}))
    names.write_text("\n".join(CLASSES))
    return [folder / "proposals.h5", folder / "dic_flickr30k.json", folder / "features"], sizes, names, folder / "maps"


def activitynet(folder: Path, count: int = 8) -> list[str]:
    """ActivityNet-Entities: two segments a video, boxes on some of the ten frames, its own split names."""
    folder.mkdir(parents=True)
    videos = [f"v_{at:011d}" for at in range(count)]
    annotations: dict[str, Any] = {}
    for video in videos:
        annotations[video] = {"duration": 60.0, "rwidth": WIDE, "rheight": HIGH, "segments": {}}
        for number in range(2):
            chains = ("1", "2") if number == 0 else ("2", "4")
            annotations[video]["segments"][str(number)] = {
                "tokens": ("a man plays with a dog" if number == 0 else "a dog runs after the ball").split(),
                "timestamps": [30.0 * number, 30.0 * number + 20],
                "process_bnd_box": [list(BOXES[chain]) for chain in chains],
                "frame_ind": [0, 3],
                "process_idx": [[1], [5]],
                "process_clss": [["man"], ["dog"]] if number == 0 else [["dog"], ["ball"]],
                "crowds": [0, 0],
            }
    file = {"vocab": list(CLASSES), "annotations": annotations}
    (folder / "anet_entities_cleaned_class_thresh50_trainval.json").write_text(json.dumps(file))
    splits = {"training": videos[:-2], "validation": videos[-2:], "testing": []}
    (folder / "split_ids_anet_entities.json").write_text(json.dumps(splits))
    return [f"{video}_segment_{number:02d}" for video in videos for number in range(2)]


def gvd_clips(folder: Path, ids: list[str], h5py: Any, count: int = 8) -> tuple[list[Path], Path, Path, Path]:
    """GVD's proposals of clips: h5, dictionary and features; then sizes, class names and frame features."""
    rng = np.random.default_rng(3)
    for name in ("features", "frames"):
        (folder / name).mkdir(parents=True)
    table = np.zeros((len(ids), 10 * count, 7), dtype=np.float32)
    for at, name in enumerate(ids):
        every = [regions(rng, count) for _ in range(10)]
        table[at, :, :4] = np.concatenate([boxes for boxes, _ in every]) / LARGER  # at the annotations' own size
        table[at, :, 4] = np.repeat(np.arange(10), count)
        table[at, :, 5] = 1 + np.arange(10 * count) % len(CLASSES)
        table[at, :, 6] = np.tile(np.linspace(0.99, 0.25, count), 10)
        np.save(folder / "features" / f"{name}.npy", np.stack([features for _, features in every]))
        video = name.partition("_segment_")[0].removeprefix("v_")
        np.save(folder / "frames" / f"{video}_resnet.npy", rng.normal(0, 1, (90, 2048)).astype(np.float32))
        np.save(folder / "frames" / f"{video}_bn.npy", rng.normal(0, 1, (90, 1024)).astype(np.float32))
    with h5py.File(folder / "anet.h5", "w") as file:
        file["dets_labels"], file["dets_num"] = table, np.full(len(ids), 10 * count)
        file["nms_num"] = np.zeros(len(ids))  # the clips' own count is the other one
    (folder / "dic_anet.json").write_text(json.dumps({"videos": [{"id": name, "split": "training"} for name in ids]}))
    sizes, names = folder / "anet_entities_trainval.json", folder / "names.txt"
    known = {name.partition("_segment_")[0]: {"rwidth": WIDE, "rheight": HIGH} for name in ids}
    sizes.write_text(json.dumps({"database": known}))
    names.write_text("\n".join(CLASSES))
    return [folder / "anet.h5", folder / "dic_anet.json", folder / "features"], sizes, names, folder / "frames"
