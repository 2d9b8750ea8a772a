"""Extractors by name: ``lite``, ``selective-search``, ``torchvision:NAME``, ``hf:NAME``."""

from __future__ import annotations

from pathlib import Path

from deixis.errors import DeixisError
from deixis.interfaces import Extractor

NAMES = (
    "lite, lite:FOLDER, lite@OVERLAP, selective-search, torchvision:NAME (such as fasterrcnn_resnet50_fpn_v2), hf:NAME"
)


def build_extractor(name: str, *, device: str = "cpu") -> Extractor:
    """Build an extractor.

    Args:
        name: ``lite`` (shipped with the package; ``lite:FOLDER`` for weights of your own; ``lite@0.8`` for proposals
            that may overlap each other by so much), ``selective-search`` (no trained network at all),
            ``torchvision:`` and a detector's name, or ``hf:`` and a detector of transformers: a hub name or a folder.
        device: Where networks run; ``selective-search`` always runs on the CPU.
    """
    kind, _, rest = name.partition(":")
    family, at, overlap = kind.partition("@")
    if family == "lite" and bool(rest) == (":" in name):
        from deixis.regions.lite import LiteExtractor

        suppress = _overlap(overlap, name) if at else None
        return LiteExtractor.load(Path(rest) if rest else None, suppress=suppress, device=device)
    if name == "selective-search":
        from deixis.regions.selective_search import SelectiveSearch

        return SelectiveSearch()
    if kind == "torchvision" and rest:
        from deixis.regions.adapters.torchvision_detectors import TorchvisionExtractor

        return TorchvisionExtractor.load(rest, device=device)
    if kind == "hf" and rest:
        from deixis.regions.adapters.hf_detectors import HfExtractor

        return HfExtractor.load(rest, device=device)
    raise DeixisError(f"unknown extractor {name!r}; there are {NAMES}")


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
