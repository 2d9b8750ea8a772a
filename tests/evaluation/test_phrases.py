"""Phrases as validation and evaluation of grounders, and the figure drawn from their runs."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest
import torch

from benchmarks.bound_plot import moving_average, points_of_run
from deixis.data.collate import RegionSource
from deixis.data.open import open_dataset
from deixis.data.sizes import InputSizes
from deixis.errors import BadFileError, DeixisError
from deixis.grounding.infoground import InfoGround, InfoGroundConfig
from deixis.grounding.phrase_cases import phrase_cases
from deixis.home import cache_home
from deixis.metrics.grounding.phrases import ANY_BOX, score_phrases
from deixis.regions.store.reader import RegionStore
from deixis.text.vocabulary import Vocabulary
from deixis.text.word_encoders import WordEncoderConfig
from deixis.training.recipe_files import find_recipe, load_recipe
from deixis.training.run import Run
from deixis.training.train import train

WORDS = """
about: {{title: A small masked language model}}
data: {{dataset: {photos}, store: none, limit: 12, min_count: 1, validation: null}}
model: {{kind: masked_language_model, width: 16, layers: 1, heads: 2}}
stages:
  - {{name: guess, epochs: 2, batch: 4, objectives: [masked_words], optimizer: {{lr: 5e-3}}}}
"""

RECIPE = """
about: {{title: A small InfoGround}}
data: {{dataset: {photos}, store: {store}, limit: 12, regions: 9, min_count: 1, captions: 1}}
model:
  kind: infoground
  width: 16
  encoder: {{kind: contextual, weights: {words}, width: 16, layers: 1, heads: 2}}
stages:
  - name: contrast
    epochs: 2
    batch: 6
    objectives:
      - image_contrast
      - {{kind: language_contrast, negatives: re-ranked, candidates: 8, keep: 5, language_model: {words}}}
    optimizer: {{lr: 1e-3}}
validation: {{kind: phrases, metric: pointing, samples: 0}}
log_every: 1
"""


def test_phrases_are_ranked_as_one_by_one(photos: Path, grid_store: Path) -> None:
    examples = [example for _, example in zip(range(4), open_dataset(photos).examples("val"), strict=False)]
    vocabulary = Vocabulary.build((caption for example in examples for caption in example.captions), 1)
    store = RegionStore.open(grid_store)
    sizes = InputSizes(words=len(vocabulary), features=store.width("features"))
    torch.manual_seed(0)
    encoder = WordEncoderConfig("embedding", width=8)
    model = InfoGround(InfoGroundConfig(width=8, encoder=encoder), sizes, vocabulary).eval()
    cases = phrase_cases(model, vocabulary, examples, RegionSource((store,)), batch=3)
    phrases = [(example, c, at) for example in examples for c in example.captions for at in range(len(c.phrases))]
    assert len(cases) == len(phrases)
    for case, (example, sentence, at) in zip(cases, phrases, strict=True):
        assert case.image == example.id
        assert case.boxes == sentence.phrases[at].boxes
        (answer,) = model.ground(store.get(example.id), sentence, [at]).phrases
        assert case.text == answer.text
        if answer.found:
            assert case.ranked[0] == pytest.approx(answer.ranked[0])
        else:
            assert case.ranked == ()
    assert 0 <= score_phrases(cases, ANY_BOX).scores["pointing"] <= 1


@pytest.mark.recipe
def test_infoground_trains_and_is_measured(photos: Path, grid_store: Path, tmp_path: Path) -> None:
    words, path = tmp_path / "words.yaml", tmp_path / "small.yaml"
    words.write_text(WORDS.format(photos=photos))
    train(load_recipe(words), tmp_path / "words", tensorboard=False)
    path.write_text(RECIPE.format(photos=photos, store=grid_store, words=tmp_path / "words"))
    trained = train(load_recipe(path), tmp_path / "run", tensorboard=False)
    shutil.rmtree(tmp_path / "words")  # the grounder carries its encoder along
    assert len(list((cache_home() / "negatives").iterdir())) == 1
    assert set(trained.mean) == {"R@1", "R@5", "R@10", "pointing", "bound"}
    assert trained.mean["bound"] <= math.log(12)
    assert trained.mean["R@1"] <= trained.mean["R@5"] <= trained.mean["R@10"]
    steps = [entry for entry in Run(tmp_path / "run").entries() if "loss" in entry]
    assert len(steps) == 4
    assert all(
        entry["loss"] == pytest.approx(entry["image_contrast"] + entry["language_contrast"], rel=1e-4)
        for entry in steps
    )
    assert all(entry["bound"] <= math.log(6) for entry in steps)
    points = points_of_run(tmp_path / "run")
    assert len(points) == 2

    from deixis.answering.load import Deixis
    from deixis.evaluation.evaluate import evaluate
    from deixis.evaluation.setting import EvaluationOptions

    model = Deixis.from_pretrained(tmp_path / "run", extractor=False)
    assert model.grounder is not None
    assert isinstance(model.grounder.grounder(), InfoGround)
    options = EvaluationOptions("val", store=str(grid_store), limit=12, replicates=20)
    report = evaluate(model, str(photos), options).report()
    assert [section.protocol.split()[0] for section in report.sections] == ["any-box", "merged-box", "attention"]


SCAN = """
about: {{title: SCAN}}
data:
  dataset: {photos}
  store: {store}
  limit: 24
  regions: 16
  captions: 1
  min_count: 2
  classes: {classes}
model: {{kind: scan, width: 16, word_width: 8}}
stages:
  - {{name: matching, epochs: 1, batch: 8, objectives: [matching], optimizer: {{lr: 1e-3}}}}
validation: {{kind: phrases, metric: attention_accuracy, batch: 5, samples: 0}}
"""


@pytest.mark.recipe
def test_a_matcher_is_chosen_and_measured_by_attention_accuracy(photos: Path, grid_store: Path, tmp_path: Path) -> None:
    classes = tmp_path / "classes.txt"
    classes.write_text("man\ndog\nwoman\nshirt\nboy\ngirl\n")
    path = tmp_path / "scan.yaml"
    path.write_text(SCAN.format(photos=photos, store=grid_store, classes=classes))
    chosen = train(load_recipe(path), tmp_path / "run", tensorboard=False).mean["attention_accuracy"]

    from deixis.answering.load import Deixis
    from deixis.evaluation.evaluate import evaluate
    from deixis.evaluation.setting import EvaluationOptions

    options = EvaluationOptions("val", store=str(grid_store), classes=classes, limit=24, replicates=0)
    report = evaluate(Deixis.from_pretrained(tmp_path / "run", extractor=False), str(photos), options).report()
    section = report.sections[-1]
    assert section.protocol.startswith("attention accuracy on ground-truth sentences")
    (table,) = section.breakdowns
    assert {row[0] for row in table.rows} <= {"man", "dog", "woman", "shirt", "boy", "girl"}
    by_class = [float(row[2]) for row in table.rows]
    assert len(by_class) >= 3
    assert section.scores["attention_accuracy"] == pytest.approx(sum(by_class) / len(by_class))
    assert chosen == pytest.approx(section.scores["attention_accuracy"])  # what was chosen by is what is reported


def test_the_moving_average_is_over_neighbours() -> None:
    assert moving_average([(0, 0), (1, 3), (2, 3)]) == [(0.5, 1.5), (1.0, 2.0), (1.5, 3.0)]


def test_a_run_without_a_bound_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="logged no bound"):
        points_of_run(tmp_path)
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 1, "validation": {"bound": 1.0}}) + "\n")
    with pytest.raises(BadFileError, match="no 'pointing' among its validations"):
        points_of_run(tmp_path)


@pytest.mark.parametrize("name", ["grounding/infoground", "grounding/infoground-coco"])
@pytest.mark.parametrize("size", ["paper", "cpu"])
def test_every_row_of_the_tables_resolves(name: str, size: str) -> None:
    file, _ = find_recipe(name)
    seen = {}
    for row in [None, *file.rows]:
        recipe = file.resolve([f"size={size}"], row=row)
        image, language = recipe.stages[0].objectives
        assert (image.kind, recipe.validation.metric) == ("image_contrast", "pointing")
        seen[row] = (recipe.model.options["encoder"]["pretrained"], language.options["negatives"])
    assert seen["random-encoder"] == (False, "none")
    for row in ("none", "random", "plausible", "re-ranked"):
        assert seen[row] == (True, row)


def test_validation_needs_boxes(photos: Path, grid_store: Path) -> None:
    from dataclasses import replace

    from deixis.training.dataset import load_data
    from deixis.training.phrase_validation import PhraseValidation
    from deixis.training.recipe import DataRecipe, ValidationRecipe

    recipe = DataRecipe(str(photos), str(grid_store), limit=4, parse=False, min_count=1)
    data = load_data(recipe, 1)
    with pytest.raises(DeixisError, match="no phrase of the validation split has a box"):
        PhraseValidation(ValidationRecipe("phrases"), replace(data, validation_examples=()))


def test_validation_images_may_come_from_another_dataset(photos: Path, grid_store: Path) -> None:
    from deixis.training.dataset import load_data
    from deixis.training.recipe import DataRecipe, Source

    other = Source(str(photos), str(grid_store), "val", limit=3)
    recipe = DataRecipe(str(photos), str(grid_store), limit=4, parse=False, min_count=1, validation_from=other)
    data = load_data(recipe, 1)
    held_out = [example.id for example in data.validation_examples]
    assert held_out == list(open_dataset(photos).ids("val")[:3])
    assert data.validation is not None
    assert [example.id for example in data.validation.examples] == held_out
    assert len(data.train) == 4
