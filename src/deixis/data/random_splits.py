"""Splits for datasets that have none: each image is drawn into train, val or test by its name.

The draw depends on the name alone. So it is the same on every machine, and when photos are added later, those of before
stay where they were: nothing that was tested on is ever trained on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from deixis.atomic import utf8

SHARES = {"train": 0.8, "val": 0.1, "test": 0.1}


def drawn_split(id: str) -> str:
    """Return the split that an image falls into."""
    place = int.from_bytes(hashlib.sha256(utf8(id)).digest()[:8], "big") / 2**64
    for split, share in SHARES.items():
        place -= share
        if place < 0:
            return split
    return split


def is_undivided(splits: Sequence[str]) -> bool:
    """Whether there is one split only, and its name does not say that the others are merely not here."""
    return len(splits) == 1 and not splits[0].startswith(tuple(SHARES))


def drawn(ids: Sequence[str], split: str) -> tuple[str, ...]:
    """Return those of ``ids`` that fall into ``split``, in their order."""
    return tuple(id for id in ids if drawn_split(id) == split)
