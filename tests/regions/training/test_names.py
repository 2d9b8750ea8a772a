"""Teaching names: losses against formulas, and the whole way from photos to an extractor that knows words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from typer.testing import CliRunner

from deixis.cli.regions import app
from deixis.data.open import open_dataset
from deixis.errors import DeixisError
from deixis.images import load_image
from deixis.regions.lite import LiteExtractor
from deixis.regions.network.detector import LiteShape
from deixis.regions.network.trunks.dinov2 import DinoV2
from deixis.regions.store.as_stored import as_stored
from deixis.regions.store.reader import RegionStore
from deixis.regions.training import untaught
from deixis.regions.training.names import Looked, NamesLearner
from deixis.regions.training.state import read_tensors
from deixis.regions.training.words import contrast, word_goal

SHAPE = LiteShape(feature=6, words=3, namer="dinov2-s", namer_hidden=8, learned=5)


def _looked(regions: int = 4) -> Looked:
    features = torch.randn(2, regions, 384 + 6)
    mask = torch.ones(2, regions, dtype=torch.bool)
    scores = torch.rand(2, regions)
    return Looked(features, mask, scores, scores.flip(1), torch.rand(2, regions, 4))


def test_losses_by_hand() -> None:
    torch.manual_seed(0)
    learner = NamesLearner(SHAPE, ["dog", "grass", "red"], dropout=0.0)
    looked, said = _looked(), torch.tensor([[2.0, 0, 1], [0, 1, 0]])
    classes, known = torch.zeros(2, 4, 80), torch.tensor([[1.0, 0, 0, 1], [0, 0, 0, 0]])
    classes[0, 0, 16] = 0.81
    losses = learner(looked, said, classes, known, half=False)
    given = torch.cat([looked.features[..., 384:], looked.features[..., :384]], -1)
    learned = learner.learned(learner.hidden(given).relu()).relu()
    words, named = learner.words(learned), learner.classes(learned)
    pooled = torch.zeros(2, 3)
    for photo in range(2):
        for word in range(3):  # "dog" asks for whole things, "grass" and "red" for regions
            thing, region = looked.things[photo].sqrt(), looked.regions[photo]
            prior = thing if word == 0 else torch.maximum(region, thing / 2)
            share = torch.softmax(words[photo, :, word] + prior.clamp(min=0.02).log(), 0)
            pooled[photo, word] = (share * words[photo, :, word]).sum()
    goal = torch.tensor([[1.0, 0, 0.6], [0, 0.6, 0]])
    torch.testing.assert_close(word_goal(said), goal)
    bce = F.binary_cross_entropy_with_logits(pooled, goal, reduction="sum") / 2
    torch.testing.assert_close(losses["words"], bce)
    torch.testing.assert_close(losses["contrast"], contrast(pooled, goal > 0))
    target = torch.zeros(2, 4, 80)
    target[0, 0, 16] = 0.9
    wrong = F.binary_cross_entropy_with_logits(named, target, reduction="none").sum(-1)
    torch.testing.assert_close(losses["classes"], (wrong[0, 0] + wrong[0, 3]) / 20)


def test_padding_changes_nothing() -> None:
    torch.manual_seed(0)
    learner = NamesLearner(SHAPE, ["dog", "grass", "red"], dropout=0.0)
    looked, said = _looked(), torch.tensor([[2.0, 0, 1], [0, 1, 0]])
    wider = {
        name: torch.cat([getattr(looked, name), torch.full_like(getattr(looked, name)[:, :2], fill)], 1)
        for name, fill in (("features", 9.0), ("mask", False), ("things", 0.0), ("regions", 0.0), ("boxes", 0.0))
    }
    narrow = learner(looked, said, torch.zeros(2, 4, 80), torch.ones(2, 4), half=False)
    wide = learner(replace(looked, **wider), said, torch.zeros(2, 6, 80), torch.ones(2, 6), half=False)
    for name, value in narrow.items():
        torch.testing.assert_close(wide[name], value)


@pytest.mark.recipe
def test_the_real_command_and_resuming(scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From drawn scenes to an extractor: stopped half-way and resumed it equals one run through.

    The published weights of DINOv2 cannot be had in CI, so its network starts from random ones.
    """

    def random_dino(_folder: Path) -> DinoV2:
        torch.manual_seed(7)
        return DinoV2()

    monkeypatch.setattr(untaught, "dinov2", random_dino)
    recipe, cache = tmp_path / "names.yaml", tmp_path / "cache"
    recipe.write_text(
        f"finder: lite\ndata: [{{path: {scenes}, splits: [train], things: annotated, limit: 8}}]\n"
        f"teachers: {tmp_path}\nweights: {tmp_path}\nwords: 9\nstride: 64\nhidden: 16\nlearned: 12\nmax_regions: 9\n"
        "processes: 0\nschedule: {epochs: 2, batch: 4, regions: 8, warm_up: 1, save_every: 1}\n"
    )

    def run(out: str, *more: str) -> None:
        arguments = ["train", str(recipe), "-o", str(tmp_path / out), "--cache", str(cache), "--json", *more]
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout.splitlines()[-1])["photos"] == 8

    run("through")
    run("halved", "--stop-after", "2")
    run("halved")
    for name in ("state/average.safetensors", "lite/regions.safetensors"):
        one, other = read_tensors(tmp_path / "through" / name), read_tensors(tmp_path / "halved" / name)
        assert one.keys() == other.keys()
        assert all(torch.equal(value, other[key]) for key, value in one.items())
    taught, finder = LiteExtractor.load(tmp_path / "through" / "lite"), LiteExtractor.load()
    assert len(taught.words) == 9
    assert taught.fingerprint != finder.fingerprint
    assert taught.network.namer is not None
    assert torch.equal(
        taught.network.trunk.state_dict()["stem.weight"], finder.network.trunk.state_dict()["stem.weight"]
    )


def _assert_store_is_taught(tmp_path: Path, scenes: Path) -> None:
    """What is told to the store that was learned from is what the taught extractor sees in the photos."""
    (looked,) = (tmp_path / "through" / "looked").iterdir()
    lite, made = tmp_path / "through" / "lite", tmp_path / "taught"
    result = CliRunner().invoke(app, ["teach", str(looked), "-o", str(made), "--extractor", str(lite), "--json"])
    assert result.exit_code == 0, result.output
    store, extractor, dataset = RegionStore.open(made), LiteExtractor.load(lite), open_dataset(scenes)
    assert store.fingerprint == extractor.fingerprint
    image = next(iter(store))
    pixels = np.asarray(load_image(dataset[image].source))  # type: ignore[arg-type]
    told, seen = store.get(image), as_stored(extractor.extract([pixels], max_regions=9)[0])
    torch.testing.assert_close(told.features, seen.features, atol=2e-2, rtol=1e-2)  # twice in half precision
    assert told.word_probs is not None
    assert seen.word_probs is not None
    torch.testing.assert_close(told.word_probs, seen.word_probs, atol=1e-2, rtol=5e-2)
    blank, rest, joined = tmp_path / "through" / "untaught", tmp_path / "rest", tmp_path / "joined"
    for arguments in (
        ["extract", str(scenes), "-o", str(rest), "--split", "val", "--extractor", f"lite:{blank}"],
        ["teach", str(rest), str(looked), "-o", str(joined), "--extractor", str(lite)],
    ):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
    both = RegionStore.open(joined)
    assert list(both) == [*RegionStore.open(rest), *store]
    assert torch.equal(both.get(image).features, told.features)
    twice = CliRunner().invoke(app, ["teach", *[str(looked)] * 2, "-o", str(tmp_path / "no"), "--extractor", str(lite)])
    assert "in more than one of the stores" in str(twice.exception)
    again = CliRunner().invoke(app, ["teach", str(made), "-o", str(tmp_path / "no"), "--extractor", str(lite)])
    assert isinstance(again.exception, DeixisError)
    assert "give the store of its untaught extractor" in str(again.exception)
    assert not (tmp_path / "no").exists()


def test_a_wrong_key_is_named(tmp_path: Path) -> None:
    recipe = tmp_path / "names.yaml"
    recipe.write_text("finder: lite\ndata: []\nteachers: .\nweights: .\nstrides: 24\n")
    result = CliRunner().invoke(app, ["train", str(recipe), "-o", str(tmp_path / "run")])
    assert result.exit_code != 0
    assert "stride" in str(result.exception)
