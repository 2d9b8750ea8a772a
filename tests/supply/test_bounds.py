"""What people install: every dependency says below which version it was tried, and our own pins lie within."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from supply.lock import wanted_pins

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TOOLS = ("dev", "docs")
"""Extras of people who work on Deixis: what breaks there is seen by the one who breaks it."""
GIVEN = [
    *PROJECT["dependencies"],
    *(line for extra, lines in PROJECT["optional-dependencies"].items() if extra not in TOOLS for line in lines),
]


@pytest.mark.parametrize("line", sorted(set(GIVEN)))
def test_a_dependency_has_both_bounds_and_the_pin_lies_within(line: str) -> None:
    need = Requirement(line)
    operators = {one.operator for one in need.specifier}
    assert {">=", "<"} <= operators
    pin = wanted_pins(ROOT).get(canonicalize_name(need.name))
    assert pin is None or pin in need.specifier


def test_the_premise_there_are_dependencies() -> None:
    assert len(GIVEN) > 20
    assert sum(canonicalize_name(Requirement(line).name) in wanted_pins(ROOT) for line in GIVEN) > 15
