"""The page about the HTTP interface: every route of OpenAPI, its fields, and an example."""

from __future__ import annotations

from typing import Any

from deixis.serve import reference
from deixis.serve.app import make_api
from deixis.serve.service import Service


def test_every_route_and_field_is_there(service: Service) -> None:
    described: dict[str, Any] = make_api(service).openapi()
    text = reference.page(described, "http://127.0.0.1:8008/")
    for path, verbs in described["paths"].items():
        for verb in verbs:
            assert f"<code>{verb.upper()} {path}</code></h2>" in text
    for field in ("beam", "threshold", "phrase", "segments", "method"):
        assert f"<code>{field}</code>" in text
    assert "curl -F image=@photo.jpg -F phrase=&#x27;a red hat&#x27; http://127.0.0.1:8008/v1/ground" in text
    assert "curl http://127.0.0.1:8008/v1/models" in text
    assert "number, 0 to 1" in text
    assert 'href="#schema-caption"' in text
    assert 'id="schema-caption"' in text
    assert "<script" not in text


def test_what_it_is_given_stays_text() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    described = {
        "info": {"title": hostile, "version": hostile, "description": hostile},
        "paths": {f"/{hostile}": {"get": {"description": hostile, "responses": {"200": {"description": hostile}}}}},
        "components": {"schemas": {}},
    }
    assert hostile not in reference.page(described, hostile)
