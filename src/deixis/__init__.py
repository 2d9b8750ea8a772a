"""Deixis: captions whose words point at boxes, and boxes for any phrase, learned from image-caption pairs alone.

>>> import deixis
>>> model = deixis.load("lite")  # doctest: +SKIP
>>> model.caption("photo.jpg").text  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deixis.answering.load import Deixis, load
    from deixis.models.publish import push_to_hub

__version__ = "0.2.0"
__all__ = ["Deixis", "__version__", "load", "push_to_hub"]

_HOMES = {"Deixis": "deixis.answering.load", "load": "deixis.answering.load", "push_to_hub": "deixis.models.publish"}


def __getattr__(name: str) -> object:
    """Import the answering room when it is first asked for: it needs torch, and ``deixis --help`` does not."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'deixis' has no attribute {name!r}")
