"""What `docs/your-own-data.md` rests on: new words, regions found by themselves, no boxes, no splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from PIL import Image

from deixis.data import region_cache as kept_regions
from deixis.data.open import open_dataset
from deixis.data.sentences import plain_sentence
from deixis.errors import BadRecipeError, DeixisError
from deixis.evaluation.calibration import Judged, fit_calibration, with_noun_phrases
from deixis.evaluation.setting import choose_split, note_on_drawn
from deixis.grounding.calibration import Calibration, Logistic
from deixis.models.names import SHIPPED, load
from deixis.regions.extraction.tasks import Settings
from deixis.text.vocabulary import Entry, Vocabulary
from deixis.training import dataset, retrieval_validation
from deixis.training.recipe import Recipe, Source, ValidationRecipe
from deixis.training.recipe_files import load_recipe
from deixis.training.retrieval_validation import RetrievalValidation
from deixis.training.run import Run
from deixis.training.start import starting_regions, starting_words, with_new_words
from deixis.training.train import train
from deixis.types import Example, ImageFile

Small = Callable[..., Recipe]
WORDS = Vocabulary([Entry("a", 9, "DT", "a"), Entry("cat", 5, "NN", "cat", groundable=True)], 2)


def test_a_vocabulary_grows_at_its_end() -> None:
    said = [plain_sentence(text) for text in ("A cat in a ramekin.", "The ramekin, the cat.", "The kettle.")]
    grown = WORDS.grown(said, threshold=2)
    assert grown.words == (*WORDS.words, "the", "ramekin"), "by falling count; kettle is said once"
    assert [grown.id(word) for word in ("cat", "ramekin", "kettle")] == [5, 7, 3]
    assert WORDS.grown(said, threshold=9) == WORDS


def test_new_words_begin_as_the_mean_of_the_others() -> None:
    torch.manual_seed(0)
    known, words, special = 10, 13, 4
    old = {
        "table": torch.randn(known, 3),
        "bias": torch.randn(known),
        "map": torch.randn(5, known),
        "other": torch.ones(10),
    }
    own = {
        "table": torch.zeros(words, 3),
        "bias": torch.zeros(words),
        "map": torch.zeros(5, known),
        "other": torch.ones(10),
    }
    new = with_new_words(old, own, known, words)
    assert torch.equal(new["table"][:known], old["table"])
    for row in range(known, words):
        assert torch.allclose(new["table"][row], old["table"][special:].mean(0))
        assert torch.allclose(new["bias"][row], old["bias"][special:].mean())
    assert torch.equal(new["map"], old["map"]), "its words are not in rows"
    assert torch.equal(new["other"], old["other"]), "ten by chance: the new model has ten there too"


@pytest.mark.recipe
def test_a_run_that_learns_new_words_never_ends_worse(small_recipe: Small, tmp_path: Path) -> None:
    train(small_recipe("stages.words.epochs=2", "data.min_count=8"), tmp_path / "first", threads=1, tensorboard=False)
    ruin = ("stages.words.epochs=1", "stages.words.optimizer.lr=10.0", "validation.first=true")
    plan = small_recipe(f"start_from={tmp_path / 'first'}", "data.new_words=3", *ruin)
    train(plan, tmp_path / "second", threads=1, tensorboard=False)
    old, new = load(str(tmp_path / "first")), load(str(tmp_path / "second"))
    assert new.vocabulary.words[: len(old.vocabulary)] == old.vocabulary.words
    assert len(new.vocabulary) > len(old.vocabulary), "some words are said three to seven times"
    first = next(entry for entry in Run(tmp_path / "second").entries() if "validation" in entry)
    assert first["step"] == 0
    table = "decoder.embedding.weight"
    kept = new.model.state_dict()[table][: len(old.vocabulary)]
    assert torch.equal(kept, old.model.state_dict()[table]), "the best checkpoint is the one before the first step"
    WORDS.save(tmp_path / "vocabulary.json")
    words = (f"data.vocabulary={tmp_path / 'vocabulary.json'}", "data.new_words=2")
    plan = small_recipe(f"start_from={tmp_path / 'first'}", *words)
    with pytest.raises(BadRecipeError, match="knows other words"):
        train(plan, tmp_path / "third", tensorboard=False)


@pytest.mark.parametrize(("name", "part"), [("captioning/own", "captioner"), ("grounding/own", "grounder")])
def test_recipes_of_your_own_start_from_their_part_of_lite(name: str, part: str) -> None:
    plan = load_recipe(name, ["data.dataset=x", "size=cpu"] if part == "grounder" else ["data.dataset=x"])
    assert starting_words(plan).vocabulary == str(SHIPPED / part / "vocabulary.json")
    regions = starting_regions(plan)
    assert (regions.extractor, regions.max_regions, regions.precision) == ("lite", 100, "int8")
    assert (plan.data.dataset, plan.data.store, plan.data.more) == ("x", "auto", ())
    shipped = load_recipe(name.replace("own", "lite")).model
    assert _without_dropout(plan.model.options) == _without_dropout(shipped.options), "or lite's weights would not fit"


def _without_dropout(options: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the shapes of weights."""
    return {
        name: _without_dropout(value) if isinstance(value, Mapping) else value
        for name, value in options.items()
        if not name.endswith("dropout")
    }


@pytest.fixture
def two_photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DEIXIS_HOME", str(tmp_path / "home"))
    folder = tmp_path / "mine"
    folder.mkdir()
    for number in range(2):
        Image.new("RGB", (64, 48), (90 * number, 80, 70)).save(folder / f"{number}.jpg")
    (folder / "captions.csv").write_text("0.jpg,A dark photo.\n1.jpg,A red photo.\n")
    return folder


def test_regions_are_found_once(
    two_photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[list[str], Path]] = []

    def extract(ids: Any, find: Any, path: Path, settings: Settings, **how: Any) -> Path:
        assert how == {"device": "cpu", "engine": "local", "processes": 2}
        asked.append((list(ids), path))
        assert find(ids[0]).path.name == ids[0]
        path.mkdir(parents=True, exist_ok=True)
        (path / "store.json").write_text("{}")
        return path

    monkeypatch.setattr(kept_regions, "extract", extract)
    data = open_dataset(two_photos)
    part = kept_regions.regions_of(data, Settings(), ["1.jpg"])
    assert "regions of 1 images" in capsys.readouterr().err
    whole = kept_regions.regions_of(data, Settings())
    assert kept_regions.regions_of(data, Settings(), ["1.jpg"]) == whole != part, "the store of all photos holds it"
    Image.new("RGB", (64, 48)).save(two_photos / "2.jpg")
    with (two_photos / "captions.csv").open("a") as file:
        file.write("2.jpg,A black photo.\n")
    assert kept_regions.regions_of(open_dataset(two_photos), Settings()) != whole, "a photo has been added"
    assert [ids for ids, _ in asked] == [["1.jpg"], ["0.jpg", "1.jpg"], ["0.jpg", "1.jpg"], ["0.jpg", "1.jpg", "2.jpg"]]


def test_too_few_photos_to_draw_from_have_a_way_out(two_photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two photos cannot fill three splits."""
    data = open_dataset(two_photos)
    empty = next(split for split in data.drawn_splits if not data.ids(split))
    monkeypatch.setattr(dataset, "regions_of", lambda *_: SimpleNamespace(header=SimpleNamespace(failed=[])))
    with pytest.raises(DeixisError, match=r"column `split`, or set data\.validation=null"):
        dataset.read_source(Source(str(two_photos), "auto", empty), tagged=False)


def test_every_model_is_measured_on_the_photos_that_training_leaves_out(two_photos: Path) -> None:
    data = open_dataset(two_photos)
    assert not data.ids("test"), "two photos: none of them is drawn for test"
    assert choose_split(data, None) == "all"
    for number in range(2, 30):
        (two_photos / f"{number}.jpg").write_bytes((two_photos / "0.jpg").read_bytes())
    rows = "".join(f"{number}.jpg,A photo.\n" for number in range(30))
    (two_photos / "captions.csv").write_text(rows)
    data = open_dataset(two_photos)
    assert 0 < len(data.ids("test")) < 30
    assert choose_split(data, None) == "test"
    assert choose_split(data, "val") == "val"
    assert choose_split(data, "all") == "all"
    drawn = len(data.ids("test"))
    assert f"{drawn} are too few to tell models apart" in note_on_drawn(data, "test", drawn)
    assert "too few" not in note_on_drawn(data, "all", 2), "30 photos, of which --limit takes two"


def judged(count: int, shift: float) -> Judged:
    signals = np.random.default_rng(int(shift)).normal(size=(count, 3)) + np.array([0.0, 0.0, shift])
    return Judged(signals, np.arange(count) % 20, np.zeros(count, bool), np.zeros(count, bool))


def test_without_boxes_the_belief_in_boxes_is_taken_over() -> None:
    before = Calibration(
        Logistic((1.0, 2.0, 3.0), -4.0), Logistic((0.0, 0.0, 0.0), 0.0), 0.1, {"data": "flickr", "split": "val"}
    )
    made = fit_calibration(judged(1000, 3.0), judged(800, 0.0), keep=0.9, before=before)
    assert made.right == before.right
    assert made.facts["right_from"] == "flickr val"
    assert "right_ece" not in made.facts
    assert float(made.facts["found_auc"]) == pytest.approx(0.983, abs=0.01), "two normals three deviations apart"
    assert float((made.found(judged(1000, 3.0).signals) >= made.threshold).mean()) == pytest.approx(0.9, abs=0.002)
    with pytest.raises(DeixisError, match="start_from=lite"):
        fit_calibration(judged(100, 3.0), judged(100, 0.0))


def test_captions_without_phrases_are_cut_into_those_that_name_things() -> None:
    tags = {"a": "DT", "cat": "NN", "on": "IN", "red": "JJ", "sofa": "NN", "it": "PRP"}
    words = Vocabulary(Entry(word, 9, tag, word, groundable=tag == "NN") for word, tag in tags.items())
    example = Example(
        "1", ImageFile(Path("1.jpg")), (9, 9), (plain_sentence("A cat on a red sofa."), plain_sentence("It"))
    )
    first, second = with_noun_phrases(example, words).captions
    assert [first.phrase_text(phrase) for phrase in first.phrases] == ["A cat", "a red sofa"]
    assert second.phrases == ()


def test_retrieval_as_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    # two images with two captions each; the third caption fits the wrong image better
    scores, owner = np.array([[4.0, 3.0, 2.0, 0.0], [1.0, 1.0, 1.0, 5.0]]), np.array([0, 0, 1, 1])
    monkeypatch.setattr(retrieval_validation, "similarities", lambda *_: (scores, owner))
    images = type("Two", (list,), {"source": None})([0, 1])
    data = cast("Any", SimpleNamespace(validation=images, vocabulary=WORDS, validation_examples=(1, 2)))
    metrics, samples = RetrievalValidation(ValidationRecipe(), data)(
        cast("Any", None), cast("Any", SimpleNamespace(device="cpu"))
    )
    assert samples == []
    assert metrics["i2t_R@1"] == 1.0
    assert metrics["t2i_R@1"] == 0.75
    assert metrics["retrieval"] == pytest.approx((1 + 1 + 1 + 0.75 + 1 + 1) / 6)
    data.validation = data.validation[:1]
    with pytest.raises(DeixisError, match="at least two"):
        RetrievalValidation(ValidationRecipe(), data)
