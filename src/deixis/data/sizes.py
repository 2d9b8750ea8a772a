"""The widths of what a model is fed: regions and vocabulary dictate them, so every model is built for them."""

from __future__ import annotations

from dataclasses import dataclass

from deixis.regions.store.reader import RegionStore
from deixis.text.vocabulary import Vocabulary
from deixis.types import Regions


@dataclass(frozen=True, slots=True)
class InputSizes:
    """Widths that the regions and the vocabulary dictate; 0 means the regions do not carry it."""

    words: int
    """Words of the vocabulary, special ones included."""
    features: int
    classes: int = 0
    region_words: int = 0
    """Entries of ``word_probs``: the caption nouns and adjectives a region head knows."""
    global_features: int = 0
    feature_map: int = 0
    timeline: int = 0
    """Numbers of a frame of a clip's own timeline."""

    @classmethod
    def of(cls, regions: Regions, words: int) -> InputSizes:
        """Read the sizes off the regions of one image."""

        def width(value: object) -> int:
            return int(value.shape[-1]) if hasattr(value, "shape") else 0

        return cls(
            words=words,
            features=width(regions.features),
            classes=width(regions.class_probs),
            region_words=width(regions.word_probs),
            global_features=width(regions.global_features),
            feature_map=width(regions.feature_map),
            timeline=width(regions.timeline),
        )

    @classmethod
    def of_store(cls, store: RegionStore, vocabulary: Vocabulary) -> InputSizes:
        """Read the sizes off a store and a vocabulary."""
        widths = store.header.widths
        return cls(
            words=len(vocabulary),
            features=store.width("features"),
            classes=store.width("class_probs"),
            region_words=store.width("word_probs"),
            global_features=store.width("global_features"),
            feature_map=int(widths["feature_map"][-1]) if "feature_map" in widths else 0,
            timeline=store.width("timeline"),
        )
