"""Models by name: a run folder, a model folder, a name on the Hugging Face hub, or ``lite``, which ships."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import nn

from deixis.errors import BadFileError, DeixisError
from deixis.grounding.base import WordGrounder
from deixis.grounding.calibration import Calibration
from deixis.grounding.ensemble import Ensemble
from deixis.grounding.translated import TranslatedGrounder
from deixis.home import cache_home
from deixis.interfaces import Extractor, Grounder
from deixis.models.checkpoint import CONFIG, ModelConfig
from deixis.models.registry import build
from deixis.regions.registry import build_extractor
from deixis.text.vocabulary import Vocabulary
from deixis.training.run import POINTERS, Run
from deixis.training.stage import load_model

Part = Literal["captioner", "grounder"]
SHIPPED = Path(__file__).resolve().parents[1] / "weights"
FILES = ("config.json", "model.safetensors", "vocabulary.json")


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model with what it needs to answer."""

    name: str
    folder: Path
    model: nn.Module
    vocabulary: Vocabulary
    config: ModelConfig

    @property
    def kind(self) -> str:
        """The model's name in the registry, such as ``captioner``."""
        return self.config.recipe.model.kind

    def extractor(self, device: str = "cpu") -> Extractor:
        """Make the extractor whose regions the model was trained on; another one's regions would mean nothing to it."""
        name = str(self.config.extractor.get("extractor", ""))
        if not name:
            raise DeixisError(f"{self.folder} does not say which extractor its regions come from: give a region store")
        made = build_extractor(name, device=device)
        self.config.require(made.fingerprint, f"the installed extractor '{name}'")
        return made

    def grounder(self) -> Grounder:
        """Return the model as a grounder; a captioner points where it looks."""
        known = {"model": self.model, "captioner": self.model, "vocabulary": self.vocabulary}
        grounder: Grounder = build("grounder", self.kind, {}, f"the model {self.name}", **known)
        return grounder


def find_model(name: str, which: str = "best", part: Part = "captioner") -> Path:
    """Return the folder of a model: ``config.json``, ``model.safetensors`` and ``vocabulary.json`` lie there.

    A bundle, such as ``lite``, holds two models: ``part`` says which.
    """
    if name == "lite":
        if (SHIPPED / part / CONFIG).is_file():
            return SHIPPED / part
        raise BadFileError(f"this installation has no shipped {part} in {SHIPPED}: name a run folder")
    given = Path(name).expanduser()
    for place in (given, cache_home() / "runs" / given):
        if (place / POINTERS).is_file():
            folder = Run(place).pointer(which) or Run(place).pointer("last")
            if folder is None:
                raise BadFileError(f"the run in {place} has no checkpoint yet")
            return folder
        if (place / CONFIG).is_file():
            return place
        if (place / part / CONFIG).is_file():
            return place / part
    if given.exists():
        seeds = sorted(given.glob(f"seed-*/{POINTERS}"))
        hint = f"; it holds several seeds, name one such as {seeds[0].parent}" if seeds else ""
        raise BadFileError(f"{given} is neither a run nor a model folder (no {POINTERS}, no {CONFIG}){hint}")
    if re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        return _from_hub(name)
    raise BadFileError(f"found no model '{name}': name a run folder, a model folder, a hub model (OWNER/NAME) or lite")


def load(name: str, *, device: str | torch.device = "cpu", part: Part = "captioner") -> LoadedModel:
    """Load a model to answer with; names of grounders joined with ``+`` are one grounder, their ensemble."""
    members = name.split("+")
    if len(members) > 1 and all(members) and not Path(name).expanduser().exists():
        return _ensemble(name, [load(member, device=device, part="grounder") for member in members])
    folder = find_model(name, part=part)
    model, vocabulary, config = load_model(folder)
    if isinstance(model, WordGrounder):
        model.calibration = Calibration.load(folder)
    return LoadedModel(name, folder, model.to(device), vocabulary, config)


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


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=list(FILES)))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise BadFileError(f"'{name}' is no folder here and cannot be had from the hub: {reason}") from error
