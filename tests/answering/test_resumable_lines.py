from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.answering.resumable_lines import AnswerLines
from deixis.errors import BadFileError, DeixisError
from deixis.types import GroundedCaption


def caption(name: str, text: str = "A dog.") -> GroundedCaption:
    return GroundedCaption(name, (10, 10), text, (), model="m")


def opened(path: Path, model: str = "m") -> AnswerLines[GroundedCaption]:
    return AnswerLines.open(path, GroundedCaption.from_json, model=model)


def test_a_file_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "out.jsonl"
    with opened(path) as lines:
        lines.add([caption("a"), caption("b")])
    with opened(path) as lines:
        assert list(lines.answers) == ["a", "b"]
        lines.add([caption("c")])
    assert [json.loads(line)["image"] for line in path.read_text().splitlines()] == ["a", "b", "c"]


@given(cut=st.integers(0, 400), text=st.text(max_size=8))
def test_wherever_a_file_was_cut_whole_lines_stay(
    cut: int, text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cut") / "out.jsonl"
    names = ["a", "b", "c"]
    with opened(path) as lines:
        lines.add([caption(name, text) for name in names])
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    kept = whole[:cut].count(b"\n")
    with opened(path) as lines:
        assert list(lines.answers) == names[:kept]
        lines.add([caption(name, text) for name in names[kept:]])
    assert path.read_bytes() == whole


def test_answers_of_another_model_are_not_mixed_in(tmp_path: Path) -> None:
    with opened(tmp_path / "out.jsonl") as lines:
        lines.add([caption("a")])
    with pytest.raises(DeixisError, match="holds answers of the model 'm', not 'n'"):
        opened(tmp_path / "out.jsonl", "n")


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("Chapter 1\nIt was")
    with pytest.raises(BadFileError, match=r"thesis\.txt, line 1 is no answer of ours"):
        opened(path)
    assert path.read_text() == "Chapter 1\nIt was"
    with pytest.raises(DeixisError, match="cannot write"):
        opened(tmp_path)
