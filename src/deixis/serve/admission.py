"""A place for every question before a byte of it is read, so that what cannot be answered costs nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from deixis.serve.limits import Limits
from deixis.serve.problems import Problem

CLIPS, DRAWINGS = ("/v1/video", "/v1/video/phrases"), "/v1/draw"


@dataclass(slots=True)
class _Line:
    """Questions of one kind that were let in: how many, and the bytes that they said they would send."""

    places: int
    most_bytes: int
    held: int = 0
    bytes: int = 0

    def fits(self, size: int) -> bool:
        return self.held < self.places and (not self.held or self.bytes + size <= self.most_bytes)


class Admission:
    """Counts the questions that were let in, by kind and by client; used on the event loop alone.

    Photos, clips and drawings have places of their own: uploads of clips, which take long, do not keep photos out.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._clients: Counter[str] = Counter()
        clips = limits.waiting_clips + 1
        self._photos = _Line(limits.waiting + limits.batch, limits.waiting_bytes)
        self._clips = _Line(clips, clips * limits.clip_bytes)
        self._lines = {
            **dict.fromkeys(CLIPS, self._clips),
            DRAWINGS: _Line(limits.batch, limits.waiting_bytes),
        }

    @property
    def held(self) -> int:
        """Questions that were let in and are not answered yet."""
        return sum(line.held for line in {id(line): line for line in (self._photos, *self._lines.values())}.values())

    @contextmanager
    def place(self, path: str, client: str, size: int) -> Iterator[None]:
        """Hold a place while a question is read and answered; where there is none, refuse it.

        Args:
            path: The route.
            client: The address that asks.
            size: Bytes that will come, as the client says, or the most that are read if it does not say.
        """
        line = self._lines.get(path, self._photos)
        mine = self._clients[client]
        if self.limits.per_client and mine >= self.limits.per_client:
            raise Problem(429, f"you have {mine} requests waiting already", retry_after=1)
        if not line.fits(size):
            raise Problem(503, "the server is busy: all places are taken", retry_after=1)
        line.held, line.bytes = line.held + 1, line.bytes + size
        self._clients[client] += 1
        try:
            yield
        finally:
            line.held, line.bytes = line.held - 1, line.bytes - size
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]
