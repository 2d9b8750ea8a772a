"""YAML as plain values: what recipes and small run files are written in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from deixis.errors import BadFileError
from deixis.reading.files import read_text

MAX_YAML_BYTES = 2**18
"""YAML is read by hand-written recipes and small run files; its parser takes a second for this much."""
MAX_YAML_VALUES = 50_000
"""Values in a YAML file with every alias written out: nine lines of aliases can stand for a billion of them."""


class _Loader(yaml.SafeLoader):
    """Safe YAML in which 5e-4 is a number and a key given twice is an error."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
        seen: set[Any] = set()
        for key in keys:
            if key in seen:  # a list as a key is a TypeError here, which parse_yaml explains
                raise yaml.constructor.ConstructorError(None, None, f"key '{key}' twice", node.start_mark)
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def read_yaml(path: Path) -> Any:
    """Return a YAML file's value: numbers, texts, lists and mappings, the safe loader makes nothing else."""
    return parse_yaml(read_text(path, limit=MAX_YAML_BYTES), str(path))


def parse_yaml(text: str, place: str) -> Any:
    """Parse YAML; what cannot be parsed is an error that names the place."""
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _check_extent(node)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    # A date that is none is a ValueError, `!!bool maybe` a KeyError, a list as a key a TypeError: the constructors of
    # the package raise what they meet.
    except RecursionError as error:
        raise BadFileError(f"{place} is not YAML we read: lists or mappings are nested too deeply") from error
    except Exception as error:
        raise BadFileError(f"{place} is not YAML: {' '.join(str(error).split())}"[:500]) from error


def _check_extent(node: Any) -> None:
    """Count the values of a document with every alias written out; too many of them, or a loop, is an error."""
    known: dict[int, int] = {}

    def extent(part: Any) -> int:
        if id(part) not in known:
            known[id(part)] = MAX_YAML_VALUES + 1  # what holds itself never ends
            if isinstance(part, yaml.MappingNode):
                inside = sum(extent(key) + extent(value) for key, value in part.value)
            elif isinstance(part, yaml.SequenceNode):
                inside = sum(extent(item) for item in part.value)
            else:
                inside = 0
            known[id(part)] = 1 + inside
        return known[id(part)]

    if extent(node) > MAX_YAML_VALUES:
        raise ValueError(f"with its aliases written out it holds more than {MAX_YAML_VALUES:,} values")
