"""``deixis search`` as people call it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import deixis
from deixis.cli import main as cli
from deixis.types import GroundedPhrases
from tests.conftest import BY_HEART

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "photos").mkdir()
    for name in BY_HEART:
        shutil.copy(PHOTOS / name, tmp_path / "photos")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str | Path, code: int = 0) -> Result:
    done = CliRunner().invoke(cli.app, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


def test_text_json_page_and_python_say_the_same(small_bundle: Path, album: Path) -> None:
    asked = ("search", "photos", "a cup on a table", "--model", small_bundle)
    shown = call(*asked, "--top", "1", "--html", "found.html").stdout
    assert "photos/coffee.jpg" in shown
    assert "a cup:" in shown
    assert "coffee.jpg" in (album / "found.html").read_text()
    told = json.loads(call(*asked, "--json", "--no-update").stdout)
    assert (told["query"], told["photos"], len(told["found"])) == ("a cup on a table", 3, 3)
    answers = [GroundedPhrases.from_json(one["answer"]) for one in told["found"]]
    found = deixis.load(small_bundle).search("photos", "a cup on a table")
    assert [str(one.path) for one in found] == [answer.image for answer in answers]
    assert [one.score for one in found] == [one["score"] for one in told["found"]]
    assert "3 photos can be searched" in call("search", "photos", "--model", small_bundle).stdout


def test_a_broken_photo_is_told_and_the_others_are_found(small_bundle: Path, album: Path) -> None:
    (album / "photos" / "broken.jpg").write_bytes(b"no photo")
    done = call("search", "photos", "a cat", "--model", small_bundle, code=2)
    assert done.stderr.count("broken.jpg") == 1
    assert "chelsea.jpg" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone", "a cat"], "gone does not exist"),
        (["photos/coffee.jpg", "a cat"], "coffee.jpg is a file"),
        (["photos", "flibbertigibbet"], "knows no word of 'flibbertigibbet'"),
        (["photos", "--html", "x.html"], "nothing to look for"),
        (["photos", "a cat", "--index", "photos/coffee.jpg"], "is a file: --index takes a folder"),
        (["photos", "a cat", "--index", "photos", "--rebuild"], "nothing is written or deleted there"),
    ],
)
def test_errors_are_one_line(
    small_bundle: Path, album: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["search", *arguments, "--model", str(small_bundle)])
    told = capsys.readouterr()
    assert left.value.code == 2
    assert message in told.err
    assert (told.err.count("\n"), told.out) == (1, "")
    assert not (album / "x.html").exists()
