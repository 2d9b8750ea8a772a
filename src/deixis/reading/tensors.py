"""Safetensors files: shapes from the header alone, all tensors, and whether a configuration can be theirs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from deixis.errors import BadFileError
from deixis.reading.files import open_file
from deixis.reading.plain import kind_of

_WIDTHS = re.compile(r"width|hidden|feature|classes|words|pyramid|describe")
_COUNTS = re.compile(r"layers|heads|branches|depth|bins")
_ALWAYS = 1024
"""Widths up to here cost little, and a width of a part that is switched off is found in no tensor."""
_NAMES = re.compile(r"words|classes")
_ALWAYS_NAMES = 4096
"""The same for how many names regions bring along: `lite` has two thousand words, a small captioner reads none."""
_MOST_PARTS = 64

Shapes = Mapping[str, tuple[int, ...]]


def tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor of a file; no tensor is read."""
    open_file(path).close()  # no pipe, no device
    try:
        with safe_open(path, "pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError) as error:
        raise BadFileError(f"{path} is damaged: {error}") from error


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Return all tensors of a file, by name."""
    open_file(path).close()
    try:
        tensors: dict[str, Tensor] = load_file(path)
        return tensors
    except (OSError, SafetensorError, ValueError) as error:
        raise BadFileError(f"{path} is damaged: {error}") from error


def check_sizes(options: Any, shapes: Shapes, place: str) -> None:
    """Refuse a configuration whose widths or layers the weights cannot have, before anything is allocated for it.

    Args:
        options: Options of a model as plain data; what is nested is looked at too.
        shapes: The shapes of its tensors (:func:`tensor_shapes`).
        place: How messages call the configuration.
    """
    widest = max((side for shape in shapes.values() for side in shape), default=0)
    _check_sizes(options, max(_ALWAYS, widest), max(_MOST_PARTS, len(shapes)), place)


def _check_sizes(options: Any, widest: int, parts: int, place: str) -> None:
    if isinstance(options, list | tuple):
        for at, item in enumerate(options):
            _check_sizes(item, widest, parts, f"{place}[{at}]")
    if not isinstance(options, Mapping):
        return
    for key, value in options.items():
        where = f"{place}.{key}"
        _check_sizes(value, widest, parts, where)
        if isinstance(value, bool) or not isinstance(value, int):
            continue
        most = widest if _WIDTHS.search(str(key)) else parts if _COUNTS.search(str(key)) else None
        if most is not None and _NAMES.search(str(key)):
            most = max(most, _ALWAYS_NAMES)
        if most is not None and not 0 <= value <= most:
            raise BadFileError(f"{where} is {kind_of(value)}, but no tensor of its weights has more than {most:,}")
