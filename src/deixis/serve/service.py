"""What runs behind the routes: the models, the two queues and the figures, from start to shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from deixis.serve.admission import Admission
from deixis.serve.album import Album, Picture, Search
from deixis.serve.batcher import Batcher, FullError, LateError
from deixis.serve.limits import MIB, Limits
from deixis.serve.metrics import Metrics
from deixis.serve.problems import Problem
from deixis.serve.work import Clip, ClipPhrases, Clips, Photo, Question, Workshop

if TYPE_CHECKING:
    from deixis.answering.load import Deixis
    from deixis.answering.search.index import PhotoIndex


class Service:
    """Answers questions of many clients with one worker for photos and one for clips.

    Clips take seconds where photos take a fraction of one; with a worker of their own they do not hold photos up.
    """

    def __init__(
        self, models: Mapping[str, Deixis], limits: Limits | None = None, index: PhotoIndex | None = None
    ) -> None:
        self.limits = limits or Limits()
        self.admission = Admission(self.limits)
        self.album = None if index is None else Album(index, self.limits.pixels)
        self.workshop = Workshop(
            models,
            pixels=self.limits.pixels,
            remember=self.limits.remember,
            clip_decoding=self.limits.clip_decoding,
        )
        self._photos = Batcher(
            self.workshop.photos,
            batch=self.limits.batch,
            pixels=2 * self.limits.pixels,
            places=self.limits.waiting,
            bytes=self.limits.waiting_bytes,
            watch=lambda size, seconds: self.metrics.batch("photos", size, seconds),
            name="deixis-photos",
        )
        self._clips = Batcher(
            self.workshop.clips,
            batch=1,
            pixels=0,
            places=self.limits.waiting_clips,
            bytes=MIB,  # clips wait on disk
            watch=lambda size, seconds: self.metrics.batch("clips", size, seconds),
            name="deixis-clips",
        )
        self._searches: Batcher | None = None
        if self.album is not None:
            self._searches = Batcher(
                self.album.answer,
                batch=1,
                pixels=0,
                places=self.limits.waiting,
                bytes=MIB,  # a phrase is a few words
                watch=lambda size, seconds: self.metrics.batch("searches", size, seconds),
                name="deixis-searches",
            )
        photos, clips = self._photos, self._clips
        gauges = {
            "deixis_questions": ("Questions that were let in and are not answered yet.", self._held),
            "deixis_waiting_photos": ("Photos that wait.", lambda: float(photos.waiting)),
            "deixis_waiting_clips": ("Clips that wait.", lambda: float(clips.waiting)),
            "deixis_resident_bytes": ("Memory of the process.", _resident),
        }
        self.metrics = Metrics(gauges)

    def _held(self) -> float:
        return float(self.admission.held)

    @property
    def models(self) -> Mapping[str, Deixis]:
        """The models by the name clients use; the first is the default."""
        return self.workshop.models

    @property
    def healthy(self) -> bool:
        """Whether both workers are there."""
        return self._photos.alive and self._clips.alive

    async def photo(self, question: Question, photo: Photo, pixels: int) -> Any:
        """Answer a question about a photo, together with others that wait."""
        with_bytes = {"pixels": pixels, "bytes": len(photo.data)}
        return await self._answered(self._photos, question, photo, self.limits.seconds, **with_bytes)

    async def clip(self, question: Clips | ClipPhrases, clip: Clip) -> Any:
        """Answer a question about a clip."""
        return await self._answered(self._clips, question, clip, self.limits.clip_patience)

    async def album_answer(self, question: Search | Picture) -> Any:
        """Answer a question about the server's folder."""
        if self._searches is None:
            raise Problem(404, "this server has no folder to search: start it with deixis serve --folder FOLDER")
        return await self._answered(self._searches, question, question, self.limits.seconds)

    async def _answered(self, batcher: Batcher, key: Hashable, payload: Any, seconds: float, **size: int) -> Any:
        try:
            job = batcher.submit(key, payload, seconds=seconds, **size)
            try:
                return await asyncio.wait_for(asyncio.wrap_future(job.future), seconds)
            except TimeoutError as error:
                raise LateError from error
            finally:
                batcher.withdraw(job)
        except FullError as error:
            raise Problem(503, "the server is busy: all places are taken", retry_after=error.seconds) from error
        except LateError as error:
            message = f"the server is busy: there was no answer within {seconds:g} s"
            raise Problem(503, message, retry_after=5, code="late") from error

    @asynccontextmanager
    async def lifespan(self, app: object) -> AsyncIterator[None]:
        """End the workers with the server."""
        yield
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End the workers; questions that wait are refused."""
        self._photos.close()
        self._clips.close()
        if self._searches is not None:
            self._searches.close()
        self.workshop.close()


def _resident() -> float:
    """Bytes of memory the process holds, where the system tells."""
    try:
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    import resource

    return float(pages * resource.getpagesize())
