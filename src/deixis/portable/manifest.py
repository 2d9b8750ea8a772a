"""``model.json``: what an exported folder holds, by size and checksum, and what its runner has to know. No torch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self

from deixis.errors import BadFileError
from deixis.grounding.logistic import Logistic, Presence
from deixis.reading.files import read_bytes
from deixis.reading.plain import read_json_object

FILE = "model.json"
FORMAT = 1
PARTS = ("look", "begin", "step", "choose", "point", "match")
"""The networks, in the order in which a photo goes through them; each is a file ``PART.onnx``."""
SAID, READ = "captioner-vocabulary.json", "grounder-vocabulary.json"
NEXT = "next_"
"""What *step* gives has the names of what it takes, after this."""


@dataclass(frozen=True, slots=True)
class Curves:
    """What a grounder's scores mean; see :class:`deixis.grounding.calibration.Calibration`."""

    right: Logistic
    found: Logistic
    threshold: float


@dataclass(frozen=True, slots=True)
class FileFacts:
    """How a file is known again."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder of ONNX files holds."""

    name: str
    """The model that was exported; answers carry it."""
    fingerprint: str
    """Of the extractor."""
    beam: int
    steps: int
    """Most steps of a search: the longest caption and its end."""
    method: Literal["attention", "grounder"] = "attention"
    presence: Presence | None = None
    calibration: Curves | None = None
    files: Mapping[str, FileFacts] = field(default_factory=dict)
    made_with: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the form of ``model.json``."""
        return {"deixis_onnx": FORMAT, **asdict(self)}

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read ``model.json``; anything that cannot be is an error that names it."""
        path = folder / FILE
        if not path.is_file():
            raise BadFileError(f"{folder} holds no exported model (no {FILE}): `deixis export-model` writes one")
        data = read_json_object(path)
        try:
            if data.get("deixis_onnx") != FORMAT:
                raise ValueError(f"deixis_onnx is {data.get('deixis_onnx')!r}, and this Deixis reads {FORMAT}")
            own = {item.name: data[item.name] for item in fields(cls)}
            own["files"] = {str(name): FileFacts(**facts) for name, facts in data["files"].items()}
            own["presence"] = None if data["presence"] is None else Presence(**data["presence"])
            own["calibration"] = None if data["calibration"] is None else _curves(data["calibration"])
            missing = {*(f"{part}.onnx" for part in PARTS), SAID, READ} - set(own["files"])
            if missing or not all(isinstance(own[name], int) and own[name] > 0 for name in ("beam", "steps")):
                raise ValueError(f"it lacks {', '.join(sorted(missing)) or 'a beam or steps'}")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            why = f"{error} is missing" if isinstance(error, KeyError) else error
            raise BadFileError(f"{path} describes no exported model: {why}; export it again") from error
        return cls(**own)

    def read(self, folder: Path, name: str) -> bytes:
        """Return a file of the folder, if it is the one that was written there."""
        data, expected = read_bytes(folder / name), self.files[name]
        if len(data) < expected.bytes:
            raise BadFileError(
                f"{folder / name} is cut short: {len(data):,} of {expected.bytes:,} bytes; export the model again"
            )
        if file_facts(data) != expected:
            raise BadFileError(
                f"{folder / name} is not the file that {FILE} lists (another checksum): it is damaged or belongs to "
                "another model; export the model again"
            )
        return data


def file_facts(data: bytes) -> FileFacts:
    """Return size and checksum of a file."""
    return FileFacts(len(data), hashlib.sha256(data).hexdigest())


def _curves(data: Mapping[str, Any]) -> Curves:
    right, found = (Logistic(tuple(map(float, data[k]["weights"])), float(data[k]["bias"])) for k in ("right", "found"))
    return Curves(right, found, float(data["threshold"]))
