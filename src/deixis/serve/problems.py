"""Errors of the HTTP interface: one JSON form for all of them, ``{"error": {"code": ..., "message": ...}}``."""

from __future__ import annotations

import math

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from deixis.errors import DeixisError

CODES = {
    400: "bad_request",
    401: "token_needed",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    413: "too_large",
    422: "unusable",
    429: "too_many",
    503: "busy",
}


class Problem(HTTPException):
    """A request that is refused: the status says to programs what the message says to people."""

    def __init__(self, status: int, message: str, *, retry_after: float | None = None, code: str | None = None) -> None:
        headers = {} if retry_after is None else {"Retry-After": str(max(1, math.ceil(retry_after)))}
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        super().__init__(status, message, headers or None)
        self.code = code or CODES.get(status, "error")


def response(status: int, message: str, code: str | None = None, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return the one JSON form of an error."""
    error = {"code": code or CODES.get(status, "error"), "message": message}
    return JSONResponse({"error": error}, status_code=status, headers=headers)


async def refused(request: Request, error: Exception) -> JSONResponse:
    """Answer a request that was refused on purpose, by us or by the framework."""
    assert isinstance(error, HTTPException)
    code = error.code if isinstance(error, Problem) else None
    return response(error.status_code, str(error.detail), code, dict(error.headers or {}))


async def unusable(request: Request, error: Exception) -> JSONResponse:
    """Answer a request whose photo, clip or phrase cannot be used; the message says why."""
    assert isinstance(error, DeixisError)
    return response(422, str(error))


async def misshapen(request: Request, error: Exception) -> JSONResponse:
    """Answer a request with a missing or malformed field; the message names it."""
    assert isinstance(error, RequestValidationError)
    parts = []
    for fault in error.errors():
        field = ".".join(str(part) for part in fault["loc"] if part != "body") or "body"
        parts.append(f"{field}: {fault['msg']}")
    return response(422, "; ".join(parts))


async def broken(request: Request, error: Exception) -> JSONResponse:
    """Answer a request that met a bug of ours, without its insides; the server's log has the traceback."""
    return response(500, "something went wrong inside the server; its log says what", "internal")
