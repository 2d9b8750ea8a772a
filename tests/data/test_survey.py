"""``deixis data info`` and ``show``: counts, problems, drawings, and errors in one line."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path

import pytest
from PIL import Image

from deixis.cli.main import main
from deixis.data import open_dataset
from deixis.data.survey import Counts, survey


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = 0
    try:
        main(list(arguments))
    except SystemExit as stop:
        code = int(stop.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def test_counts(entities: Path) -> None:
    result = survey(open_dataset(entities))
    assert result.splits == {"val": Counts(images=1, files=1, captions=3, phrases=5, boxed_phrases=2, boxes=2)}
    assert result.total == result.splits["val"]


def test_processes_count_what_one_process_counts(entities: Path) -> None:
    for number in range(600):
        (entities / "Sentences" / f"{100 + number}.txt").write_text("A cat\n\n" if number % 2 else "A dog\n")
    (entities / "val.txt").unlink()
    alone, together = (survey(open_dataset(entities), processes=number) for number in (1, 2))
    assert alone.total == together.total
    assert alone.total.images == 601
    for kind in alone.problems.kinds:
        assert set(alone.problems.places(kind, None)) == set(together.problems.places(kind, None))


def test_examples_in_two_splits_count_once_in_total(coco: Path) -> None:
    (coco / "karpathy_test_images.txt").write_text("val2014/COCO_val2014_000000000011.jpg 11\n")
    result = survey(open_dataset(coco))
    assert result.splits["karpathy-test"].images == 1
    assert result.total.images == 2


def test_info_prints_a_table_and_the_first_three_places(entities: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (entities / "val.txt").write_text("7\n" + "".join(f"gone{n}\n" for n in range(5)))
    code, out, _ = call(capsys, "data", "info", str(entities))
    assert code == 0
    assert "val" in out
    assert "5  id in a split list that does not exist" in out
    assert "gone2" in out
    assert "gone3" not in out
    code, out, _ = call(capsys, "data", "info", str(entities), "--json")
    data = json.loads(out)
    assert data["splits"]["val"]["boxed_phrases"] == 2
    assert data["problems"][0]["count"] == 5
    assert len(data["problems"][0]["places"]) == 3


@pytest.mark.parametrize("ending", ["png", "html"])
def test_show_draws(entities: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str) -> None:
    target = tmp_path / "new" / f"out.{ending}"
    code, out, _ = call(capsys, "data", "show", str(entities), "7", "-o", str(target))
    assert code == 0
    assert "Two girls with red hats" in out
    if ending == "png":
        assert Image.open(target).width > 500
    else:
        page = target.read_text()
        assert "Two girls with red hats" in page
        inside = re.search(r">(UklGR[\w+/=]+)</script>", page)  # a WebP file in base64
        assert inside, "the photo is inside: one file to send"
        assert Image.open(io.BytesIO(base64.b64decode(inside[1]))).width > 40
    assert [file.name for file in target.parent.iterdir()] == [target.name], "nothing half-written stays"


def test_show_as_json(entities: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "data", "show", str(entities), "7", "--json")
    assert code == 0
    assert json.loads(out)["captions"][0]["phrases"][1]["text"] == "red hats"


def test_errors_are_one_line(entities: Path, anet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in [
        (["info", str(tmp_path / "nowhere")], "there is no file or folder"),
        (["info", str(tmp_path)], "looks like none of the dataset formats"),
        (
            ["info", str(entities), "--format", "flickr"],
            "unknown dataset format 'flickr'; there are flickr30k-entities",
        ),
        (["show", str(entities), "99", "-o", str(tmp_path / "x.png")], "there is no example '99'"),
        (["show", str(entities), "7"], "where should the drawing go"),
        (["show", str(entities), "7", "-o", str(tmp_path / "x.gif")], ".png or .html"),
        (["show", str(anet), "v_a_segment_00", "-o", str(tmp_path / "x.png")], "its clip is not here"),
        (["clips", str(anet), "-o", str(tmp_path / "c"), "--split", "train", "--count", "1"], "dataset of clips"),
    ]:
        code, out, err = call(capsys, "data", *arguments)
        assert (code, out) == (2, ""), arguments
        assert words in err
        assert err.count("\n") == 1
    assert not list(tmp_path.glob("x.*"))
    assert not (tmp_path / "c").exists()


@pytest.mark.recipe
def test_the_real_dataset(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "data", "info", str(shared / "data" / "flickr8k-entities"), "--json")
    assert code == 0
    data = json.loads(out)
    assert [data["splits"][split]["images"] for split in ("train", "val", "test")] == [7059, 247, 285]
    assert [data["splits"][split]["boxed_phrases"] for split in ("val", "test")] == [3239, 3868]
    assert data["problems"] == []
