"""Room changes are counted as one would by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.walks import Walk, changes, pairs

WAY = """cli/main.py main

answering/load.py load
answering/load.py Deixis.from_pretrained
answering/load.py Deixis.from_parts
answering/load.py Deixis.caption

text/tokens.py tokenise

answering/load.py Deixis.words

data/pad.py pad_regions
"""


def test_a_room_that_is_left_and_entered_again_counts_twice() -> None:
    assert changes(["cli", "text", "text", "cli", "data"]) == 3
    assert changes([]) == 0


def test_the_ground_is_no_room() -> None:
    walk = Walk()
    walk.entered = {
        (Path("cli/main.py"), "main"): "cli",
        (Path("atomic.py"), "write_text"): "atomic",
        (Path("types/regions.py"), "Regions.top"): "types",
        (Path("cli/main.py"), "_load"): "cli",
        (Path("text/tokens.py"), "tokenise"): "text",
    }
    counts = walk.summary()
    assert (counts["functions"], counts["files"], counts["rooms"], counts["room changes"]) == (3, 2, 2, 1)
    assert (counts["functions with the ground"], counts["room changes with the ground"]) == (5, 4)


def test_pairs_say_where_a_way_goes_back_and_forth(capsys: pytest.CaptureFixture[str]) -> None:
    pairs(WAY)
    assert capsys.readouterr().out.splitlines() == [
        "4 room changes, 3 of them into or out of text or data",
        "5 visits, 2 of at most 3 functions (the first and the last left out)",
        "   2  answering - text",
        "   1  answering - cli",
        "   1  answering - data",
    ]
