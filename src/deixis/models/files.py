"""Writing so that a file or folder is either wholly there or not at all, and a full disk gives a clear error."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from deixis import atomic
from deixis.atomic import DiskFullError, sync
from deixis.errors import DeixisError


def write_text(path: Path, text: str) -> None:
    """Write a whole text file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_text(path, text)
    except (OSError, DiskFullError) as error:
        raise cannot_write(path, error) from error


def write_json(path: Path, data: Any) -> None:
    """Write a whole JSON file."""
    write_text(path, json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_folder(path: Path, fill: Callable[[Path], None]) -> None:
    """Let ``fill`` write into a temporary folder, then rename it to ``path``, which must not exist yet."""
    temporary = path.with_name(f".{path.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        fill(temporary)
        for file in (item for item in temporary.rglob("*") if item.is_file()):
            file.chmod(0o666 & ~_umask())  # safetensors writes files that only their owner may read
            sync(file)
        temporary.rename(path)
        sync(path.parent)
    except (OSError, SafetensorError, DiskFullError) as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise cannot_write(path, error) from error
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def cannot_write(path: Path, error: Exception) -> DeixisError:
    """Return the error for a failed write; what was there before is untouched."""
    return atomic.cannot_write(path, error, "earlier checkpoints are untouched, make room and use --resume")


def digest(path: Path) -> dict[str, Any]:
    """Return size and SHA-256 of a file."""
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**22):
            sha.update(block)
    return {"bytes": path.stat().st_size, "sha256": sha.hexdigest()}


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now
