"""Karpathy's division of COCO and Flickr30k: his JSON, and plain lists of image files."""

from __future__ import annotations

from pathlib import Path

from deixis.reading.files import read_text
from deixis.reading.plain import expect_list, expect_object, expect_text, read_json

_LISTS = ("train", "restval", "val", "test")


def karpathy_splits(folder: Path, json_name: str) -> dict[str, tuple[str, ...]]:
    """Return the image file names of ``karpathy-train``, ``karpathy-val`` and ``karpathy-test`` found in a folder.

    The JSON is Karpathy's own (``images`` with ``filename`` and ``split``); its ``restval`` belongs to training, as in
    every paper that reports on this division. Lists are ``karpathy_SPLIT_images.txt``: a file name per line, whatever
    follows it.
    """
    found: dict[str, list[str]] = {}
    for path in (folder / json_name, folder / "annotations" / json_name, folder / f"{json_name}.gz"):
        if path.is_file():
            data = expect_object(read_json(path), str(path))
            for at, item in enumerate(expect_list(data.get("images"), f"{path}: images")):
                place = f"{path}: images[{at}]"
                image = expect_object(item, place)
                split = expect_text(image.get("split"), f"{place}.split")
                file = expect_text(image.get("filename"), f"{place}.filename")
                found.setdefault("train" if split == "restval" else split, []).append(file)
            break
    for split in _LISTS:
        path = folder / f"karpathy_{split}_images.txt"
        name = "train" if split == "restval" else split
        if path.is_file() and (name not in found or split == "restval"):
            found.setdefault(name, []).extend(
                Path(line.split()[0]).name for line in read_text(path).splitlines() if line.strip()
            )
    order = sorted(found, key=lambda name: (_LISTS.index(name) if name in _LISTS else len(_LISTS), name))
    return {f"karpathy-{name}": tuple(dict.fromkeys(found[name])) for name in order}
