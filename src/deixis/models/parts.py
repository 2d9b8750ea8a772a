"""All parts of a model, loaded in one go: captioner, grounder, and the extractor of the regions both look at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from deixis.captioning.model.captioner import Captioner
from deixis.errors import DeixisError
from deixis.interfaces import Extractor, Grounder
from deixis.models.bundle import Bundle, Card, find_bundle, join
from deixis.models.names import LoadedModel, load


@dataclass(frozen=True, slots=True)
class Parts:
    """What answers: at least one of captioner and grounder, and how they like to be asked."""

    name: str
    captioner: LoadedModel | None
    grounder: LoadedModel | None
    extractor: Extractor | None
    """None: to be made when it is first needed."""
    card: Card
    judge: Grounder
    """What says where phrases are: the grounder, or else the captioner, which points where it looks."""


def named_parts(
    name: str | Path, *, grounder: str | Path | None = None, device: str = "cpu", extractor: bool = True
) -> Parts:
    """Load the parts that a name stands for, if asked with the ``grounder`` of another model."""
    bundle = join(find_bundle(name), None if grounder is None else find_bundle(grounder))
    return load_parts(bundle, device=device, extractor=extractor)


def load_parts(bundle: Bundle, *, device: str = "cpu", extractor: bool = True) -> Parts:
    """Load the parts of a bundle that was found already, the ``extractor`` now or when it is first needed."""
    _require_device(device)
    captioner, grounder = _loaded(bundle, bundle.captioner, device), _loaded(bundle, bundle.grounder, device)
    part = captioner or grounder
    assert part is not None  # a bundle has at least one part
    if captioner is not None and not isinstance(captioner.model, Captioner):
        raise DeixisError(f"{bundle.captioner} is a {captioner.kind}, not a captioner")
    judge = (grounder or part).grounder()
    return Parts(bundle.name, captioner, grounder, part.extractor(device) if extractor else None, bundle.card, judge)


def _loaded(bundle: Bundle, folder: Path | None, device: str) -> LoadedModel | None:
    if folder is None:
        return None
    loaded = load(str(folder), device=device)
    loaded.model.requires_grad_(False)
    return replace(loaded, name=bundle.name)


def _require_device(device: str) -> None:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, ImportError) as error:  # torch raises all three, by device
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise DeixisError(f"cannot run on the device {device!r}: {why}; cpu always works") from error
