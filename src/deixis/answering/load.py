"""The Python face of Deixis: load a model once, then caption photos and find phrases in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray

from deixis.answering.check import check as check_caption
from deixis.answering.choosing import Chooser
from deixis.answering.finding import FindsPhrases
from deixis.answering.photos import Photo, Seen, kept_photo, photo_names, read_photo
from deixis.captioning.answer import Pointing, grounded_captions, reground
from deixis.captioning.model.captioner import Captioner
from deixis.captioning.model.distributed_attention import DistributedAttention
from deixis.captioning.search.fluent import fluent_search
from deixis.captioning.search.strategy import Generated, Strategy
from deixis.data.batch import RegionBatch
from deixis.data.pad import pad_regions
from deixis.defaults import BEAM
from deixis.errors import DeixisError
from deixis.interfaces import Extractor, Grounder
from deixis.models.bundle import Bundle, Card, Method, find_bundle, join
from deixis.models.names import LoadedModel
from deixis.models.names import load as load_part
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

    def __init__(
        self,
        extractor: Extractor,
        captioner: LoadedModel | None = None,
        grounder: LoadedModel | None = None,
        *,
        name: str = "",
        card: Card | None = None,
        device: str = "cpu",
    ) -> None:
        parts = [part for part in (captioner, grounder) if part is not None]
        if not parts:
            raise DeixisError("a model needs a captioner or a grounder")
        for part in parts:
            part.config.require(extractor.fingerprint, f"the extractor of {name or part.name}")
        self.name = name or parts[0].name
        self.card = card or Card()
        self.device = device
        self.extractor = extractor
        self._captioner, self._grounder = captioner, grounder
        self._judge: Grounder = parts[-1].grounder()
        self._extractor_settings = parts[0].config.extractor

    def __repr__(self) -> str:
        named = (("captioner", self._captioner), ("grounder", self._grounder))
        parts = " and ".join(f"{what} ({part.kind})" for what, part in named if part is not None)
        return f"<deixis model {self.name!r}: {parts}, {len(self.words):,} words, on {self.device}>"

    @classmethod
    def from_pretrained(
        cls, name: str | Path = "lite", *, grounder: str | Path | None = None, device: str = "cpu"
    ) -> Self:
        """Load a model by name: a run, checkpoint or bundle folder, a name on the Hugging Face hub, or ``lite``."""
        return cls.from_bundle(
            join(find_bundle(name), None if grounder is None else find_bundle(grounder)), device=device
        )

    @classmethod
    def from_bundle(cls, bundle: Bundle, *, device: str = "cpu") -> Self:
        """Load the parts of a bundle that was found already."""
        _require_device(device)
        captioner, finder = _loaded(bundle, bundle.captioner, device), _loaded(bundle, bundle.grounder, device)
        part = captioner or finder
        assert part is not None  # a bundle has at least one part
        if captioner is not None and not isinstance(captioner.model, Captioner):
            raise DeixisError(f"{bundle.captioner} is a {captioner.kind}, not a captioner")
        return cls(part.extractor(device), captioner, finder, name=bundle.name, card=bundle.card, device=device)

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
        *,
        beam: int = BEAM,
        check: bool = False,
        name: str | None = None,
        method: Method | None = None,
    ) -> GroundedCaption:
        """Caption one photo; boxes are in its pixels as it is shown."""
        names = None if name is None else [name]
        return self.captions([image], beam=beam, check=check, names=names, method=method)[0]

    def captions(
        self,
        images: Sequence[Seen],
        *,
        beam: int = BEAM,
        check: bool = False,
        names: Sequence[str] | None = None,
        method: Method | None = None,
    ) -> list[GroundedCaption]:
        """Caption photos in one pass. ``check`` asks the grounder whether each thing is really there."""
        if not images:
            return []
        seen = self._seen(images)
        generated, batch = self._generate(seen, photo_names(images, names), beam)
        answers = self._answers(generated, batch)
        found = [self._pointed(answer, one, method, check) for answer, one in zip(answers, seen, strict=True)]
        return found if names else [replace(a, photo=kept_photo(image)) for a, image in zip(found, images, strict=True)]

    def alternatives(
        self,
        image: Seen,
        *,
        beam: int = BEAM,
        name: str | None = None,
        check: bool = False,
        method: Method | None = None,
    ) -> list[GroundedCaption]:
        """Return the captions that were left at the end of a beam search, best first."""
        seen = self._seen([image])
        generated, batch = self._generate(seen, photo_names([image], None if name is None else [name]), beam)
        ranks = range(generated.words.shape[1])
        found = [self._pointed(self._answers(generated, batch, rank)[0], seen[0], method, check) for rank in ranks]
        return list({caption.text: caption for caption in reversed(found) if caption.text}.values())[::-1] or found[:1]

    def look(
        self,
        image: Seen,
        *,
        beam: int = BEAM,
        check: bool = False,
        name: str | None = None,
        method: Method | None = None,
    ) -> Look:
        """Caption a photo and tell where each word looked, for pictures of attention."""
        seen = self._seen([image])
        generated, batch = self._generate(seen, photo_names([image], None if name is None else [name]), beam)
        caption = self._pointed(self._answers(generated, batch)[0], seen[0], method, check)
        weights, voted = generated.attention[:, 0, 0], generated.voted[:, 0, 0].unsqueeze(-1)  # (K, T, N), (K, T, 1)
        mean = (weights * voted).sum(0) / voted.sum(0).clamp(min=1)
        attention = mean[: len(caption.words)].float().cpu().numpy()
        data = self.captioner.config.recipe.data
        return Look(caption, seen[0].top(data.regions, whole=data.whole_image), attention)

    def checked(self, caption: GroundedCaption, image: Seen) -> GroundedCaption:
        """Ask the grounder whether each thing that a caption names is on a photo; boxes stay as they are."""
        return self._pointed(caption, self._seen([image])[0], "attention", check=True)

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
        check: bool = False,
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
        )
        return caption_clip(self, clip, segments=segments, every=every, name=name, options=options)

    def _seen(self, images: Sequence[Seen]) -> list[Regions]:
        photos = [image for image in images if not isinstance(image, Regions)]
        found = iter(self.regions(photos) if photos else ())
        seen = [image if isinstance(image, Regions) else next(found) for image in images]
        for one in seen:
            if one.fingerprint != self.extractor.fingerprint:
                self._require(one)
        return seen

    def _require(self, regions: Regions) -> None:
        part = self._captioner or self._grounder
        assert part is not None
        part.config.require(regions.fingerprint, "what you gave")

    def _generate(self, seen: Sequence[Regions], names: Sequence[str], beam: int) -> tuple[Generated, RegionBatch]:
        loaded = self.captioner
        assert isinstance(loaded.model, Captioner)
        if beam < 1:
            raise DeixisError(f"beam should be at least 1, got {beam}")
        kind: Literal["greedy", "beam"] = "greedy" if beam == 1 else "beam"
        strategy = replace(self._fluent, kind=kind, width=beam)
        data, judge = loaded.config.recipe.data, self._judge_part.config.recipe.data
        batch = pad_regions(seen, names, max_regions=data.regions, whole=data.whole_image).to(self.device)
        generated = loaded.model.generate(batch, strategy)
        chooser = self.chooser
        if chooser is not None and beam > 1:
            looked = pad_regions(seen, names, max_regions=judge.regions, whole=judge.whole_image)
            generated = chooser(generated, looked.to(self.device))
        return generated, batch

    def _answers(self, generated: Generated, batch: RegionBatch, rank: int = 0) -> list[GroundedCaption]:
        loaded = self.captioner
        assert isinstance(loaded.model, Captioner)
        branches = isinstance(loaded.model.decoder.attention, DistributedAttention)
        pointing: Pointing = self.card.pointing
        found = grounded_captions(generated, batch, loaded.vocabulary, pointing, branches=branches, rank=rank)
        return [replace(answer, model=self.name) for answer in found]

    def _pointed(
        self, caption: GroundedCaption, regions: Regions, method: Method | None, check: bool
    ) -> GroundedCaption:
        method = method or (self.card.method if self.card.method in self.methods else "attention")
        self.require_method(method)
        if check:
            self.require_grounder()
        if method == "attention" and not check:
            return caption
        regions = self._judged(regions)
        if method == "grounder":
            caption = reground(caption, regions, self._judge, self.words)
        if check:
            caption = check_caption(caption, regions, self._judge, self.words, self.card.presence)
        return caption

    @cached_property
    def _fluent(self) -> Strategy:
        return fluent_search(self.captioner.vocabulary, BEAM, chosen=self.chooser is not None)

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
        data = self._judge_part.config.recipe.data
        return regions.top(data.regions, whole=data.whole_image)


def _require_device(device: str) -> None:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, ImportError) as error:  # torch raises all three, by device
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise DeixisError(f"cannot run on the device {device!r}: {why}; cpu always works") from error


def load(model: str | Path = "lite", *, grounder: str | Path | None = None, device: str = "cpu") -> Deixis:
    """Load a model to answer with.

    Args:
        model: ``lite``, which ships; a run or checkpoint folder; a bundle folder; or a model on the hub (OWNER/NAME).
        grounder: Takes the grounder from another run or bundle.
        device: Where networks run.
    """
    return Deixis.from_pretrained(model, grounder=grounder, device=device)


def _loaded(bundle: Bundle, folder: Path | None, device: str) -> LoadedModel | None:
    if folder is None:
        return None
    loaded = load_part(str(folder), device=device)
    loaded.model.requires_grad_(False)
    return replace(loaded, name=bundle.name)
