"""Answers as pictures and pages to keep: what ``--png`` and ``--html`` of the command line write."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import Response

from deixis.errors import DeixisError
from deixis.export.clip import write_annotated_clip
from deixis.export.draw import drawing_of_caption, drawing_of_phrases
from deixis.export.page import page_text, write_clip_page
from deixis.images import load_image
from deixis.reading.plain import parse_json
from deixis.serve import schema
from deixis.serve.limits import MIB
from deixis.serve.problems import Problem
from deixis.serve.service import Service
from deixis.serve.uploads import clip_file, read_photo
from deixis.serve.work import MOST_SEGMENTS
from deixis.types import GroundedCaption, GroundedPhrases
from deixis.video import decoding_within

router = APIRouter()
_DRAWING = anyio.CapacityLimiter(1)
TYPES = {"png": "image/png", "html": "text/html; charset=utf-8", "mp4": "video/mp4"}
EMBEDDED_CLIP = 64 * MIB
DECODING = 120.0
"""Seconds that reading a clip for its drawing may take."""
MOST_BOXES, MOST_LETTERS = 500, 10_000

Photo = Annotated[UploadFile | None, File(description="The photo that was answered.")]
Clip = Annotated[UploadFile | None, File(description="Or the clip.")]
Answer = Annotated[
    str, Form(description="The answer: the JSON of a caption, of phrases, or a list of captions (clip).")
]
Form_ = Annotated[
    Literal["png", "html", "mp4"],
    Form(description="A picture (of a photo), a page that needs nothing else, or the clip with boxes drawn in."),
]


@router.post(
    "/v1/draw",
    responses={200: {"description": "The file.", "content": {kind: {} for kind in TYPES.values()}}, **schema.REFUSALS},
    response_class=Response,
)
async def draw(request: Request, answer: Answer, format: Form_, image: Photo = None, clip: Clip = None) -> Response:
    """Draw an answer over its photo, or write a page with a clip and its moving boxes."""
    service: Service = request.app.state.service
    found = _parsed(answer)
    if image is not None:
        if format == "mp4":
            raise Problem(422, "a photo is drawn as a picture or a page: ask for format png or html")
        data, name, _ = await read_photo(image, service.limits)
        work = anyio.to_thread.run_sync(_photo, data, name, found, format, service.limits.pixels, limiter=_DRAWING)
        return Response(await work, media_type=TYPES[format])
    if clip is None:
        raise Problem(422, "nothing to draw on: send the photo as 'image' or the clip as 'clip'")
    if format == "png":
        raise Problem(422, "a clip is drawn as a page or a clip: ask for format html or mp4")
    if format == "html" and clip.size is not None and clip.size > EMBEDDED_CLIP:
        raise Problem(413, f"clips of more than {EMBEDDED_CLIP // MIB} MB do not go into a page: save the JSON instead")
    async with clip_file(clip, service.limits) as (path, name):
        body = await anyio.to_thread.run_sync(_clip, path, name, found, format, limiter=_DRAWING)
    return Response(body, media_type=TYPES[format])


def _parsed(answer: str) -> Any:
    """Read an answer; one with far more in it than a model says is refused, for a drawing grows with all of it."""
    found = parse_json(answer, "the answer")
    answers = [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, dict)]
    lists = [value for one in answers for value in one.values() if isinstance(value, list)]
    parts = [part for items in lists for part in items if isinstance(part, dict)]
    letters = sum(len(value) for part in (*answers, *parts) for value in part.values() if isinstance(value, str))
    boxes = sum(len(part["boxes"]) for part in parts if isinstance(part.get("boxes"), list))
    if len(answers) > MOST_SEGMENTS:
        raise DeixisError(f"the answer has {len(answers)} captions; at most {MOST_SEGMENTS} are drawn")
    if max(boxes, len(parts)) > MOST_BOXES * len(answers) or letters > MOST_LETTERS * len(answers):
        raise DeixisError(f"more than {MOST_BOXES} words or boxes, or {MOST_LETTERS:,} letters, are too many to draw")
    return found


def _photo(data: bytes, name: str, found: Any, kind: str, pixels: int) -> bytes:
    try:
        picture = load_image(data, max_pixels=pixels)
    except DeixisError as error:
        raise DeixisError(str(error).replace("the given bytes", name)) from error
    if isinstance(found, dict) and found.get("kind") == "phrases":
        drawing = drawing_of_phrases(GroundedPhrases.from_json(found), [picture])
    else:
        drawing = drawing_of_caption(GroundedCaption.from_json(found), [picture])
    if kind == "html":
        return page_text([drawing], title=name).encode()
    file = io.BytesIO()
    drawing.to_image().save(file, format="PNG")
    return file.getvalue()


def _clip(path: Path, name: str, found: Any, kind: str) -> bytes:
    if not isinstance(found, list):
        raise DeixisError("the answer of a clip is a list of captions")
    captions = [GroundedCaption.from_json(item) for item in found]
    with tempfile.TemporaryDirectory(prefix="deixis-page-") as folder:
        if kind == "mp4":
            with decoding_within(DECODING):
                return write_annotated_clip(Path(folder) / "clip.mp4", path, captions).read_bytes()
        page = write_clip_page(Path(folder) / "page.html", path, captions, title=name, embed=True)
        return page.read_bytes()
