"""Where Deixis keeps what it can remake: stores, parses and runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_home() -> Path:
    """Return ``$DEIXIS_HOME``, or ``~/.cache/deixis`` when it is not set. The folder may not exist yet."""
    chosen = os.environ.get("DEIXIS_HOME")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "deixis"
