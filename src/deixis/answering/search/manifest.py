"""What an index holds: the one file that is replaced when photos come and go; a reader sees all of a change or none."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from deixis.atomic import write_json
from deixis.errors import BadFileError, DeixisError
from deixis.reading.plain import read_json_object

if TYPE_CHECKING:
    from deixis.answering.load import Deixis

FILE = "index.json"
FORMAT = 1


@dataclass(slots=True)
class Manifest:
    """The segments of an index, which rows of them are of photos that are gone, and whose model made it."""

    model: str
    fingerprint: str
    folder: str
    words: tuple[str, ...]
    segments: dict[str, set[int]] = field(default_factory=dict)
    """By name, the rows that no longer count."""
    failed: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    """Photos that could not be read: size, time and reason; they are tried again when they change."""
    next: int = 1
    """The number of the next segment."""

    def save(self, place: Path) -> None:
        """Replace the manifest; what it no longer names may be deleted afterwards."""
        data = {
            "format": FORMAT,
            "model": self.model,
            "fingerprint": self.fingerprint,
            "folder": self.folder,
            "words": list(self.words),
            "segments": {name: sorted(gone) for name, gone in self.segments.items()},
            "failed": {path: list(entry) for path, entry in self.failed.items()},
            "next": self.next,
        }
        write_json(place / FILE, data, indent=None)

    @classmethod
    def load(cls, place: Path) -> Manifest | None:
        """Read the manifest of an index, or None where there is none yet."""
        path = place / FILE
        if not path.is_file():
            return None
        try:
            data = read_json_object(path)
            if data["format"] != FORMAT:
                raise ValueError(f"format {data['format']}, expected {FORMAT}")
            return cls(
                str(data["model"]),
                str(data["fingerprint"]),
                str(data["folder"]),
                tuple(map(str, data["words"])),
                {_plain(name): {int(row) for row in gone} for name, gone in data["segments"].items()},
                {str(path): (int(size), int(time), str(why)) for path, (size, time, why) in data["failed"].items()},
                int(data["next"]),
            )
        except (BadFileError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise BadFileError(f"{path} is no search index of ours ({error!r}): make it anew with --rebuild") from error

    def require(self, model: str, fingerprint: str, folder: Path, place: Path) -> None:
        """Refuse an index of another model or another folder: its numbers would mean nothing."""
        if self.fingerprint != fingerprint:
            raise DeixisError(
                f"the search index in {place} was made with another model ({self.model!r}, {self.fingerprint}; this is "
                f"{model!r}, {fingerprint}): name that model (--model), another place (--index), or make it anew "
                "(--rebuild)"
            )
        if self.folder != str(folder.resolve()):
            raise DeixisError(
                f"the search index in {place} is of the folder {self.folder}, not {folder}: name another place "
                "(--index), or make it anew (--rebuild)"
            )


def model_fingerprint(model: Deixis) -> str:
    """Return what names a model's eyes and its grounder: the extractor's fingerprint and every weight and word."""
    model.require_grounder()
    part = model.grounder
    assert part is not None
    made = hashlib.sha256(model.extractor.fingerprint.encode())
    made.update("\n".join(part.vocabulary.words).encode())
    for name, value in sorted(part.model.state_dict().items()):
        made.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        made.update(value.detach().float().cpu().contiguous().numpy().tobytes())
    return made.hexdigest()[:16]


def _plain(name: str) -> str:
    """Refuse a segment's name that leads out of the index."""
    if not name.replace("-", "").isalnum():
        raise ValueError(f"segment {name!r}")
    return name
