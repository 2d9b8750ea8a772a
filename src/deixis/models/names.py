"""Models by name: a run folder, a model folder, a name on the Hugging Face hub, or ``lite``, which ships."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from deixis.errors import BadFileError, DeixisError
from deixis.grounding.base import WordGrounder
from deixis.grounding.calibration import Calibration
from deixis.grounding.ensemble import Ensemble
from deixis.grounding.translated import TranslatedGrounder
from deixis.home import cache_home
from deixis.interfaces import Extractor, Grounder, Model
from deixis.models.build import load_model
from deixis.models.checkpoint import CONFIG, POINTERS, ModelConfig, pointed
from deixis.models.hub import download, is_hub_name
from deixis.regions.registry import build_extractor
from deixis.registry import require_trusted
from deixis.text.vocabulary import Vocabulary

Part = Literal["captioner", "grounder"]
SHIPPED = Path(__file__).resolve().parents[1] / "weights"
ROLES: tuple[Part, ...] = ("captioner", "grounder")


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model with what it needs to answer."""

    name: str
    folder: Path
    model: Model
    vocabulary: Vocabulary
    config: ModelConfig

    @property
    def kind(self) -> str:
        """The model's name in the registry, such as ``captioner``."""
        return self.config.model.kind

    def extractor(self, device: str = "cpu") -> Extractor:
        """Make the extractor whose regions the model was trained on; another one's regions would mean nothing to it."""
        name = str(self.config.extractor.get("extractor", ""))
        if not name:
            raise DeixisError(f"{self.folder} does not say which extractor its regions come from: give a region store")
        require_trusted(name, f"the model in {self.folder}")
        made = build_extractor(name, device=device)
        self.config.require(made.fingerprint, f"the installed extractor '{name}'")
        return made

    def grounder(self) -> Grounder:
        """Return the model as a grounder; a captioner points where it looks."""
        return self.model.as_grounder(self.vocabulary)


def find_place(name: str) -> Path:
    """Return the folder that a name stands for: ``lite``, a run, a model, a bundle, or what the hub has by that name.

    This is the one place where names are looked up: as given, then below ``$DEIXIS_HOME/runs``, then on the hub.
    """
    if name == "lite":
        if not roles(SHIPPED):
            raise BadFileError(
                f"this installation has no shipped captioner and grounder in {SHIPPED}: name a run folder, such as "
                "--model runs/baseline, or install a release of deixis"
            )
        return SHIPPED
    given = Path(name).expanduser()
    places = (given, cache_home() / "runs" / given)
    for place in places:
        if (place / POINTERS).is_file() or (place / CONFIG).is_file() or roles(place):
            return place
    if given.exists():
        seeds = sorted(given.glob(f"seed-*/{POINTERS}"))
        hint = f"; it holds several seeds, name one such as {seeds[0].parent}" if seeds else ""
        raise BadFileError(f"{given} is neither a run nor a model folder (no {POINTERS}, no {CONFIG}){hint}")
    if is_hub_name(name):
        return download(name)
    raise BadFileError(f"found no model '{name}': name a run folder, a model folder, a hub model (OWNER/NAME) or lite")


def roles(folder: Path) -> list[Part]:
    """Return which parts of a bundle a folder holds: none where it is no bundle."""
    return [role for role in ROLES if (folder / role / CONFIG).is_file()]


def find_model(name: str, which: str = "best", part: Part = "captioner") -> Path:
    """Return the folder of a model: ``config.json``, ``model.safetensors`` and ``vocabulary.json`` lie there.

    A bundle, such as ``lite``, holds two models: ``part`` says which.
    """
    place = find_place(name)
    if (place / POINTERS).is_file():
        folder = pointed(place, which) or pointed(place, "last")
        if folder is None:
            raise BadFileError(f"the run in {place} has no checkpoint yet")
        return folder
    if (place / CONFIG).is_file():
        return place
    if part not in roles(place):
        raise BadFileError(f"{place} holds no {part}: name a run or a bundle with one")
    return place / part


def load(name: str, *, device: str | torch.device = "cpu", part: Part = "captioner") -> LoadedModel:
    """Load a model to answer with; names of grounders joined with ``+`` are one grounder, their ensemble."""
    members = name.split("+")
    if len(members) > 1 and all(members) and not Path(name).expanduser().exists():
        return _ensemble(name, [load(member, device=device, part="grounder") for member in members])
    folder = find_model(name, part=part)
    model, vocabulary, config = load_model(folder)
    if isinstance(model, WordGrounder):
        model.calibration = Calibration.load(folder) or _of_the_start(config)
    return LoadedModel(name, folder, model.to(device), vocabulary, config)


def _of_the_start(config: ModelConfig) -> Calibration | None:
    """Return the calibration of the model that a run started from, which holds until the run has one of its own.

    Without any, whatever is asked for would count as found. Nothing is fetched for it.
    """
    name = config.recipe.get("start_from")
    if not isinstance(name, str):
        return None
    given = Path(name).expanduser()
    if name != "lite" and not any(place.exists() for place in (given, cache_home() / "runs" / given)):
        return None
    try:
        return Calibration.load(find_model(name, part="grounder"))
    except BadFileError:  # it is not what it was
        return None


def load_grounder(
    name: str, *, fingerprint: str, vocabulary: Vocabulary, device: str | torch.device = "cpu"
) -> Grounder:
    """Load a trained grounder to teach or reward a captioner on these regions; it may know other words."""
    loaded = load(name, device=device, part="grounder")
    loaded.config.require(fingerprint, "this recipe's store")
    loaded.model.requires_grad_(False)
    grounder = loaded.grounder()
    if loaded.vocabulary.words == vocabulary.words:
        return grounder
    return TranslatedGrounder(grounder, loaded.vocabulary, vocabulary)


def _ensemble(name: str, members: Sequence[LoadedModel]) -> LoadedModel:
    """Return grounders as one, which answers with the mean of their log-probabilities."""
    first = members[0]
    grounders: list[WordGrounder] = []
    for member in members:
        if not isinstance(member.model, WordGrounder):
            raise DeixisError(f"{member.name} is a {member.kind}: an ensemble is made of grounders of words")
        member.config.require(first.config.fingerprint, first.folder)
        grounders.append(member.model)
    return replace(first, name=name, model=Ensemble(grounders).eval())
