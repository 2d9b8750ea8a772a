"""What makes a reader stop believing a caption: a thing that is not there, two words on one box, a noun said twice.

Measured on captions as people get them. *invented*: the share of things named (groundable words) that no reference
names, by lemma. *shared_box*: the share of captions in which two trusted words point at one box (IoU above .8).
*repeated_noun*: the share of captions that name one thing twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from deixis.errors import DeixisError
from deixis.geometry import iou
from deixis.metrics.bootstrap import MeanSample, Sample
from deixis.metrics.report import Section
from deixis.text.rules.lemmas import lemmatise
from deixis.text.tokens import scoring_words
from deixis.types import GroundedCaption

PROTOCOL = "what makes captions hard to believe"
SHARED = 0.8


def things_said(caption: GroundedCaption) -> list[str]:
    """The lemmas of the words that name things, in order."""
    return [lemmatise(word.text.lower()) for word in caption.words if word.groundable]


def shares_a_box(caption: GroundedCaption) -> bool:
    """Whether the first boxes of two trusted words are one box, on one frame."""
    pointing = [word for word in caption.words if word.groundable and word.trusted and word.boxes]
    for one, other in combinations(pointing, 2):
        same_frame = one.frames[:1] == other.frames[:1]
        if same_frame and float(iou(np.array(one.boxes[:1]), np.array(other.boxes[:1]))[0, 0]) > SHARED:
            return True
    return False


def believable_section(
    captions: Sequence[GroundedCaption], references: Mapping[str, Sequence[str]], *, replicates: int, seed: int
) -> Section:
    """Measure captions against the references of their images, with intervals over images."""
    if not captions:
        raise DeixisError("there are no captions to measure")
    invented, group, shared, repeated = [], [], [], []
    for at, caption in enumerate(captions):
        known = {lemmatise(word) for text in references[caption.image] for word in scoring_words(text)}
        things = things_said(caption)
        invented += [float(thing not in known) for thing in things]
        group += [at] * len(things)
        shared.append(float(shares_a_box(caption)))
        repeated.append(float(len(set(things)) < len(things)))
    every, count = np.arange(len(captions)), len(captions)
    samples: dict[str, Sample] = {
        "shared_box": MeanSample.of(np.array(shared), every, count),
        "repeated_noun": MeanSample.of(np.array(repeated), every, count),
    }
    if invented:
        samples = {"invented": MeanSample.of(np.array(invented), np.array(group), count)} | samples
    images = tuple(caption.image for caption in captions)
    return Section.of_samples(PROTOCOL, count, "captions", samples, images, replicates=replicates, seed=seed)
