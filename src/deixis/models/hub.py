"""Models on the Hugging Face hub, fetched: nothing but JSON and safetensors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from deixis.errors import BadFileError

PATTERNS = ("*.json", "*/*.json", "*.safetensors", "*/*.safetensors")


def is_hub_name(name: str) -> bool:
    """Whether a name has the form OWNER/NAME."""
    return re.fullmatch(r"[\w.-]+/[\w.-]+", name) is not None


def download(name: str, *, also: Sequence[str] = ()) -> Path:
    """Fetch a model (OWNER/NAME) and return its folder; nothing but JSON, safetensors and files ``also`` is fetched."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=[*PATTERNS, *also]))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise BadFileError(f"'{name}' is no folder here and cannot be had from the hub: {reason}") from error
