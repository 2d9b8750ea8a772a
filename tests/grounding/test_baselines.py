from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from deixis.errors import BadFileError, DeixisError
from deixis.grounding.baselines import BASELINES, LabelMatch, RandomRegion, build_baseline
from deixis.grounding.label_prior import LabelPriorConfig, cosine_table, label_table, lemma_table, read_vectors

BOXES = [
    [[40, 40, 60, 60], [0, 0, 90, 80], [10, 0, 30, 20], [0, 0, 100, 100]],
    [[0, 0, 20, 110], [0, 0, 96, 20], [0, 0, 96, 110], [0, 0, 0, 0]],  # three regions, the last is padding
]


@pytest.fixture
def batch(cases: Any) -> Any:
    found = cases.batch()
    regions = replace(
        found.regions,
        boxes=torch.tensor(BOXES, dtype=torch.float32),
        objectness=torch.tensor([[0.2, 0.5, 0.9, 1.0], [0.3, 0.8, 1.0, 9.0]]),
        class_probs=torch.tensor(
            [[[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 1, 0], [0] * 3, [0] * 3]]
        ),
    )
    return replace(found, regions=regions)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [("whole", [0, 0, 100, 100], [0, 0, 96, 110]), ("largest", [0, 0, 90, 80], [0, 0, 20, 110]),
     ("objectness", [10, 0, 30, 20], [0, 0, 96, 20]), ("centre", [25, 25, 75, 75], [24, 27.5, 72, 82.5])],
)  # fmt: skip
def test_the_best_box_by_hand(cases: Any, batch: Any, name: Any, first: list[float], second: list[float]) -> None:
    logits, boxes = build_baseline(name, cases.vocabulary).ranked_boxes(batch)
    best = [boxes[row, at].tolist() for row, at in enumerate(logits.argmax(1).tolist())]
    assert best == [first, first, first, second, second]


def test_after_the_middle_box_come_the_regions_nearest_to_the_centre(cases: Any, batch: Any) -> None:
    logits, _ = build_baseline("centre", cases.vocabulary).ranked_boxes(batch)
    assert logits[0].argsort(descending=True).tolist() == [3, 0, 1, 2]


def test_label_match_follows_the_words_and_falls_back_on_objectness(cases: Any, batch: Any) -> None:
    grounder = build_baseline("label", cases.vocabulary, cases.labels)
    logits, _ = grounder.ranked_boxes(batch)
    # a man (no such label), a red dog, a cat; a dog, a cat
    assert logits.argmax(1).tolist() == [2, 1, 2, 0, 1]


def test_label_match_takes_any_embedding(cases: Any, batch: Any, tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("3 2\nman 1 0\nperson 0.9 0.1\ndog 0 1\ncat -1 0.5\n")
    grounder = LabelMatch(cases.vocabulary, cases.labels, LabelPriorConfig("vectors", vectors=str(vectors)))
    logits, _ = grounder.ranked_boxes(batch)
    assert logits.argmax(1).tolist() == [0, 1, 2, 0, 1]  # now a man is near to a person


def test_label_match_needs_labels(cases: Any, batch: Any) -> None:
    with pytest.raises(DeixisError, match="names of the detector"):
        build_baseline("label", cases.vocabulary)
    grounder = build_baseline("label", cases.vocabulary, cases.labels)
    with pytest.raises(DeixisError, match="no detector classes"):
        grounder.ranked_boxes(replace(batch, regions=replace(batch.regions, class_probs=None)))


def test_random_regions_depend_on_image_and_words_only(cases: Any, batch: Any) -> None:
    grounder = RandomRegion(cases.vocabulary)
    scores = grounder.word_scores(batch)
    torch.testing.assert_close(grounder.word_scores(cases.padded(batch))[:, :7, :4], scores)
    other = replace(batch, regions=replace(batch.regions, ids=("x", "y")))
    assert not torch.equal(grounder.word_scores(other), scores)
    assert torch.isneginf(scores[2, :, 3]).all()


def test_random_regions_are_all_drawn_about_as_often(cases: Any, batch: Any) -> None:
    drawn = torch.cat(
        [RandomRegion(cases.vocabulary, seed).ranked_boxes(batch)[0][:3].argmax(1) for seed in range(100)]
    )
    assert (torch.bincount(drawn, minlength=4) - 75).abs().max() < 30


@pytest.mark.parametrize("name", BASELINES)
def test_padding_is_never_chosen(cases: Any, batch: Any, name: Any) -> None:
    grounder = build_baseline(name, cases.vocabulary, cases.labels)
    logits, boxes = grounder.ranked_boxes(batch)
    more, more_boxes = grounder.ranked_boxes(cases.padded(batch))
    assert torch.equal(more[:, :4].argsort(1, descending=True), logits.argsort(1, descending=True))
    assert torch.equal(more_boxes[:, :4][logits.isfinite()], boxes[logits.isfinite()])
    assert torch.isneginf(more[:, 4:]).all()
    assert grounder.match(batch).tolist() == [0, 0, 0]


def test_an_unknown_baseline_names_the_known_ones(cases: Any) -> None:
    with pytest.raises(DeixisError, match="whole, centre"):
        build_baseline("middle", cases.vocabulary)  # type: ignore[arg-type]


def test_lemmas_agree_across_number_and_with_the_last_word_of_a_label() -> None:
    table = lemma_table(["dogs", "table", "dining"], ["dog", "dining table"])
    assert table.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert label_table(["a"], ["b"], LabelPriorConfig("none")).tolist() == [[1]]


def test_cosines_of_words_and_labels(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("hot 3 0\ndog 0 4\nwet 1 1\n")
    table = cosine_table(["wet", "unheard"], ["dog", "hot dog"], read_vectors(path))
    assert table[0].tolist() == pytest.approx([0.5**0.5, (1.5 + 2) / (2**0.5 * 2.5)])
    assert table[1].tolist() == [0, 0]


@pytest.mark.parametrize("text", ["dog 1 2\ncat 1\n", "dog one two\n", ""])
def test_bad_vectors_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(text)
    with pytest.raises(BadFileError, match="vectors"):
        read_vectors(path)
    with pytest.raises(BadFileError, match="cannot be read"):
        read_vectors(tmp_path / "missing.txt")
