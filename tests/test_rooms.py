"""A room may import from the rooms above it, never from below (docs/architecture.md)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "deixis"
ORDER = [
    "errors", "strict", "registry", "defaults", "home", "atomic", "locks", "engines", "reading", "geometry", "types",
    "images", "video",
    "interfaces", "processes",
    "text", "regions", "data", "metrics", "captioning", "grounding", "objectives", "models", "training", "answering",
    "evaluation", "export", "labels", "portable", "serve", "cli",
]  # fmt: skip
NEVER = {"grounding": {"captioning"}, "answering": {"training"}, "evaluation": {"training"}}
"""Rooms that stand above and are still none of their business: two models, and learning beside using."""


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {parts[1] for name in names if (parts := name.split("."))[0] == "deixis" and len(parts) > 1}


@pytest.mark.parametrize("room", ORDER)
def test_no_room_imports_from_below(room: str) -> None:
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        if room_of(path) == room:
            barred = set(ORDER[ORDER.index(room) + 1 :]) | NEVER.get(room, set())
            wrong += [f"{path.relative_to(PACKAGE)} imports deixis.{o}" for o in imported_rooms(path) & barred]
    assert not wrong


def test_every_room_has_its_place() -> None:
    rooms = {room_of(path) for path in PACKAGE.rglob("*.py")} - {"__init__", "__main__"}
    assert rooms <= set(ORDER)
