"""``deixis export`` as a person types it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deixis.cli.export import _FORMATS
from deixis.cli.main import app, main
from deixis.export.formats import FORMATS
from tests.export.answers import CLIP, DOG, PHRASES


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    file = tmp_path / "predictions.jsonl"
    file.write_text("".join(json.dumps(answer.to_json()) + "\n" for answer in (DOG, PHRASES)))
    return file


def test_help_names_every_format() -> None:
    assert _FORMATS.split(", ") == [*FORMATS, "html"]
    assert "labelstudio" in CliRunner().invoke(app, ["export", "--help"]).output


def test_label_studio_with_its_interface(predictions: Path, tmp_path: Path) -> None:
    out = tmp_path / "tasks.json"
    done = CliRunner().invoke(
        app, ["export", str(predictions), "--format", "labelstudio", "-o", str(out), "--prefix", "https://h/", "--json"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.output) == {
        "format": "labelstudio", "answers": 2, "files": [str(out), str(tmp_path / "tasks.config.xml")],
    }  # fmt: skip
    assert json.loads(out.read_text())[0]["data"]["image"] == "https://h/photos/dog.jpg"


def test_coco_results_with_the_ids_of_a_dataset(predictions: Path, tmp_path: Path) -> None:
    like = tmp_path / "instances.json"
    images = [{"id": 5, "file_name": "dog.jpg"}, {"id": 6, "file_name": "cat.png"}]
    like.write_text(json.dumps({"images": images, "categories": [{"id": 9, "name": "hat"}]}))
    out = tmp_path / "results.json"
    done = CliRunner().invoke(
        app, ["export", str(predictions), "-f", "coco-results", "-o", str(out), "--like", str(like)]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(out.read_text()) == [{"image_id": 6, "category_id": 9, "bbox": [0, 0, 32, 24], "score": 0.9}]


def test_a_page_with_photos_from_a_folder(predictions: Path, tmp_path: Path) -> None:
    from PIL import Image

    for name in ("dog.jpg", "cat.png"):
        Image.new("RGB", (64, 48), "teal").save(tmp_path / name)
    out = tmp_path / "page.html"
    done = CliRunner().invoke(
        app, ["export", str(predictions), "-f", "html", "-o", str(out), "--photos", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    assert "two dogs chase a ball" in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-f", "tfrecord"], "no format 'tfrecord'"),
        (["-f", "csv", "--like", "x.json"], "--like belongs to the format coco"),
        (["-f", "anet"], "phrases among the predictions"),
        (["-f", "html"], "no photo 'photos/dog.jpg'"),
        (["-f", "coco", "--like", "nowhere.json"], "no file nowhere.json"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    predictions: Path, tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as left:
        main(["export", str(predictions), "-o", str(out), *arguments])
    assert left.value.code == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1
    assert list(tmp_path.iterdir()) == [predictions]


def test_photos_and_clips_do_not_share_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "predictions.jsonl"
    file.write_text("".join(json.dumps(answer.to_json()) + "\n" for answer in (DOG, CLIP)))
    with pytest.raises(SystemExit):
        main(["export", str(file), "-f", "html", "-o", str(tmp_path / "page.html")])
    assert "holds 1 clips and 1 answers about photos" in capsys.readouterr().err


def test_a_place_that_is_no_file_is_refused_and_left_alone(
    predictions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # as /dev/null, which a test had better not touch
    for place, message in (
        (tmp_path, "is a folder"),
        (pipe, "is a device or a pipe"),
        (predictions / "a", "no folder"),
    ):
        with pytest.raises(SystemExit) as left:
            main(["export", str(predictions), "-f", "csv", "-o", str(place)])
        assert left.value.code == 2
        assert message in capsys.readouterr().err
    assert pipe.is_fifo()
    assert {file.name for file in tmp_path.iterdir()} == {predictions.name, "pipe"}
