"""A software bill of materials in CycloneDX 1.5 JSON: every installed package with its licence, and who needs whom."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name

from supply.licences import licence_of


def reference(name: str, version: str) -> str:
    """Return the package URL, which is how components are named in a bill."""
    return f"pkg:pypi/{canonicalize_name(name)}@{version.replace('+', '%2B')}"


def make_bill(names: Iterable[str], root: str = "deixis") -> dict[str, Any]:
    """Return the bill of ``root`` with those of ``names`` that are installed; the same packages, the same bill."""
    installed = {}
    for name in {canonicalize_name(name) for name in names} - {canonicalize_name(root)}:
        try:
            installed[name] = distribution(name)
        except PackageNotFoundError:
            continue
    top = distribution(root)
    everything = {**installed, canonicalize_name(root): top}
    components = []
    for _, package in sorted(installed.items()):
        licence = licence_of(package)
        components.append(
            {
                "type": "library",
                "bom-ref": reference(licence.package, package.version),
                "name": licence.package,
                "version": package.version,
                "purl": reference(licence.package, package.version),
                "licenses": [{"license": {"name": licence.licence}}],
            }
        )
    links = [
        {
            "ref": reference(name, package.version),
            "dependsOn": [
                reference(need, everything[need].version) for need in _needs(package.requires or [], everything)
            ],
        }
        for name, package in sorted(everything.items())
    ]
    digest = hashlib.sha256(json.dumps([components, links], sort_keys=True).encode()).digest()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.UUID(bytes=digest[:16], version=4)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": reference(root, top.version),
                "name": root,
                "version": top.version,
                "purl": reference(root, top.version),
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
        "dependencies": links,
    }


def _needs(requires: Iterable[str], known: Iterable[NormalizedName]) -> list[NormalizedName]:
    """Return which known packages a package asks for, extras included: what is installed is there for a reason."""
    found: set[NormalizedName] = set()
    for line in requires:
        try:
            found.add(canonicalize_name(Requirement(line).name))
        except InvalidRequirement:
            continue
    return sorted(found & set(known))
