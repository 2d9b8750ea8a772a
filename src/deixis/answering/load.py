"""The Python face of Deixis: load a model once, then caption photos and find phrases in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from deixis.answering.asking import Asking, How
from deixis.answering.check import check as check_caption
from deixis.answering.choosing import Chooser
from deixis.answering.finding import FindsPhrases
from deixis.answering.photos import Photo, Seen, kept_photo, photo_names, read_photo
from deixis.answering.reground import reground
from deixis.captioning.answer import grounded_captions
from deixis.captioning.model.captioner import Captioner
from deixis.captioning.search.strategy import Generated
from deixis.data.batch import RegionBatch
from deixis.data.pad import pad_regions
from deixis.errors import DeixisError
from deixis.grounding.base import WordGrounder
from deixis.interfaces import Extractor, Grounder
from deixis.models.bundle import Bundle, Card, Method
from deixis.models.names import LoadedModel
from deixis.models.parts import Parts, load_parts, named_parts
from deixis.regions.store.as_stored import as_stored
from deixis.text.vocabulary import Vocabulary
from deixis.types import GroundedCaption, Regions

if TYPE_CHECKING:
    from deixis.answering.clips import Reading
    from deixis.answering.search.index import Found
    from deixis.answering.segments import Segment


@dataclass(frozen=True, slots=True)
class Look:
    """A caption, the regions the captioner saw, and how much each word looked at each of them."""

    caption: GroundedCaption
    regions: Regions
    attention: NDArray[np.float32]  # (T, N)


class Deixis(FindsPhrases):
    """A captioner, a grounder and the extractor of their regions. Several threads may ask one object.

    >>> model = deixis.load("lite")  # doctest: +SKIP
    >>> model.caption("photo.jpg").text  # doctest: +SKIP
    'A dog runs through the snow.'
    >>> model.ground("photo.jpg", ["a dog"]).phrases[0].boxes  # doctest: +SKIP
    ((41.5, 80.2, 301.0, 255.9),)
    """

    reads_pixels: ClassVar[bool] = False  # whether sentences need the photo itself: deixis.answering.retold

    def __init__(
        self,
        extractor: Extractor | None,
        captioner: LoadedModel | None = None,
        grounder: LoadedModel | None = None,
        *,
        name: str = "",
        card: Card | None = None,
        device: str = "cpu",
        judge: Grounder | None = None,
    ) -> None:
        parts = [part for part in (captioner, grounder) if part is not None]
        if not parts:
            raise DeixisError("a model needs a captioner or a grounder")
        for part in parts if extractor is not None else parts[1:]:
            fingerprint = extractor.fingerprint if extractor is not None else parts[0].config.fingerprint
            part.config.require(fingerprint, f"the extractor of {name or part.name}")
        self.name = name or parts[0].name
        self.card = card or Card()
        self.device = device
        self._extractor = extractor
        self._captioner, self._grounder = captioner, grounder
        self._judge: Grounder = judge or parts[-1].grounder()
        self._extractor_settings = parts[0].config.extractor

    def __repr__(self) -> str:
        named = (("captioner", self._captioner), ("grounder", self._grounder))
        parts = " and ".join(f"{what} ({part.kind})" for what, part in named if part is not None)
        return f"<deixis model {self.name!r}: {parts}, {len(self.words):,} words, on {self.device}>"

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path = "lite",
        *,
        grounder: str | Path | None = None,
        device: str = "cpu",
        extractor: bool = True,
    ) -> Self:
        """Load a model by name: a run, checkpoint or bundle folder, a name on the Hugging Face hub, or ``lite``."""
        return cls.from_parts(named_parts(name, grounder=grounder, device=device, extractor=extractor), device)

    @classmethod
    def from_bundle(cls, bundle: Bundle, *, device: str = "cpu", extractor: bool = True) -> Self:
        """Load the parts of a bundle that was found already, the ``extractor`` now or when it is first needed."""
        return cls.from_parts(load_parts(bundle, device=device, extractor=extractor), device)

    @classmethod
    def from_parts(cls, parts: Parts, device: str = "cpu") -> Self:
        """Answer with parts that were loaded already, on the device they are on."""
        both = parts.captioner, parts.grounder
        return cls(parts.extractor, *both, name=parts.name, card=parts.card, device=device, judge=parts.judge)

    def answer_with_things(self) -> None:
        """Let phrases that name a part find the whole thing: "blue shirt" who wears it, as in RefCOCO."""
        judge = self._judge
        if not isinstance(judge, WordGrounder) or not judge.knows_wearers:
            raise DeixisError(
                f"{self.name} does not know who wears what: leave --things out, or take a grounder such as lite's"
            )
        judge.answers = replace(judge.answers, things=True)

    @property
    def extractor(self) -> Extractor:
        """What finds the regions of photos."""
        if self._extractor is None:
            self._extractor = self.part.extractor(self.device)
        return self._extractor

    @property
    def part(self) -> LoadedModel:
        """The captioner, or the grounder of a model that has no captioner."""
        part = self._captioner or self._grounder
        assert part is not None
        return part

    @property
    def captioner(self) -> LoadedModel:
        """The captioner with its vocabulary and recipe."""
        if self._captioner is None:
            raise DeixisError(f"{self.name} holds a grounder but no captioner: name a model with one, such as lite")
        return self._captioner

    @property
    def grounder(self) -> LoadedModel | None:
        """The separate grounder with its vocabulary and recipe, or None where the captioner grounds by looking."""
        return self._grounder

    def require_grounder(self) -> None:
        """Refuse what only a separate grounder can do: a captioner believes what it says."""
        if self._grounder is None:
            raise DeixisError(
                f"{self.name} has no grounder to check captions with: name one (--grounder RUN), or use lite"
            )

    def checks(self, asked: bool | None) -> bool:
        """Return whether captions are checked: as asked, else wherever there is a grounder to ask."""
        if asked:
            self.require_grounder()
        return self._grounder is not None if asked is None else asked

    def require_method(self, method: str | None) -> None:
        """Refuse a way of pointing that this model does not have; None, its own choice, is always there."""
        if method is not None and method not in self.methods:
            raise DeixisError(f"{self.name} cannot point by {method!r}: it has {', '.join(self.methods)}")

    @property
    def methods(self) -> tuple[Method, ...]:
        """Ways of pointing at words that can be compared on one photo."""
        looks: tuple[Method, ...] = ("attention",) if self._captioner is not None else ()
        return (*looks, "grounder") if self._grounder is not None else looks

    @property
    def max_regions(self) -> int:
        """How many regions, beside the whole photo, are looked for."""
        return int(self._extractor_settings.get("max_regions", 100))

    def regions(self, images: Sequence[Photo]) -> list[Regions]:
        """Find the regions of photos, best first, the whole photo last; every method takes them in place of a photo."""
        found = self.extractor.extract([read_photo(image) for image in images], max_regions=self.max_regions)
        return [as_stored(one, dense=bool(self._extractor_settings.get("dense"))) for one in found]

    def caption(
        self,
        image: Seen,
        asking: Asking | None = None,
        *,
        name: str | None = None,
        **how: Unpack[How],
    ) -> GroundedCaption:
        """Caption one photo; boxes are in its pixels as it is shown. :class:`Asking` says what may be asked for."""
        return self.captions([image], asking, names=None if name is None else [name], **how)[0]

    def captions(
        self,
        images: Sequence[Seen],
        asking: Asking | None = None,
        *,
        names: Sequence[str] | None = None,
        **how: Unpack[How],
    ) -> list[GroundedCaption]:
        """Caption photos, or the regions of photos, in one pass."""
        asking = Asking.of(asking, **how)
        if not images:
            return []
        seen = self._seen(images)
        generated, batch = self._generate(seen, photo_names(images, names), asking)
        answers = self._answers(generated, batch, asking)
        found = [self._pointed(answer, one, asking) for answer, one in zip(answers, seen, strict=True)]
        return found if names else [replace(a, photo=kept_photo(image)) for a, image in zip(found, images, strict=True)]

    def alternatives(
        self,
        image: Seen,
        asking: Asking | None = None,
        *,
        name: str | None = None,
        **how: Unpack[How],
    ) -> list[GroundedCaption]:
        """Return the captions that were left at the end of a beam search, best first."""
        asking = Asking.of(asking, **how)
        seen = self._seen([image])
        generated, batch = self._generate(seen, photo_names([image], None if name is None else [name]), asking)
        ranks = range(generated.words.shape[1])
        found = [self._pointed(self._answers(generated, batch, asking, rank)[0], seen[0], asking) for rank in ranks]
        return list({caption.text: caption for caption in reversed(found) if caption.text}.values())[::-1] or found[:1]

    def look(
        self,
        image: Seen,
        asking: Asking | None = None,
        *,
        name: str | None = None,
        **how: Unpack[How],
    ) -> Look:
        """Caption a photo and tell where each word looked, for pictures of attention."""
        asking = Asking.of(asking, **how)
        seen = self._seen([image])
        generated, batch = self._generate(seen, photo_names([image], None if name is None else [name]), asking)
        caption = self._pointed(self._answers(generated, batch, asking)[0], seen[0], asking)
        weights, voted = generated.attention[:, 0, 0], generated.voted[:, 0, 0].unsqueeze(-1)  # (K, T, N), (K, T, 1)
        mean = (weights * voted).sum(0) / voted.sum(0).clamp(min=1)
        attention = mean[: len(caption.words)].float().cpu().numpy()
        data = self.captioner.config.inputs
        return Look(caption, seen[0].top(data.regions, whole=data.whole_image), attention)

    def checked(self, caption: GroundedCaption, image: Seen, threshold: float | None = None) -> GroundedCaption:
        """Ask the grounder whether each thing that a caption names is on a photo; boxes stay as they are."""
        asking = Asking(method="attention", check=True, threshold=threshold)
        return self._pointed(caption, self._seen([image])[0], asking)

    def repointed(self, caption: GroundedCaption, image: Seen) -> GroundedCaption:
        """Let the grounder say where the words of a caption point, in place of where the captioner looked."""
        return self._pointed(caption, self._seen([image])[0], Asking(method="grounder", check=False))

    def search(
        self, folder: str | Path, query: str, *, top: int = 20, index: str | Path | None = None, update: bool = True
    ) -> list[Found]:
        """Find photos of a folder by a phrase or sentence, best first, with the boxes that answer it.

        The first call looks at every photo of the folder, once, and keeps an index in ``index`` (else in the cache).
        For many searches hold on to a :class:`deixis.answering.search.index.PhotoIndex` instead.

        >>> model.search("photos", "a dog on a sofa", top=3)[0].path  # doctest: +SKIP
        """
        from deixis.answering.search.index import PhotoIndex

        made = PhotoIndex(self, folder, index)
        if update or not len(made):
            made.update()
        return made.search(query, top=top)

    def video(
        self,
        clip: str | Path,
        *,
        segments: Sequence[Segment] | str | Path | None = None,
        every: float | None = None,
        name: str | None = None,
        frames: int | None = None,
        beam: int | None = None,
        check: bool | None = None,
        threshold: float | None = None,
        method: Method | None = None,
        smooth: bool = True,
        reading: Reading | None = None,
    ) -> list[GroundedCaption]:
        """Caption a clip, one grounded sentence a segment; see :func:`deixis.answering.clips.caption_clip`."""
        from deixis.answering.clips import ClipOptions, caption_clip

        usual = ClipOptions()
        options = ClipOptions(
            usual.frames if frames is None else frames,
            usual.beam if beam is None else beam,
            check,
            method,
            smooth,
            reading,
            threshold,
        )
        return caption_clip(self, clip, segments=segments, every=every, name=name, options=options)

    def _seen(self, images: Sequence[Seen]) -> list[Regions]:
        photos = [image for image in images if not isinstance(image, Regions)]
        found = iter(self.regions(photos) if photos else ())
        seen = [image if isinstance(image, Regions) else next(found) for image in images]
        for one in seen:
            self.part.config.require(one.fingerprint, "what you gave")
        return seen

    def _generate(self, seen: Sequence[Regions], names: Sequence[str], asking: Asking) -> tuple[Generated, RegionBatch]:
        loaded = self.captioner
        assert isinstance(loaded.model, Captioner)
        data, judge = loaded.config.inputs, self._judge_part.config.inputs
        strategy = asking.search(loaded.vocabulary, chosen=self.chooser is not None)
        batch = pad_regions(seen, names, max_regions=data.regions, whole=data.whole_image).to(self.device)
        generated = loaded.model.generate(batch, strategy)
        chooser = self.chooser
        if chooser is not None and asking.beam > 1:
            looked = pad_regions(seen, names, max_regions=judge.regions, whole=judge.whole_image)
            generated = chooser(generated, looked.to(self.device))
        return generated, batch

    def _answers(
        self, generated: Generated, batch: RegionBatch, asking: Asking, rank: int = 0
    ) -> list[GroundedCaption]:
        loaded = self.captioner
        assert isinstance(loaded.model, Captioner)
        pointing = loaded.model.pointing(asking.pointing or self.card.pointing)
        branches = loaded.model.branches
        found = grounded_captions(generated, batch, loaded.vocabulary, pointing, branches=branches, rank=rank)
        return [replace(answer, model=self.name) for answer in found]

    def method_of(self, asking: Asking) -> Method:
        """Return where words point: as asked, else as the card says where the model can."""
        self.require_method(asking.method)
        return asking.method or (self.card.method if self.card.method in self.methods else "attention")

    def _pointed(self, caption: GroundedCaption, regions: Regions, asking: Asking) -> GroundedCaption:
        method, checks = self.method_of(asking), self.checks(asking.check)
        if method == "attention" and not checks:
            return caption
        regions = self._judged(regions)
        if method == "grounder":
            caption = reground(caption, regions, self._judge, self.words)
        if checks:
            presence, threshold = self.card.presence, asking.threshold
            caption = check_caption(caption, regions, self._judge, self.words, presence, threshold)
        return caption

    @cached_property
    def chooser(self) -> Chooser | None:
        """What lets the grounder choose among the captions of a beam, or None where the captioner is asked alone."""
        if self._grounder is None or self._captioner is None or not self.card.choice:
            return None
        return Chooser(self._judge, self._grounder.vocabulary, self._captioner.vocabulary, self.card.choice)

    @property
    def _judge_part(self) -> LoadedModel:
        part = self._grounder or self._captioner
        assert part is not None
        return part

    @property
    def words(self) -> Vocabulary:
        """The words that phrases are read with."""
        return self._judge_part.vocabulary

    def _judged(self, regions: Regions) -> Regions:
        """Return the regions that phrases are looked for in."""
        data = self._judge_part.config.inputs
        return regions.top(data.regions, whole=data.whole_image)


def load(
    model: str | Path = "lite",
    *,
    grounder: str | Path | None = None,
    captioner: str | None = None,
    device: str = "cpu",
    extractor: bool = True,
    things: bool = False,
) -> Deixis:
    """Load a model to answer with.

    Args:
        model: ``lite``, which ships; a run or checkpoint folder; a bundle folder; or a model on the hub (OWNER/NAME).
        grounder: Takes the grounder from another run or bundle.
        captioner: Takes the sentences from a captioner of transformers: ``hf:OWNER/NAME`` or ``hf:FOLDER``.
        device: Where networks run.
        extractor: Whether the extractor of regions is loaded now; else it is when a photo is first looked at.
        things: Phrases that name a part are answered with the whole thing: "blue shirt" with who wears it.
    """
    if captioner is not None:
        from deixis.answering.retold import Retold

        loaded: Deixis = Retold.told_by(captioner, model, grounder=grounder, device=device)
    else:
        loaded = Deixis.from_pretrained(model, grounder=grounder, device=device, extractor=extractor)
    if things:
        loaded.answer_with_things()
    return loaded
