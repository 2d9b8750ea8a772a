"""A model as a folder: ``config.json``, ``model.safetensors``, ``vocabulary.json``. Loading trusts nothing in it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from deixis.errors import BadFileError, DeixisError
from deixis.models.files import digest, write_json
from deixis.reading.plain import expect_count, expect_keys, expect_object, expect_text, expect_texts, read_json_object
from deixis.reading.tensors import load_tensors
from deixis.training.recipe import Recipe
from deixis.training.state import named, under

if TYPE_CHECKING:
    from deixis.text.vocabulary import Vocabulary

FORMAT = 1
CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocabulary.json"


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What ``config.json`` says of a model."""

    recipe: Recipe
    fingerprint: str
    """Of the regions it was trained on; it refuses others."""
    extractor: Mapping[str, Any]
    """Settings of their extractor, enough to make it again."""
    sizes: Mapping[str, int]
    """Widths of the regions' parts and of the vocabulary."""
    classes: tuple[str, ...] = ()
    """Object classes of region classification."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    step: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def require(self, fingerprint: str, where: object) -> None:
        """Refuse regions of another extractor."""
        if fingerprint != self.fingerprint:
            raise DeixisError(
                f"the model was trained on regions of {self.fingerprint}, but {where} holds regions of {fingerprint}: "
                "extract the images with the model's extractor, or train a model on these regions"
            )


def installed_versions() -> dict[str, str]:
    """Return the versions that can change results."""
    found = {"python": platform.python_version()}
    for package in ("deixis", "torch", "accelerate", "numpy", "safetensors"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def save_model(folder: Path, model: nn.Module, vocabulary: Vocabulary, config: ModelConfig) -> None:
    """Write the three files into an existing folder (see :func:`deixis.models.files.write_folder`)."""
    weights = under("model", named("model", model.state_dict()))
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, folder / WEIGHTS)
    vocabulary.save(folder / VOCABULARY)
    data = asdict(config) | {"recipe": config.recipe.plain()}
    data["versions"] = installed_versions()
    data["files"] = {name: digest(folder / name) for name in (WEIGHTS, VOCABULARY)}
    write_json(folder / CONFIG, {"format": FORMAT, **data})


def load_config(folder: Path) -> ModelConfig:
    """Read and check ``config.json``."""
    data = read_json_object(folder / CONFIG)
    if data.get("format") != FORMAT:
        raise BadFileError(
            f"{folder} is a model of format {data.get('format')!r}, this Deixis reads {FORMAT}: "
            "install the version it was made with, or train it again"
        )
    expect_keys(data, {"format", *(item.name for item in fields(ModelConfig))}, str(folder / CONFIG))
    place = f"{folder / CONFIG}: "
    return ModelConfig(
        recipe=Recipe.from_plain(data["recipe"], f"{place}recipe"),
        fingerprint=expect_text(data["fingerprint"], f"{place}fingerprint"),
        extractor=expect_object(data["extractor"], f"{place}extractor"),
        sizes={
            name: expect_count(size, f"{place}sizes.{name}")
            for name, size in expect_object(data["sizes"], f"{place}sizes").items()
        },
        classes=tuple(expect_texts(data["classes"], f"{place}classes")),
        metrics=expect_object(data["metrics"], f"{place}metrics"),
        step=expect_count(data["step"], f"{place}step"),
        versions=expect_object(data["versions"], f"{place}versions"),
        files={
            name: expect_object(facts, f"{place}files.{name}")
            for name, facts in expect_object(data["files"], f"{place}files").items()
        },
    )


def load_weights(folder: Path, config: ModelConfig | None = None) -> dict[str, Tensor]:
    """Read the weights of a model folder after checking its files against the checksums, in 32 bits."""
    config = config or load_config(folder)
    for name, facts in config.files.items():
        try:
            found = digest(folder / Path(name).name)
        except OSError as error:
            raise BadFileError(f"{folder} lacks {name[:80]}: the model is incomplete") from error
        if found != dict(facts):
            raise BadFileError(f"{folder / name} is damaged: its checksum is not the one in {CONFIG}")
    weights = load_tensors(folder / WEIGHTS)
    return {name: value.float() if value.is_floating_point() else value for name, value in weights.items()}


def fill(model: nn.Module, weights: Mapping[str, Tensor], where: object) -> None:
    """Load weights into a model; a name or shape that does not fit is an error in one line."""
    try:
        result = model.load_state_dict(dict(weights), strict=False)
    except RuntimeError as error:
        raise BadFileError(f"the weights of {where} do not fit its recipe: {' '.join(str(error).split())}") from error
    if result.missing_keys or result.unexpected_keys:
        wrong = [*result.missing_keys, *result.unexpected_keys]
        raise BadFileError(f"the weights of {where} do not fit its recipe: missing or unknown {', '.join(wrong[:5])}")


def same_device(model: nn.Module) -> torch.device:
    """Return the device of a model's parameters."""
    return next(model.parameters()).device
