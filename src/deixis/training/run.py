"""The folder of a run: which checkpoints it holds, and its metrics. Survives being killed at any moment.

``checkpoints.json`` names the last and the best checkpoint and is replaced in one move; a folder it does not name is
left over from a killed process and is deleted. ``metrics.jsonl`` is cut back to the checkpoint when a run resumes.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import yaml
from safetensors import SafetensorError

from deixis.atomic import DiskFullError, cannot_write, whole_folder, write_json, write_text
from deixis.errors import BadFileError, DeixisError
from deixis.models.checkpoint import POINTERS, pointed
from deixis.reading.files import open_file
from deixis.reading.plain import parse_json, read_json_object
from deixis.reading.yaml import read_yaml
from deixis.training.recipe import Recipe

METRICS, RECIPE, SAMPLES = "metrics.jsonl", "recipe.yaml", "samples.jsonl"


class Run:
    """A run's folder. Only the main process writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: dict[str, IO[str]] = {}

    @property
    def exists(self) -> bool:
        """Whether a run was begun here."""
        return (self.path / RECIPE).exists() or (self.path / POINTERS).exists()

    def make_folder(self) -> None:
        """Make the folder if there is none."""
        with _told(self.path):
            self.path.mkdir(parents=True, exist_ok=True)

    def begin(self, recipe: Recipe) -> None:
        """Start a new run in a folder that holds none."""
        if self.exists:
            raise DeixisError(f"{self.path} already holds a run: go on with --resume, or choose another folder with -o")
        self.make_folder()
        write_text(self.path / RECIPE, yaml.safe_dump(recipe.plain(), sort_keys=False, allow_unicode=True))

    def withdraw(self) -> None:
        """Take back a beginning of which nothing came: no checkpoint and no step. Else leave everything as it is."""
        self.close()
        if (self.path / POINTERS).exists() or next(self.entries(), None) is not None:
            return
        for name in (RECIPE, METRICS, SAMPLES):
            (self.path / name).unlink(missing_ok=True)
        with suppress(OSError):  # somebody else's files may lie there
            self.path.rmdir()

    def recipe(self) -> Recipe:
        """Return the recipe the run was begun with."""
        return Recipe.from_plain(read_yaml(self.path / RECIPE), str(self.path / RECIPE))

    def pointer(self, which: str) -> Path | None:
        """Return the folder of the ``last`` or ``best`` checkpoint, or None before there is one."""
        return pointed(self.path, which)

    def save(self, name: str, fill: Callable[[Path], None]) -> str:
        """Write a checkpoint by ``fill(folder)`` and return its name, which :meth:`point` then makes known."""
        named = read_json_object(self.path / POINTERS).values() if (self.path / POINTERS).exists() else ()
        while name in named:  # a second checkpoint at one step never replaces the first before it is whole
            name += "+"
        folder = self.path / "checkpoints" / name
        if folder.exists():  # left by a process that was killed before it could say so
            shutil.rmtree(folder)
        with _told(folder), whole_folder(folder) as place:
            fill(place)
        return name

    def point(self, **pointers: str | None) -> None:
        """Replace pointers in one move and delete what is not named any more."""
        old = read_json_object(self.path / POINTERS) if (self.path / POINTERS).exists() else {}
        new = {**old, **pointers}
        with _told(self.path / POINTERS):
            write_json(self.path / POINTERS, new)
        for folder in (self.path / "checkpoints").iterdir():
            if folder.name not in new.values():
                shutil.rmtree(folder, ignore_errors=True)

    def log(self, entry: Mapping[str, Any], file: str = METRICS) -> None:
        """Append one line; numbers JSON cannot hold become null."""
        with _told(self.path / file):
            if file not in self._files:
                self._files[file] = (self.path / file).open("a", encoding="utf-8", errors="backslashreplace")
            self._files[file].write(json.dumps(_finite(entry), ensure_ascii=False) + "\n")
            self._files[file].flush()

    def entries(self, file: str = METRICS) -> Iterator[dict[str, Any]]:
        """Yield what was logged; a line that was cut short or damaged is left out."""
        path = self.path / file
        if not path.exists():
            return
        with open_file(path) as lines:
            for line in lines:
                try:
                    entry = parse_json(line, str(path))
                except BadFileError:
                    continue
                if isinstance(entry, dict):
                    yield entry

    def cut_back(self, step: int) -> None:
        """Forget what was logged after ``step``: the resumed run will say it again."""
        self.close()
        for file in (METRICS, SAMPLES):
            logged = ((entry, entry.get("step", 0)) for entry in self.entries(file))
            kept = [entry for entry, at in logged if isinstance(at, int | float) and at <= step]  # else it is damaged
            if (self.path / file).exists():
                write_text(self.path / file, "".join(json.dumps(e, ensure_ascii=False) + "\n" for e in kept))

    def close(self) -> None:
        """Close the log files."""
        for file in self._files.values():
            file.close()
        self._files.clear()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn a failed write into an error that says how to go on: what was there before is untouched."""
    try:
        yield
    except (OSError, SafetensorError, DiskFullError) as error:
        raise cannot_write(path, error, "earlier checkpoints are untouched, make room and use --resume") from error


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
