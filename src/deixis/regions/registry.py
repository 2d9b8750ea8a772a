"""Extractors by name: ``lite``, ``selective-search``, ``torchvision:NAME``, ``hf:NAME``."""

from __future__ import annotations

import re
from pathlib import Path

from deixis.errors import DeixisError
from deixis.interfaces import Extractor
from deixis.registry import REGISTRY, find_class, is_outside

NAMES = (
    "lite, lite:FOLDER, lite@OVERLAP, selective-search, torchvision:NAME (such as fasterrcnn_resnet50_fpn_v2), "
    "hf:NAME, or package.module:Class"
)


def build_extractor(name: str, *, device: str = "cpu") -> Extractor:
    """Build an extractor.

    Args:
        name: ``lite`` (shipped with the package; ``lite:FOLDER`` for weights of your own; ``lite@0.8`` for proposals
            that may overlap each other by so much), ``selective-search`` (no trained network at all),
            ``torchvision:`` and a detector's name, ``hf:`` and a detector of transformers (a
            hub name or a folder), or ``package.module:Class`` of your own, made with ``device``.
        device: Where networks run; ``selective-search`` always runs on the CPU.
    """
    family = re.split("[:@]", name, maxsplit=1)[0]
    if family not in REGISTRY["extractor"] and not is_outside(name):
        raise DeixisError(f"unknown extractor {name!r}; there are {NAMES}")
    made = find_class("extractor", family if family in REGISTRY["extractor"] else name, "the extractor's name")
    extractor = made(name, device) if family in REGISTRY["extractor"] else made(device=device)
    if not isinstance(extractor, Extractor):
        raise DeixisError(f"{name} made no extractor: it lacks fingerprint or extract (deixis.interfaces.Extractor)")
    return extractor


def lite(name: str, device: str) -> Extractor:
    """Build the extractor that ships, ``lite``, ``lite:FOLDER`` or ``lite@0.8``."""
    from deixis.regions.lite import LiteExtractor

    kind, colon, rest = name.partition(":")
    if bool(rest) != bool(colon):
        raise DeixisError(f"unknown extractor {name!r}; there are {NAMES}")
    _, at, overlap = kind.partition("@")
    suppress = _overlap(overlap, name) if at else None
    return LiteExtractor.load(Path(rest) if rest else None, suppress=suppress, device=device).computing_in("int8")


def selective_search(name: str, device: str) -> Extractor:
    """Build the extractor without a trained network; it always runs on the CPU."""
    from deixis.regions.selective_search import SelectiveSearch

    if name != "selective-search":
        raise DeixisError(f"unknown extractor {name!r}; there are {NAMES}")
    return SelectiveSearch()


def torchvision(name: str, device: str) -> Extractor:
    """Build a detector of torchvision, ``torchvision:NAME``."""
    from deixis.regions.adapters.torchvision_detectors import TorchvisionExtractor

    return TorchvisionExtractor.load(_after_colon(name), device=device)


def hf(name: str, device: str) -> Extractor:
    """Build a detector of transformers, ``hf:NAME``."""
    from deixis.regions.adapters.hf_detectors import HfExtractor

    return HfExtractor.load(_after_colon(name), device=device)


def _after_colon(name: str) -> str:
    rest = name.partition(":")[2]
    if not rest:
        raise DeixisError(f"unknown extractor {name!r}; there are {NAMES}")
    return rest


def with_overlap(name: str, suppress: float | None) -> str:
    """The name of an extractor whose proposals may overlap by so much; as it is for None."""
    if suppress is None:
        return name
    kind, colon, rest = name.partition(":")
    if kind != "lite":
        raise DeixisError(f"only lite can be told the overlap of its proposals, not {name!r}: leave out --suppress")
    return f"lite@{suppress:g}{colon}{rest}"


def _overlap(given: str, name: str) -> float:
    """The overlap in a name such as ``lite@0.8``."""
    try:
        overlap = float(given)
    except ValueError:
        overlap = float("nan")
    if not 0 < overlap <= 1:
        raise DeixisError(f"the overlap {given!r} of extractor {name!r} should be a number above 0, at most 1")
    return overlap


def public_name(name: str) -> str:
    """Return an extractor's name without a folder of this machine; the fingerprint tells which weights it had."""
    kind, _, rest = name.partition(":")
    return kind if rest and Path(rest).exists() else name
