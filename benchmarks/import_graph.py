"""Which room imports from which, counted; the table of docs/architecture.md.

python -m benchmarks.import_graph            # print the table
python -m benchmarks.import_graph --write    # put it into docs/architecture.md, between its marks
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "deixis"
PAGE = ROOT / "docs" / "architecture.md"
GROUND = frozenset({"engines", "reading", "types"})
"""Folders that belong to the ground on which the rooms stand, with the modules beside them."""
BEGIN, END = "<!-- import graph -->", "<!-- end of the import graph -->"


def room_of(path: Path) -> str:
    """Return the room of a module."""
    return named(path.relative_to(PACKAGE).parts[0].removesuffix(".py"))


def named(name: str) -> str:
    """Return the room of a name below ``deixis``; what stands beside the rooms is their ground."""
    return name if (PACKAGE / name).is_dir() and name not in GROUND else "ground"


def imported(path: Path) -> list[str]:
    """Return the rooms of what a module imports, one for each import statement."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names += [node.module] if node.module != "deixis" else [f"deixis.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return [named(parts[1]) for name in names if (parts := name.split("."))[0] == "deixis" and len(parts) > 1]


def count() -> dict[str, Counter[str]]:
    """Return how many import statements of each room (row) name each room (column)."""
    found: dict[str, Counter[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "__main__.py" and path != PACKAGE / "__init__.py":
            found.setdefault(room_of(path), Counter()).update(imported(path))
    return found


def ordered(found: dict[str, Counter[str]]) -> list[str]:
    """Return the rooms so that each imports only from those before it; a cycle would be an error."""
    rest = {room: {other for other in row if other != room} for room, row in found.items()}
    order: list[str] = []
    while rest:
        ready = sorted(room for room, needs in rest.items() if needs <= set(order))
        if not ready:
            raise SystemExit(f"these rooms import each other: {', '.join(sorted(rest))}")
        order += ready[:1]
        del rest[ready[0]]
    return order


def table(found: dict[str, Counter[str]]) -> str:
    """Return the counts as text, rows import columns."""
    order = ordered(found)
    wide = max(map(len, order)) + 1
    head = " " * wide + "".join(f"{room[:8]:>9}" for room in order)
    rows = [f"{room:{wide}}" + "".join(f"{found[room][other] or '.':>9}" for other in order) for room in order]
    return "\n".join([head, *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write it into docs/architecture.md")
    made = table(count())
    if not parser.parse_args().write:
        print(made)
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n```\n{made}\n```\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
