"""The application: routes for programs, files of the page, and what stands before both."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, HTMLResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

import deixis
import deixis.export
import deixis.labels
from deixis.errors import DeixisError
from deixis.serve import album, draw, problems, reference, routes, schema
from deixis.serve.guard import Access, Guard
from deixis.serve.service import Service

STATIC = Path(__file__).with_name("static")
LOOK = Path(deixis.export.__file__).with_name("static")  # shared with the pages that are written to files
LABELS = Path(deixis.labels.__file__).with_name("static")  # moving boxes, shared with the review page
ABOUT = "Captions whose words point at boxes, and boxes for any phrase. Boxes are x1 y1 x2 y2 in pixels of the image."

# Some systems know neither; a browser refuses a module that does not come as JavaScript.
mimetypes.add_type("text/javascript", ".js")
mimetypes.add_type("image/svg+xml", ".svg")


def make_api(service: Service) -> FastAPI:
    """Return the routes and the page, unguarded."""
    # The framework's own documentation pages load scripts from elsewhere; ours (/docs) loads nothing.
    api = FastAPI(title="Deixis", version=deixis.__version__, description=ABOUT, docs_url=None, redoc_url=None,
                  lifespan=service.lifespan)  # fmt: skip
    api.state.service = service
    api.include_router(routes.router)
    api.include_router(draw.router)
    if service.album is not None:
        api.include_router(album.router)
    api.add_exception_handler(HTTPException, problems.refused)
    api.add_exception_handler(RequestValidationError, problems.misshapen)
    api.add_exception_handler(DeixisError, problems.unusable)
    api.add_exception_handler(Exception, problems.broken)

    @api.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @api.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> HTMLResponse:
        return HTMLResponse(reference.page(api.openapi(), str(request.base_url)))

    api.mount("/static", StaticFiles(directory=STATIC), name="static")
    api.mount("/look", StaticFiles(directory=LOOK), name="look")
    api.mount("/labels", StaticFiles(directory=LABELS), name="labels")

    def openapi() -> dict[str, Any]:
        if api.openapi_schema is None:
            made = get_openapi(title=api.title, version=api.version, description=api.description, routes=api.routes)
            made["components"]["schemas"] |= schema.components()
            api.openapi_schema = made
        return api.openapi_schema

    api.openapi = openapi  # type: ignore[method-assign]
    return api


def make_app(service: Service, access: Access | None = None) -> ASGIApp:
    """Return the whole application, for a server to run."""
    return Guard(
        make_api(service),
        access=access or Access(),
        limits=service.limits,
        admission=service.admission,
        note=service.metrics.request,
    )
