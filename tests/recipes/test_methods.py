"""Each method on a few real photos, through the real training entry point: it learns what it says it learns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from deixis.errors import DeixisError
from deixis.models.names import load
from deixis.objectives.base import Context
from deixis.training.dataset import TrainingData
from deixis.training.recipe_files import load_recipe
from deixis.training.run import Run
from deixis.training.train import train

pytestmark = pytest.mark.recipe
LoadData = Callable[..., TrainingData]


@pytest.fixture(scope="module")
def tiny(photos: Path, store: Path) -> list[str]:
    """Overrides that make any captioning recipe a matter of seconds."""
    return [
        "size=cpu",
        f"data.dataset={photos}",
        f"data.store={store}",
        "data.regions=12",
        "data.min_count=2",
        "precision=float32",
        "model.width=64",
        "model.encoder.dropout=0.1",
        "model.decoder.word_dropout=0.1",
        "model.decoder.output_dropout=0.1",
        "log_every=1",
        "validation.samples=0",
    ]


def run(recipe: str, path: Path, *overrides: str) -> list[dict[str, float]]:
    """Train and return what was logged of every step."""
    train(load_recipe(f"captioning/{recipe}", overrides), path, threads=1, tensorboard=False)
    return [entry for entry in Run(path).entries() if "loss" in entry]


def point(epochs: int, lr: float = 3e-3) -> list[str]:
    """The second stage alone, for so many epochs."""
    return [
        "begin_at=point",
        f"stages.point.epochs={epochs}",
        "stages.point.batch=8",
        f"stages.point.optimizer.lr={lr}",
        "stages.point.schedule={kind: constant}",
        f"validation.every={epochs}",
    ]


def mean(entries: list[dict[str, float]], name: str) -> float:
    return sum(entry[name] for entry in entries) / len(entries)


@pytest.fixture(scope="module")
def baseline(tiny: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A young captioner that the methods go on from."""
    path = tmp_path_factory.mktemp("runs") / "baseline"
    stage = ["stages.words.epochs=50", "stages.words.batch=8", "stages.words.optimizer.lr=5e-3", "validation.every=50"]
    losses = run("baseline", path, *tiny, *stage, "stages.words.schedule={kind: constant}")
    assert mean(losses[-4:], "loss") < 0.75 * mean(losses[:4], "loss")
    return path


@pytest.fixture(scope="module")
def teacher(tiny: list[str], classes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A young matcher that knows more words than the captioner."""
    path = tmp_path_factory.mktemp("runs") / "pos-scan"
    data = [text for text in tiny if text.startswith("data.") and "min_count" not in text]
    stage = ["stages.matching.epochs=6", "stages.matching.batch=16", "stages.matching.optimizer.lr=2e-3"]
    overrides = ["size=cpu", *data, *stage, "data.min_count=1", "model.width=48", "validation.every=6"]
    overrides.append(f"data.classes={classes / 'flickr30k_classes_480.txt'}")
    train(load_recipe("grounding/scan", overrides), path, threads=1, tensorboard=False)
    return path


def test_cyclical_learns_to_reconstruct_and_says_where_it_looks(
    tiny: list[str], baseline: Path, tmp_path: Path
) -> None:
    """The recipe's loss falls and its accuracies are logged; that the localizer beats chance is seen in test_real.

    There the photos it is asked about are those it learned from. On a few photos it has never seen, a localizer of some
    minutes is at chance whatever its rate and length (measured: .101 against .106).
    """
    losses = run("cyclical", tmp_path / "run", *tiny, *point(12), f"start_from={baseline}")
    assert mean(losses[-4:], "reconstruction") < 0.95 * mean(losses[:4], "reconstruction")
    measured = [entry["validation"] for entry in Run(tmp_path / "run").entries() if "validation" in entry]
    for name in ("localizer_accuracy", "decoder_accuracy"):  # logged, although nothing learns from boxes
        assert 0 < measured[-1][name] < 1
    names = load(str(tmp_path / "run")).model.state_dict()
    assert not [name for name in names if "localizer" in name]  # what answers never has it


def test_distillation_moves_attention_towards_the_teacher(
    tiny: list[str], baseline: Path, teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEIXIS_HOME", str(tmp_path / "home"))
    objective = "stages.point.objectives.distillation"
    options = [f"{objective}.teacher={teacher}", f"{objective}.weight=1.0", f"start_from={baseline}"]
    losses = run("pos-scan:distilled", tmp_path / "memory", *tiny, *point(24, 0.01), *options)
    assert mean(losses[-4:], "distillation") < 0.9 * mean(losses[:4], "distillation")
    assert not (tmp_path / "home" / "teachers").exists()

    # asked ahead and kept on disk, or read from there by the next run, the teacher says the same
    options += [f"{objective}.keep=disk", "end_at=point"]
    for name in ("disk", "again"):
        kept = run("pos-scan:distilled", tmp_path / name, *tiny, *point(1, 0.01), *options)
        assert [entry["distillation"] for entry in kept] == [entry["distillation"] for entry in losses[:4]]
        assert len(list((tmp_path / "home" / "teachers").glob("*.safetensors"))) == 1


@pytest.mark.parametrize("grounder", [False, True])
def test_self_critical_training_raises_the_reward(
    grounder: bool, tiny: list[str], baseline: Path, teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEIXIS_HOME", str(tmp_path / "home"))
    stage = ["begin_at=reward", "stages.reward.epochs=50", "stages.reward.batch=8", "stages.reward.optimizer.lr=2e-3"]
    stage += ["validation.every=50", "data.limit=8"]  # one batch of photos, again and again
    if grounder:
        stage.append(f"stages.reward.objectives.self_critical.grounders={{{teacher}: 1.0}}")
    recipe = "pos-scan" if grounder else "pos-scan:none-cider"
    losses = run(recipe, tmp_path / "run", *tiny, *stage, f"start_from={baseline}")
    assert mean(losses[-10:], "reward") > (1.05 if grounder else 1.15) * mean(losses[:10], "reward")
    assert len(list((tmp_path / "home" / "frequencies").iterdir())) == 1  # counted once, for the next run too


@pytest.mark.parametrize("state", ["separate", "shared"])
def test_branches_learn_from_a_soft_baseline(state: str, tiny: list[str], baseline: Path, tmp_path: Path) -> None:
    option = f"model.attention.language_state={state}"
    decoder = "model.decoder={form: cyclical, word_dropout: 0.1, output_dropout: 0.1}"
    losses = run("distributed", tmp_path / "run", *tiny, decoder, *point(4), option, f"start_from={baseline}")
    first = [entry for entry in Run(baseline).entries() if "loss" in entry]
    assert losses[0]["cross_entropy"] < mean(first[:4], "loss")  # four copies say what their one original says
    assert mean(losses[-4:], "cross_entropy") < mean(losses[:4], "cross_entropy")
    model = load(str(tmp_path / "run")).model
    assert model.active_branches == 4
    assert int(model.decoder.attention.joined) == 4  # type: ignore[union-attr,arg-type]


def test_everything_at_once(tiny: list[str], baseline: Path, teacher: Path, tmp_path: Path) -> None:
    options = [f"stages.point.objectives.distillation.teacher={teacher}", "stages.reward.epochs=2"]
    options += [f"stages.reward.objectives.self_critical.grounders={{{teacher}: 1.0}}", "stages.reward.batch=8"]
    options.append("stages.point.objectives.distillation.weight=5.0")  # the recipe's .02 shows after many more steps
    losses = run("combined", tmp_path / "run", *tiny, *point(6, 0.01), *options, f"start_from={baseline}")
    pointing = [entry for entry in losses if entry["stage"] == "point"]  # type: ignore[comparison-overlap]
    assert len(pointing) == 24
    for name in ("cross_entropy", "reconstruction", "distillation"):
        assert mean(pointing[-4:], name) < mean(pointing[:4], name), name
    assert all("reward" in entry for entry in losses[24:])


def test_human_boxes_as_regions_need_supervision(tiny: list[str], photos: Path, classes: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from deixis.cli.main import app

    names = str(classes / "flickr30k_classes_480.txt")
    store = tmp_path / "truth"
    call = ["regions", "truth", str(photos), "-o", str(store), "--classes", names, "--json"]
    result = json.loads(CliRunner().invoke(app, call, catch_exceptions=False).stdout)
    assert result["images"] == 40
    assert result["regions"] > 3 * 40  # several things in a photo, and the whole of it
    own = [text for text in tiny if "data.store" not in text] + [f"data.store={store}", f"data.classes={names}"]
    with pytest.raises(DeixisError, match="human boxes"):
        run("baseline", tmp_path / "weak", *own)
    losses = run("perfect-detector:cyclical", tmp_path / "run", *own, *point(3))
    assert mean(losses[-4:], "loss") < mean(losses[:4], "loss")


def test_the_biased_detector_stays_as_its_stage_left_it(tiny: list[str], classes: Path, tmp_path: Path) -> None:
    options = [f"data.classes={classes / 'flickr30k_classes_480.txt'}", "stages.detector.epochs=4"]
    options += ["stages.detector.batch=8", "stages.words.epochs=1", "stages.words.batch=8", "validation.every=9"]
    detector = run("biased-detector", tmp_path / "detector", *tiny, *options, "end_at=detector")
    assert mean(detector[-4:], "region_classification") < mean(detector[:4], "region_classification")
    again = ["begin_at=words", "end_at=words", f"start_from={tmp_path / 'detector'}"]
    run("biased-detector", tmp_path / "words", *tiny, *options, *again)
    before, after = (load(str(tmp_path / name)).model.state_dict() for name in ("detector", "words"))
    for name, value in before.items():
        same = name.startswith(("encoder.detector", "encoder.classifier"))
        if same or name == "decoder.output.weight":
            assert torch.equal(value, after[name]) is same, name


def test_a_step_measures_where_cyclical_looks(small_data: LoadData) -> None:
    """The hits of the localizer by hand: the most attended region against the boxes of the word."""
    from deixis.captioning import Captioner, CaptionerConfig, InputSizes
    from deixis.geometry import iou
    from deixis.objectives import Cyclical

    data = small_data(True)
    torch.manual_seed(3)
    model = Captioner(CaptionerConfig(width=16), InputSizes.of_store(data.store, data.vocabulary)).eval()
    objective = Cyclical(model)
    batch = data.train.batch(range(2))
    hits = objective.hits(Context(model, batch))["localizer_accuracy"]
    attention = objective.localize(model, model.encode(batch.regions), batch, batch.words).regions
    expected = []
    phrases, boxes = batch.phrases, batch.phrase_boxes
    assert phrases is not None
    assert boxes is not None
    for at in range(len(phrases.caption)):
        own = boxes.boxes[at][boxes.mask[at]]
        if not len(own):
            continue
        caption = int(phrases.caption[at])
        best = int(attention[caption, phrases.head[at]].argmax())
        region = batch.regions.boxes[batch.image_of[caption], best]
        expected.append(bool((iou(region[None], own, plus_one=True) > 0.5).any()))
    assert hits.tolist() == expected
    assert 0 < sum(expected) < len(expected)
