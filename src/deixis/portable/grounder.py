"""A grounder on arrays: phrases to boxes and words to matching scores, by two exported networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deixis.data.encode import CaptionEncoder, EncodedCaption
from deixis.portable.manifest import Manifest
from deixis.portable.networks import Arrays, Networks
from deixis.text.vocabulary import Vocabulary
from deixis.types import GroundedPhrase, GroundedPhrases, Phrase, Sentence, box_of

LONGEST_SENTENCE = 60
"""Words of a sentence that are read, as in ``deixis.grounding.base``."""


@dataclass(frozen=True, slots=True)
class ArrayGrounder:
    """Answers as the :class:`~deixis.grounding.base.WordGrounder` that was exported; regions are what *look* gave."""

    networks: Networks
    manifest: Manifest
    words: Vocabulary

    def ground(self, regions: Arrays, sentence: Sentence) -> GroundedPhrases:
        """Find the boxes of a parsed sentence's phrases."""
        numbers = {id(phrase): at for at, phrase in enumerate(sentence.phrases)}
        # the encoder drops some phrases: under supervision each says which it is
        encoder = CaptionEncoder(self.words, LONGEST_SENTENCE, supervision=True, label=lambda _, p: numbers[id(p)])
        encoded = encoder(sentence)
        found = self._ranked(regions, sentence, encoded) if encoded.phrases else {}
        every = enumerate(sentence.phrases)
        phrases = tuple(found.get(at) or _unknown(regions, sentence, phrase) for at, phrase in every)
        return GroundedPhrases("", size_of(regions), phrases, sentence.text)

    def match(self, regions: Arrays, words: Sequence[str]) -> list[float | None]:
        """Return how well each word alone fits the photo, or None for words the grounder does not know."""
        known = [word for word in dict.fromkeys(words) if word in self.words]
        if not known:
            return [None] * len(words)
        ids = np.array([self.words.id(word) for word in known])
        scores = self.networks.run("match", {**regions, "words": ids})["matches"].tolist()
        return [dict(zip(known, scores, strict=True)).get(word) for word in words]

    def _ranked(self, regions: Arrays, sentence: Sentence, encoded: EncodedCaption) -> dict[int, GroundedPhrase]:
        """Return the answers of the phrases that have a word, by their places in the sentence."""
        spans = {key: np.array([getattr(p, key) for p in encoded.phrases]) for key in ("first", "last", "head")}
        asked = {"words": np.array(encoded.words), "tags": np.array([*encoded.tags, 0]), **spans}
        out = self.networks.run("point", {**regions, **asked})
        curves = self.manifest.calibration
        found = {}
        for at, phrase in enumerate(encoded.phrases):
            answer = _answer(
                sentence, sentence.phrases[phrase.label], out["ranked_boxes"][at], out["ranked_shares"][at]
            )
            if curves is not None:
                signals = out["signals"][at : at + 1].astype(np.float64)
                right, there = float(curves.right(signals)[0]), float(curves.found(signals)[0])
                answer = replace(answer, score=right, presence=there, found=there >= curves.threshold)
            found[phrase.label] = answer
        return found


def size_of(regions: Arrays) -> tuple[int, int]:
    """Return width and height of the photo."""
    width, height = regions["size"].tolist()
    return int(width), int(height)


def _answer(sentence: Sentence, phrase: Phrase, boxes: NDArray[Any], shares: NDArray[Any]) -> GroundedPhrase:
    start, end = sentence.phrase_span(phrase)
    ranked = tuple(box_of(box) for box in boxes.tolist())
    return GroundedPhrase(
        text=sentence.text[start:end],
        boxes=ranked[:1],
        frames=(0,),
        score=float(shares[0]),
        start=start,
        end=end,
        ranked=ranked,
        ranked_scores=tuple(shares.tolist()),
    )


def _unknown(regions: Arrays, sentence: Sentence, phrase: Phrase) -> GroundedPhrase:
    """Return the answer for a phrase without a known word: not found, and the whole photo as the best guess."""
    start, end = sentence.phrase_span(phrase)
    width, height = size_of(regions)
    whole = box_of([0.0, 0.0, float(width), float(height)])
    return GroundedPhrase(sentence.text[start:end], (whole,), (0,), 0.0, False, start, end)
