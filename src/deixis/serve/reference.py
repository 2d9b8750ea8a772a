"""The HTTP interface as a page to read: OpenAPI's description as plain HTML that loads nothing from elsewhere."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}: the HTTP interface</title>
<link rel="icon" href="static/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="look/look.css">
<link rel="stylesheet" href="static/docs.css">
</head>
<body>
<header>
<h1>{title} {version}: the HTTP interface</h1>
<p>{about} <a href="./">The page for people</a> · <a href="openapi.json">the same as OpenAPI</a></p>
</header>
<main>
"""
FILES = {"image": "photo.jpg", "clip": "clip.mp4"}
EXAMPLES = {
    "phrase": "a red hat",
    "query": "a dog on a sofa",
    "answer": "<answer.json",
    "format": "html",
    "image": "photo.jpg",
}
"""What an example says for a field that must be given; names of files stand in FILES."""
SAMPLED = frozenset({"/v1/ground", "/v1/video/phrases"})
"""Routes whose example has a phrase though OpenAPI does not ask for one: a sentence would do for the first."""


def page(described: Mapping[str, Any], address: str) -> str:
    """Return the page for an OpenAPI description; ``address`` is how the reader reached the server."""
    info = described["info"]
    parts = [HEAD.format(title=_text(info["title"]), version=_text(info["version"]), about=_text(info["description"]))]
    routes = [(path, verb, facts) for path, verbs in described["paths"].items() for verb, facts in verbs.items()]
    links = "".join(
        f'<li><a href="#{_anchor(path)}"><code>{verb.upper()} {_text(path)}</code></a> {_text(_about(facts))}</li>'
        for path, verb, facts in routes
    )
    parts.append(f'<nav aria-label="Routes"><ul>{links}</ul></nav>\n')
    schemas = described["components"]["schemas"]
    parts += [_route(path, verb, facts, schemas, address.rstrip("/")) for path, verb, facts in routes]
    parts.append("<h2>What is answered</h2>\n")
    parts += [
        f'<section class="panel"><h3 id="schema-{_text(name)}">{_text(name)}</h3>'
        f'<pre tabindex="0">{_text(json.dumps(schemas[name], indent=1, ensure_ascii=False))}</pre></section>\n'
        for name in sorted(_named(described))
        if name in schemas
    ]
    return "".join(parts) + "</main>\n</body>\n</html>\n"


def _route(path: str, verb: str, facts: Mapping[str, Any], schemas: Mapping[str, Any], address: str) -> str:
    fields = _fields(facts, schemas)
    rows = "".join(
        f"<tr><th scope=row><code>{_text(name)}</code>{' (needed)' if needed else ''}</th>"
        f"<td>{_text(_kind(one))}</td><td>{_text(one.get('description', ''))}</td></tr>"
        for name, one, needed in fields
    )
    table = f"<table><thead><tr><th>field</th><th>kind</th><th></th></tr></thead><tbody>{rows}</tbody></table>"
    answers = "".join(_answer(status, one) for status, one in facts.get("responses", {}).items())
    return (
        f'<section class="panel"><h2 id="{_anchor(path)}"><code>{verb.upper()} {_text(path)}</code></h2>\n'
        f"<p>{_text(_about(facts))}</p>\n{table if rows else ''}\n<dl>{answers}</dl>\n"
        f'<pre tabindex="0">{_text(_example(path, verb, fields, address))}</pre></section>\n'
    )


def _answer(status: str, one: Mapping[str, Any]) -> str:
    kinds = []
    for kind, content in one.get("content", {}).items():
        schema = content.get("schema", {})
        name = str(schema.get("$ref") or schema.get("items", {}).get("$ref", "")).rpartition("/")[2]
        listed = "a list of " if "items" in schema else ""
        link = f': {listed}<a href="#schema-{_text(name)}">{_text(name)}</a>' if name else ""
        kinds.append(f"{_text(kind)}{link}")
    told = f" ({', '.join(kinds)})" if kinds else ""
    return f"<dt>{_text(status)}</dt><dd>{_text(one.get('description', ''))}{told}</dd>"


def _fields(facts: Mapping[str, Any], schemas: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any], bool]]:
    """Return name, schema and whether it must be given, of what a route reads: a form or the address."""
    found: list[tuple[str, Mapping[str, Any], bool]] = [
        (one["name"], {**one.get("schema", {}), "description": one.get("description", "")}, bool(one.get("required")))
        for one in facts.get("parameters", ())
    ]
    for content in facts.get("requestBody", {}).get("content", {}).values():
        form = content.get("schema", {})
        form = schemas.get(str(form.get("$ref", "")).rpartition("/")[2], form)
        needed = form.get("required", ())
        found += [(name, one, name in needed) for name, one in form.get("properties", {}).items()]
    return found


def _kind(schema: Mapping[str, Any]) -> str:
    """Return what a field may be in a few words: "number, 0 to 1"; "file"; "png or html"."""
    choices = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    one: Mapping[str, Any] = choices[0] if choices else schema
    if one.get("enum"):
        return " or ".join(map(str, one["enum"]))
    if one.get("format") == "binary" or "contentMediaType" in one:
        return "file"
    if one.get("type") == "array":
        return f"{_kind(one.get('items', {}))}, several times"
    low, high = one.get("minimum"), one.get("maximum")
    span = "" if low is None and high is None else f", {_bound(low)} to {_bound(high)}"
    usual = schema.get("default")
    return f"{one.get('type', 'text')}{span}" + ("" if usual is None else f"; {usual} by default")


def _bound(value: float | None) -> str:
    return "…" if value is None else f"{value:g}"


def _example(path: str, verb: str, fields: list[tuple[str, Mapping[str, Any], bool]], address: str) -> str:
    needed = [name for name, _, must in fields if must]
    if verb == "get":
        given = [f"--data-urlencode {name}='{EXAMPLES.get(name, '…')}'" for name in needed]
        return " ".join(["curl", *(["-G", *given] if given else []), f"{address}{path}"])
    if path.endswith("/draw"):
        needed.append("image")
    if path in SAMPLED:
        needed.append("phrase")
    files = [name for name in needed if name in FILES]
    rest = [name for name in needed if name not in FILES]
    given = [f"-F {name}=@{FILES[name]}" for name in files]
    given += [f"-F {name}='{EXAMPLES.get(name, '…')}'" for name in rest]
    return " ".join(["curl", *given, f"{address}{path}"])


def _named(described: Mapping[str, Any]) -> set[str]:
    """Return the schemas that answers name, and those that these name."""
    schemas = described["components"]["schemas"]
    answers = [facts.get("responses", {}) for verbs in described["paths"].values() for facts in verbs.values()]
    waiting, found = [json.dumps(answers)], set[str]()
    while waiting:
        text = waiting.pop()
        names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
        waiting += [json.dumps(schemas[name]) for name in names - found if name in schemas]
        found |= names
    return found - {"HTTPValidationError", "ValidationError"}  # the framework's own; ours answer in its place


def _about(facts: Mapping[str, Any]) -> str:
    return str(facts.get("description") or facts.get("summary", ""))


def _anchor(path: str) -> str:
    return _text(path.strip("/").replace("/", "-"))


def _text(value: object) -> str:
    return html.escape(str(value))
