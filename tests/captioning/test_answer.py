from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from deixis.answering.reground import reground
from deixis.captioning import (
    AttentionConfig,
    Captioner,
    Generated,
    Pointing,
    Strategy,
    bad_endings,
    fluent_search,
)
from deixis.captioning.answer import grounded_captions, point, sentence_text
from deixis.data.batch import RegionBatch
from deixis.interfaces import Grounder
from deixis.text.vocabulary import END, Vocabulary
from deixis.types import GroundedCaption, GroundedPhrase, GroundedPhrases, Regions, Sentence

BOXES = torch.tensor([[0.0, 0, 10, 10], [10, 10, 20, 20], [9, 9, 21, 21], [50, 50, 60, 60]])
ALL = torch.ones(4, dtype=torch.bool)
PHOTO = torch.zeros(4, dtype=torch.long)


def _at(weights: list[list[float]], rule: str, voted: list[bool] | None = None, **options: float) -> tuple[float, ...]:
    w = torch.tensor(weights)
    votes = torch.tensor(voted if voted is not None else [True] * len(w))
    pointing = Pointing(rule=rule, **options)  # type: ignore[arg-type]
    found = point(w, votes, BOXES, ALL, PHOTO, pointing, branches=True)
    return found.boxes[0]


def test_boxes_by_hand() -> None:
    one = [[0.4, 0.3, 0.25, 0.05]]
    assert _at(one, "argmax") == (0, 0, 10, 10)
    assert _at(one, "union", top=2) == (0, 0, 20, 20)
    assert _at(one, "union", top=4) == (0, 0, 21, 21)  # .05 is less than half of .4
    assert _at(one, "union", top=4, share=0.0) == (0, 0, 60, 60)
    assert _at(one, "soft_vote") in [(10, 10, 20, 20), (9, 9, 21, 21)]  # two that overlap outvote the largest


def test_the_union_is_of_the_branches_that_said_the_word() -> None:
    branches = [[0.9, 0.1, 0, 0], [0, 0.8, 0.2, 0], [0, 0, 0.1, 0.9]]
    assert _at(branches, "auto") == (0, 0, 60, 60)
    assert _at(branches, "auto", [True, True, False]) == (0, 0, 20, 20)
    assert _at(branches, "auto", [False, True, False]) == (10, 10, 20, 20)
    assert _at(branches, "auto", [False, False, False]) == (0, 0, 60, 60)
    assert _at(branches, "argmax", [True, True, False]) in [(0, 0, 10, 10), (10, 10, 20, 20)]


def test_a_union_may_be_of_the_branches_that_agree_with_the_first() -> None:
    first, near, far = [0.0, 1.0, 0, 0], [0.0, 0, 1.0, 0], [0.0, 0, 0, 1.0]
    assert _at([first, near, far], "auto") == (9, 9, 60, 60)
    assert _at([first, near, far], "auto", agreeing=True) == (9, 9, 21, 21)
    assert _at([first, near, far], "auto", [False, True, True], agreeing=True) == (9, 9, 21, 21)  # the first that voted


def test_clips_have_a_box_per_frame() -> None:
    frame = torch.tensor([0, 1, 1, 0])
    weights = torch.tensor([[0.1, 0.3, 0.5, 0.1], [0.0, 0.5, 0.1, 0.4]])
    found = point(weights, torch.ones(2, dtype=torch.bool), BOXES, ALL, frame, Pointing("argmax"), branches=False)
    assert found.frames == (0, 1)
    assert found.boxes == ((50, 50, 60, 60), (10, 10, 20, 20))  # means .25 against .05, .4 against .3
    union = point(weights, torch.ones(2, dtype=torch.bool), BOXES, ALL, frame, Pointing(), branches=True)
    assert union.boxes[1] == (9, 9, 21, 21)  # branch 1 takes region 2, branch 2 region 1


def _generated(words: list[list[int]], attention: Tensor) -> Generated:
    said = torch.tensor(words).unsqueeze(1)
    voted = torch.ones(attention.shape[:-1], dtype=torch.bool)
    return Generated(said, torch.full(said.shape, -0.5), torch.zeros(len(words), 1), attention, voted)


def test_captions_have_exact_spans_and_original_boxes(regions: RegionBatch, vocabulary: Vocabulary) -> None:
    ids = [vocabulary.id(word) for word in ("a", "man", "holds", "his", "dog")]
    attention = torch.full((1, 3, 1, 6, 7), 0.1)
    attention[0, :, 0, 1, 3] = 0.9
    attention[0, :, 0, 4, 5] = 0.9
    rows = [[*ids, END], [END, 0, 0, 0, 0, 0], [*ids[:2], END, 0, 0, 0]]
    first, empty, short = grounded_captions(_generated(rows, attention), regions, vocabulary)
    assert first.text == "A man holds his dog."
    assert all(first.text[word.start : word.end] == word.text for word in first.words)
    assert [word.text for word in first.words] == ["A", "man", "holds", "his", "dog"]
    assert [word.groundable for word in first.words] == [False, True, False, False, True]
    assert first.words[1].boxes == (tuple(regions.boxes[0, 3].tolist()),)
    assert first.words[4].boxes == (tuple(regions.boxes[0, 5].tolist()),)
    assert first.words[2].boxes == ()
    assert first.size == (100, 120)
    assert first.score == -0.5
    assert empty.text == ""
    assert short.text == "A man."
    assert GroundedCaption.from_json(first.to_json()) == first


def test_an_objectness_prior_moves_the_box(regions: RegionBatch, vocabulary: Vocabulary) -> None:
    regions.objectness[:] = 0.1
    regions.objectness[:, 2] = 1.0
    attention = torch.tensor([0.3, 0.1, 0.2, 0.1, 0.1, 0.1, 0.1]).expand(1, 3, 1, 2, 7)
    rows = [[vocabulary.id("dog"), END]] * 3
    for power, chosen in ((0.0, 0), (1.0, 2)):
        captions = grounded_captions(_generated(rows, attention), regions, vocabulary, Pointing(objectness=power))
        assert captions[0].words[0].boxes == (tuple(regions.boxes[0, chosen].tolist()),)


def test_padded_regions_are_never_pointed_at(
    make_captioner: Callable[..., Captioner], regions: RegionBatch, vocabulary: Vocabulary
) -> None:
    for kind in ("soft", "distributed", "multi_head"):
        model = make_captioner(attention=AttentionConfig(kind=kind, branches=3))
        with torch.no_grad():
            model.decoder.output.bias[vocabulary.id("dog")] = 30.0
        captions = model.caption(regions, vocabulary, Strategy(max_length=3))
        real = {tuple(box) for box in regions.boxes[1, :5].tolist()}
        assert captions[1].text == "Dog dog dog."
        if kind != "distributed":
            assert all(box in real for word in captions[1].words for box in word.boxes)


def test_sentences_read_well() -> None:
    assert sentence_text(["a", "dog", "'s", "ball"]) == ("A dog's ball.", [(0, 1), (2, 5), (5, 7), (8, 12)])
    assert sentence_text([]) == ("", [])


def test_the_fluent_search_knows_the_words_to_keep_away(vocabulary: Vocabulary) -> None:
    search = fluent_search(vocabulary, 4)
    assert (search.kind, search.width) == ("beam", 4)
    assert [vocabulary.words[at] for at in search.joining] == ["and"]
    assert search.bad_endings == bad_endings(vocabulary)
    assert search.length_power == 0
    assert fluent_search(vocabulary, 4, chosen=True).length_power > 1  # a chooser wants to see longer captions too
    assert fluent_search(vocabulary, 1).kind == "greedy"


def test_bad_endings_are_function_words(vocabulary: Vocabulary) -> None:
    words = {vocabulary.words[at] for at in bad_endings(vocabulary)}
    assert {"a", "the", "and", "his", "of", "with", "is"} <= words
    assert not words & {"man", "runs", "red"}


class _LastRegion(Grounder):
    """Finds the last region for dogs and nothing for men."""

    def attention(self, batch: object) -> Tensor:
        return torch.zeros(0)

    def match(self, batch: object) -> Tensor:
        return torch.zeros(0)

    def ground(self, regions: Regions, sentence: Sentence, phrases: Sequence[int] | None = None) -> GroundedPhrases:
        answers = []
        for phrase in sentence.phrases:
            start, end = sentence.phrase_span(phrase)
            text = sentence.text[start:end]
            x1, y1, x2, y2 = regions.boxes[-1].tolist()
            answers.append(
                GroundedPhrase(text, ((x1, y1, x2, y2),), (0,), 0.7, "man" not in text, start=start, end=end)
            )
        return GroundedPhrases("", regions.size, tuple(answers), sentence.text)


def test_another_grounder_can_ground_the_words_again(regions: RegionBatch, vocabulary: Vocabulary) -> None:
    ids = [vocabulary.id(word) for word in ("a", "man", "holds", "the", "dog")]
    attention = torch.full((1, 3, 1, 6, 7), 0.1)
    caption = grounded_captions(_generated([[*ids, END]] * 3, attention), regions, vocabulary)[0]
    own = Regions(regions.boxes[0], regions.features[0], regions.objectness[0], (100, 120), "x")
    again = reground(caption, own, _LastRegion(), vocabulary)
    man, dog = again.words[1], again.words[4]
    assert dog.boxes == (tuple(regions.boxes[0, -1].tolist()),)
    assert (dog.trusted, man.trusted) == (True, False)
    assert again.words[2] == caption.words[2]
