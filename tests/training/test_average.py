"""The mean of two models is a model; what has no mean is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import deixis
from deixis.atomic import write_json
from deixis.cli.main import main
from deixis.data.sentences import plain_sentence
from deixis.errors import BadFileError, DeixisError
from deixis.models.checkpoint import CONFIG, VOCABULARY, WEIGHTS, digest
from deixis.reading.plain import read_json_object
from deixis.text.vocabulary import SPECIAL_WORDS, Vocabulary
from deixis.training.average import average, find_alike

PHOTO = Path(__file__).parents[2] / "examples" / "photos" / "coffee.jpg"


@pytest.fixture
def two(small_bundle: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A captioner, and another one whose weights are those times three."""
    for name in ("one", "two"):
        shutil.copytree(small_bundle / "captioner", tmp_path / name)
    change(tmp_path / "two", lambda value: value * 3)
    return tmp_path / "one", tmp_path / "two"


def change(folder: Path, how: object) -> None:
    assert callable(how)
    weights = {name: how(value) for name, value in load_file(folder / WEIGHTS).items()}
    save_file(weights, folder / WEIGHTS)
    data = read_json_object(folder / CONFIG)
    data["files"][WEIGHTS] = digest(folder / WEIGHTS)
    write_json(folder / CONFIG, data)


def test_the_mean_of_once_and_three_times_is_twice(two: tuple[Path, Path], tmp_path: Path) -> None:
    average(two, tmp_path / "mean")
    one, mean = load_file(two[0] / WEIGHTS), load_file(tmp_path / "mean" / WEIGHTS)
    for name, value in one.items():
        torch.testing.assert_close(mean[name], value * 2)
        assert mean[name].dtype == value.dtype


def test_the_mean_of_a_model_with_itself_says_the_same(small_bundle: Path, tmp_path: Path) -> None:
    part = small_bundle / "captioner"
    with pytest.raises(SystemExit) as done:
        main(["average", str(part), str(part), "-o", str(tmp_path / "mean")])
    assert done.value.code == 0
    assert deixis.load(tmp_path / "mean").caption(PHOTO).text == deixis.load(part).caption(PHOTO).text


def test_a_child_with_new_words_has_a_mean_with_its_parent(two: tuple[Path, Path], tmp_path: Path) -> None:
    """The parent takes part with the rows that new words began with: the mean of the rows of its words."""
    child = two[1]
    words = Vocabulary.load(child / VOCABULARY)
    grown = words.grown([plain_sentence("A ramekin, a ramekin, a ramekin.")], threshold=3)
    assert len(grown) == len(words) + 1, "the small model has never heard of it"
    grown.save(child / VOCABULARY)
    change(child, lambda value: torch.cat([value, value[:1]]) if len(value) == len(words) else value)
    data = read_json_object(child / CONFIG)
    data["files"][VOCABULARY] = digest(child / VOCABULARY)
    data["sizes"]["words"] = len(grown)
    write_json(child / CONFIG, data)
    for number, order in enumerate((two, two[::-1])):
        average(order, tmp_path / f"mean{number}")
        mean = load_file(tmp_path / f"mean{number}" / WEIGHTS)["decoder.embedding.weight"].float()
        old, new = (load_file(folder / WEIGHTS)["decoder.embedding.weight"].float() for folder in two)
        torch.testing.assert_close(mean[:-1], (old + new[:-1]) / 2, rtol=2e-3, atol=2e-3)
        torch.testing.assert_close(mean[-1], (old[len(SPECIAL_WORDS) :].mean(0) + new[-1]) / 2, rtol=2e-3, atol=2e-3)
        assert Vocabulary.load(tmp_path / f"mean{number}" / VOCABULARY).words == grown.words
        assert deixis.load(tmp_path / f"mean{number}").captioner.vocabulary.words == grown.words


def test_of_a_bundle_the_part_is_taken_that_the_others_are(small_bundle: Path) -> None:
    for part in ("captioner", "grounder"):
        assert find_alike([str(small_bundle), str(small_bundle / part)]) == [small_bundle / part] * 2


def test_refusals_leave_nothing(two: tuple[Path, Path], small_bundle: Path, tmp_path: Path) -> None:
    target = tmp_path / "mean"
    with pytest.raises(DeixisError, match="at least two"):
        average(two[:1], target)
    with pytest.raises(BadFileError, match=r"knows other words|built otherwise"):
        average([two[0], small_bundle / "grounder"], target)
    change(two[1], lambda value: value.repeat(*[2] * value.dim()) if value.dim() else value)
    with pytest.raises(BadFileError, match="built otherwise"):
        average(two, target)
    assert not target.exists()
    with pytest.raises(DeixisError, match="exists already"):
        average([two[0], two[0]], two[1])
