"""A model as a folder: ``config.json``, ``model.safetensors``, ``vocabulary.json``. Loading trusts nothing in it."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from safetensors.torch import save_file
from torch import Tensor, nn

from deixis.atomic import write_json
from deixis.component import Component
from deixis.errors import BadFileError, BadRecipeError, DeixisError
from deixis.reading.plain import expect_count, expect_keys, expect_object, expect_text, expect_texts, read_json_object
from deixis.reading.tensors import load_tensors
from deixis.registry import require_trusted
from deixis.strict import to_type

if TYPE_CHECKING:
    from deixis.text.vocabulary import Vocabulary

FORMAT = 1
CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocabulary.json"
POINTERS = "checkpoints.json"
"""In the folder of a run: which of its checkpoints is the last, and which the best."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a model was fed, of its recipe's ``data``: enough to feed it the same again."""

    dataset: str = ""
    train: str = ""
    regions: int = 36
    """Per frame; the whole frame comes on top."""
    whole_image: bool = True
    """Whether the whole frame is a region too."""
    length: int = 20
    maps: bool = False
    word_probs: bool = False


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What ``config.json`` says of a model."""

    recipe: Mapping[str, Any]
    """All of it, as plain data; training alone reads what it says of training (``Recipe.from_plain``)."""
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

    @property
    def model(self) -> Component:
        """The model's kind and options."""
        return Component.read(self.recipe.get("model"), "model")

    @property
    def inputs(self) -> Inputs:
        """What the model is fed."""
        data = self.recipe.get("data")
        hints = get_type_hints(Inputs)
        given = data if isinstance(data, Mapping) else {}
        return Inputs(**{k: to_type(hints[k], given[k], f"data.{k}") for k in hints if k in given})

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


def digest(path: Path) -> dict[str, Any]:
    """Return size and SHA-256 of a file, as a configuration notes them."""
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def save_model(folder: Path, model: nn.Module, vocabulary: Vocabulary, config: ModelConfig) -> None:
    """Write the three files into an existing folder (see :func:`deixis.atomic.whole_folder`)."""
    weights = under("model", named("model", model.state_dict()))
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, folder / WEIGHTS)
    vocabulary.save(folder / VOCABULARY)
    data = asdict(config)
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
    config = ModelConfig(
        recipe=expect_object(data["recipe"], f"{place}recipe"),
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
    try:
        require_trusted(config.model.kind, f"the model in {folder}")
        config.inputs  # noqa: B018 - what cannot be read is refused here
    except BadRecipeError as error:
        raise BadRecipeError(f"{place}recipe: {error}") from error
    return config


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


def pointed(run: Path, which: str) -> Path | None:
    """Return the folder of a run's ``last`` or ``best`` checkpoint, or None before there is one."""
    if not (run / POINTERS).exists():
        return None
    name = read_json_object(run / POINTERS).get(which)
    if name is None:
        return None
    folder = run / "checkpoints" / Path(str(name)).name
    if not folder.is_dir():
        raise BadFileError(f"{run / POINTERS} names {folder}, which is missing: the run is damaged")
    return folder


def named(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Put a prefix before every name; tensors that share memory are copied, as safetensors needs."""
    seen: set[int] = set()
    out: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        shared = tensor.numel() > 0 and tensor.untyped_storage().data_ptr() in seen
        seen.add(tensor.untyped_storage().data_ptr())
        out[f"{prefix}.{name}"] = tensor.clone() if shared else tensor
    return out


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors under a prefix, without it."""
    start = prefix + "."
    return {name[len(start) :]: tensor for name, tensor in tensors.items() if name.startswith(start)}
