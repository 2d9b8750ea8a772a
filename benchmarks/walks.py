"""How often a command goes from one room to another: the walks through the house, counted.

    python -m benchmarks.walks caption PHOTO
    python -m benchmarks.walks evaluate lite DATA --limit 3 --replicates 0
    python -m benchmarks.walks train RECIPE data.dataset=DATA -o RUN

Runs the command and prints how many functions of ours it entered, in how many files and rooms, and how often the next
function that was entered for the first time lay in another room than the one before. Class bodies do not count, nor
does the ground that all rooms stand on (types, reading of files, geometry, errors …).
``DEIXIS_WALK=FILE`` writes the way itself, one function a line.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import deixis
from benchmarks.import_graph import GROUND
from deixis.cli.main import main as command

PACKAGE = Path(deixis.__file__).parent


class Walk:
    """The functions of ours in the order in which they were first entered."""

    def __init__(self) -> None:
        self.entered: dict[tuple[str, str], str] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Note a call, as ``sys.setprofile`` asks."""
        code = frame.f_code
        # module and class bodies have no fast locals; functions have (CO_NEWLOCALS and CO_OPTIMIZED)
        if event != "call" or not code.co_flags & 0x1 or not code.co_filename.startswith(str(PACKAGE)):
            return
        parts = Path(code.co_filename).relative_to(PACKAGE).parts
        if len(parts) > 1 and parts[0] not in GROUND:
            self.entered.setdefault((code.co_filename, code.co_qualname), parts[0])

    def summary(self) -> dict[str, int]:
        """Return the counts."""
        rooms = list(self.entered.values())
        return {
            "functions": len(rooms),
            "files": len({file for file, _ in self.entered}),
            "rooms": len(set(rooms)),
            "room changes": sum(before != after for before, after in pairwise(rooms)),
        }

    def way(self) -> str:
        """Return the functions in order, one a line, with a blank line wherever the room changes."""
        lines: list[str] = []
        last = None
        for (file, function), room in self.entered.items():
            lines += [""] if last not in (None, room) else []
            lines.append(f"{Path(file).relative_to(PACKAGE)} {function}")
            last = room
        return "\n".join(lines) + "\n"


def main() -> None:
    walk = Walk()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        sys.setprofile(walk)
        try:
            command(sys.argv[1:])
        finally:
            sys.setprofile(None)
    if where := os.environ.get("DEIXIS_WALK"):
        Path(where).write_text(walk.way(), encoding="utf-8")
    print(json.dumps(walk.summary()))


if __name__ == "__main__":
    main()
