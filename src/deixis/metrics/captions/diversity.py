"""How varied captions are: distinct n-grams, vocabulary, novel captions, length.

Div-n follows Shetty et al., "Speaking the Same Language" (ICCV 2017): for several captions of one image, the number of
distinct n-grams divided by the number of words, averaged over images. With one caption for each image that
says nothing, so the same ratio over all captions together (distinct-n, Li et al., NAACL 2016) stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from deixis.errors import DeixisError
from deixis.text.tokens import scoring_words


@dataclass(frozen=True, slots=True)
class Diversity:
    """Figures over all captions; shares are between 0 and 1."""

    captions: int
    mean_length: float
    """Words in a caption."""
    vocabulary: int
    """Different words used."""
    distinct_1: float
    """Different words divided by words, over all captions."""
    distinct_2: float
    """Different pairs of neighbouring words divided by words, over all captions."""
    div_1: float
    """The same inside the captions of one image, averaged over images."""
    div_2: float
    unique: float
    """Share of captions that are given to one image only."""
    novel: float | None
    """Share of captions that are not word for word in the training captions; None if those were not given."""

    def as_dict(self) -> dict[str, float | int | None]:
        """Return plain JSON values."""
        return asdict(self)


def diversity(captions: Mapping[str, str | Sequence[str]], training: Iterable[str] | None = None) -> Diversity:
    """Measure captions: for each image one, or several. Texts are compared after :func:`scoring_words`."""
    groups = [[texts] if isinstance(texts, str) else list(texts) for texts in captions.values()]
    for name, group in zip(captions, groups, strict=True):
        if not group:
            raise DeixisError(f"image {name!r} has no captions: give at least one, or leave the image out")
        if wrong := [text for text in group if not isinstance(text, str)]:
            raise DeixisError(f"a caption of image {name!r} is {wrong[0]!r} ({type(wrong[0]).__name__}), must be text")
    if not groups:
        raise DeixisError("there are no captions to measure")
    words = [[tuple(scoring_words(text)) for text in group] for group in groups]
    every = [caption for group in words for caption in group]
    images_of: dict[tuple[str, ...], int] = {}
    for same_image in words:
        for caption in set(same_image):
            images_of[caption] = images_of.get(caption, 0) + 1
    novel = None
    if training is not None:
        known = {tuple(scoring_words(text)) for text in training}
        novel = sum(caption not in known for caption in every) / len(every)
    return Diversity(
        captions=len(every),
        mean_length=sum(map(len, every)) / len(every),
        vocabulary=len({word for caption in every for word in caption}),
        distinct_1=_distinct(every, 1),
        distinct_2=_distinct(every, 2),
        div_1=sum(_distinct(group, 1) for group in words) / len(words),
        div_2=sum(_distinct(group, 2) for group in words) / len(words),
        unique=sum(images_of[caption] == 1 for caption in every) / len(every),
        novel=novel,
    )


def _distinct(captions: Sequence[Sequence[str]], order: int) -> float:
    """Different n-grams of a set of captions divided by its words; 0 if there are none."""
    seen = {tuple(caption[at : at + order]) for caption in captions for at in range(len(caption) - order + 1)}
    words = sum(map(len, captions))
    return len(seen) / words if words else 0.0
