"""A store of regions as a taught extractor names them, made from what the untaught one saw: no photo is read again.

The boxes and tokens of both are the same (:mod:`deixis.regions.training.names_run`); what was learned is a small head
on each region, and a hundred thousand photos take minutes instead of hours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from deixis.errors import DeixisError
from deixis.regions.lite import LiteExtractor
from deixis.regions.network.trunks.dinov2 import WIDTH
from deixis.regions.store.reader import RegionStore
from deixis.regions.store.writer import write_store
from deixis.text.coco_names import COCO_NAMES
from deixis.types import Regions


def write_taught(stores: Sequence[RegionStore], extractor: LiteExtractor, path: str | Path) -> RegionStore:
    """Write the regions of an untaught extractor's stores as the taught one describes them, joined.

    Args:
        stores: Made with the extractor that ``extractor`` learned from, ``RUN/untaught``; of different photos.
        extractor: The taught one, ``RUN/lite``.
        path: Folder of the new store.
    """
    if extractor.network.namer is None:
        raise DeixisError("the extractor has no namer: only what a namer has learned can be told to a store")
    for store in stores:
        if store.fingerprint != extractor.untaught:
            raise DeixisError(
                f"{store.path} holds regions of {store.fingerprint}, but the extractor learned from those of "
                f"{extractor.untaught or 'no other'}: give the store of its untaught extractor, or extract the photos"
            )
    failed = {entry["id"]: entry["reason"] for store in stores for entry in store.header.failed}
    ids = [image for store in stores for image in store] + list(failed)
    if twice := [image for image, times in Counter(ids).items() if times > 1]:
        raise DeixisError(f"{len(twice)} photos are in more than one of the stores, {twice[0]} for one: give each once")

    def images() -> Iterator[tuple[str, Regions | str]]:
        for store in stores:
            for image in store:
                yield image, taught(store.get(image), extractor)
        yield from failed.items()

    settings = {**stores[0].header.settings, "from": extractor.untaught}
    return write_store(path, images(), ids, extractor.fingerprint, settings)


@torch.inference_mode()
def taught(regions: Regions, extractor: LiteExtractor) -> Regions:
    """Return regions of the untaught extractor as the taught one describes them."""
    network, features = extractor.network, regions.features.float()
    assert network.namer is not None
    tokens, own = features[:, :WIDTH], features[:, WIDTH:]
    learned = network.namer.learn(own, tokens)
    return replace(
        regions,
        features=torch.cat([tokens, learned], 1),
        class_probs=torch.sigmoid(network.regions.classes(learned)) ** 2,
        class_names=COCO_NAMES,
        word_probs=torch.sigmoid(network.regions.words(learned)),
        word_names=extractor.words,
        fingerprint=extractor.fingerprint,
    )
