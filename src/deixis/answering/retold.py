"""A model whose sentences come from any captioner; regions and grounder stay ours, and point and doubt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self, Unpack

import numpy as np

from deixis.answering.asking import Asking, How
from deixis.answering.check import check as check_caption
from deixis.answering.load import Deixis, Look
from deixis.answering.photos import Photo, Seen, kept_photo, photo_names, read_photo
from deixis.answering.sentences import Said, Teller, load_teller, spoken_words
from deixis.errors import DeixisError
from deixis.interfaces import Extractor
from deixis.models.bundle import Card, Method, find_bundle, join
from deixis.models.names import LoadedModel
from deixis.text.tokens import normal_word
from deixis.types import GroundedCaption, Regions


class Retold(Deixis):
    """A grounder, the extractor of its regions, and a captioner of sentences. Build one with :meth:`told_by`."""

    reads_pixels = True

    def __init__(
        self,
        extractor: Extractor | None,
        grounder: LoadedModel,
        teller: Teller,
        *,
        name: str = "",
        card: Card | None = None,
        device: str = "cpu",
    ) -> None:
        super().__init__(extractor, None, grounder, name=name, card=card, device=device)
        self.name = f"{self.name} with {teller.name}"
        self.teller = teller

    @classmethod
    def told_by(
        cls, captioner: str, model: str | Path = "lite", *, grounder: str | Path | None = None, device: str = "cpu"
    ) -> Self:
        """Load a model, with a captioner such as ``hf:OWNER/NAME`` in the place of its own."""
        bundle = join(find_bundle(model), None if grounder is None else find_bundle(grounder))
        if bundle.grounder is None:
            raise DeixisError(f"{bundle.name} has no grounder to point with: name one (--grounder RUN), or use lite")
        teller = load_teller(captioner, device=device)
        own = Deixis.from_bundle(replace(bundle, captioner=None), device=device)
        assert own.grounder is not None
        return cls(own.extractor, own.grounder, teller, name=bundle.name, card=own.card, device=device)

    @property
    def captioner(self) -> LoadedModel:
        """There is none with regions, a vocabulary and attention."""
        raise DeixisError(f"the sentences of {self.name} are not of a captioner of Deixis: leave out --captioner")

    def method_of(self, asking: Asking) -> Method:
        """Return the one way there is to point."""
        self.require_method(asking.method)
        return "grounder"

    def captions(
        self,
        images: Sequence[Seen],
        asking: Asking | None = None,
        *,
        names: Sequence[str] | None = None,
        **how: Unpack[How],
    ) -> list[GroundedCaption]:
        """Caption photos; their regions alone are not enough here."""
        asking = Asking.of(asking, **how)
        called = photo_names(images, names)
        pixels = [self._pixels(image) for image in images]
        found = []
        for image, name, seen, regions in zip(images, called, pixels, self.regions(pixels), strict=True):
            (said, *_) = self.teller.say(seen, beam=asking.beam)
            answer = self._told(said, regions, name, asking)
            found.append(answer if names else replace(answer, photo=kept_photo(image)))
        return found

    def alternatives(
        self, image: Seen, asking: Asking | None = None, *, name: str | None = None, **how: Unpack[How]
    ) -> list[GroundedCaption]:
        """Return the sentences that were left at the end of the captioner's beam search, best first."""
        asking = Asking.of(asking, **how)
        (called,) = photo_names([image], None if name is None else [name])
        pixels = self._pixels(image)
        (regions,) = self.regions([pixels])
        several = self.teller.say(pixels, beam=asking.beam, count=asking.beam)
        return [self._told(said, regions, called, asking) for said in several]

    def look(self, image: Seen, asking: Asking | None = None, *, name: str | None = None, **how: Unpack[How]) -> Look:
        """Caption a photo; where another captioner looks is not known, so that every weight is 0."""
        caption = self.captions([image], asking, names=None if name is None else [name], **how)[0]
        regions = self._judged(self._seen([image])[0])
        return Look(caption, regions, np.zeros((len(caption.words), len(regions)), np.float32))

    def checked(self, caption: GroundedCaption, image: Seen, threshold: float | None = None) -> GroundedCaption:
        """Ask the grounder whether each thing that a caption names is on a photo; boxes stay as they are."""
        regions = self._judged(self._seen([image])[0])
        presence = self.card.presence
        return self.doubting_unknown(check_caption(caption, regions, self._judge, self.words, presence, threshold))

    def said_of(self, frames: Sequence[Photo], beam: int) -> Said:
        """Return the sentence that most frames of a clip are given; of several, the one that is likeliest."""
        told = [self.teller.say(self._pixels(frame), beam=beam)[0] for frame in frames]
        times = Counter(said.text for said in told)
        return max(told, key=lambda said: (times[said.text], said.score))

    def _told(self, said: Said, regions: Regions, name: str, asking: Asking) -> GroundedCaption:
        caption = replace(spoken_words(said, regions.size, self.words), image=name, model=self.name)
        caption = self._pointed(caption, regions, asking)
        return self.doubting_unknown(caption) if self.checks(asking.check) else caption

    def doubting_unknown(self, caption: GroundedCaption) -> GroundedCaption:
        """Doubt things whose names the grounder never learned: whatever it answers is a guess."""
        words = [
            replace(word, trusted=False) if word.groundable and normal_word(word.text) not in self.words else word
            for word in caption.words
        ]
        return replace(caption, words=tuple(words))

    def _pixels(self, image: Seen) -> np.ndarray:
        if isinstance(image, Regions):
            raise DeixisError(f"{self.name} captions photos, not their regions: give the photo")
        return np.asarray(read_photo(image))
