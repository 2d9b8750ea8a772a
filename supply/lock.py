"""``requirements.lock``: every pin of ``constraints.txt`` with the hashes of its files, as the registry gives them.

All files of a release are listed, so that one lock serves every platform and Python. torch is left out: which build
fits is the machine's business (a CPU wheel on its own disk, or one for its GPU), so it has a lock of its own,
which CI uses (``torch_lock.py``). pip installs it after everything else, so it brings nothing along unseen.
"""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

LEFT_OUT = frozenset({"torch"})
HEAD = """\
# Made by `make lock` from constraints.txt and spacy-model.txt: do not edit. Every file of a release is listed by hash.
# torch is not in here: the build that fits a machine is installed last, see supply/lock.py.
"""
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;#]+)")


def pins(text: str) -> dict[str, str]:
    """Return name and version of every pin of a constraints or requirements file."""
    found = (_PIN.match(line.strip()) for line in text.splitlines())
    return {canonicalize_name(match[1]): match[2] for match in found if match}


class _Links(HTMLParser):
    """The files that a page of the simple index names (PEP 503), with their SHA-256."""

    def __init__(self) -> None:
        super().__init__()
        self.hashes: dict[str, str] = {}
        self._hash: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember the hash of a link."""
        address = dict(attrs).get("href") or ""
        _, _, fragment = address.partition("#sha256=")
        self._hash = fragment or None if tag == "a" else self._hash

    def handle_data(self, data: str) -> None:
        """Take the text of a link: a file's name."""
        if self._hash is not None and data.strip():
            self.hashes[data.strip()] = self._hash
            self._hash = None


def hashes(page: str, version: str) -> list[str]:
    """Return the hashes of all files of one release on a page of the simple index, sorted."""
    links = _Links()
    links.feed(page)
    return sorted({digest for name, digest in links.hashes.items() if _version(name) == Version(version)})


def _version(file: str) -> Version | None:
    try:
        return parse_wheel_filename(file)[1] if file.endswith(".whl") else parse_sdist_filename(file)[1]
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None


def read_page(name: str, index: str = "https://pypi.org/simple") -> str:
    """Return the page of a package on the registry."""
    with urllib.request.urlopen(f"{index}/{name}/", timeout=120) as answer:
        return str(answer.read().decode())


def make_lock(wanted: Mapping[str, str], read: Callable[[str], str] = read_page) -> str:
    """Return the text of a lock for these pins; a release without a file is an error that names it."""
    names = sorted(set(wanted) - LEFT_OUT)
    with ThreadPoolExecutor(4) as pool:
        pages = list(pool.map(read, names))
    lines = []
    for name, page in zip(names, pages, strict=True):
        found = hashes(page, wanted[name])
        if not found:
            raise SystemExit(f"the registry has no file of {name} {wanted[name]}: mend constraints.txt")
        lines.append(" \\\n    ".join([f"{name}=={wanted[name]}", *(f"--hash=sha256:{digest}" for digest in found)]))
    return HEAD + "\n".join(lines) + "\n"


def wanted_pins(root: Path, files: Iterable[str] = ("constraints.txt", "spacy-model.txt")) -> dict[str, str]:
    """Return all pins of the repository."""
    found: dict[str, str] = {}
    for file in files:
        found |= pins((root / file).read_text())
    return found
