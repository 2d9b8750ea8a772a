"""The documented form of answers, as OpenAPI wants to have it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import deixis.types

_LOOK = {
    "type": "object",
    "required": ["deixis", "kind", "caption", "regions", "attention"],
    "properties": {
        "deixis": {"const": 1},
        "kind": {"const": "look"},
        "caption": {"$ref": "#/components/schemas/caption"},
        "regions": {"description": "What the captioner saw; the last is the whole photo.", "type": "array",
                    "items": {"$ref": "#/components/schemas/box"}},
        "attention": {"description": "For each word its weight on each region.", "type": "array",
                      "items": {"type": "array", "items": {"type": "number"}}},
    },
}  # fmt: skip
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}


@cache
def grounded_schema() -> dict[str, Any]:
    """Return the JSON schema of grounded captions and phrases (docs/grounded.schema.json)."""
    path = Path(deixis.types.__file__).with_name("grounded.schema.json")
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def components() -> dict[str, Any]:
    """Return the definitions for OpenAPI, whose references have another root."""
    text = json.dumps(grounded_schema()["$defs"]).replace("#/$defs/", "#/components/schemas/")
    definitions: dict[str, Any] = json.loads(text)
    return {**definitions, "look": _LOOK, "error": _ERROR}


def answer(name: str, description: str, *, many: bool = False) -> dict[int | str, dict[str, Any]]:
    """Return what OpenAPI says about a route's answers: the good one and the refusals."""
    one = {"$ref": f"#/components/schemas/{name}"}
    schema = {"type": "array", "items": one} if many else one
    return {200: {"description": description, "content": {"application/json": {"schema": schema}}}, **REFUSALS}


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": description,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/error"}}},
    }
    for status, description in {
        401: "A token is needed.",
        413: "Too many bytes, pixels or seconds.",
        422: "The file is damaged, or a field cannot be used.",
        429: "This client has too many requests waiting.",
        503: "The server is busy; Retry-After says when to come back.",
    }.items()
}
