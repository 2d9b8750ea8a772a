"""Answers as JSON lines that survive being stopped: what is there is not asked again, a line cut short is dropped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from deixis.atomic import cannot_write
from deixis.errors import BadFileError, DeixisError
from deixis.locks import Lock
from deixis.reading.plain import parse_json
from deixis.types import GroundedCaption


class Answer(Protocol):
    """A grounded caption or grounded phrases."""

    @property
    def image(self) -> str:
        """What identifies the photo."""
        ...

    @property
    def model(self) -> str:
        """Which model answered."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return the documented JSON form."""
        ...


A = TypeVar("A", bound=Answer)
GO_ON = "make room, then run the same command again: it goes on where it stopped"


class AnswerLines(Generic[A]):
    """A file of answers, one a line, in the order they were added.

    >>> with AnswerLines.open(Path("out.jsonl"), GroundedCaption.from_json, model="lite") as lines:  # doctest: +SKIP
    ...     lines.add(model.captions([photo for photo in photos if photo not in lines.answers]))
    """

    def __init__(self, path: Path, answers: dict[str, A], key: Callable[[A], str], lock: Lock | None) -> None:
        self.path, self._key, self._lock = path, key, lock
        self.answers = answers
        """What the file holds, by image (or by what tells answers apart)."""
        self._file = path.open("a", encoding="utf-8", errors="backslashreplace")  # names of files may be no text

    @classmethod
    def open(
        cls,
        path: Path,
        read: Callable[[Mapping[str, Any]], A],
        *,
        model: str,
        key: Callable[[A], str] = lambda answer: answer.image,
        shown: Path | None = None,
    ) -> Self:
        """Open a file to go on with it, or a new one. Answers of another model are not mixed in.

        ``key`` says what tells answers apart: the image, unless one image has several. A second process that opens the
        file is told who has it (``shown``, where people know it by another name): together they would write every
        answer twice.
        """
        lock = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = Lock(path, shown) if path.is_file() or not path.exists() else None  # not for a pipe or a device
            return cls(path, cls._there(path, read, model, key), key, lock)
        except BaseException as error:
            if lock is not None:
                lock.release()
            if isinstance(error, OSError):
                raise cannot_write(path, error) from error
            raise

    @staticmethod
    def _there(path: Path, read: Callable[[Mapping[str, Any]], A], model: str, key: Callable[[A], str]) -> dict[str, A]:
        """Return what the file holds, after cutting off a line that was being written when its process died."""
        answers: dict[str, A] = {}
        whole = _whole_lines(path) if path.exists() else b""
        for number, line in enumerate(whole.splitlines(), 1):
            if line.strip():
                answer = _read(line, read, f"{path}, line {number}")
                if answer.model != model:
                    raise DeixisError(
                        f"{path} holds answers of the model {answer.model!r}, not {model!r}: "
                        "choose another file with -o, or delete it"
                    )
                answers[key(answer)] = answer
        if path.exists() and path.stat().st_size > len(whole):
            with path.open("r+b") as file:
                file.truncate(len(whole))
        return answers

    def add(self, answers: Iterable[A]) -> None:
        """Append answers; they are on disk when this returns."""
        try:
            for answer in answers:
                self._file.write(json.dumps(answer.to_json(), ensure_ascii=False, allow_nan=False) + "\n")
                self.answers[self._key(answer)] = answer
            self._file.flush()
        except OSError as error:
            raise cannot_write(self.path, error, GO_ON) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._file.close()
        except OSError as error:  # what was still in memory found no room
            raise cannot_write(self.path, error, GO_ON) from error
        finally:
            if self._lock is not None:
                self._lock.release()


def require_alike(path: Path, captions: Iterable[GroundedCaption], *, checked: bool) -> None:
    """Refuse to mix checked captions with others: one would not know what was doubted and found well."""
    for caption in captions:
        things = [word for word in caption.words if word.groundable]
        if things and checked != any(word.presence is not None for word in things):
            held, way = ("not checked", "add --no-check") if checked else ("checked", "leave out --no-check")
            raise DeixisError(
                f"{path} holds captions that were {held}, such as that of {caption.image}: {way}, "
                "choose another file with -o, or delete it"
            )


def _whole_lines(path: Path) -> bytes:
    """Return the file up to its last line's end: what follows was being written when the process died."""
    data = path.read_bytes()
    return data[: data.rfind(b"\n") + 1]


def _read(line: bytes, read: Callable[[Mapping[str, Any]], A], where: str) -> A:
    try:
        return read(parse_json(line, where))
    except BadFileError as error:
        raise BadFileError(f"{where} is no answer of ours: {error}: choose another file with -o") from error
