"""What the workers do: the kinds of questions, and how several of one kind become one call of a model."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deixis.answering.asking import Asking
from deixis.defaults import CLIP_BEAM
from deixis.errors import DeixisError
from deixis.images import load_image
from deixis.video import decoding_within

if TYPE_CHECKING:
    from PIL import Image

    from deixis.answering.load import Deixis, Look
    from deixis.models.bundle import Method
    from deixis.types import GroundedCaption, GroundedPhrases, Regions


MOST_SEGMENTS = 240


@dataclass(frozen=True, slots=True)
class Photo:
    """A photo as it was sent, still undecoded: what waits should be small."""

    data: bytes
    name: str
    phrases: tuple[str, ...] = ()
    sentence: str | None = None


@dataclass(frozen=True, slots=True)
class Captions:
    """Questions for captions that differ in nothing but the photo."""

    model: str
    asking: Asking = field(default_factory=Asking)


@dataclass(frozen=True, slots=True)
class Looks(Captions):
    """Questions for captions with the attention of every word."""


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Questions for all sentences of a beam."""

    model: str
    asking: Asking


@dataclass(frozen=True, slots=True)
class Phrases:
    """Questions for the boxes of phrases, or of a sentence's noun phrases."""

    model: str
    asking: Asking = field(default_factory=Asking)


@dataclass(frozen=True, slots=True)
class Clips:
    """A question about a clip; clips are never put together."""

    model: str
    method: Method | None = None
    beam: int = CLIP_BEAM
    check: bool | None = None
    threshold: float | None = None
    every: float | None = None
    segments: tuple[tuple[float, float], ...] | None = None


@dataclass(frozen=True, slots=True)
class ClipPhrases:
    """A question for the boxes of phrases in a clip."""

    model: str
    phrases: tuple[str, ...]
    threshold: float | None = None
    every: float | None = None
    segments: tuple[tuple[float, float], ...] | None = None


@dataclass(frozen=True, slots=True)
class Clip:
    """A clip in a file of ours, and what its sender calls it."""

    path: Path
    name: str


Question = Captions | Alternatives | Phrases


class Workshop:
    """Answers batches of questions with the models it holds; errors of one photo stay with that photo.

    The regions of the last photos are remembered, so that a photo that is captioned, searched for phrases and compared
    is looked at once. Only the worker of the photos uses them.
    """

    def __init__(
        self, models: Mapping[str, Deixis], *, pixels: int, remember: int = 32, clip_decoding: float = 120.0
    ) -> None:
        self.models = dict(models)
        self._pixels, self._remember, self._clip_decoding = pixels, remember, clip_decoding
        self._seen: OrderedDict[tuple[str, bytes], Regions] = OrderedDict()
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="deixis-reader")

    def photos(self, key: Question, photos: Sequence[Photo]) -> list[Any]:
        """Return for each photo its answer in JSON form, or the error that belongs to it."""
        model = self.models[key.model]
        seen = self._regions(model, photos)
        good = [(photo, one) for photo, one in zip(photos, seen, strict=True) if not isinstance(one, DeixisError)]
        answers = iter(_answer(model, key, *map(list, zip(*good, strict=True))) if good else ())
        return [one if isinstance(one, DeixisError) else next(answers) for one in seen]

    def clips(self, key: Clips | ClipPhrases, clips: Sequence[Clip]) -> list[Any]:
        """Return for each clip the list of its captions or phrases in JSON form, one a segment."""
        answers = []
        for clip in clips:
            try:
                with decoding_within(self._clip_decoding):
                    found = _clip_answer(self.models[key.model], key, clip)
            except DeixisError as error:
                raise DeixisError(str(error).replace(str(clip.path), clip.name)) from error
            answers.append([one.to_json() for one in found])
        return answers

    def close(self) -> None:
        """End the threads that decode photos."""
        self._readers.shutdown(wait=False, cancel_futures=True)

    def _regions(self, model: Deixis, photos: Sequence[Photo]) -> list[Regions | DeixisError]:
        """Find the regions of photos: all that are new in one pass."""
        keys = [(model.extractor.fingerprint, hashlib.sha256(photo.data).digest()) for photo in photos]
        found: dict[Any, Regions | DeixisError] = {}
        new: dict[Any, Photo] = {}
        for key, photo in zip(keys, photos, strict=True):
            if key in self._seen:
                self._seen.move_to_end(key)
                found[key] = self._seen[key]
            else:
                new[key] = photo
        images: dict[Any, Image.Image] = {}
        for key, image in zip(new, self._readers.map(self._read, new.values()), strict=True):
            if isinstance(image, DeixisError):
                found[key] = image
            else:
                images[key] = image
        for key, regions in zip(images, model.regions(list(images.values())) if images else (), strict=True):
            found[key] = self._seen[key] = regions
        while len(self._seen) > self._remember:
            self._seen.popitem(last=False)
        return [found[key] for key in keys]

    def _read(self, photo: Photo) -> Image.Image | DeixisError:
        try:
            return load_image(photo.data, max_pixels=self._pixels)
        except DeixisError as error:
            # Our reader calls it "the given bytes"; whoever sent it calls it by its name.
            return DeixisError(str(error).replace("the given bytes", photo.name))


def _answer(model: Deixis, key: Question, photos: Sequence[Photo], seen: Sequence[Regions]) -> list[Any]:
    names = [photo.name for photo in photos]
    if isinstance(key, Looks):
        together = zip(_shown(model, photos, seen), names, strict=True)
        return [look_json(model.look(one, key.asking, name=name))
                for one, name in together]  # fmt: skip
    if isinstance(key, Captions):
        captions = model.captions(_shown(model, photos, seen), key.asking, names=names)
        return [caption.to_json() for caption in captions]
    if isinstance(key, Alternatives):
        together = zip(_shown(model, photos, seen), names, strict=True)
        return [[caption.to_json() for caption in model.alternatives(one, key.asking, name=name)]
                for one, name in together]  # fmt: skip
    threshold = key.asking.threshold
    return [
        model.ground(
            one, photo.phrases or None, sentence=photo.sentence, name=photo.name, threshold=threshold
        ).to_json()
        for photo, one in zip(photos, seen, strict=True)
    ]


def _shown(model: Deixis, photos: Sequence[Photo], seen: Sequence[Regions]) -> Sequence[bytes | Regions]:
    """Return what a model captions: regions, which are remembered, or the photos themselves."""
    return [photo.data for photo in photos] if model.reads_pixels else seen


def _clip_answer(
    model: Deixis, key: Clips | ClipPhrases, clip: Clip
) -> Sequence[GroundedCaption] | Sequence[GroundedPhrases]:
    segments = list(key.segments) if key.segments is not None else None
    if isinstance(key, ClipPhrases):
        from deixis.answering.clip_phrases import ground_clip

        asked: dict[str, Any] = {"segments": segments, "every": key.every, "threshold": key.threshold}
        return ground_clip(model, clip.path, key.phrases, name=clip.name, **asked)
    return model.video(
        clip.path,
        segments=segments,
        every=key.every,
        name=clip.name,
        beam=key.beam,
        check=key.check,
        threshold=key.threshold,
        method=key.method,
    )


def look_json(look: Look) -> dict[str, Any]:
    """Return a caption with the boxes of its regions and the attention of every word to each of them."""
    return {
        "deixis": 1,
        "kind": "look",
        "caption": look.caption.to_json(),
        "regions": [[round(float(side), 1) for side in box] for box in look.regions.boxes.tolist()],
        "attention": [[round(float(weight), 4) for weight in row] for row in look.attention],
    }


def parse_segments(text: str) -> tuple[tuple[float, float], ...]:
    """Read segments from JSON: ``[[start, end], ...]`` in seconds."""
    try:
        pairs = json.loads(text)
        segments = tuple((float(start), float(end)) for start, end in pairs)
    except (ValueError, TypeError, RecursionError) as error:
        raise DeixisError(f"segments should be JSON such as [[0, 4.5], [4.5, 9]], not {text[:80]!r}") from error
    if not 1 <= len(segments) <= MOST_SEGMENTS:
        raise DeixisError(f"between 1 and {MOST_SEGMENTS} segments are captioned at once, not {len(segments)}")
    return segments
