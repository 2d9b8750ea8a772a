"""``deixis video`` as people call it."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import av
import numpy as np
import pytest
from PIL import Image

from deixis.cli.main import main
from deixis.types import GroundedCaption
from deixis.video import read_clip

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds of a cat, then two of a cup."""
    path = tmp_path_factory.mktemp("clips") / "cat and cup.mp4"
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=5)
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        for number in range(20):
            photo = Image.open(PHOTOS / ("chelsea.jpg" if number < 10 else "coffee.jpg")).convert("RGB")
            frame = av.VideoFrame.from_ndarray(np.asarray(photo.resize((320, 240))), format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 5)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


class Result(NamedTuple):
    """What a call printed, and how it ended."""

    exit_code: int
    output: str
    stderr: str


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the command in this process, as the shell does."""

    def call(*arguments: object) -> Result:
        code = 0
        try:
            main(["video", *map(str, arguments)])
        except SystemExit as end:
            code = int(end.code or 0)
        return Result(code, *capsys.readouterr())

    return call


def test_sentences_page_and_drawn_clip(run: Run, small_bundle: Path, clip: Path, tmp_path: Path) -> None:
    page, drawn, lines = tmp_path / "page.html", tmp_path / "drawn.mp4", tmp_path / "out.jsonl"
    options = ["--model", small_bundle, "--every", "2s", "--frames", 2]
    result = run(clip, *options, "--html", page, "--mp4", drawn, "-o", lines)
    assert result.exit_code == 0, result.output
    assert "0.0 to 2.0 s  A cat with eyes." in result.output
    assert "2.0 to 4.0 s  A cup of coffee on a table." in result.output
    assert "on 2 of 2 frames" in result.output
    answers = [GroundedCaption.from_json(json.loads(line)) for line in lines.read_text().splitlines()]
    assert [answer.segment for answer in answers] == [(0.0, 2.0), (2.0, 4.0)]
    assert read_clip(drawn).duration == pytest.approx(4.0, abs=0.25)
    text = page.read_text()
    assert "A cat with eyes." in text
    assert "video/mp4" in text
    assert str(clip.parent) not in text, "a page does not tell where it was made"
    again = run(clip, *options, "-o", lines)
    assert again.exit_code == 0
    assert "2 segments, of which 2 there before" in again.output
    with pytest.raises(SystemExit, match="0"):
        main(["export", str(lines), "-f", "html", "-o", str(tmp_path / "again.html")])
    assert (tmp_path / "again.html").read_text() == text
    assert len(lines.read_text().splitlines()) == 2


def test_json_is_one_object_a_segment(run: Run, small_bundle: Path, clip: Path, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("start,end\n2,99\n0:00,0:02\n")
    result = run(clip, "--model", small_bundle, "--segments", tmp_path / "s.csv", "--frames", 1, "--json", "--check")
    assert result.exit_code == 0, result.output
    answers = [GroundedCaption.from_json(json.loads(line)) for line in result.output.splitlines()]
    assert [answer.segment for answer in answers] == [(0.0, 2.0), (2.0, 4.0)]
    assert all(word.presence is not None for answer in answers for word in answer.words if word.groundable)


def test_bad_input_is_one_line_and_leaves_nothing(run: Run, small_bundle: Path, clip: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no clip at all")
    (tmp_path / "late.json").write_text("[[50, 60]]")
    (tmp_path / "none.json").write_text("[]")
    for arguments, message in (
        ([tmp_path / "missing.mp4"], "there is no file"),
        ([broken], "is not a clip that can be read"),
        ([clip, "--every", "soon"], "a time is written as"),
        ([clip, "--every", "2s", "--segments", tmp_path / "late.json"], "not both"),
        ([clip, "--segments", tmp_path / "late.json"], "begins after the end"),
        ([clip, "--segments", tmp_path / "none.json"], "no segments to caption"),
        ([clip, "--mp4", tmp_path / "drawn.avi"], "should be the name of an .mp4 file"),
        ([clip, "--mp4", clip], "is the clip itself"),
        ([clip, "--mp4", tmp_path], "is a folder"),
        ([clip, "--html", tmp_path], "is a folder"),
        ([clip, "--method", "magic"], "cannot point by 'magic'"),
    ):
        result = run(*arguments, "--model", small_bundle, "-o", tmp_path / "out.jsonl")
        assert result.exit_code == 2, (arguments, result.output)
        assert message in result.stderr.replace("\n", " "), result.stderr
        assert "Traceback" not in result.stderr
        assert not (tmp_path / "out.jsonl").exists() or not (tmp_path / "out.jsonl").read_text()
