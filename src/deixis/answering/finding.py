"""The half of a model that finds phrases in photos: it needs what scores phrases, and no captioner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import overload

import torch

from deixis.answering.asking import Asking
from deixis.answering.photos import Seen, kept_photo, photo_name, photo_names
from deixis.answering.phrases import asked_sentences, doubtful_where_unknown, found_from
from deixis.answering.several import with_further_boxes
from deixis.errors import DeixisError
from deixis.interfaces import Grounder
from deixis.text.vocabulary import Vocabulary
from deixis.types import GroundedPhrases, Regions, Sentence


class FindsPhrases(ABC):
    """Finds phrases in photos or in their regions; :class:`deixis.answering.load.Deixis` says with which grounder."""

    name: str
    _judge: Grounder

    @property
    @abstractmethod
    def words(self) -> Vocabulary:
        """The words that phrases are read with."""

    @abstractmethod
    def _judged(self, regions: Regions) -> Regions:
        """Return the regions that the grounder looks at."""

    @abstractmethod
    def _seen(self, images: Sequence[Seen]) -> list[Regions]:
        """Return the regions of photos."""

    def require_threshold(self, threshold: float | None) -> None:
        """Refuse a threshold that is no probability, or that nothing is compared with."""
        Asking(threshold=threshold)
        if threshold and not self._judge.tells_presence:  # from 0 on everything is found
            raise DeixisError(
                f"{self.name} does not say how probably a phrase is in a photo, so there is nothing to compare the "
                f"threshold {threshold:g} with: `deixis calibrate` fits that"
            )

    @overload
    def ground(
        self,
        image: Seen,
        phrases: Sequence[str] | None = None,
        *,
        sentence: str | None = None,
        name: str | None = None,
        boxes: int = 1,
        threshold: float | None = None,
    ) -> GroundedPhrases: ...
    @overload
    def ground(
        self,
        image: list[Seen],
        phrases: Sequence[str] | None = None,
        *,
        sentence: str | None = None,
        boxes: int = 1,
        threshold: float | None = None,
    ) -> list[GroundedPhrases]: ...
    def ground(
        self,
        image: Seen | list[Seen],
        phrases: Sequence[str] | None = None,
        *,
        sentence: str | None = None,
        name: str | None = None,
        boxes: int = 1,
        threshold: float | None = None,
    ) -> GroundedPhrases | list[GroundedPhrases]:
        """Find phrases in a photo: phrases alone, the noun phrases of a sentence, or phrases as parts of a sentence.

        Args:
            image: A photo, or a list of photos in each of which the same is looked for.
            phrases: What to look for, such as ``["a man", "a red hat"]``.
            sentence: Says what stands around the phrases; without phrases, its noun phrases are looked for.
            name: What the answer calls the photo.
            boxes: How many boxes a phrase may have, where several things answer to it.
            threshold: Probability of being there below which a phrase is not found; None: as was fitted.
        """
        if isinstance(image, list):
            return [self.ground(one, phrases, sentence=sentence, boxes=boxes, threshold=threshold) for one in image]
        sentences = asked_sentences(phrases, sentence, self.words)
        answers = self.ground_sentences(image, sentences, name=name, threshold=threshold)
        found = [with_further_boxes(phrase, boxes) for answer in answers for phrase in answer.phrases]
        if sentence is None:
            found = [replace(phrase, start=None, end=None) for phrase in found]
        photo = kept_photo(image) if name is None else None
        return replace(answers[0], phrases=tuple(found), sentence=sentence, photo=photo)

    def ground_sentences(
        self, image: Seen, sentences: Sequence[Sentence], *, name: str | None = None, threshold: float | None = None
    ) -> list[GroundedPhrases]:
        """Find the phrases of sentences that are parsed already (``deixis.text.rules.chunker``), in few passes."""
        self.require_threshold(threshold)
        seen = self._judged(self._seen([image])[0])
        with torch.inference_mode():
            answers = self._judge.ground_all(seen, sentences)
        named = name or photo_name(image)
        return [
            GroundedPhrases(
                named,
                seen.size,
                tuple(
                    doubtful_where_unknown(found_from(answer, threshold), sentence, phrase, self.words)
                    for phrase, answer in zip(sentence.phrases, grounded.phrases, strict=True)
                ),
                sentence.text,
                self.name,
            )
            for sentence, grounded in zip(sentences, answers, strict=True)
        ]

    def ground_many(
        self, images: Sequence[Seen], phrases_of: Sequence[Sequence[str]], *, names: Sequence[str] | None = None
    ) -> list[GroundedPhrases]:
        """Find phrases in several photos: ``phrases_of[i]`` in ``images[i]``."""
        if len(images) != len(phrases_of):
            raise DeixisError(f"{len(images)} photos but phrases for {len(phrases_of)}")
        together = zip(self._seen(images), phrases_of, photo_names(images, names), strict=True)
        return [self.ground(seen, phrases, name=name) for seen, phrases, name in together]
