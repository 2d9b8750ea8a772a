"""The routes for programs. Every answer has the documented JSON form, the one the command line prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, File, Form, Request, UploadFile
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from deixis.answering.asking import Asking, Typed
from deixis.defaults import BEAM, CLIP_BEAM
from deixis.errors import DeixisError
from deixis.serve import metrics, schema
from deixis.serve.problems import Problem
from deixis.serve.service import Service
from deixis.serve.uploads import clip_file, read_photo
from deixis.serve.work import (
    Alternatives,
    Captions,
    Clip,
    ClipPhrases,
    Clips,
    Looks,
    Photo,
    Phrases,
    Question,
    parse_segments,
)

if TYPE_CHECKING:
    from deixis.models.bundle import Method

ClipFile = Annotated[UploadFile, File(description="A clip: MP4, WebM, MKV, MOV or AVI.")]
Wanted = Annotated[list[str] | None, Form(description="What to find; may be given several times.")]
Image = Annotated[UploadFile, File(description="A photo: JPEG, PNG, WebP, GIF, TIFF, BMP or AVIF.")]
Model = Annotated[str | None, Form(description="One of the models of /v1/models; the first by default.")]
How = Annotated[str | None, Form(description="How words find their boxes: one of the model's methods.")]
Beam = Annotated[int, Form(ge=1, le=10, description="Beam width; 1 is greedy.")]
Check = Annotated[
    bool | None, Form(description="Ask the grounder whether each thing is really there; by default if there is one.")
]
Threshold = Annotated[
    float | None, Form(ge=0, le=1, description="Probability of being there below which a thing is doubted.")
]
Point = Annotated[
    str | None, Form(description="How attention becomes a box: auto, argmax, union or soft_vote; else as suits.")
]
Objectness = Annotated[
    float | None, Form(ge=-100, le=100, description="Exponent of the regions' objectness beside attention.")
]
Regionness = Annotated[
    float | None, Form(ge=-100, le=100, description="Exponent of the regions' regionness beside attention.")
]
Every = Annotated[float | None, Form(ge=0.5, le=3600, description="Cut the clip into segments of so many seconds.")]
Segments = Annotated[str | None, Form(description="Segments in seconds, as JSON: [[0, 4.5], [4.5, 9]].")]

router = APIRouter()


def asked(
    request: Request,
    beam: Beam = BEAM,
    check: Check = None,
    threshold: Threshold = None,
    model: Model = None,
    method: How = None,
    point: Point = None,
    objectness: Objectness = None,
    regionness: Regionness = None,
) -> tuple[str, Asking]:
    """Return which model is asked for captions, and how: the fields mean what the options of the command line mean."""
    service = _service(request)
    name = _model(service, model)
    typed = Typed(beam, _method(service, name, method), point, objectness, regionness, threshold)
    try:
        return name, typed.asked_of(service.models[name], Asking(check=check))
    except DeixisError as error:
        raise Problem(422, str(error)) from error


Asks = Annotated[tuple[str, Asking], Depends(asked)]


@router.post("/v1/caption", responses=schema.answer("caption", "A caption whose words have boxes."))
async def caption(request: Request, image: Image, asks: Asks) -> Response:
    """Caption a photo."""
    return await _photo(request, image, Captions(*asks))


@router.post("/v1/look", responses=schema.answer("look", "A caption with the attention of every word."))
async def look(request: Request, image: Image, asks: Asks) -> Response:
    """Caption a photo and tell where each word looked."""
    return await _photo(request, image, Looks(*asks))


@router.post("/v1/alternatives", responses=schema.answer("caption", "Captions, best first.", many=True))
async def alternatives(request: Request, image: Image, beam: Beam = BEAM, model: Model = None) -> Response:
    """Return all sentences that were left at the end of a beam search."""
    return await _photo(request, image, Alternatives(_model(_service(request), model), Asking(beam=beam)))


@router.post("/v1/ground", responses=schema.answer("phrases", "Phrases and their boxes."))
async def ground(
    request: Request,
    image: Image,
    phrase: Wanted = None,
    sentence: Annotated[str | None, Form(description="A sentence whose noun phrases (or given ones) to find.")] = None,
    threshold: Threshold = None,
    model: Model = None,
) -> Response:
    """Find phrases in a photo; "found" is false for what is probably not there."""
    service = _service(request)
    phrases = tuple(phrase or ())
    if not phrases and sentence is None:
        raise Problem(422, "nothing to look for: send a phrase or a sentence")
    _check_texts(service, phrases, sentence or "")
    return await _photo(request, image, Phrases(_model(service, model), Asking(threshold=threshold)), phrases, sentence)


@router.post("/v1/video", responses=schema.answer("caption", "A caption for each segment of the clip.", many=True))
async def video(
    request: Request,
    clip: ClipFile,
    every: Every = None,
    segments: Segments = None,
    beam: Beam = CLIP_BEAM,
    check: Check = None,
    threshold: Threshold = None,
    model: Model = None,
    method: How = None,
) -> Response:
    """Caption a clip: a grounded sentence for each segment, with boxes in its frames."""
    service = _service(request)
    pairs = None if segments is None else parse_segments(segments)
    asked = _model(service, model)
    question = Clips(asked, _method(service, asked, method), beam, check, threshold, every, pairs)
    async with clip_file(clip, service.limits) as (path, name):
        return JSONResponse(await service.clip(question, Clip(path, name)))


@router.post("/v1/video/phrases", responses=schema.answer("phrases", "Phrases for each segment.", many=True))
async def video_phrases(
    request: Request,
    clip: ClipFile,
    phrase: Wanted = None,
    every: Every = None,
    segments: Segments = None,
    threshold: Threshold = None,
    model: Model = None,
) -> Response:
    """Find phrases in a clip: for each segment their boxes in its frames; none on frames that do not show them."""
    service = _service(request)
    phrases = tuple(phrase or ())
    if not phrases:
        raise Problem(422, "nothing to look for: send a phrase")
    _check_texts(service, phrases)
    pairs = None if segments is None else parse_segments(segments)
    question = ClipPhrases(_model(service, model), phrases, threshold, every, pairs)
    async with clip_file(clip, service.limits) as (path, name):
        return JSONResponse(await service.clip(question, Clip(path, name)))


@router.get("/v1/models")
async def models(request: Request) -> dict[str, Any]:
    """Tell which models and methods can be asked, and the limits."""
    service = _service(request)
    known = [
        {
            "name": name,
            "methods": list(model.methods),
            "method": model.card.method,
            "checks": model.grounder is not None,
        }
        for name, model in service.models.items()
    ]
    limits = service.limits
    return {
        "models": known,
        "folder": None if service.album is None else {"photos": len(service.album)},
        "limits": {
            "photo_bytes": limits.photo_bytes,
            "clip_bytes": limits.clip_bytes,
            "pixels": limits.pixels,
            "clip_seconds": limits.clip_length,
            "phrases": limits.phrases,
        },
    }


@router.get("/v1/schema")
async def answer_schema() -> dict[str, Any]:
    """Return the JSON schema of captions and phrases."""
    return schema.grounded_schema()


@router.get("/healthz")
async def healthz(request: Request) -> Response:
    """Tell whether the server can answer."""
    healthy = _service(request).healthy
    return JSONResponse({"status": "ok" if healthy else "a worker has ended"}, 200 if healthy else 503)


@router.get("/metrics", response_class=PlainTextResponse)
async def figures(request: Request) -> Response:
    """Return counters and histograms for Prometheus."""
    return PlainTextResponse(_service(request).metrics.text(), media_type=metrics.CONTENT_TYPE)


async def _photo(
    request: Request,
    image: UploadFile,
    question: Question,
    phrases: tuple[str, ...] = (),
    sentence: str | None = None,
) -> Response:
    service = _service(request)
    data, name, pixels = await read_photo(image, service.limits)
    photo = Photo(data, name, phrases, sentence)
    return JSONResponse(await service.photo(question, photo, pixels))


def _check_texts(service: Service, phrases: tuple[str, ...], sentence: str = "") -> None:
    most = service.limits
    if len(phrases) > most.phrases:
        raise Problem(422, f"{len(phrases)} phrases are too many: at most {most.phrases} are looked for at once")
    if any(len(text) > most.text for text in (*phrases, sentence)):
        raise Problem(422, f"a phrase or sentence has more than {most.text} characters")


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _model(service: Service, name: str | None) -> str:
    if name is None:
        return next(iter(service.models))
    if name not in service.models:
        raise Problem(422, f"there is no model '{name[:80]}' here; there are {', '.join(service.models)}")
    return name


def _method(service: Service, model: str, method: str | None) -> Method | None:
    known = service.models[model].methods
    if method is not None and method not in known:
        raise Problem(422, f"'{method[:80]}' is no method of {model}; it has {', '.join(known)}")
    return method
