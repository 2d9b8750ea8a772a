"""Retrieval by a matcher: does an image find its captions, and a caption its image, among all the others?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deixis.errors import DeixisError
from deixis.metrics.bootstrap import MeanSample

DEPTHS = (1, 5, 10)


@dataclass(frozen=True, slots=True, eq=False)
class Retrieval:
    """Ranks from 1: for each image that of its best caption, for each caption that of its image."""

    image_to_text: NDArray[np.int64]  # (I,)
    text_to_image: NDArray[np.int64]  # (C,)
    image_of: NDArray[np.int64]  # (C,)

    @property
    def scores(self) -> dict[str, float]:
        """``i2t_R@1`` … ``t2i_R@10`` from 0 to 1, and the median ranks."""
        scores: dict[str, float] = {}
        for name, ranks in (("i2t", self.image_to_text), ("t2i", self.text_to_image)):
            scores |= {f"{name}_R@{depth}": float((ranks <= depth).mean()) for depth in DEPTHS}
            scores[f"{name}_median_rank"] = float(np.median(ranks))
        return scores

    @property
    def samples(self) -> dict[str, MeanSample]:
        """Each recall as a sample over images, for intervals."""
        images = len(self.image_to_text)
        samples = {}
        for depth in DEPTHS:
            found = (self.image_to_text <= depth).astype(np.float64)
            samples[f"i2t_R@{depth}"] = MeanSample.of(found, np.arange(images), images)
            found = (self.text_to_image <= depth).astype(np.float64)
            samples[f"t2i_R@{depth}"] = MeanSample.of(found, self.image_of, images)
        return samples


def score_retrieval(similarity: NDArray[np.floating], image_of: NDArray[np.integer]) -> Retrieval:
    """Rank by similarity.

    Args:
        similarity: (I, C) how well each caption fits each image; several captions may belong to one image.
        image_of: (C,) the row of the image each caption belongs to.

    Ties count against: a matcher that gives everything the same score finds nothing.
    """
    similarity, owner = np.asarray(similarity), np.asarray(image_of, dtype=np.int64)
    if similarity.ndim != 2 or owner.shape != (similarity.shape[1],):
        raise DeixisError(
            f"similarity should be images x captions and image_of one row per caption, got shapes "
            f"{similarity.shape} and {owner.shape}"
        )
    if not np.isfinite(similarity).all():
        image, caption = np.argwhere(~np.isfinite(similarity))[0]
        raise DeixisError(f"similarity[{image}, {caption}] is {similarity[image, caption]}, expected finite numbers")
    images = similarity.shape[0]
    lonely = np.setdiff1d(np.arange(images), owner)
    if len(lonely) or (len(owner) and not 0 <= owner.min() <= owner.max() < images):
        raise DeixisError(f"image_of should name every row 0 to {images - 1}; missing {lonely[:5].tolist()}")

    own = similarity[owner, np.arange(len(owner))]  # (C,)
    text_to_image = (similarity >= own).sum(0)  # (C,) its image is among those counted, so ranks start at 1
    mine = owner[None, :] == np.arange(images)[:, None]  # (I, C)
    best = np.where(mine, similarity, -np.inf).max(1)  # (I,)
    image_to_text = 1 + ((similarity >= best[:, None]) & ~mine).sum(1)  # (I,)
    return Retrieval(image_to_text.astype(np.int64), text_to_image.astype(np.int64), owner)
