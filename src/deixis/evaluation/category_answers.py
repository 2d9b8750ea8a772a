"""Categories asked for as people ask, "a dog": are they found where they are, with the right box, and only there?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deixis.errors import TooFewError
from deixis.evaluation.categories import asking_for, categories_of, names_of
from deixis.evaluation.setting import Evaluation
from deixis.geometry import area, iou
from deixis.metrics.bootstrap import MeanSample, Sample
from deixis.metrics.report import Section
from deixis.types import Example, GroundedPhrase, Phrase

LARGE = 0.1
"""Share of the photo from which on a thing is large."""
PROTOCOL = 'categories asked as "a CATEGORY" (right: found, IoU .5 with an instance; large: a tenth of the photo)'


def category_section(work: Evaluation) -> Section:
    """Ask for every category of every photo of which it is known whether it is there.

    ``right``: of those that are there, found with a box that overlaps an instance by half; ``right_large``: the same of
    those with an instance of at least a tenth of the photo; ``present_kept``: of those that are there, found at all;
    ``absent_found``: of those that are not there, found all the same.
    """
    names = names_of(work.examples)
    present: list[tuple[int, float, bool, bool]] = []  # photo, share of the photo, found, right
    absent: list[tuple[int, bool]] = []
    for at, example in enumerate(work.examples):
        known = categories_of(example, names)
        asked = asking_for(example, (*known.present, *known.absent), work.model.words)
        answers = work.model.ground_sentences(
            work.seen([example.id])[0], asked.captions, name=example.id, threshold=work.asking.threshold
        )
        for sentence, answer in zip(asked.captions, answers, strict=True):
            truth, told = sentence.phrases[0], answer.phrases[0]
            if truth.boxes:
                present.append((at, _share(truth, example), told.found, told.found and _right(told, truth)))
            else:
                absent.append((at, told.found))
    if not present or not absent:
        raise TooFewError(f"no category of {work.dataset.path} is known to be in a photo, or known not to be")
    there, gone = np.array(present, dtype=np.float64), np.array(absent, dtype=np.float64)
    large = there[there[:, 1] >= LARGE]
    count = len(work.examples)
    samples: dict[str, Sample] = {
        "right": _mean(there[:, 3], there[:, 0], count),
        "present_kept": _mean(there[:, 2], there[:, 0], count),
        "absent_found": _mean(gone[:, 1], gone[:, 0], count),
    }
    if len(large):
        samples = {"right_large": _mean(large[:, 3], large[:, 0], count)} | samples
    images = tuple(example.id for example in work.examples)
    return Section.of_samples(PROTOCOL, len(there) + len(gone), "questions", samples, images, **work.drawing)


def _mean(values: NDArray[np.float64], photo: NDArray[np.float64], photos: int) -> Sample:
    return MeanSample.of(values, photo.astype(np.int64), photos)


def _share(truth: Phrase, example: Example) -> float:
    """Return the share of the photo that the largest instance takes."""
    assert example.size is not None  # a photo whose regions were found has been read
    return float(area(np.array(truth.boxes)).max()) / (example.size[0] * example.size[1])


def _right(told: GroundedPhrase, truth: Phrase) -> bool:
    return bool((iou(np.array(told.boxes[:1]), np.array(truth.boxes), plus_one=True) >= 0.5).any())
