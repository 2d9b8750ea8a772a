"""Strong and weak scaling: really so many processes, and the batches they should have."""

from __future__ import annotations

import json

import pytest

from benchmarks import scaling


def test_ratios_are_those_to_the_first_row() -> None:
    first = {"captions_per_second": 50.0, "processor_ms_per_caption": 20.0}
    assert scaling.beside(first, first) == {"speed_up": 1.0, "price": 1.0}
    two = {"captions_per_second": 80.0, "processor_ms_per_caption": 25.0}
    assert scaling.beside(two, first) == {"speed_up": 1.6, "price": 1.25}


@pytest.mark.recipe
def test_two_processes_are_measured_beside_one(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--batch", "4", "--steps", "40", "--width", "16", "--photos", "16"]
    scaling.main(["--processes", "1", "2", *small, "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [(row["kind"], row["processes"], row["batch"]) for row in rows] == [
        ("one", 1, 4), ("strong", 2, 4), ("weak", 2, 8),
    ]  # fmt: skip
    assert all(row["steps"] > 0 and row["captions_per_second"] > 0 for row in rows)
    assert rows[0]["parameters"] == rows[1]["parameters"] == rows[2]["parameters"] > 1000
