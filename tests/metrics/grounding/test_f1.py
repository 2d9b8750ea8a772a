"""Grounding F1 worked by hand, one rule at a time."""

from __future__ import annotations

import pytest

from deixis.errors import DeixisError
from deixis.metrics.grounding.f1 import (
    ClassScore,
    f1_by_frequency,
    generated_share,
    relative_gain,
    score_grounding,
)
from deixis.metrics.grounding.object_words import GroundedItem, PredictedWord, ReferenceSentence, pool
from deixis.types import Box

A: Box = (0, 0, 9, 9)  # 10 x 10 pixels: the last pixel belongs to a box
FAR: Box = (50, 50, 59, 59)


def word(label: str, box: Box = A, *more: Box) -> PredictedWord:
    boxes = (box, *more)
    return PredictedWord(label, label, boxes, tuple(range(len(boxes))))


def sentence(*words: tuple[int, str, Box], others: tuple[str, ...] = (), frame: int = 0) -> ReferenceSentence:
    return ReferenceSentence.of([(index, label, box, frame) for index, label, box in words], others)


def item(name: str, reference: ReferenceSentence, *predicted: PredictedWord) -> GroundedItem:
    return GroundedItem(name, (reference,), predicted)


def scores(*items: GroundedItem) -> dict[str, float]:
    return score_grounding(items).scores


def test_one_right_word() -> None:
    assert set(scores(item("1", sentence((1, "man", A)), word("man"))).values()) == {1.0}


def test_areas_include_the_last_pixel_and_one_half_is_not_enough() -> None:
    # 10 x 10 against 10 x 5 pixels: IoU is exactly 1/2. Without +1 it would be 9 * 4 / 81 = 0.44.
    half = item("1", sentence((1, "man", A)), word("man", (0, 0, 9, 4)))
    assert scores(half)["F1_all"] == 0
    # 10 x 6 pixels: 0.6; without +1 9 * 5 / 81 = 0.56. And 3 x 3 against 2 x 3: 6/9 right, without +1 1/2 wrong.
    assert scores(item("1", sentence((1, "man", A)), word("man", (0, 0, 9, 5))))["F1_all"] == 1
    assert scores(item("1", sentence((1, "man", (0, 0, 2, 2))), word("man", (0, 0, 1, 2))))["F1_all"] == 1


def test_a_box_of_one_pixel_is_padding_and_never_right() -> None:
    dot: Box = (3, 3, 3, 3)
    assert scores(item("1", sentence((1, "man", dot)), word("man", dot)))["F1_all"] == 0


def test_precision_looks_at_the_first_reference_word_of_the_class() -> None:
    reference = sentence((6, "man", A), (2, "man", FAR))  # the first word in the sentence, not in the file
    found = scores(item("1", reference, word("man", A)))
    assert found["precision_all"] == 0
    assert found["recall_all"] == 0.5  # each reference word against the first predicted one: word 6 is hit
    found = scores(item("1", reference, word("man", FAR), word("man", A)))
    assert found["precision_all"] == 0.5
    assert found["recall_all"] == 0.5  # the second predicted word is never asked


def test_a_lemma_the_annotators_left_out_is_ignored() -> None:
    reference = sentence((1, "man", A), others=("dog", "run"))
    found = scores(item("1", reference, word("man"), word("dog")))
    assert found["precision_all"] == 1
    hallucinated = scores(item("1", reference, word("man"), word("cat")))
    # cat is no class of the references: it adds a class mean of 0, but the divisor stays 1
    assert hallucinated["precision_all"] == 1
    assert hallucinated["precision_all_per_sent"] == 0.5
    assert hallucinated["precision_loc_per_sent"] == 1


def test_hallucinated_and_missed_words_count_in_all_and_not_in_loc() -> None:
    items = [
        item("1", sentence((1, "man", A)), word("man"), word("dog")),
        item("2", sentence((1, "dog", A), (2, "hat", A)), word("dog")),
    ]
    found = scores(*items)
    # precision: man 1/1, dog (0 + 1)/2, hat never predicted; 3 classes in the references
    assert found["precision_all"] == pytest.approx(1.5 / 3)
    assert found["precision_loc"] == pytest.approx(2 / 3)
    # recall: man 1, dog 1, hat 0
    assert found["recall_all"] == pytest.approx(2 / 3)
    assert found["recall_loc"] == pytest.approx(2 / 3)
    assert found["F1_all"] == pytest.approx(2 * 0.5 * (2 / 3) / (0.5 + 2 / 3))  # of the means, not a mean of F1s
    # per sentence: P (1/2 + 1)/2, R (1 + 1/2)/2, F1 2/3 each
    assert found["precision_all_per_sent"] == pytest.approx(0.75)
    assert found["recall_all_per_sent"] == pytest.approx(0.75)
    assert found["F1_all_per_sent"] == pytest.approx(2 / 3)
    assert found["F1_loc_per_sent"] == 1


def test_partial_submission() -> None:
    left_out = GroundedItem("2", (sentence((1, "dog", A), (2, "man", A)),), None)
    found = scores(item("1", sentence((1, "man", A)), word("man")), left_out)
    assert found["precision_all"] == 1  # only classes of submitted items divide: man
    # recall: man (1 + 0)/2; dog's mean of 0 adds nothing, and dog is not in the divisor. Also in loc.
    assert found["recall_all"] == 0.5
    assert found["recall_loc"] == 0.5
    assert found["F1_all_per_sent"] == 1  # the mean over submitted sentences


def test_empty_sentences() -> None:
    said_nothing = item("2", sentence((1, "man", A)))
    found = scores(item("1", sentence((1, "man", A)), word("man")), said_nothing)
    assert found["recall_all"] == 0.5
    assert found["F1_all_per_sent"] == 0.5  # no precision entry: scores 0
    assert found["F1_loc_per_sent"] == 1  # no recall entry: skipped


def test_a_submitted_segment_nobody_annotated_still_divides_the_sentences() -> None:
    bare = GroundedItem("2", (), (word("man"),))
    found = scores(item("1", sentence((1, "man", A)), word("man")), bare)
    assert found["F1_all"] == 1
    assert found["F1_all_per_sent"] == 0.5
    wordless = GroundedItem("3", (sentence(others=("man",)),), (word("man"),))  # a reference with no object word
    assert scores(item("1", sentence((1, "man", A)), word("man")), wordless)["F1_all_per_sent"] == 1


def test_any_of_several_boxes_will_do() -> None:
    reference = sentence((1, "people", FAR), (1, "people", A))
    assert scores(item("1", reference, word("people", A)))["F1_all"] == 1


def test_only_frames_with_a_reference_box_count() -> None:
    reference = sentence((1, "man", A), frame=1)
    assert scores(item("v/0", reference, word("man", FAR, A)))["F1_all"] == 1
    assert scores(item("v/0", reference, word("man", A, FAR, A)))["F1_all"] == 0  # right only in frames without a box
    late = sentence((1, "man", A), frame=7)
    assert scores(item("v/0", late, word("man", A, A)))["F1_all"] == 0  # no box for that frame at all


def test_photo_references_count_separately_per_class_and_pooled_per_sentence() -> None:
    references = (
        sentence((1, "man", FAR)),
        sentence((1, "man", A), (4, "hat", A)),
        sentence((2, "dog", A), others=("man",)),
    )
    photo = GroundedItem("1", references, (word("man", A),))
    found = scores(photo)
    # precision of man: wrong against the first, right against the second, ignored in the third; 3 classes
    assert found["precision_all"] == pytest.approx(0.5 / 3)
    assert found["recall_all"] == pytest.approx(0.5 / 3)  # man 1/2, hat 0, dog 0
    assert found["recall_loc"] == pytest.approx(0.5 / 3)
    # pooled: man (two boxes, one is hit), hat, dog
    assert found["precision_all_per_sent"] == 1
    assert found["recall_all_per_sent"] == pytest.approx(1 / 3)
    assert found["F1_all_per_sent"] == pytest.approx(0.5)
    assert found["F1_loc_per_sent"] == 1
    (pooled,) = pool(references)
    assert pooled.first["man"].boxes == (FAR, A)


def test_classes_are_told_apart_with_their_counts() -> None:
    result = score_grounding([item("1", sentence((1, "man", A), (3, "man", FAR), (5, "hat", A)), word("man", A))])
    assert result.classes["all"] == (
        ClassScore("man", 1.0, 1, 0.5, 2),
        ClassScore("hat", 0.0, 0, 0.0, 1),
    )
    assert result.generated_share == 0.5


def test_nothing_to_score_is_an_error() -> None:
    with pytest.raises(DeixisError, match="nothing to score"):
        score_grounding([GroundedItem("1", (sentence((1, "man", A)),), None)])


def test_share_of_classes_ever_generated() -> None:
    items = [
        item("1", sentence((1, "man", A), (2, "hat", A)), word("man"), word("unicorn")),
        item("2", sentence((1, "dog", A), (2, "ball", A)), word("hat")),  # said of another photo, still generated
    ]
    assert generated_share(items) == 0.5


def test_f1_in_ten_groups_by_frequency() -> None:
    classes = [ClassScore(f"c{at:02}", at / 20, 1, at / 20, 100 - at) for at in range(20)]
    groups = f1_by_frequency(classes)
    assert [size for size, _ in groups] == [2] * 10
    assert groups[0][1] == pytest.approx((0 + 1 / 20) / 2)  # the most frequent first
    by_training = f1_by_frequency(classes, {"c19": 1000, "c18": 900}, groups=10)
    assert by_training[0][1] == pytest.approx((19 / 20 + 18 / 20) / 2)


@pytest.mark.parametrize(
    ("value", "unsupervised", "supervised", "printed"),
    [(4.68, 3.75, 7.30, 26), (15.84, 12.00, 25.02, 29), (12.60, 9.41, 17.88, 38), (44.04, 31.68, 60.23, 43)],
)
def test_relative_gain_as_cyclical_prints_it(
    value: float, unsupervised: float, supervised: float, printed: int
) -> None:
    """Percentages of Cyclical's table 2, with the values of its table 7, which fit them; table 2's own do not all."""
    assert int(100 * relative_gain(value, unsupervised, supervised)) == pytest.approx(printed, abs=1)


def test_relative_gain_needs_a_gap() -> None:
    with pytest.raises(DeixisError, match="no gap"):
        relative_gain(1, 2, 2)
