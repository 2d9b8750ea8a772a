"""A page beside ONNX files that answers photos in the browser: its own files, rules and onnxruntime-web."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from deixis.atomic import write_json
from deixis.portable.rules import FILE, rules

RUNTIME = "ort"
"""The folder of onnxruntime-web beside the page."""
_SHARED = ("look.css", "look.js")
"""What the page shares with other pages of Deixis; see ``deixis.export``."""


def write_page(folder: Path, runtime: Mapping[str, bytes]) -> None:
    """Write ``index.html`` and what it loads into a folder of ONNX files.

    Args:
        folder: Where ``deixis.portable.export`` wrote a model.
        runtime: What :func:`deixis.portable.runtime.runtime_files` found.
    """
    own = {one.name: one.read_bytes() for one in (files("deixis") / "portable" / "page").iterdir() if one.is_file()}
    look = files("deixis") / "export" / "static"
    own |= {name: (look / name).read_bytes() for name in _SHARED}
    (folder / RUNTIME).mkdir()
    own |= {f"{RUNTIME}/{name}": data for name, data in runtime.items()}
    for name, data in own.items():
        (folder / name).write_bytes(data)
    write_json(folder / FILE, rules())
