"""Walks that used to break, each as a person types it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from deixis.cli import main as cli
from deixis.defaults import BEAM
from deixis.geometry import iou
from deixis.metrics.bootstrap import MeanSample
from deixis.metrics.report import Report, Section
from tests.conftest import BY_HEART

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "photos").mkdir()
    for photo in (PHOTOS / name for name in BY_HEART):
        shutil.copy(photo, tmp_path / "photos")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str | Path, code: int = 0) -> Result:
    done = CliRunner().invoke(cli.app, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Return the one line that a call is refused with."""
    with pytest.raises(SystemExit) as left:
        cli.main(list(map(str, arguments)))
    told = capsys.readouterr().err
    assert (left.value.code, told.count("\n")) == (2, 1), told
    return told


def test_resuming_goes_by_the_photo_not_by_what_it_is_called(
    small_bundle: Path, album: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (album / "here").mkdir()
    monkeypatch.chdir(album / "here")
    call("caption", "../photos", "--model", small_bundle, "-o", "../out.jsonl")
    monkeypatch.chdir(album)
    shutil.copy(album / "photos" / "coffee.jpg", album / "photos" / "other.jpg")
    Image.open(album / "photos" / "coffee.jpg").rotate(90).save(album / "photos" / "new.jpg")
    done = call("caption", "photos", "--model", small_bundle, "-o", "out.jsonl", "--html", "page.html")
    assert "5 captions, of which 4 there before" in done.stdout, "the copy is the same photo, the turned one is not"
    assert len((album / "out.jsonl").read_text().splitlines()) == 4
    assert "other.jpg" in (album / "page.html").read_text()
    (album / ".out.jsonl.photos").unlink()
    assert "of which 1 there before" in call("caption", "photos", "--model", small_bundle, "-o", "out.jsonl").stdout


def test_captions_that_were_not_checked_do_not_join_those_that_were(
    small_bundle: Path, album: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["caption", "--model", str(small_bundle), "-o", "o.jsonl"]
    call(*asked, "photos/coffee.jpg")
    whole = (album / "o.jsonl").read_bytes()
    told = refused(capsys, *asked, "photos/coffee.jpg", "photos/chelsea.jpg", "--no-check")
    assert "o.jsonl holds captions that were checked" in told
    assert "leave out --no-check" in told
    assert (album / "o.jsonl").read_bytes() == whole


def test_pushing_without_a_network_is_one_line(
    small_bundle: Path, album: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    told = refused(capsys, "bundle", small_bundle, "--push", "me/x")
    assert "cannot upload to 'me/x'" in told
    assert "refused" in told
    assert "no name of a repository" in refused(capsys, "bundle", small_bundle, "--push", "me/x/y//z")


def test_a_doubt_below_a_half_is_called_so_without_a_fit_too(small_bundle: Path, album: Path) -> None:
    asked = ("caption", "photos/coffee.jpg", "--model", small_bundle, "--json")
    words = [word for word in json.loads(call(*asked).stdout)["words"] if "presence" in word]
    assert any(word["presence"] < 0.5 for word in words), "the small matcher spreads its attention"
    assert all(word["trusted"] == (word["presence"] >= 0.5) for word in words)
    least = min(word["presence"] for word in words)
    lower = json.loads(call(*asked, "--threshold", str(least / 2)).stdout)["words"]
    assert all(word["trusted"] for word in lower), "a lower threshold doubts less"
    assert not any("presence" in word for word in json.loads(call(*asked, "--no-check").stdout)["words"])


@pytest.mark.parametrize("ending", [".tif", ".bmp", ".avif"])
def test_other_kinds_of_files(small_bundle: Path, album: Path, ending: str) -> None:
    photo = album / f"coffee{ending}"
    Image.open(album / "photos" / "coffee.jpg").save(photo)
    said = json.loads(call("caption", photo, "--model", small_bundle, "--json").stdout)
    assert said["text"] == "A cup of coffee on a table."


def test_heic_is_read_or_the_way_to_it_is_named(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        import pillow_heif
    except ImportError:
        (album / "phone.heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
        told = refused(capsys, "data", "show", _dataset(album, "phone.heic"), "phone.heic", "-o", "x.png")
        assert "pip install 'deixis[heic]'" in told
    else:
        pillow_heif.from_pillow(Image.open(album / "photos" / "coffee.jpg")).save(album / "phone.heic")
        call("data", "show", _dataset(album, "phone.heic"), "phone.heic", "-o", "x.png")
        assert (album / "x.png").is_file()


def _dataset(album: Path, name: str) -> Path:
    folder = album / "mine"
    folder.mkdir()
    shutil.move(album / name, folder / name)
    (folder / "captions.csv").write_text(f"image,caption\n{name},A cup of coffee.\n")
    return folder


def test_ids_with_and_without_zeros_and_lists_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "coco" / "annotations").mkdir(parents=True)
    images = [{"id": number, "file_name": f"{number:012}.jpg", "width": 64, "height": 48} for number in (37666, 42)]
    notes = [{"id": at, "image_id": image["id"], "caption": "A cat."} for at, image in enumerate(images)]
    data = {"images": images, "annotations": notes}
    (tmp_path / "coco" / "annotations" / "captions_val2017.json").write_text(json.dumps(data))
    for name in ("37666", "000000037666", "000000037666.jpg"):
        assert json.loads(call("data", "show", "coco", name, "--json").stdout)["id"] == "37666"
    assert "did you mean 37666?" in refused(capsys, "data", "show", "coco", "37766", "--json")
    assert "`deixis data show DATA` lists them" in refused(capsys, "data", "show", "coco", "dog", "--json")
    assert call("data", "show", "coco").stdout == "val2017: 37666 42\n"
    assert json.loads(call("data", "show", "coco", "--json").stdout) == {"val2017": ["37666", "42"]}


def test_errors_name_the_way_out(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, "train", "captioning/own", "-o", "x")
    assert "data.dataset=YOUR_FOLDER" in told
    told = refused(capsys, "data", "info", "photos")
    assert "It holds photos, but no captions.csv" in told
    (album / "out.jsonl").write_text(
        '{"deixis":1,"kind":"caption","image":"gone.jpg","size":[9,9],"text":"","words":[]}'
    )
    assert "--photos FOLDER" in refused(capsys, "export", "out.jsonl", "-f", "html", "-o", "x.html")


def test_pages_find_photos_beside_the_answers_and_tasks_name_no_way_up(small_bundle: Path, album: Path) -> None:
    call("caption", "photos", "--model", small_bundle, "-o", "out.jsonl")
    (album / "other").mkdir()
    os.chdir(album / "other")
    call("export", "../out.jsonl", "-f", "html", "-o", "x.html")
    assert "coffee.jpg" in (album / "other" / "x.html").read_text()
    call("caption", "../photos", "--model", small_bundle, "-o", "up.jsonl")
    call("export", "up.jsonl", "-f", "labelstudio", "-o", "tasks.json")
    tasks = json.loads((album / "other" / "tasks.json").read_text())
    assert {task["data"]["image"] for task in tasks} == {
        f"/data/local-files/?d=photos/{name}.jpg" for name in ("astronaut", "chelsea", "coffee")
    }


def test_comparing_times_does_not_speak_of_no_photos(tmp_path: Path) -> None:
    sample = MeanSample(np.array([0.0, 1.0, 0.0, 1.0]), np.ones(4))
    sections = (
        Section.of_samples("captions", 4, "captions", {"x": sample}, ("a", "b", "c", "d"), replicates=10, seed=0),
        Section("median time", 3, "photos", {"answer_ms": 120.0}, scale={"answer_ms": 1.0}),
    )
    for name in ("one", "two"):
        Report(name, "data", "test", "lite", sections).write(tmp_path / name)
    shown = call("compare", tmp_path / "one", tmp_path / "two").stdout
    assert "split: test, 4 photos or clips" in shown
    assert " 0 photos" not in shown


def test_help_says_the_beam_that_is_used() -> None:
    shown = CliRunner().invoke(cli.app, ["evaluate", "--help"], env={"COLUMNS": "200"}).stdout
    assert f"{BEAM} for a bundle" in " ".join(shown.split())


def test_the_readme_says_where_the_command_is_after_the_demo() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert ".venv/bin/deixis" in readme


def test_ground_answers_with_whole_things_where_it_is_asked_to(
    small_bundle: Path, album: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photo = PHOTOS / "astronaut.jpg"
    part, whole = (
        json.loads(call("ground", photo, "a suit", "a woman", "--json", *more).stdout)["phrases"]
        for more in ([], ["--things"])
    )
    assert whole[1] == part[1], "a woman is a whole thing already"
    assert iou(np.array([whole[0]["boxes"][0]]), np.array([whole[1]["boxes"][0]])) > 0.8, "the suit is its wearer"
    assert part[0]["boxes"][0] != whole[0]["boxes"][0]
    alone = album / "captioner"
    shutil.copytree(small_bundle / "captioner", alone)
    assert "leave --things out" in refused(capsys, "ground", photo, "a suit", "--things", "--model", alone)
