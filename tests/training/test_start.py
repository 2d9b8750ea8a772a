"""Runs that start from another run's weights, and stages that are left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from deixis.errors import BadRecipeError, DeixisError
from deixis.models.names import load
from deixis.training.loop import StoppedError, Trainer
from deixis.training.recipe import Recipe
from deixis.training.recipe_files import load_recipe
from deixis.training.run import Run
from deixis.training.train import train

Small = Callable[..., Recipe]
TWO_STAGES = "stages=[{name: words, epochs: 1, batch: 8, objectives: [cross_entropy]}, \
{name: point, epochs: 1, batch: 8, objectives: [cross_entropy, cyclical], optimizer: {lr: 1e-12}}]"


@pytest.fixture(scope="module")
def first(small_recipe: Small, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "first"
    train(small_recipe("stages.words.epochs=1"), path, threads=1, tensorboard=False)
    return path


def test_weights_and_words_are_taken_over(first: Path, small_recipe: Small, tmp_path: Path) -> None:
    """With a learning rate of next to nothing, the run ends with the weights it started from."""
    plan = small_recipe(TWO_STAGES, "begin_at=point", f"start_from={first}", "data.min_count=1", "seed=5")
    train(plan, tmp_path / "run", threads=1, tensorboard=False)
    old, new = load(str(first)), load(str(tmp_path / "run"))
    assert new.vocabulary.words == old.vocabulary.words  # although min_count says otherwise
    for name, value in old.model.state_dict().items():
        assert torch.allclose(value, new.model.state_dict()[name], atol=1e-6), name
    assert {entry["stage"] for entry in Run(tmp_path / "run").entries()} == {"point"}


def test_a_resumed_run_is_the_same_run(
    first: Path, small_recipe: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = small_recipe(
        TWO_STAGES, "begin_at=point", f"start_from={first}", "stages.point.optimizer.lr=1e-3",
        "model.attention={kind: distributed, branches: 2}",
    )  # fmt: skip
    train(plan, tmp_path / "whole", threads=1, tensorboard=False)
    step = Trainer._step

    def stopping(self: Trainer, *arguments: Any) -> Any:
        self.stop.signal = 15  # as if asked to stop during the first step
        return step(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_step", stopping)
        with pytest.raises(StoppedError):
            train(plan, tmp_path / "cut", threads=1, tensorboard=False)
    train(plan, tmp_path / "cut", resume=True, threads=1, tensorboard=False)
    a, b = (load(str(tmp_path / name)).model.state_dict() for name in ("whole", "cut"))
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_stages_before_and_after_are_left_out(small_recipe: Small, tmp_path: Path) -> None:
    train(small_recipe(TWO_STAGES, "end_at=words"), tmp_path / "run", threads=1, tensorboard=False)
    assert {entry["stage"] for entry in Run(tmp_path / "run").entries()} == {"words"}
    with pytest.raises(BadRecipeError, match="'wrods' is none of words, point"):
        small_recipe(TWO_STAGES, "begin_at=wrods")
    with pytest.raises(BadRecipeError, match="no stage is left"):
        small_recipe(TWO_STAGES, "begin_at=point", "end_at=words")


def test_what_does_not_fit_is_named(first: Path, small_recipe: Small, tmp_path: Path) -> None:
    def attempt(name: str, *overrides: str) -> None:
        train(small_recipe(*overrides), tmp_path / name, threads=1, tensorboard=False)

    with pytest.raises(BadRecipeError, match="start_from is 'nowhere': found no model 'nowhere'"):
        attempt("nowhere", "start_from=nowhere")
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(DeixisError, match="do not fit"):
        attempt("narrow", f"start_from={first}", "model.width=16")
    words = next((first / "checkpoints").glob("best-*")) / "vocabulary.json"
    other = tmp_path / "vocabulary.json"
    lines = words.read_text().splitlines()
    other.write_text("\n".join([*lines[:1], *lines[2:]]))  # one word less
    with pytest.raises(BadRecipeError, match=r"leave data\.vocabulary out"):
        attempt("words", f"start_from={first}", f"data.vocabulary={other}")


def test_other_regions_are_read_afresh(
    first: Path, small_recipe: Small, grid_store: Path, tmp_path: Path, rewritten: Callable[[Path, str], Path]
) -> None:
    """A captioner goes on with regions of another extractor: it keeps how it speaks, not how it reads regions."""
    store = rewritten(grid_store, "grid:wider")
    settings = (
        f"start_from={first}",
        f"data.store={store}",
        "stages.words.epochs=1",
        "stages.words.optimizer.lr=1e-12",
    )
    with pytest.raises(BadRecipeError, match="looks at regions of grid:test"):
        train(small_recipe(*settings), tmp_path / "refused", threads=1, tensorboard=False)
    train(small_recipe(*settings, "new_regions=true"), tmp_path / "run", threads=1, tensorboard=False)
    old, new = load(str(first)), load(str(tmp_path / "run"))
    before, after = old.model.state_dict(), new.model.state_dict()
    afresh = {name for name in after if name.startswith(("encoder.feature.", "encoder.image."))}
    assert {after[name].shape[-1] for name in afresh if name.endswith("weight")} == {25}  # one column more than before
    for name in set(after) - afresh:
        assert torch.allclose(before[name], after[name], atol=1e-6), name


def test_a_size_may_build_on_another(recipe_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "sizes.yaml"
    path.write_text(
        f"extends: {recipe_file}\nsizes:\n  cpu: {{model.width: 8, seed: 3}}\n"
        "  quick: {size: cpu, seed: 4}\n  loop: {size: pool}\n  pool: {size: loop}\n"
    )
    recipe = load_recipe(path, ["size=quick"])
    assert (recipe.model.options["width"], recipe.seed, recipe.size) == (8, 4, "quick")
    with pytest.raises(BadRecipeError, match="builds on itself"):
        load_recipe(path, ["size=loop"])
