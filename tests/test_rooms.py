"""A room may import from the rooms above it, never from below (docs/architecture.md)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "deixis"
ORDER = [
    "errors", "strict", "component", "registry", "defaults", "home", "atomic", "locks", "engines", "reading",
    "geometry", "types", "images", "video", "interfaces", "processes",
    "text", "regions", "data", "metrics", "captioning", "grounding", "objectives", "models", "training", "answering",
    "evaluation", "export", "labels", "portable", "serve", "cli",
]  # fmt: skip
NEVER = {"grounding": {"captioning"}, "answering": {"training"}, "evaluation": {"training"}}
"""Rooms that stand above and are still none of their business: two models, and learning beside using."""


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path, text: str | None = None) -> set[str]:
    """The rooms of all that a module imports, at its top, inside functions, and relative to itself."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text() if text is None else text)):
        if isinstance(node, ast.ImportFrom):
            package = ("deixis", *path.relative_to(PACKAGE).parts[:-1])
            before = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join([*before, *([node.module] if node.module else [])])
            names |= {f"{module}.{alias.name}" for alias in node.names}
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


def test_a_forbidden_import_is_seen_however_it_is_written() -> None:
    path = PACKAGE / "grounding" / "lite" / "model.py"
    ways = (
        "import deixis.captioning.answer",
        "from deixis import captioning",
        "from deixis.captioning.answer import Pointing",
        "from ...captioning.answer import Pointing",
        "from ... import captioning",
        "def later():\n    from deixis.captioning import answer",
    )
    assert [imported_rooms(path, text) for text in ways] == [{"captioning"}] * len(ways)
    assert imported_rooms(path, "from ..base import Grounder") == {"grounding"}


def test_there_is_something_to_hold_apart() -> None:
    """Each of these rooms has modules that import, so that an empty folder or a moved one does not pass for order."""
    for room in {*NEVER, *(other for barred in NEVER.values() for other in barred)}:
        modules = [path for path in PACKAGE.rglob("*.py") if room_of(path) == room]
        assert len(modules) > 3, room
        assert any(imported_rooms(path) - {room} for path in modules), room


def test_the_page_shows_the_import_graph_as_it_is() -> None:
    from benchmarks.import_graph import BEGIN, END, PAGE, count, table

    shown = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    assert shown.strip() == f"```\n{table(count())}\n```", "python -m benchmarks.import_graph --write renews it"


def test_the_page_names_every_room_in_order() -> None:
    text = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text().partition("From top to bottom")[2]
    places = [text.index(f"`{room}`") for room in ORDER]
    assert places == sorted(places)
