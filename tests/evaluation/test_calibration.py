"""The lite grounder from recipe to calibrated answers, on a few real photos with a grid of regions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from deixis.answering.load import Deixis
from deixis.cli.main import app
from deixis.data.batch import Batch, RegionBatch
from deixis.data.open import open_dataset
from deixis.errors import DeixisError
from deixis.evaluation.calibration import Judged, fit_calibration, judge_phrases
from deixis.evaluation.evaluate import evaluate
from deixis.evaluation.setting import EvaluationOptions
from deixis.grounding.base import AnswerOptions, WordGrounder
from deixis.grounding.ensemble import Ensemble
from deixis.grounding.lite.model import LiteGrounder
from deixis.images import load_image
from deixis.models.names import load
from deixis.regions.store.writer import write_store
from deixis.text.tokens import tokenise
from deixis.text.vocabulary import Vocabulary
from deixis.training.recipe_files import load_recipe
from deixis.training.run import Run
from deixis.training.train import train
from deixis.types import Example, ImageFile, Phrase, Regions, Relation, Sentence
from tests.training.conftest import FINGERPRINT, grid_regions

RECIPE = """
about: {{title: A small grounder}}
data: {{dataset: {photos}, store: {store}, limit: 24, regions: 14, min_count: 2}}
model: {{kind: lite, width: 16, mix: 1.0, voting: 0.5}}
stages:
  - name: evidence
    epochs: 6
    batch: 8
    objectives: [{{kind: evidence, words: 64}}]
    optimizer: {{lr: 1e-2}}
  - name: answers
    start: last
    epochs: 6
    batch: 8
    objectives: [{{kind: teaching, phrases: 60}}]
    optimizer: {{lr: 1e-2}}
validation: {{kind: phrases, metric: R@1, every: 6, samples: 0}}
log_every: 1
"""


def judged(count: int, seed: int, shift: float) -> Judged:
    """Phrases whose signals tell, up to noise, whether the box is right."""
    rng = np.random.default_rng(seed)
    right = rng.random(count) < 0.5
    signals = rng.normal(size=(count, 3)) + right[:, None] * [2.0, 0.0, 0.0] + [0.0, 0.0, shift]
    return Judged(signals, np.arange(count) % 20, right, np.ones(count, bool))


def test_the_facts_of_a_fit_are_what_they_say() -> None:
    own, other = judged(2000, 0, 3.0), judged(1500, 1, 0.0)
    made = fit_calibration(own, other, keep=0.9)
    assert made.facts["phrases"] == 2000
    assert float(made.facts["right_ece"]) < 0.04
    assert float(made.facts["right_auc"]) == pytest.approx(0.92, abs=0.02)  # two normals two deviations apart
    assert float(made.facts["found_auc"]) == pytest.approx(0.98, abs=0.01)  # three apart
    assert float((made.found(own.signals) >= made.threshold).mean()) == pytest.approx(0.9, abs=0.001)
    assert float(made.facts["refused"]) > 0.9


def test_phrases_without_boxes_cannot_be_judged_right() -> None:
    own = judged(10, 0, 0.0)
    bare = Judged(own.signals, own.photo, own.right, np.zeros(10, bool))
    with pytest.raises(DeixisError, match="has a box"):
        fit_calibration(bare, own)


class Listener(WordGrounder):
    """Scores nothing, and remembers which phrases it was told are related."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary, AnswerOptions())
        self.heard: list[list[tuple[int, int]]] = []

    def word_scores(self, batch: Batch) -> torch.Tensor:
        assert batch.relations is not None
        pairs = zip(batch.relations.subject.tolist(), batch.relations.object.tolist(), strict=True)
        self.heard.append(list(pairs))
        return torch.zeros(*batch.words.shape, batch.regions.mask.shape[1])


def related(image: str, words: str) -> Example:
    """One caption of three phrases, each related to the next."""
    tokens = tokenise(words)
    phrases = tuple(Phrase(at, at + 1, str(at), boxes=((0.0, 0.0, 9.0, 9.0),), frames=(0,), head=at) for at in range(3))
    relations = (Relation(0, "on", 1), Relation(1, "near", 2), Relation(0, "by", 2))
    return Example(image, ImageFile(Path(image)), (10, 10), (Sentence(words, tokens, phrases, relations),))


def test_relations_take_part_in_a_calibration() -> None:
    examples = [related("a", "dog bench street"), related("b", "cat dog lawn")]
    vocabulary = Vocabulary.build((caption for example in examples for caption in example.captions), 1)
    listener = Listener(vocabulary)
    box = torch.tensor([[[0.0, 0.0, 9.0, 9.0], [0.0, 0.0, 4.0, 4.0]]])
    ones = torch.ones(1, 2)
    batch = RegionBatch(("a",), torch.zeros(1, 2, 3), box, ones.bool(), torch.tensor([[10.0, 10.0]]), ones, ones.long())
    source: Any = SimpleNamespace(regions=lambda images: replace(batch, ids=tuple(images)))
    judge_phrases(listener, vocabulary, examples[:1], source)
    assert listener.heard[0] == [(0, 1), (1, 2), (0, 2)]
    listener.heard.clear()
    judge_phrases(listener, vocabulary, examples, source, swapped=True, batch=1)
    # asked of "a": cat and lawn of "b", for a dog is said; asked of "b": bench and street
    assert listener.heard[::2] == [[(0, 1)], [(0, 1)]]


@pytest.fixture(scope="module")
def thing_store(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Regions that hold the drawn things beside the cells of a grid, so that answers can be right and wrong."""
    dataset = open_dataset(photos)
    ids = sorted([*dataset.ids("train")[:24], *dataset.ids("val")])

    def regions() -> Iterator[tuple[str, Regions | str]]:
        for name in ids:
            example = dataset[name]
            things = {box for caption in example.captions for phrase in caption.phrases for box in phrase.boxes}
            assert isinstance(example.source, ImageFile)
            yield name, grid_regions(np.asarray(load_image(example.source)), things=sorted(things))

    path = tmp_path_factory.mktemp("things") / "store"
    write_store(path, regions(), ids, FINGERPRINT, {"extractor": "grid"})
    return path


@pytest.mark.recipe
def test_a_grounder_is_trained_calibrated_and_measured(photos: Path, thing_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(RECIPE.format(photos=photos, store=thing_store))
    train(load_recipe(path), tmp_path / "run", tensorboard=False)
    steps = [entry for entry in Run(tmp_path / "run").entries() if "loss" in entry]
    evidence = [entry["evidence"] for entry in steps if "evidence" in entry]
    teaching = [entry["teaching"] for entry in steps if "teaching" in entry]
    assert np.mean(evidence[-3:]) < np.mean(evidence[:3])
    assert np.mean(teaching[-3:]) < np.mean(teaching[:3]) / 2

    run, runner = str(tmp_path / "run"), CliRunner()
    told = runner.invoke(app, ["calibrate", run, str(photos), "--store", str(thing_store), "--json"])
    assert told.exit_code == 0, told.output
    facts = json.loads(told.stdout.splitlines()[-1])
    assert 0 <= facts["right_ece"] <= 1
    loaded = load(run)
    assert isinstance(loaded.model, LiteGrounder)
    assert loaded.model.calibration is not None
    asked = ["--split", "val", "--store", str(thing_store), "--replicates", "0", "--json"]
    shown = runner.invoke(app, ["evaluate", run, str(photos), *asked])
    assert shown.exit_code == 0, shown.output
    sections = json.loads(shown.stdout.splitlines()[-1])["sections"]
    scores = {section["protocol"].split()[0]: section["scores"] for section in sections}
    assert {"any-box", "merged-box", "attention", "calibration"} <= set(scores)
    assert scores["calibration"]["found_kept"] == pytest.approx(0.95, abs=0.01)

    both = load(f"{run}+{run}")  # an ensemble of a model with itself answers as the model does
    assert isinstance(both.model, Ensemble)
    options = EvaluationOptions("val", store=str(thing_store), limit=6, replicates=0)
    alone, together = (
        evaluate(model, str(photos), options).report().sections[0].scores
        for model in (Deixis.from_pretrained(name, extractor=False) for name in (run, f"{run}+{run}"))
    )
    assert together == pytest.approx(alone)
