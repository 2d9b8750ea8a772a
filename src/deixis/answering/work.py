"""Many photos answered on an engine: a few at a time, in this process, in several, or on many machines.

What :func:`answer_photos` gives does not depend on the engine: photos are cut into groups before any of them is sent
out, and a group is answered together wherever it goes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from deixis.answering.asking import Asking
from deixis.answering.batches import AT_ONCE, in_batches
from deixis.answering.load import Deixis, load
from deixis.answering.photos import Photo
from deixis.engines import run_tasks
from deixis.errors import DeixisError
from deixis.types import GroundedCaption, GroundedPhrases, ImageFile, Regions, Sentence

A = TypeVar("A")
Q = TypeVar("Q")


@dataclass(frozen=True, slots=True)
class Place:
    """Where answers are made."""

    engine: str = "local"
    processes: int = 0
    """How many workers; 0 works in this process."""
    device: str = "cpu"

    @property
    def is_here(self) -> bool:
        """Whether this process does the work itself."""
        return self.engine == "local" and self.processes == 0


class Source(NamedTuple):
    """What other processes load, as :func:`deixis.load` takes it."""

    model: str = "lite"
    grounder: str | None = None
    captioner: str | None = None


@dataclass(frozen=True, slots=True)
class Asked(Generic[Q]):
    """A photo, and what is asked of it."""

    name: str
    photo: Photo | ImageFile
    question: Q


@dataclass(slots=True)
class Answered(Generic[A]):
    """What came of a few photos: answers in their order, and why some could not be read."""

    answers: list[A] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    photos: int = 0


class Question(Protocol[Q, A]):
    """What is asked of photos; a frozen object of plain values, as it may be sent to other machines."""

    def __call__(self, model: Deixis, photos: list[tuple[str, Any]], questions: list[Q]) -> list[A]:
        """Answer named pixels together."""
        ...


@dataclass(frozen=True, slots=True)
class Caption:
    """A caption for each photo."""

    asking: Asking

    def __call__(self, model: Deixis, photos: list[tuple[str, Any]], questions: list[None]) -> list[GroundedCaption]:
        """Caption photos together."""
        return model.captions([pixels for _, pixels in photos], self.asking, names=[name for name, _ in photos])


@dataclass(frozen=True, slots=True)
class FindSentences:
    """The phrases of given sentences, in the photo they belong to."""

    asking: Asking = field(default_factory=Asking)

    def __call__(
        self, model: Deixis, photos: list[tuple[str, Any]], questions: list[list[Sentence]]
    ) -> list[GroundedPhrases]:
        """Find the regions of photos together, then the phrases of each."""
        seen = model.regions([pixels for _, pixels in photos])
        found: list[GroundedPhrases] = []
        for (name, _), regions, sentences in zip(photos, seen, questions, strict=True):
            found += model.ground_sentences(regions, sentences, name=name, threshold=self.asking.threshold)
        return found


@dataclass(frozen=True, slots=True)
class FindPhrases:
    """The same phrases in every photo."""

    phrases: tuple[str, ...]
    boxes: int = 1
    asking: Asking = field(default_factory=Asking)

    def __call__(self, model: Deixis, photos: list[tuple[str, Any]], questions: list[None]) -> list[GroundedPhrases]:
        """Find the regions of photos together, then the phrases in each."""
        seen = model.regions([pixels for _, pixels in photos])
        return [
            model.ground(regions, self.phrases, name=name, boxes=self.boxes, threshold=self.asking.threshold)
            for (name, _), regions in zip(photos, seen, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class FindRegions:
    """The regions of each photo, with its name."""

    def __call__(
        self, model: Deixis, photos: list[tuple[str, Any]], questions: list[None]
    ) -> list[tuple[str, Regions]]:
        """Find the regions of photos together."""
        seen = model.regions([pixels for _, pixels in photos])
        return [(name, regions) for (name, _), regions in zip(photos, seen, strict=True)]


def load_there(source: Source, expected: str, device: str, *, extractor: bool = True) -> Deixis:
    """Load a model in a process that works for another one; it must be the model that was meant."""
    model = load(source.model, grounder=source.grounder, captioner=source.captioner, device=device, extractor=extractor)
    if model.name != expected:
        raise DeixisError(
            f"this worker's {source.model} is the model {model.name!r}, expected {expected!r}: every machine needs "
            "the same version of deixis and the same models at the same places"
        )
    return model


class Answerer(Generic[Q, A]):
    """A worker: a model, and what to ask it."""

    def __init__(self, model: Deixis, ask: Question[Q, A]) -> None:
        self.model, self.ask = model, ask

    @classmethod
    def load(cls, source: Source, expected: str, device: str, ask: Question[Q, A]) -> Answerer[Q, A]:
        """Load the model in the process that works; it must be the one that was meant."""
        return cls(load_there(source, expected, device), ask)

    def __call__(self, group: tuple[Asked[Q], ...]) -> Answered[A]:
        """Answer a few photos; those that cannot be read are named."""
        found: Answered[A] = Answered(photos=len(group))

        def note(at: str, error: DeixisError) -> None:
            found.failed.append((group[int(at)].name, str(error)))

        # by number, as two questions may be about one photo
        for batch in in_batches(((str(at), asked.photo) for at, asked in enumerate(group)), note):
            asked = [group[int(at)] for at, _ in batch]
            named = [(one.name, pixels) for one, (_, pixels) in zip(asked, batch, strict=True)]
            found.answers += self.ask(self.model, named, [one.question for one in asked])
        return found


def answer_photos(
    model: Deixis,
    photos: Iterable[Asked[Q]],
    ask: Question[Q, A],
    place: Place,
    *,
    source: Source = Source(),  # noqa: B008 - a tuple
) -> Iterator[Answered[A]]:
    """Ask something of many photos and yield what came, a few photos at a time, in order.

    Args:
        model: The model, loaded here: it answers itself where the place is this process.
        photos: The photos with what is asked of them.
        ask: What is asked.
        place: Where answers are made.
        source: What other processes load.
    """
    if place.is_here:
        build: Callable[[], Callable[[tuple[Asked[Q], ...]], Answered[A]]] = lambda: Answerer(model, ask)  # noqa: E731
    else:
        build = partial(Answerer.load, source, model.name, place.device, ask)
        photos = map(_portable, photos)
    groups = _groups(iter(photos))
    return run_tasks(
        groups, build, engine=place.engine, processes=place.processes, device=place.device, describe=_names
    )


def _groups(photos: Iterator[Asked[Q]]) -> Iterator[tuple[Asked[Q], ...]]:
    while group := tuple(itertools.islice(photos, AT_ONCE)):
        yield group


def _portable(asked: Asked[Q]) -> Asked[Q]:
    """Return a photo that can be sent to another process: members of an archive are read here."""
    photo = asked.photo
    if isinstance(photo, ImageFile) and photo.read is not None:
        try:
            return Asked(asked.name, photo.read(), asked.question)
        except DeixisError:
            return Asked(asked.name, b"", asked.question)  # the worker finds that it cannot be read
    return asked


def _names(group: tuple[Asked[Any], ...]) -> str:
    return f"the photos {', '.join(asked.name for asked in group)}"
