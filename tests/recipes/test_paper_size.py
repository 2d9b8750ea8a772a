"""Papers 1 to 3 on small files in the published formats: import, the recipe's own ``data`` block, train, evaluate.

Only widths, epochs and batches are made small; datasets, stores, splits, regions, fields and teachers are the recipes'.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deixis.answering.load import Deixis
from deixis.cli.main import app
from deixis.errors import DeixisError
from deixis.evaluation.calibration import judge_phrases
from deixis.evaluation.setting import EvaluationOptions, prepare
from deixis.grounding.scan import Scan
from deixis.metrics.sections import CAPTIONS, GENERATED, TRUTH
from deixis.regions.store.reader import RegionStore
from tests.recipes import published

h5py = pytest.importorskip("h5py", reason="needs h5py: pip install 'deixis[imports]'")
pytest.importorskip("spacy", reason="needs spaCy: pip install 'deixis[train]'")

RUNNER = CliRunner()
SMALL = [
    "model.width=16",
    "model.region_width=8",
    "model.decoder.word_width=8",
    "data.min_count=1",
    "precision=float32",
]
SCAN = [
    "model.width=16",
    "model.word_width=8",
    "data.min_count=1",
    "stages.matching.epochs=1",
    "stages.matching.batch=4",
]
SCAN += ["validation.every=1", "precision=float32"]


def deixis(*arguments: object, wrong: bool = False) -> str:
    """Run a command; the last line of what it prints, or its one line of complaint."""
    told = RUNNER.invoke(app, [str(argument) for argument in arguments])
    if wrong:
        assert isinstance(told.exception, DeixisError), told.output  # main() turns it into one line and exit code 2
        return str(told.exception)
    assert told.exit_code == 0, f"{arguments}: {told.output} {told.exception!r}"
    return told.stdout.strip().splitlines()[-1] if told.stdout.strip() else ""


def train(recipe: str, run: Path, *overrides: str, wrong: bool = False) -> str:
    return deixis("train", recipe, *overrides, "-o", run, "--no-tensorboard", wrong=wrong)


def short(*stages: str) -> list[str]:
    return [f"stages.{stage}.{key}" for stage in stages for key in ("epochs=1", "batch=4")]


def evaluated(run: Path, data: Path, store: Path, split: str, *options: object) -> dict[str, dict[str, Any]]:
    """Return the sections of a report by the beginning of their names."""
    shown = deixis("evaluate", run, data, "--split", split, "--store", store, "--replicates", 0, "--json", *options)
    return {section["protocol"].partition(",")[0]: section for section in json.loads(shown)["sections"]}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: Path) -> Path:
    """A $DEIXIS_HOME that holds what the recipes name."""
    home = tmp_path / "home"
    (home / "data").mkdir(parents=True)
    (home / "data" / "class-lists").symlink_to(shared / "data" / "class-lists")
    monkeypatch.setenv("DEIXIS_HOME", str(home))
    monkeypatch.delenv("DEIXIS_DATA", raising=False)
    return home


@pytest.fixture
def gvd_store(home: Path, tmp_path: Path) -> Path:
    """Flickr30k with GVD's regions and conv maps, under the recipes' names."""
    ids = published.flickr30k(home / "data" / "flickr30k-entities")
    files, sizes, names, maps = published.gvd_photos(tmp_path / "gvd", ids, h5py)
    store = home / "stores" / "flickr30k-gvd"
    options = ("--sizes", sizes, "--class-names", names, "--maps", maps, "--name", "gvd")
    deixis("regions", "import", *files, "-o", store, "--format", "gvd", *options)
    return store


@pytest.mark.recipe
def test_cyclical_on_flickr30k(home: Path, gvd_store: Path, tmp_path: Path) -> None:
    small = [*SMALL, "model.attention.width=8", *short("words", "point")]
    for row in ("captioning/continued", "captioning/cyclical", "captioning/supervised"):
        stages = small if row != "captioning/supervised" else [*small[:-4], *short("words")]
        train(row, tmp_path / row.rpartition("/")[2], *stages)
    data = home / "data" / "flickr30k-entities"
    classes = home / "data" / "class-lists" / "flickr30k_classes_480.txt"
    sections = evaluated(tmp_path / "cyclical", data, gvd_store, "karpathy-test", "--classes", classes)
    assert sections[CAPTIONS]["items"] == 2
    assert 0 <= sections[GENERATED]["scores"]["F1_all"] <= 1
    assert TRUTH in sections
    config = json.loads(next((tmp_path / "cyclical" / "checkpoints").glob("*/config.json")).read_text())
    assert config["recipe"]["data"]["train"] == "karpathy-train"


@pytest.mark.recipe
def test_distributed_attention_on_flickr30k(home: Path, gvd_store: Path, tmp_path: Path) -> None:
    train("captioning/distributed", tmp_path / "run", *SMALL, "model.region_width=0", *short("words", "point"))
    sections = evaluated(tmp_path / "run", home / "data" / "flickr30k-entities", gvd_store, "karpathy-test")
    assert sections[CAPTIONS]["items"] == 2
    assert RegionStore.open(gvd_store).header.widths["feature_map"] == (3, 3, 2048)


@pytest.mark.recipe
def test_pos_scan_on_flickr30k(home: Path, tmp_path: Path) -> None:
    """Bottom-up features of photos twice as large as the annotated ones: every measure must know."""
    data, store = home / "data" / "flickr30k-entities", home / "stores" / "flickr30k"
    ids = published.flickr30k(data)
    published.bottom_up(tmp_path / "bu36.tsv", ids)
    deixis("regions", "import", tmp_path / "bu36.tsv", "-o", store, "--format", "bottom-up-tsv", "--name", "bu36")
    recall = json.loads(deixis("regions", "recall", store, data, "--split", "karpathy-test", "--json"))["recall"]
    assert recall[0] == {
        "protocol": "any-box",
        "iou": 0.5,
        "type": "all",
        **{f"top{k}": 1.0 for k in (10, 36, 50, 100)},
    }

    lacking = train("captioning/pos-scan", tmp_path / "run", *SMALL, *short("point", "reward"), wrong=True)
    assert "stages.point.objectives.distillation.teacher is 'pos-scan'" in lacking
    train("grounding/scan", home / "runs" / "pos-scan", *SCAN)
    train("grounding/scan:scan", home / "runs" / "scan", *SCAN)
    teacher = evaluated(home / "runs" / "pos-scan", data, store, "karpathy-test")
    assert teacher["any-box (InfoGround)"]["scores"]["bound"] == 1.0  # as recall says of the same boxes
    model = Deixis.from_pretrained(home / "runs" / "pos-scan", extractor=False)
    work = prepare(model, str(data), EvaluationOptions("karpathy-test", store=str(store)))
    part = model.part
    assert isinstance(part.model, Scan)
    own = judge_phrases(part.model, part.vocabulary, work.examples, work.source(part))  # for calibrate
    assert own.right.mean() == pytest.approx(teacher["any-box (InfoGround)"]["scores"]["R@1"])

    train("captioning/pos-scan", tmp_path / "run", *SMALL, *short("point", "reward"))
    pupil = evaluated(tmp_path / "run", data, store, "karpathy-test")
    assert {row[0] for row in pupil[TRUTH]["breakdowns"][0]["rows"]} == {
        row[0] for row in teacher[TRUTH]["breakdowns"][0]["rows"]
    }


@pytest.mark.recipe
def test_pos_scan_on_coco(home: Path, tmp_path: Path) -> None:
    data, store = home / "data" / "coco", home / "stores" / "coco"
    ids = published.coco(data)
    published.bottom_up(tmp_path / "bu36.tsv", ids)
    deixis("regions", "import", tmp_path / "bu36.tsv", "-o", store, "--format", "bottom-up-tsv", "--name", "bu36")
    train("grounding/scan:coco", home / "runs" / "pos-scan-coco", *SCAN)
    train("grounding/scan:scan-coco", home / "runs" / "scan-coco", *SCAN)
    train("captioning/pos-scan:coco-distilled-scan", tmp_path / "run", *SMALL, *short("point", "reward"))
    sections = evaluated(tmp_path / "run", data, store, "karpathy-test", "--beam", 3)
    assert sections[CAPTIONS]["items"] == 2


@pytest.mark.recipe
def test_clips_of_activitynet(home: Path, tmp_path: Path) -> None:
    data, store = home / "data" / "activitynet-entities", home / "stores" / "activitynet"
    ids = published.activitynet(data)
    files, sizes, names, frames = published.gvd_clips(tmp_path / "gvd", ids, h5py)
    times = data / "anet_entities_cleaned_class_thresh50_trainval.json"
    options = ("--sizes", sizes, "--class-names", names, "--frames", frames, "--times", times, "--name", "gvd")
    deixis("regions", "import", *files, "-o", store, "--format", "gvd", *options)
    opened = RegionStore.open(store)
    assert opened.header.widths["timeline"] == (3072,)
    kept = opened.get(ids[1])  # seconds 30 to 50 of 60, in 90 frames
    assert kept.timeline is not None
    assert kept.timeline.shape == (30, 3072)
    assert kept.frames == 10

    small = [*SMALL, "model.attention.width=8", *short("words", "point")]
    for row in ("cyclical", "supervised", "distributed"):
        train(
            f"captioning/clips:{row}",
            tmp_path / row,
            *small,
            *(["model.region_width=0"] if row == "distributed" else []),
        )
    sections = evaluated(tmp_path / "cyclical", data, store, "val")
    (dense,) = (section for name, section in sections.items() if name.startswith("ActivityNet Captions"))
    assert dense["items"] == 2  # videos, of two segments each
    logged = (tmp_path / "cyclical" / "metrics.jsonl").read_text()
    assert dense["scores"]["CIDEr"] == pytest.approx(
        json.loads([line for line in logged.splitlines() if "validation" in line][-1])["validation"]["cider"], abs=10
    )


@pytest.mark.recipe
def test_what_does_not_fit_is_said_before_a_run_is_begun(home: Path, gvd_store: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    small = [*SMALL, "model.attention.width=8", *short("words", "point")]
    for override, told in (
        ("data.train=training", "data.train is 'training'"),
        ("data.validation=validation", "data.validation is 'validation'"),
        ("data.feature_width=512", "described by 2048 numbers, this recipe is for 512"),
        ("model.encoder.similarity=words", "model.encoder.similarity: words needs word_probs"),
        ("data.maps=false", "set data.maps to true"),
        ("start_from=nobody", "start_from is 'nobody'"),
        ("stages.point.objectives=[{kind: supervision}]", "data.supervision"),
        ("data.classes=nowhere.txt", "data.classes=YOUR_FILE"),
        ("data.vocabulary=nowhere.json", "data.vocabulary=YOUR_FILE"),
    ):
        assert told in train("captioning/cyclical", run, *small, override, wrong=True)
        assert not run.exists()
    (home / "data" / "nothing.txt").write_text("\n")
    late = train("captioning/cyclical", run, *small, "data.classes=nothing.txt", wrong=True)  # found when data are read
    assert "names no object class" in late
    assert not run.exists()
    train("captioning/cyclical", run, *small)
    assert (run / "checkpoints.json").is_file()
