"""What a name stands for: the folders of a captioner and of a grounder, and how they like to be asked.

A *bundle* is a folder with the subfolders ``captioner/`` and ``grounder/``, each a model folder, and a card
``bundle.json`` with the way of pointing that was chosen for it. ``lite`` is the bundle that ships with the package.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from deixis.atomic import whole_folder, write_json
from deixis.captioning.answer import Pointing
from deixis.errors import BadFileError, DeixisError
from deixis.grounding.presence import Presence
from deixis.models.checkpoint import CONFIG, WEIGHTS, digest, load_config
from deixis.models.names import ROLES, find_model, find_place, roles
from deixis.reading.plain import read_json_object
from deixis.reading.tensors import load_tensors
from deixis.registry import find_class

CARD = "bundle.json"
FORMAT = 1
Method = Literal["attention", "grounder"]


@dataclass(frozen=True, slots=True)
class Card:
    """How a bundle answers when the caller does not say."""

    method: Method = "attention"
    """Where words point: where the captioner looked, or where the grounder finds their phrases."""
    pointing: Pointing = field(default_factory=Pointing)
    """How attention becomes a box."""
    presence: Presence | None = None
    """What makes probabilities of the grounder's matching scores, for checking captions."""
    choice: float = 0.0
    """Weight of the grounder's matching score when the captions of a beam are ranked; 0 asks the captioner alone."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The parts of a model by folder; one of them may be missing."""

    name: str
    captioner: Path | None = None
    grounder: Path | None = None
    card: Card = field(default_factory=Card)


def find_bundle(name: str | Path) -> Bundle:
    """Return the parts that a name stands for: ``lite``, a bundle, run or model folder, or a model on the hub."""
    given = str(name)
    if "+" in given and all(given.split("+")) and not Path(given).expanduser().exists():
        return Bundle(given, grounder=Path(given))  # an ensemble: its members are found when it is loaded
    place = find_place(given)
    if roles(place):
        card = read_card(place / CARD) if (place / CARD).is_file() else Card()
        parts = {role: place / role for role in roles(place)}
        return Bundle(given, parts.get("captioner"), parts.get("grounder"), card)
    folder = find_model(str(place))
    part = find_class("model", load_config(folder).model.kind, f"{folder / CONFIG}: model").part
    return Bundle(given, captioner=folder) if part == "captioner" else Bundle(given, grounder=folder)


def join(first: Bundle, grounder: Bundle | None) -> Bundle:
    """Return a model with the grounder of another one in the place of its own."""
    if grounder is None:
        return first
    if grounder.grounder is None:
        raise DeixisError(f"{grounder.name} holds no grounder: name a run of a grounder, or a bundle with one")
    # both were chosen for the grounder that is replaced: every grounder's matching score has its own scale
    card = replace(first.card, presence=grounder.card.presence, choice=grounder.card.choice)
    return Bundle(first.name, first.captioner, grounder.grounder, card)


def write_bundle(folder: Path, bundle: Bundle, *, half: bool = True) -> None:
    """Write a bundle that stands alone: models without training state, weights in half precision if asked.

    >>> write_bundle(Path("mine"), join(find_bundle("runs/captioner"), find_bundle("runs/grounder")))  # doctest: +SKIP
    """
    folder = Path(folder)
    if folder.exists():
        raise DeixisError(f"{folder} exists already: choose another folder for the bundle")

    with whole_folder(folder) as place:
        for role in ROLES:
            source: Path | None = getattr(bundle, role)
            if source is not None:
                copy_model(source, place / role, half=half)
        write_json(place / CARD, {"format": FORMAT, **asdict(bundle.card)})


def copy_model(source: Path, target: Path, *, half: bool) -> None:
    """Copy a model folder without its training state; its config then has the checksums of the new files."""
    from safetensors.torch import save_file

    load_config(source)  # refuses what is no model
    target.mkdir(parents=True)
    for file in sorted(source.iterdir()):
        if file.is_file() and not file.name.startswith(("state.", ".")):
            shutil.copyfile(file, target / file.name)
    if half:
        weights = load_tensors(source / WEIGHTS)
        halves = {name: value.half() if value.is_floating_point() else value for name, value in weights.items()}
        save_file(halves, target / WEIGHTS)
    data = read_json_object(target / CONFIG)
    data["files"] = {name: digest(target / name) for name in data["files"]}
    write_json(target / CONFIG, data)


def read_card(path: Path) -> Card:
    """Read ``bundle.json``; a value that cannot be is an error that names it."""
    data: Mapping[str, Any] = read_json_object(path)
    pointing = data.get("pointing", {})
    try:
        if data.get("format") != FORMAT or data.get("method", "attention") not in ("attention", "grounder"):
            raise ValueError(f"format {data.get('format')!r}, method {data.get('method')!r}")
        presence = data.get("presence")
        return Card(
            data.get("method", "attention"),
            Pointing(**pointing),
            None if presence is None else Presence(**presence),
            float(data.get("choice", 0.0)),
        )
    except (TypeError, ValueError) as error:
        raise BadFileError(f"{path} is no card of a bundle: {error} in {json.dumps(data)[:200]}") from error
