"""``deixis caption`` as people call it: folders, patterns, resuming, pages, pictures, broken files, exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner, Result

from deixis.cli import main as cli
from deixis.cli.pictures import png_names
from deixis.export.draw import PALETTE, drawing_of
from deixis.export.terminal import coloured, half_blocks, rows, thing_style
from deixis.types import GroundedCaption, GroundedWord
from tests.conftest import BY_HEART

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"
SAID = ["A woman in a suit with a helmet.", "A cat with eyes.", "A cup of coffee on a table."]


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for photo in (PHOTOS / name for name in BY_HEART):
        shutil.copy(photo, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str | Path, code: int = 0) -> Result:
    done = CliRunner().invoke(cli.app, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


def test_a_folder_as_text_and_as_json(small_bundle: Path, album: Path) -> None:
    shown = call("caption", album, "--model", small_bundle).stdout
    for text in (*SAID, "astronaut.jpg", "helmet"):
        assert text in shown
    assert "\x1b" not in shown, "no colours where nobody can see them"
    lines = call("caption", "*.jpg", "--model", small_bundle, "--json").stdout.splitlines()
    answers = [GroundedCaption.from_json(json.loads(line)) for line in lines]
    assert [answer.text for answer in answers] == SAID
    assert all((word.presence is not None) == word.groundable for answer in answers for word in answer.words)


def test_a_stopped_command_goes_on_and_a_broken_photo_stops_nothing(small_bundle: Path, album: Path) -> None:
    out = album / "out.jsonl"
    (album / "broken.jpg").write_bytes(b"\xff\xd8\xff no photo")
    first = call("caption", album, "--model", small_bundle, "-o", out, code=2)
    assert "broken.jpg" in first.stderr
    assert "Traceback" not in first.stderr
    whole = out.read_bytes()
    assert [json.loads(line)["text"] for line in whole.splitlines()] == SAID
    out.write_bytes(whole[:-30])  # the machine went off in the middle of the last line
    again = call("caption", album, "--model", small_bundle, "-o", out, code=2)
    assert [json.loads(line)["text"] for line in out.read_text().splitlines()] == SAID
    assert out.read_bytes().splitlines()[:2] == whole.splitlines()[:2]
    assert "3 captions, of which 2 there before" in again.stdout


def test_checking_does_not_go_on_with_what_was_not_checked(
    small_bundle: Path, album: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["caption", "coffee.jpg", "--model", str(small_bundle), "-o", "out.jsonl"]
    call(*asked, "--no-check")
    whole = (album / "out.jsonl").read_bytes()
    with pytest.raises(SystemExit):
        cli.main(asked)
    assert "out.jsonl holds captions that were not checked, such as that of coffee.jpg" in capsys.readouterr().err
    assert (album / "out.jsonl").read_bytes() == whole
    (album / "out.jsonl").unlink()
    call(*asked, "--check")
    assert "1 caption, of which 1 there before" in call(*asked).stdout


def test_pages_and_pictures(small_bundle: Path, album: Path) -> None:
    done = call("caption", album / "coffee.jpg", "--model", small_bundle, "--html", "deep/page.html", "--png")
    assert "wrote coffee.deixis.png" in done.stdout
    page = (album / "deep" / "page.html").read_text()
    assert SAID[2] in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert Image.open(album / "coffee.deixis.png").width > 300
    assert not list(album.glob(".*"))
    assert png_names(["a/x.jpg", "b/x.png", "y.jpg"]) == ["x.deixis.png", "x-2.deixis.png", "y.deixis.png"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["caption", "empty"], "there is no photo"),
        (["caption", "*.gif"], "no photo fits the pattern"),
        (["caption", "coffee.jpg", "--model", "nowhere"], "found no model 'nowhere'"),
        (["caption", "coffee.jpg", "--html", "empty"], "is a folder"),
        (["caption", "coffee.jpg", "--model", "BUNDLE/captioner", "--check"], "no grounder to check captions with"),
        (["caption", "coffee.jpg", "--model", "BUNDLE", "--method", "magic"], "cannot point by 'magic'"),
        (["caption", "coffee.jpg", "--model", "BUNDLE", "--method", "magic", "-o", "o.jsonl"], "cannot point by"),
        (["caption", "coffee.jpg", "--model", "BUNDLE", "--device", "toaster"], "on the device 'toaster'"),
        (["caption", "coffee.jpg", "--model", "BUNDLE", "--html", "coffee.jpg/a.html"], "coffee.jpg is no folder"),
        (["caption", "coffee.jpg", "--model", "BUNDLE", "--html", "/dev/null"], "/dev/null is a device or a pipe"),
        (
            ["caption", "coffee.jpg", "--model", "BUNDLE", "--no-check", "--threshold", "0.3"],
            "a threshold belongs to the check",
        ),
        (["ground", "coffee.jpg", "a cup", "--model", "BUNDLE", "--threshold", "0.3"], "`deixis calibrate` fits that"),
        (["ground", "coffee.jpg"], "nothing to look for"),
        (["ground", "coffee.jpg", "", "--model", "BUNDLE"], "phrase 1 of 1 is empty"),
        (["ground", "gone.jpg", "a cup", "--model", "BUNDLE"], "there is no file gone.jpg"),
        (
            ["ground", "coffee.jpg", "dog", "--sentence", "A cat.", "--model", "BUNDLE"],
            "does not stand in the sentence",
        ),
        (["label", "empty", "-o", "l.json", "--model", "BUNDLE"], "looks like none of the dataset formats"),
        (["label", "empty", "-o", "empty", "--model", "BUNDLE"], "is a folder"),
        (["bundle", "BUNDLE"], "say where the bundle goes"),
        (["evaluate", "nowhere", "empty"], "found no model 'nowhere'"),
    ],
)
def test_errors_are_one_line_and_code_2(
    small_bundle: Path, album: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    (album / "empty").mkdir()
    with pytest.raises(SystemExit) as left:
        cli.main([argument.replace("BUNDLE", str(small_bundle)) for argument in arguments])
    assert left.value.code == 2
    told = capsys.readouterr()
    assert message in told.err
    assert told.err.count("\n") == 1
    assert not told.out
    assert {path.name for path in album.iterdir()} == {"astronaut.jpg", "chelsea.jpg", "coffee.jpg", "empty"}


def test_ground_phrases_and_sentences(small_bundle: Path, album: Path) -> None:
    done = call("ground", "coffee.jpg", "a cup", "🎉", "--model", small_bundle)
    cup, party = done.stdout.splitlines()
    assert cup.split()[:2] == ["a", "cup"]
    assert " ".join(party.split()) == "🎉 probably not in the photo"
    answer = json.loads(
        call("ground", "coffee.jpg", "--sentence", SAID[2], "--model", small_bundle, "--json", "--png").stdout
    )
    assert [phrase["text"] for phrase in answer["phrases"]] == ["A cup", "coffee", "a table"]
    assert answer["image"] == "coffee.jpg"
    assert (album / "coffee.deixis.png").exists()
    nothing = call("ground", "coffee.jpg", "--sentence", "Of the in with.", "--model", small_bundle)
    assert "names nothing one can point at" in nothing.stdout


def test_bundles_join_runs(small_bundle: Path, album: Path) -> None:
    parts = [small_bundle / "captioner", small_bundle / "grounder"]
    done = json.loads(
        call("bundle", *parts, "-o", "mine", "--method", "grounder", "--objectness", "0.5", "--json").stdout
    )
    assert done["bytes"] < sum(file.stat().st_size for file in small_bundle.rglob("*"))
    card = json.loads((album / "mine" / "bundle.json").read_text())
    assert (card["method"], card["pointing"]["objectness"]) == ("grounder", 0.5)
    answer = json.loads(call("caption", "chelsea.jpg", "--model", "mine", "--json").stdout)
    assert answer["text"] == SAID[1]


def test_things_have_the_colours_of_the_drawings() -> None:
    words = (
        GroundedWord("A", 0, 1),
        GroundedWord("dog", 2, 5, ((0, 0, 5, 5),), (0,), 0.5, True),
        GroundedWord("ball", 6, 10, ((5, 5, 9, 9),), (0,), 0.25, True, False, 0.125),
    )
    caption = GroundedCaption("x.jpg", (10, 10), "A dog ball", words)
    drawing = drawing_of(caption)
    text = coloured(drawing)
    styles = {text.plain[span.start : span.end]: span.style for span in text.spans}
    assert styles["dog"] == thing_style(0)
    assert thing_style(0).bgcolor.name == PALETTE[0]  # type: ignore[union-attr]
    assert styles["ball"].strike  # type: ignore[union-attr]
    listed = [line.plain for line in rows(caption, drawing)]
    assert listed[0].split() == ["dog", "0", "0", "5", "5", "0.50"]
    assert listed[1].endswith("there: 0.12  doubtful")


def test_a_small_picture_is_two_pixels_a_character() -> None:
    image = Image.new("RGB", (40, 20), "#102030")
    word = GroundedWord("dog", 0, 3, ((0, 0, 40, 20),), (0,), 0.5, True)
    drawing = drawing_of(GroundedCaption("x", (40, 20), "dog", (word,)))
    text = half_blocks(image, drawing, columns=20, rows=24)
    lines = text.plain.split("\n")
    assert (len(lines), {len(line) for line in lines}) == (5, {20})
    console = Console(force_terminal=True, color_system="truecolor", width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(text)
    shown = console.export_text(styles=True)
    red, green, blue = (int(PALETTE[0][at : at + 2], 16) for at in (1, 3, 5))
    assert f"38;2;{red};{green};{blue}" in shown, "the box's colour on the border"
    assert "48;2;16;32;48" in shown, "the photo inside"
