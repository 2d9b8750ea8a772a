"""The loop on a small real dataset, in this process."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from deixis import registry
from deixis.errors import BadFileError, BadRecipeError, DeixisError
from deixis.models.build import load_model
from deixis.models.checkpoint import load_config, load_weights
from deixis.objectives.base import Context, Objective
from deixis.regions.store.reader import RegionStore
from deixis.regions.store.writer import write_store
from deixis.training.loop import StoppedError
from deixis.training.recipe import Recipe
from deixis.training.run import Run
from deixis.training.train import train
from deixis.training.watch import Watch

Small = Callable[..., Recipe]


def weights(run: Path, which: str = "last") -> dict[str, Tensor]:
    folder = Run(run).pointer(which)
    assert folder is not None
    return load_weights(folder)


def losses(run: Path) -> list[float]:
    return [entry["loss"] for entry in Run(run).entries() if "loss" in entry]


def assert_equal(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> None:
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name


def test_a_run_learns_and_leaves_a_model(small_recipe: Small, tmp_path: Path) -> None:
    recipe = small_recipe(
        "stages.0.epochs=12", "stages.0.schedule.kind=constant", "stages.0.batch=4", "validation.every=6"
    )
    trained = train(recipe, tmp_path / "run", tensorboard=False)
    curve = losses(tmp_path / "run")
    assert len(curve) == 72
    assert sum(curve[-3:]) / 3 < 0.85 * sum(curve[:3]) / 3
    best = Run(tmp_path / "run").pointer("best")
    assert best is not None
    model, vocabulary, config = load_model(best)
    assert trained.metrics[1] == config.metrics
    assert not model.training
    assert config.sizes["words"] == len(vocabulary)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "validation cider" in page
    assert "data:image/jpeg;base64," in page
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "recipe.yaml",
        "checkpoints",
        "checkpoints.json",
        "metrics.jsonl",
        "samples.jsonl",
        "report.html",
    }


class StopAt(Watch):
    """Asks the run to stop after given steps, as a signal would."""

    def __init__(self, at: int, stop: Any) -> None:
        super().__init__(enabled=False)
        self.at, self.stop = at, stop

    def step(self, entry: Mapping[str, Any]) -> None:
        if entry["step"] == self.at:
            self.stop.signal = 15


def stop_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next training stop once ``step`` is done."""
    from deixis.training import loop

    original = loop.Trainer.__init__

    def patched(self: loop.Trainer, *arguments: Any) -> None:
        original(self, *arguments)
        self.watch = StopAt(step, self.stop)

    monkeypatch.setattr(loop.Trainer, "__init__", patched)


TWO_STAGES = (
    "data.captions=3",
    "stages=[{name: a, epochs: 2, batch: 7, accumulate: 2, objectives: [{kind: cross_entropy, sampling_rise: 0.3, "
    "sampling_every: 1}], optimizer: {lr: 5e-3}, clip: {by: value, at: 0.05}}, "
    "{name: b, epochs: 2, batch: 12, objectives: [cross_entropy], optimizer: {kind: adamw, weight_decay: 0.1}, "
    "schedule: {kind: plateau, patience: 0}}]",
)


def test_stopping_anywhere_and_resuming_changes_nothing(
    small_recipe: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = small_recipe(*TWO_STAGES)
    train(recipe, tmp_path / "whole", tensorboard=False)
    last = len(losses(tmp_path / "whole"))
    assert last == 2 * 4 + 2 * 2
    stops = sorted(random.Random(0).sample(range(1, last), 4))
    for stop in stops:
        with monkeypatch.context() as patch:
            stop_at(stop, patch)
            with pytest.raises(StoppedError, match=f"stopped at step {stop} "):
                train(recipe, tmp_path / "cut", resume=True, tensorboard=False)
        torch.rand(3)  # whatever happens between
    train(recipe, tmp_path / "cut", resume=True, tensorboard=False)
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")
    assert_equal(weights(tmp_path / "cut"), weights(tmp_path / "whole"))
    assert_equal(weights(tmp_path / "cut", "best"), weights(tmp_path / "whole", "best"))


def test_early_stopping_keeps_the_best(small_recipe: Small, tmp_path: Path) -> None:
    recipe = small_recipe("stages.0.epochs=30", "stages.0.patience=2", "stages.0.optimizer.lr=1e-9")
    train(recipe, tmp_path / "run", tensorboard=False)
    validations = [entry for entry in Run(tmp_path / "run").entries() if "validation" in entry]
    assert len(validations) < 30
    values = [entry["validation"]["cider"] for entry in validations]
    assert max(values) == values[-3]
    best = Run(tmp_path / "run").pointer("best")
    assert best is not None
    assert load_config(best).metrics["cider"] == max(values)


class Explodes(Objective):
    """Becomes NaN at step 4."""

    def __init__(self, *, kind_of_nan: str = "loss") -> None:
        super().__init__()
        self.kind_of_nan = kind_of_nan

    def forward(self, context: Context) -> dict[str, Tensor]:
        hidden = context.first().hidden.mean()
        if context.step == 4:
            # a finite loss with an infinite gradient, or a loss that is NaN itself
            return {"bang": (hidden * 0).clamp(min=0).sqrt() if self.kind_of_nan == "gradient" else hidden * torch.nan}
        return {"bang": hidden * 0}


@pytest.mark.parametrize(("kind", "message"), [("loss", "bang and loss"), ("gradient", "gradient norm nan")])
def test_nan_stops_before_the_weights_change(
    kind: str, message: str, small_recipe: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.REGISTRY["objective"], "explodes", f"{__name__}:Explodes")
    monkeypatch.setattr(registry, "find_class", _finder(registry.find_class))
    recipe = small_recipe(f"stages.0.objectives=[cross_entropy, {{kind: explodes, kind_of_nan: {kind}}}]")
    with pytest.raises(
        DeixisError, match=f"{message} became NaN or infinite in stage words, epoch 1, batch 1"
    ) as caught:
        train(recipe, tmp_path / "run", tensorboard=False)
    last = Run(tmp_path / "run").pointer("last")
    assert f"the last good checkpoint is {last}" in str(caught.value)
    assert load_config(last).step == 3  # type: ignore[arg-type]
    load_model(last)  # type: ignore[arg-type]


def _finder(original: Callable[..., Any]) -> Callable[..., Any]:
    def find(kind: Any, name: str, where: str) -> Any:
        return Explodes if name == "explodes" else original(kind, name, where)

    return find


def test_a_folder_with_a_run_is_not_overwritten(small_recipe: Small, tmp_path: Path) -> None:
    train(small_recipe("stages.0.epochs=1"), tmp_path / "run", tensorboard=False)
    with pytest.raises(DeixisError, match="already holds a run: go on with --resume"):
        train(small_recipe("stages.0.epochs=1"), tmp_path / "run", tensorboard=False)
    with pytest.raises(DeixisError, match=r"not the one .* was begun with \(seed, stages.0.epochs\)"):
        train(small_recipe("seed=2"), tmp_path / "run", resume=True, tensorboard=False)
    before = (tmp_path / "run" / "metrics.jsonl").read_text()
    train(
        small_recipe("stages.0.epochs=1"), tmp_path / "run", resume=True, tensorboard=False
    )  # finished: nothing to do
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == before


def test_seeds_give_mean_and_deviation(small_recipe: Small, tmp_path: Path) -> None:
    trained = train(small_recipe("stages.0.epochs=1", "seed=5"), tmp_path / "runs", seeds=2, tensorboard=False)
    a, b = trained.metrics[5]["rougel"], trained.metrics[6]["rougel"]
    facts = json.loads((tmp_path / "runs" / "seeds.json").read_text())
    assert facts["mean"]["rougel"] == pytest.approx((a + b) / 2)
    assert facts["deviation"]["rougel"] == pytest.approx(abs(a - b) / 2**0.5)
    assert losses(tmp_path / "runs" / "seed-5") != losses(tmp_path / "runs" / "seed-6")


def test_regions_of_another_extractor_are_refused(small_recipe: Small, grid_store: Path, tmp_path: Path) -> None:
    recipe = small_recipe("stages.0.epochs=1")
    train(recipe, tmp_path / "run", tensorboard=False)
    store = RegionStore.open(grid_store)
    from dataclasses import replace

    other = [(name, replace(store.get(name), fingerprint="other:1")) for name in store.ids]
    write_store(tmp_path / "other", other, store.ids, "other:1", {})
    last = Run(tmp_path / "run").pointer("last")
    assert last is not None
    with pytest.raises(DeixisError, match=r"trained on regions of grid:test, but .* holds regions of other:1"):
        load_config(last).require("other:1", tmp_path / "other")
    mixed = f"data.more=[{{dataset: {recipe.data.dataset}, store: {tmp_path / 'other'}, split: val, limit: 2}}]"
    with pytest.raises(
        DeixisError, match=r"data\.more\.0\.store is .* holds regions of other:1, but .* holds regions of grid:test"
    ):
        train(small_recipe(mixed), tmp_path / "mixed", tensorboard=False)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data.train=tset"], "no split 'tset'"),
        (["data.limit=0"], "split 'train' of .* has no image with a caption"),
        (["data.limit=40"], "lacks the regions of 16 of 40 images"),
        (["data.min_count=1000"], "no word is seen 1000 times"),
        (["data.store=nowhere"], "found no 'nowhere'"),
        (["model.widht=3"], "unknown key 'widht' in model: did you mean 'width'"),
        (["model.kind=captoiner"], "unknown model 'captoiner' in model: did you mean 'captioner'"),
        (["stages.0.objectives.0.smothing=1"], "did you mean 'smoothing'"),
        (["stages.0.objectives=[cross_entropi]"], "unknown objective 'cross_entropi'.*did you mean 'cross_entropy'"),
        (["validation.metric=ciderr"], "unknown metric 'ciderr'.*did you mean 'cider'"),
        (["stages.0.set={no_such: 1}"], "names no attribute of the model"),
        (["stages.0.accumulate=20"], "cannot be shared by 1 processes in 20 parts"),
    ],
)
def test_bad_input_is_named(overrides: list[str], message: str, small_recipe: Small, tmp_path: Path) -> None:
    with pytest.raises(DeixisError, match=message):
        train(small_recipe(*overrides), tmp_path / "run", tensorboard=False)


def test_damaged_checkpoints_are_refused(small_recipe: Small, tmp_path: Path) -> None:
    recipe = small_recipe("stages.0.epochs=1")
    train(recipe, tmp_path / "run", tensorboard=False)
    last = Run(tmp_path / "run").pointer("last")
    assert last is not None
    for name in ("model.safetensors", "vocabulary.json", "state.safetensors"):
        whole = (last / name).read_bytes()
        (last / name).write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        with pytest.raises(BadFileError, match=f"{name} is damaged: its checksum"):
            train(recipe, tmp_path / "run", resume=True, tensorboard=False)
        (last / name).write_bytes(whole)
    config = json.loads((last / "config.json").read_text())
    (last / "config.json").write_text(json.dumps(config | {"format": 99}))
    with pytest.raises(BadFileError, match="model of format 99, this Deixis reads 1"):
        load_model(last)
    (last / "config.json").write_text("{")
    with pytest.raises(BadFileError, match="broken JSON"):
        load_model(last)
    (last / "config.json").write_text(json.dumps(config | {"surprise": 1}))
    with pytest.raises(BadFileError, match="unknown surprise"):
        load_model(last)
    wide = config | {"recipe": config["recipe"] | {"model": {"kind": "captioner", "width": 33}}}
    (last / "config.json").write_text(json.dumps(wide))
    with pytest.raises(BadFileError, match="do not fit its recipe"):
        load_model(last)


def test_bf16_trains(small_recipe: Small, tmp_path: Path) -> None:
    train(small_recipe("precision=float32", "stages.0.epochs=1"), tmp_path / "before", tensorboard=False)
    train(small_recipe("precision=bf16", "stages.0.epochs=4"), tmp_path / "run", tensorboard=False)
    curve = losses(tmp_path / "run")
    assert curve[-1] < curve[0]
    assert all(value.dtype == torch.float32 for value in weights(tmp_path / "run").values())


def test_frozen_stage_is_named() -> None:
    from deixis.training.optimize import make_optimizer
    from deixis.training.recipe import OptimizerRecipe

    frozen = torch.nn.Linear(2, 2).requires_grad_(False)
    with pytest.raises(BadRecipeError, match="nothing in this stage learns"):
        make_optimizer(OptimizerRecipe(), frozen)
