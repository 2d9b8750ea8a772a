"""Which stretches of a clip are captioned, however they are given."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.answering.segments import choose_segments, parse_seconds, read_segments
from deixis.errors import BadFileError, DeixisError


def test_the_clock_by_hand() -> None:
    assert choose_segments(8.0) == [(0.0, 8.0)]
    assert choose_segments(20.0) == [(0, 5), (5, 10), (10, 15), (15, 20)]
    assert choose_segments(13.0, every=5) == [(0, 5), (5, 10), (10, 13)], "a rest of more than half stands alone"
    assert choose_segments(12.0, every=5) == [(0, 5), (5, 12)], "a smaller one belongs to the last"
    assert choose_segments(2.0, every=5) == [(0, 2)]


@given(st.floats(0.1, 10_000), st.floats(6, 10_000))
def test_stretches_cover_the_clip_without_gaps(duration: float, every: float) -> None:
    found = choose_segments(duration, every=every)
    assert (found[0][0], found[-1][1]) == (0.0, duration)
    assert all(a[1] == b[0] for a, b in pairwise(found))
    assert all(end > start for start, end in found)
    assert all(0.5 * every <= end - start <= 1.5 * every + 1e-6 for start, end in found) or len(found) == 1


def test_given_segments_are_sorted_cut_and_taken_once() -> None:
    given = [(6.0, 9.0), (0.0, 4.0), (2.0, 5.0), (6.0, 9.0), (8.0, 30.0)]
    assert choose_segments(10.0, given) == [(0, 4), (2, 5), (6, 9), (8, 10)], "overlaps are allowed"


@pytest.mark.parametrize(
    ("segments", "every", "message"),
    [
        ([], None, "no segments"),
        ([(3.0, 3.0)], None, "from 3 to 3 s"),
        ([(4.0, 3.0)], None, "from 4 to 3 s"),
        ([(-1.0, 3.0)], None, "from -1 to 3 s"),
        ([(0.0, float("nan"))], None, "later end"),
        ([(10.0, 12.0)], None, "begins after the end of clip.mp4 at 10.00 s"),
        ([(0.0, 1.0)] * 3000, None, "too many"),
        ([(0.0, 1.0)], 5.0, "not both"),
        (None, 0.0, "more than 0"),
        (None, float("inf"), "more than 0"),
        (None, 0.001, "10,000 segments"),
    ],
)
def test_what_cannot_be_is_refused(segments: list[tuple[float, float]], every: float, message: str) -> None:
    with pytest.raises(DeixisError, match=message):
        choose_segments(10.0, segments, every, clip="clip.mp4")


def test_times_as_people_write_them() -> None:
    assert [parse_seconds(text) for text in ("5", "5s", " 2.5 s", "1:30", "1:02:03.5", ".5")] == [
        5, 5, 2.5, 90, 3723.5, 0.5,
    ]  # fmt: skip
    for text in ("", "five", "-1", "1:2:3:4", "1e3", "5m", "²"):
        with pytest.raises(DeixisError, match="a time is written"):
            parse_seconds(text)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([[0, 4.5], [4.5, 9]]),
        json.dumps({"timestamps": [[0, 4.5], [4.5, 9]]}),
        json.dumps(
            {"v_other": {"timestamps": [[1, 2]]}, "v_walk": {"duration": 9, "timestamps": [[0, 4.5], [4.5, 9]]}}
        ),
        json.dumps(
            {
                "vocab": [],
                "annotations": {"v_walk": {"segments": {"0": {"timestamps": [0, 4.5]}, "1": {"timestamps": [4.5, 9]}}}},
            }
        ),
        "0,4.5\n4.5,9\n",
        "\ufeffstart,end,what\n0,4.5,a\n\n4.5,9,b\n",
        "what\tend\tstart\na\t4.5\t0:00\nb\t0:09\t4.5\n",
        "0; 4.5\n4.5; 9",
        "0 4.5\n4.5   9",
    ],
)
def test_files_of_many_forms_say_the_same(tmp_path: Path, text: str) -> None:
    (tmp_path / "segments").write_text(text, encoding="utf-8")
    assert read_segments(tmp_path / "segments", "films/walk.mp4") == [(0.0, 4.5), (4.5, 9.0)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[0, 1]", "broken JSON"),
        ("[" * 100_000, "broken JSON"),
        ('{"v_other": {"timestamps": [[0, 1]]}}', "no segments of 'walk'"),
        ('{"timestamps": 5}', "should hold"),
        ('[[0, "one"]]', "segment 0 should be"),
        ("[[0, 1, 2]]", "segment 0 should be"),
        ("[[0, true]]", "segment 0 should be"),
        ('{"walk": {"segments": {"0": 5}}}', "segment 0 should be"),
        ("0,1\nnothing\n", "row 2 should have a start and an end"),
        ("0,1\n2,x\n", "row 2 should be a start and an end"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "segments.json"
    path.write_text(text)
    with pytest.raises(BadFileError, match=message) as error:
        read_segments(path, "walk.mp4")
    assert str(path) in str(error.value)


def test_files_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(b"\xff\xd8\xff\x00")
    for path in (tmp_path / "picture", tmp_path / "missing", tmp_path):
        with pytest.raises(BadFileError, match=r"not UTF-8|there is no file|is a folder"):
            read_segments(path, "walk.mp4")
    (tmp_path / "empty").write_text("\n\n")
    assert read_segments(tmp_path / "empty", "walk.mp4") == []
