"""Search in a folder of the server's own photos: ``deixis serve --folder``.

Photos are named by their path below the folder, and only those that the index knows are ever read: a name never becomes
a path by itself.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response
from PIL import Image

from deixis.errors import DeixisError
from deixis.images import load_image
from deixis.serve.problems import Problem

if TYPE_CHECKING:
    from deixis.answering.search.index import PhotoIndex
    from deixis.serve.service import Service

MOST = 200
"""Photos of one answer."""
LARGEST = 1600
"""Pixels along the longer side of a photo that is sent."""
router = APIRouter()


@dataclass(frozen=True, slots=True)
class Search:
    """A question for the photos that fit a phrase."""

    query: str
    top: int


@dataclass(frozen=True, slots=True)
class Picture:
    """A question for a photo of the folder, at most so many pixels wide or high."""

    image: str
    side: int


class Album:
    """Answers searches in one folder; used by one worker alone."""

    def __init__(self, index: PhotoIndex, pixels: int) -> None:
        self.index, self._pixels = index, pixels
        self._known = frozenset(index.photos)

    def __len__(self) -> int:
        return len(self._known)

    def answer(self, key: Search | Picture, asked: Sequence[Search | Picture]) -> list[Any]:
        """Return an answer for each question, or the error that belongs to it."""
        return [self._search(one) if isinstance(one, Search) else self._picture(one) for one in asked]

    def _search(self, asked: Search) -> dict[str, Any] | DeixisError:
        try:
            found = self.index.search(asked.query, top=asked.top)
        except DeixisError as error:
            return error
        answers = [replace(one.answer, image=one.path.relative_to(self.index.folder).as_posix()) for one in found]
        rows = [{"score": one.score, "answer": own.to_json()} for one, own in zip(found, answers, strict=True)]
        return {"query": asked.query, "photos": len(self), "found": rows}

    def _picture(self, asked: Picture) -> bytes | DeixisError:
        if asked.image not in self._known:
            return DeixisError(f"there is no photo {asked.image[:200]!r} in the folder that is searched")
        try:
            photo = load_image(self.index.folder / asked.image, max_pixels=self._pixels)
        except DeixisError as error:
            return DeixisError(str(error).replace(str(self.index.folder / asked.image), asked.image))
        photo.thumbnail((asked.side, asked.side), Image.Resampling.LANCZOS)
        made = io.BytesIO()
        photo.save(made, "JPEG", quality=85)
        return made.getvalue()


@router.get("/v1/search")
async def search(
    request: Request,
    query: Annotated[str, Query(description="A phrase or sentence, such as: a dog on a sofa.")],
    top: Annotated[int, Query(ge=1, le=MOST, description="How many photos.")] = 20,
) -> Response:
    """Find photos of the server's folder, best first; each with the boxes that answer the phrase."""
    service: Service = request.app.state.service
    if len(query) > service.limits.text:
        raise Problem(422, f"a phrase or sentence has more than {service.limits.text} characters")
    return JSONResponse(await service.album_answer(Search(query, top)))


@router.get("/v1/photo", responses={200: {"content": {"image/jpeg": {}}}}, response_class=Response)
async def photo(
    request: Request,
    image: Annotated[str, Query(description="A photo's name, as /v1/search gives it.")],
    side: Annotated[int, Query(ge=16, le=LARGEST, description="Most pixels along its longer side.")] = 480,
) -> Response:
    """Return a photo of the server's folder as JPEG, upright and small."""
    service: Service = request.app.state.service
    data = await service.album_answer(Picture(image, side))
    return Response(data, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=600"})
