"""The commands of ``deixis regions`` in one process; tests/regions/test_extract.py runs them as programs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from deixis.cli.regions import app
from deixis.errors import DeixisError

ANNOTATION = """<annotation><filename>{id}.jpg</filename>
<size><width>64</width><height>48</height><depth>3</depth></size>
<object><name>1</name><bndbox><xmin>11</xmin><ymin>11</ymin><xmax>40</xmax><ymax>40</ymax></bndbox></object>
</annotation>"""


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Two photos in the layout of Flickr30k Entities, each a red square on grey, one boxed phrase per caption."""
    folder = tmp_path / "data"
    for name in ("Annotations", "Sentences", "images"):
        (folder / name).mkdir(parents=True)
    for name in ("1", "2"):
        pixels = np.full((48, 64, 3), 128, dtype=np.uint8)
        pixels[10:40, 10:40] = (220, 20, 20)
        Image.fromarray(pixels).save(folder / "images" / f"{name}.png")
        (folder / "Annotations" / f"{name}.xml").write_text(ANNOTATION.format(id=name))
        (folder / "Sentences" / f"{name}.txt").write_text("[/EN#1/other A red square] on grey .\n" * 5)
    for split in ("train", "val", "test"):
        (folder / f"{split}.txt").write_text("1\n2\n" if split == "val" else "")
    return folder


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_dataset_is_found_by_the_name_recipes_use(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEIXIS_DATA", str(dataset.parent))
    call = ("extract", dataset.name, "-o", tmp_path / "store", "--extractor", "selective-search", "--processes", 0)
    made = json.loads(run(*call, "--limit", 1, "--json"))
    assert made["images"] == 1, "two are there"


@pytest.mark.parametrize("asked", [("--split", "train", "--split", "val"), ("--split", "train+val")])
def test_several_splits_are_all_extracted(asked: tuple[str, ...], dataset: Path, tmp_path: Path) -> None:
    (dataset / "train.txt").write_text("1\n")
    (dataset / "val.txt").write_text("2\n")
    call = ("extract", dataset, "-o", tmp_path / "store", "--extractor", "selective-search", "--processes", 0)
    assert json.loads(run(*call, *asked, "--json"))["images"] == 2


def test_extract_info_and_recall(dataset: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    call = ("extract", dataset, "-o", store, "--extractor", "selective-search", "--split", "val", "--processes", 0)
    made = json.loads(run(*call, "--json"))
    assert (made["images"], made["failed"]) == (2, 0)
    facts = json.loads(run("info", store, "--verify", "--json"))
    assert facts["images"] == 2
    assert facts["verified"]
    assert facts["settings"]["max_regions"] == 100
    assert "selective-search" in run("info", store)
    measured = json.loads(run("recall", store, dataset, "--split", "val", "-o", tmp_path / "curve.svg", "--json"))
    assert measured["phrases"] == {"all": 10, "other": 10}
    whole = next(
        row for row in measured["recall"] if (row["protocol"], row["iou"], row["type"]) == ("any-box", 0.5, "all")
    )
    assert whole["top100"] == 1
    assert (tmp_path / "curve.svg").read_text().startswith("<svg")
    assert "any-box, IoU >= 0.5" in run("recall", store, dataset, "--split", "val")


def test_a_damaged_shard_is_named(dataset: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    run("extract", dataset, "-o", store, "--extractor", "selective-search", "--processes", 0)
    shard = store / "00000.safetensors"
    raw = bytearray(shard.read_bytes())
    raw[-1] ^= 1
    shard.write_bytes(raw)
    run("info", store)
    with pytest.raises(DeixisError, match=r"00000\.safetensors is damaged"):
        CliRunner().invoke(app, ["info", str(store), "--verify"], catch_exceptions=False)


def test_import_and_refusals(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", boxes=np.ones((2, 4)), features=np.ones((2, 3)), size=[20, 10])
    call = ("import", tmp_path / "a.npz", "-o", tmp_path / "store", "--format", "npz", "--name", "mine")
    assert json.loads(run(*call, "--json"))["images"] == 1
    assert json.loads(run("info", tmp_path / "store", "--json"))["fingerprint"] == "import:npz:mine"
    with pytest.raises(DeixisError, match=r"drawn as \.svg"):
        CliRunner().invoke(app, ["recall", str(tmp_path), str(tmp_path), "-o", "x.pdf"], catch_exceptions=False)
    arguments = ["extract", str(tmp_path), "-o", str(tmp_path / "s"), "--engine", "slurm"]
    with pytest.raises(DeixisError, match="--engine 'slurm'"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
