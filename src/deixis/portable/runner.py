"""Answers from exported networks with numpy, onnxruntime and Pillow: torch is not imported.

What surrounds the networks, sentences and phrases, is the code that torch answers with too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np

from deixis.answering.check import check_phrases, check_words, things_named
from deixis.answering.phrases import asked_sentences, doubtful_where_unknown, found_from
from deixis.answering.reground import reground
from deixis.answering.several import with_further_boxes
from deixis.images import ImageSource, load_image
from deixis.portable.grounder import ArrayGrounder, size_of
from deixis.portable.manifest import NEXT, READ, SAID, Manifest
from deixis.portable.networks import Arrays, Networks
from deixis.reading.plain import parse_json
from deixis.regions.network.resize import fit
from deixis.text.tokens import sentence_text
from deixis.text.vocabulary import Vocabulary
from deixis.types import Box, GroundedCaption, GroundedPhrases, GroundedWord, box_of


class Portable:
    """An exported model. Several threads may ask one object.

    >>> model = Portable.load("lite-onnx")  # doctest: +SKIP
    >>> model.caption("photo.jpg").text  # doctest: +SKIP
    'A dog runs through the snow.'
    """

    def __init__(self, manifest: Manifest, networks: Networks, said: Vocabulary, words: Vocabulary) -> None:
        self.manifest, self.networks, self.said, self.words = manifest, networks, said, words
        self._grounder = ArrayGrounder(networks, manifest, words)

    def __repr__(self) -> str:
        return f"<exported deixis model {self.manifest.name!r}: {len(self.words):,} words, beam {self.manifest.beam}>"

    @classmethod
    def load(cls, folder: str | Path, *, threads: int = 0) -> Self:
        """Load what ``deixis export-model`` wrote.

        Args:
            folder: Every file in it must be the one that ``model.json`` lists.
            threads: Of each network; 0 leaves their number to onnxruntime.
        """
        folder = Path(folder)
        manifest = Manifest.load(folder)
        networks = Networks.load(folder, manifest, threads)
        said, words = (
            Vocabulary.from_json(parse_json(manifest.read(folder, name), str(folder / name)), str(folder / name))
            for name in (SAID, READ)
        )
        return cls(manifest, networks, said, words)

    def look(self, photo: ImageSource) -> Arrays:
        """Find the regions of a photo; ``caption`` and ``ground`` take them in place of the photo."""
        pixels = np.asarray(load_image(photo))
        size = np.array([pixels.shape[1], pixels.shape[0]], np.float32)
        return self.networks.run("look", {"pixels": fit(pixels), "size": size}) | {"size": size}

    def caption(
        self,
        photo: ImageSource | Arrays,
        *,
        check: bool = True,
        threshold: float | None = None,
        name: str | None = None,
    ) -> GroundedCaption:
        """Caption a photo.

        Args:
            photo: A photo, or what :meth:`look` gave of it.
            check: Ask the grounder whether each thing is really there.
            threshold: Probability below which a thing is doubted; None: as was fitted.
            name: What the answer calls the photo.
        """
        seen = self._seen(photo)
        caption = replace(self._search(seen), image=_name(photo, name))
        if self.manifest.method == "grounder":
            caption = reground(caption, seen, self._grounder, self.words)
        if not check:
            return caption
        presence = self.manifest.presence
        if presence is None:
            return check_phrases(caption, seen, self._grounder, self.words, threshold)
        sure = presence.of_all(self._grounder.match(seen, things_named(caption)))
        return check_words(caption, sure, presence.threshold if threshold is None else threshold)

    def ground(
        self,
        photo: ImageSource | Arrays,
        phrases: Sequence[str] | None = None,
        *,
        sentence: str | None = None,
        boxes: int = 1,
        threshold: float | None = None,
        name: str | None = None,
    ) -> GroundedPhrases:
        """Find phrases in a photo, or the noun phrases of a sentence.

        Args:
            photo: A photo, or what :meth:`look` gave of it.
            phrases: What to look for.
            sentence: Says what stands around the phrases; without phrases, its noun phrases are looked for.
            boxes: How many boxes a phrase may have.
            threshold: Probability of being there below which a phrase is not found; None: as was fitted.
            name: What the answer calls the photo.
        """
        sentences = asked_sentences(phrases, sentence, self.words)
        seen = self._seen(photo)
        found = []
        for one in sentences:
            answers = zip(one.phrases, self._grounder.ground(seen, one).phrases, strict=True)
            found += [
                doubtful_where_unknown(found_from(answer, threshold), one, phrase, self.words)
                for phrase, answer in answers
            ]
        found = [with_further_boxes(phrase, boxes) for phrase in found]
        if sentence is None:
            found = [replace(phrase, start=None, end=None) for phrase in found]
        return GroundedPhrases(_name(photo, name), size_of(seen), tuple(found), sentence, self.manifest.name)

    def _search(self, seen: Arrays) -> GroundedCaption:
        """Search for the caption; its words have the boxes that the captioner looked at."""
        values = {**seen, **self.networks.run("begin", seen)}
        steps = 0
        while steps < self.manifest.steps:
            after = self.networks.run("step", values)
            values |= {name.removeprefix(NEXT): value for name, value in after.items()}
            steps += 1
            if bool(after["finished"]):
                break
        out = self.networks.run("choose", {**values, "steps": np.array(steps)})
        ids = out["word_ids"].tolist()
        text, spans = sentence_text(self.said.decode(ids))
        words = []
        for at, (start, end) in enumerate(spans):
            thing = self.said.is_groundable[ids[at]]
            boxes: tuple[Box, ...] = (box_of(out["word_boxes"][at].tolist()),) if thing else ()
            score = float(out["word_shares"][at]) if thing else 0.0
            words.append(GroundedWord(text[start:end], start, end, boxes, (0,) * len(boxes), score, thing))
        score = float(out["caption_score"])
        return GroundedCaption("", size_of(seen), text, tuple(words), score, self.manifest.name)

    def _seen(self, photo: ImageSource | Arrays) -> Arrays:
        return photo if isinstance(photo, Mapping) else self.look(photo)


def _name(photo: ImageSource | Arrays, name: str | None) -> str:
    return name or (str(photo) if isinstance(photo, str | Path) else "photo")
