"""Answers as pictures and pages to keep: the same drawing as ``deixis caption --png`` and ``--html``."""

from __future__ import annotations

import io
import json
from typing import Annotated, Literal

import anyio
from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import Response
from PIL import Image

from deixis.errors import DeixisError
from deixis.export.draw import Drawing, drawing_of_caption, drawing_of_phrases
from deixis.images import load_image
from deixis.serve import schema
from deixis.serve.service import Service
from deixis.serve.uploads import read_photo
from deixis.types import GroundedCaption, GroundedPhrases

router = APIRouter()
_DRAWING = anyio.CapacityLimiter(1)
TYPES = {"png": "image/png", "html": "text/html; charset=utf-8"}


@router.post(
    "/v1/draw", responses={200: {"content": {kind: {} for kind in TYPES.values()}}, **schema.REFUSALS},
    response_class=Response,
)  # fmt: skip
async def draw(
    request: Request,
    image: Annotated[UploadFile, File(description="The photo that was answered.")],
    answer: Annotated[str, Form(description="The answer: the JSON of a caption or of phrases.")],
    format: Annotated[Literal["png", "html"], Form(description="A picture, or a page that needs nothing else.")],
) -> Response:
    """Draw an answer over its photo."""
    service: Service = request.app.state.service
    data, name, _ = await read_photo(image, service.limits)
    try:
        body = await anyio.to_thread.run_sync(_drawn, data, answer, format, service.limits.pixels, limiter=_DRAWING)
    except DeixisError as error:
        raise DeixisError(str(error).replace("the given bytes", name)) from error
    return Response(body, media_type=TYPES[format])


def _drawn(data: bytes, answer: str, kind: str, pixels: int) -> bytes:
    picture = load_image(data, max_pixels=pixels)
    drawing = _drawing(answer, picture)
    if kind == "html":
        return drawing.to_html().encode()
    file = io.BytesIO()
    drawing.to_image().save(file, format="PNG")
    return file.getvalue()


def _drawing(answer: str, picture: Image.Image) -> Drawing:
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise DeixisError(f"the answer is not JSON: {error}") from error
    if isinstance(found, dict) and found.get("kind") == "phrases":
        return drawing_of_phrases(GroundedPhrases.from_json(found), [picture])
    return drawing_of_caption(GroundedCaption.from_json(found), [picture])
