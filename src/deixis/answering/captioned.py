"""Captions of many photos, kept in a file as they come: what the file holds already is not asked again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from deixis.answering.asking import Asking
from deixis.answering.known_photos import KnownPhotos
from deixis.answering.load import Deixis
from deixis.answering.resumable_lines import AnswerLines, require_alike
from deixis.answering.work import Answered, Asked, Caption, Place, Source, answer_photos
from deixis.types import GroundedCaption


class Captioned:
    """The captions of photos: those that a file holds, and those that iterating makes, a few photos at a time.

    >>> with Captioned(model, photos, Asking(), Place(), output=Path("captions.jsonl")) as captioned:  # doctest: +SKIP
    ...     for some in captioned:
    ...         print(len(some.answers), "made,", len(some.failed), "could not be read")

    Args:
        model: Who answers.
        photos: The photos.
        asking: How it is asked.
        place: Where answers are made.
        source: What other processes load.
        output: The file of JSON lines to go on with; None keeps answers in memory alone.
    """

    def __init__(
        self,
        model: Deixis,
        photos: Sequence[Path],
        asking: Asking,
        place: Place,
        *,
        source: Source = Source(),  # noqa: B008 - a tuple
        output: Path | None = None,
    ) -> None:
        self._model, self._asking, self._place, self._source = model, asking, place, source
        self.photos = photos
        self.answers: dict[str, GroundedCaption] = {}
        """By photo, as it is called now."""
        checked = model.checks(asking.check)
        self._lines: AnswerLines[GroundedCaption] | None = None
        self._known: KnownPhotos | None = None
        if output is not None:
            self._lines = AnswerLines.open(output, GroundedCaption.from_json, model=model.name)
            try:
                self._known = KnownPhotos(output)
                require_alike(output, self._lines.answers.values(), checked=checked)
                self._find_answered(self._lines.answers, self._known)
            except BaseException:
                self._lines.__exit__()
                raise
        self.waiting = [path for path in photos if str(path) not in self.answers]
        """The photos that iterating asks about."""

    def __iter__(self) -> Iterator[Answered[GroundedCaption]]:
        """Yield what came, in the order of the photos; it is in the file by then."""
        questions = (Asked(str(path), path, None) for path in self.waiting)
        for some in answer_photos(self._model, questions, Caption(self._asking), self._place, source=self._source):
            if self._lines is not None and self._known is not None:
                self._known.add(answer.image for answer in some.answers)
                self._lines.add(some.answers)
            self.answers |= {answer.image: answer for answer in some.answers}
            yield some

    @property
    def in_order(self) -> list[GroundedCaption]:
        """All captions there are by now, in the order of the photos."""
        return [self.answers[str(path)] for path in self.photos if str(path) in self.answers]

    def _find_answered(self, there: dict[str, GroundedCaption], known: KnownPhotos) -> None:
        """Take over the answers about these photos that the file holds, whatever the photos were called then."""
        for path in self.photos:
            name = str(path) if str(path) in there else known.name_of(path)
            if name is not None and name in there:
                self.answers[str(path)] = replace(there[name], image=str(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lines is not None:
            self._lines.__exit__()
