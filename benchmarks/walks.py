"""How often a command goes from one room to another: the walks through the house, counted.

    python -m benchmarks.walks caption PHOTO
    python -m benchmarks.walks evaluate lite DATA --limit 3 --replicates 0
    python -m benchmarks.walks train RECIPE data.dataset=DATA -o RUN
    python -m benchmarks.walks table f12b97d HEAD     # all three, for each of these commits
    python -m benchmarks.walks pairs FILE             # between which rooms such a way goes, how short its visits are

Runs the command and prints how many functions of ours it entered, in how many files and rooms, and how often the next
function that was entered for the first time lay in another room than the one before. Comprehensions and bodies of
classes do not count, nor what runs while a module is imported. ``room changes`` leaves out the ground that all rooms
stand on (types, reading of files, geometry, errors …); ``with the ground`` takes every folder and every module beside
them for a room: so the audit counted (f12b97d has 298 functions, 67 files and 13 rooms in ``caption`` by both counts).
``DEIXIS_WALK=FILE`` writes the way itself, one function a line.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import deixis
from benchmarks.import_graph import GROUND
from benchmarks.same_answers import ROOT, take_out
from deixis.cli.main import main as command

PACKAGE = Path(deixis.__file__).parent
IS_FUNCTION = 0x1  # CO_OPTIMIZED: bodies of modules and classes are not
TRAIN = (
    "size=cpu", "data.store=auto", "data.min_count=1", "data.parse=false", "data.regions=10", "model.width=32",
    "stages.words.epochs=1", "stages.words.batch=4", "stages.point.epochs=1", "stages.point.batch=4",
    "validation.samples=0",
)  # fmt: skip


def is_importing(frame: FrameType | None) -> bool:
    """Whether a module of ours is being imported."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and code.co_filename.startswith(str(PACKAGE)):
            return True
        frame = frame.f_back
    return False


class Walk:
    """The functions of ours in the order in which they were first entered."""

    def __init__(self) -> None:
        self.entered: dict[tuple[Path, str], str] = {}
        self._known: set[int] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Note a call, as ``sys.setprofile`` asks."""
        code = frame.f_code
        if event != "call" or id(code) in self._known:
            return
        if not code.co_flags & IS_FUNCTION or not code.co_filename.startswith(str(PACKAGE)):
            return
        if code.co_name.startswith("<") or is_importing(frame):
            return
        self._known.add(id(code))  # which lives as long as its module
        path = Path(code.co_filename).relative_to(PACKAGE)
        self.entered.setdefault((path, code.co_qualname), path.parts[0].removesuffix(".py"))

    def inside(self) -> Iterator[tuple[Path, str, str]]:
        """Yield file, function and room of what does not belong to the ground."""
        for (path, function), room in self.entered.items():
            if len(path.parts) > 1 and room not in GROUND:
                yield path, function, room

    def summary(self) -> dict[str, int]:
        """Return the counts."""
        inside = list(self.inside())
        return {
            "functions": len(inside),
            "files": len({path for path, _, _ in inside}),
            "rooms": len({room for _, _, room in inside}),
            "room changes": changes([room for _, _, room in inside]),
            "functions with the ground": len(self.entered),
            "room changes with the ground": changes(list(self.entered.values())),
        }

    def way(self) -> str:
        """Return the functions in order, one a line, with a blank line wherever the room changes."""
        lines: list[str] = []
        last = None
        for path, function, room in self.inside():
            lines += [""] if last not in (None, room) else []
            lines.append(f"{path} {function}")
            last = room
        return "\n".join(lines) + "\n"


def changes(rooms: Sequence[str]) -> int:
    """Return how often the room changes."""
    return sum(before != after for before, after in pairwise(rooms))


def walk(arguments: Sequence[str]) -> Walk:
    """Run a command and return its walk."""
    made = Walk()
    with contextlib.redirect_stdout(io.StringIO()):
        sys.setprofile(made)
        try:
            command(list(arguments))
        except SystemExit as ended:
            if ended.code:  # a walk that was broken off says nothing
                raise
        finally:
            sys.setprofile(None)
    return made


def walks_of(commit: str, folder: Path) -> dict[str, dict[str, int]]:
    """Return the three walks of a commit: caption a photo, train on drawn scenes, evaluate on them."""
    source = folder / commit.replace("/", "-")
    source.mkdir()
    take_out(commit, source)
    inside = source / "src" / "deixis" / "recipes"
    recipe = (inside if inside.is_dir() else source / "recipes") / "captioning" / "cyclical.yaml"
    scenes = str(folder / "scenes")
    commands = {
        "caption": ["caption", str(ROOT / "examples" / "photos" / "coffee.jpg")],
        "evaluate": ["evaluate", "lite", scenes, "--split", "test", "--replicates", "0"],
        "train": ["train", str(recipe), f"data.dataset={scenes}", *TRAIN, "--no-tensorboard", "-o", "run"],
    }
    environment = {**os.environ, "PYTHONPATH": f"{source / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    environment |= {"DEIXIS_HOME": str(source / "home")}
    found = {}
    for name, arguments in commands.items():
        environment["DEIXIS_WALK"] = str(folder / f"{source.name}-{name}.walk")
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.walks", *arguments],
            cwd=source, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode or not done.stdout:
            raise SystemExit(f"{name} of {commit}: {done.stderr[-500:]}")
        found[name] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(commits: Sequence[str]) -> None:
    """Print the three walks of each commit."""
    print("| walk | commit | functions | files | rooms | room changes | per 100 functions | with the ground |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few = ("--train", "6", "--val", "2", "--test", "3")
        drawn = [sys.executable, "-m", "deixis", "data", "scenes", str(folder / "scenes"), *few]
        subprocess.run(drawn, check=True, capture_output=True)
        found = {commit: walks_of(commit, folder) for commit in commits}
    for walked in next(iter(found.values())):
        for commit, walks in found.items():
            one = walks[walked]
            share = 100 * one["room changes"] / one["functions"]
            print(
                f"| {walked} | {commit} | {one['functions']} | {one['files']} | {one['rooms']} | {one['room changes']} "
                f"| {share:.0f} | {one['room changes with the ground']} of {one['functions with the ground']} |"
            )


def pairs(way: str) -> None:
    """Print between which rooms a way goes back and forth, and how long it stays."""
    visits = [block.splitlines() for block in way.strip().split("\n\n")]
    rooms = [visit[0].partition("/")[0] for visit in visits]
    changed = list(pairwise(rooms))
    short = sum(len(visit) <= 3 for visit in visits[1:-1])
    lent = sum(bool({"text", "data"} & set(pair)) for pair in changed)
    print(f"{len(changed)} room changes, {lent} of them into or out of text or data")
    print(f"{len(visits)} visits, {short} of at most 3 functions (the first and the last left out)")
    for (one, other), count in Counter(tuple(sorted(pair)) for pair in changed).most_common():
        print(f"{count:4}  {one} - {other}")


def main() -> None:
    if sys.argv[1:2] == ["table"]:
        table(sys.argv[2:])
        return
    if sys.argv[1:2] == ["pairs"]:
        pairs(Path(sys.argv[2]).read_text(encoding="utf-8"))
        return
    made = walk(sys.argv[1:])
    if where := os.environ.get("DEIXIS_WALK"):
        Path(where).write_text(made.way(), encoding="utf-8")
    print(json.dumps(made.summary()))


if __name__ == "__main__":
    main()
