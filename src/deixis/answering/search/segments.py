"""A segment of an index: some photos, their regions and the scores of words, in three files that are never changed.

``photos.json`` lists the photos, ``regions.safetensors`` is a shard as region stores have them, ``words.npy`` holds the
scores with a row for each word, so that looking one up reads one short run of bytes. Both arrays are memory-mapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from deixis.atomic import whole_file, write_bytes, write_json
from deixis.errors import BadFileError
from deixis.reading.arrays import map_npy
from deixis.reading.plain import read_json
from deixis.regions.store.shards import Shard, encode, pack
from deixis.types import Regions

PHOTOS, REGIONS, WORDS = "photos.json", "regions.safetensors", "words.npy"
_UNFIT = (ValueError, LookupError, TypeError, OverflowError, RuntimeError)  # what arrays that fit nothing raise
_WIDE = ("class_probs", "word_probs")
_FIELDS = ("features", "objectness", "regionness", "class_probs", "word_probs", "global_features", "feature_map")


@dataclass(frozen=True, slots=True)
class PhotoFile:
    """A photo of the folder as it was when it was read."""

    path: str
    """Below the folder, with slashes."""
    bytes: int
    changed: int
    """When it was last written, in nanoseconds."""

    @property
    def state(self) -> tuple[int, int]:
        """What differs once the file is another."""
        return self.bytes, self.changed


@dataclass(frozen=True)
class Segment:
    """Photos, their regions and word scores, as they lie in a folder of the index."""

    folder: Path
    photos: tuple[PhotoFile, ...]
    scores: NDArray[np.float16]  # (W, P)

    @classmethod
    def open(cls, folder: Path, words: int) -> Segment:
        """Map a segment; one that is damaged or was cut short is refused."""
        try:
            rows = read_json(folder / PHOTOS)
            photos = tuple(PhotoFile(str(path), int(size), int(changed)) for path, size, changed in rows)
            scores = map_npy(folder / WORDS)
            if scores.shape != (words, len(photos)) or scores.dtype != np.float16:
                raise ValueError(f"{WORDS} is {scores.dtype} {scores.shape}, expected {(words, len(photos))}")
        except (OSError, ValueError, TypeError, OverflowError, EOFError, BadFileError) as error:
            raise BadFileError(f"the search index is damaged: {folder} ({error}): make it anew (--rebuild)") from error
        return cls(folder, photos, scores)

    @cached_property
    def _shard(self) -> Shard:
        shard = Shard.open(self.folder / REGIONS)
        if len(shard.arrays["sizes"]) != len(self.photos):
            raise ValueError(f"{REGIONS} has {len(shard.arrays['sizes'])} photos, {PHOTOS} {len(self.photos)}")
        return shard

    def regions(self, row: int) -> Regions:
        """Return the stored regions of a photo."""
        try:
            return self._regions(row)
        except (BadFileError, *_UNFIT) as error:
            reason = str(error) if isinstance(error, BadFileError) else f"{type(error).__name__}: {error}"
            damage = f"the search index is damaged: {self.folder} ({reason})"
            raise BadFileError(f"{damage}: make it anew (--rebuild)") from error

    def _regions(self, row: int) -> Regions:
        shard, facts = self._shard, self._shard.facts
        names = {"class_probs": tuple(facts["class_names"]), "word_probs": tuple(facts["word_names"])}
        values: dict[str, Any] = {}
        for name in _FIELDS:
            if name in shard.columns:
                values[name] = torch.from_numpy(shard.read(name, row).copy())
            elif f"{name}.index" in shard.columns:
                if facts["widths"][name] != len(names[name]):
                    raise ValueError(f"{name} has {facts['widths'][name]} numbers for {len(names[name])} names")
                values[name] = _spread(shard, name, row, len(names[name]))
        width, height = shard.arrays["sizes"][row]
        return Regions(
            boxes=torch.from_numpy(shard.read("boxes", row).copy()),
            size=(int(width), int(height)),
            fingerprint=str(facts["fingerprint"]),
            frame=torch.from_numpy(shard.read("frame", row).astype(np.int64)),
            class_names=names["class_probs"],
            word_names=names["word_probs"],
            **values,
        )


def write_segment(
    folder: Path, photos: Sequence[PhotoFile], regions: Sequence[Regions], scores: NDArray[np.floating]
) -> None:
    """Write the files of a segment into a folder that nobody reads yet; ``scores`` is (W, P)."""
    first = regions[0]
    facts = {
        "fingerprint": first.fingerprint,
        "class_names": list(first.class_names),
        "word_names": list(first.word_names),
        "widths": {name: value.shape[1] for name in _WIDE if (value := getattr(first, name)) is not None},
    }
    folder.mkdir(parents=True)
    write_bytes(folder / REGIONS, pack(encode(regions), facts))
    with whole_file(folder / WORDS) as partial, partial.open("wb") as out:
        np.save(out, np.ascontiguousarray(scores.clip(-60000, 60000), dtype=np.float16), allow_pickle=False)
    write_json(folder / PHOTOS, [[photo.path, photo.bytes, photo.changed] for photo in photos], indent=None)


def _spread(shard: Shard, name: str, row: int, width: int) -> torch.Tensor:
    """Return a wide distribution of which only the largest entries are stored."""
    index, value = shard.read(f"{name}.index", row), shard.read(f"{name}.value", row)
    dense = np.zeros((len(index), width), dtype=value.dtype)
    np.put_along_axis(dense, index.astype(np.int64), value, 1)
    return torch.from_numpy(dense)
