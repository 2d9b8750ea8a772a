"""Position words: which count, where they point, and that they move the answer of a grounder and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from deixis.data.batch import Batch, PhraseBatch
from deixis.data.sizes import InputSizes
from deixis.grounding.lite.config import LiteConfig
from deixis.grounding.lite.model import LiteGrounder
from deixis.grounding.lite.positions import (
    AXES,
    DIRECTIONS,
    Positions,
    direction_table,
    empty_words,
    ranks,
    read_positions,
    region_positions,
)
from deixis.text.vocabulary import Entry, Vocabulary
from tests.grounding.conftest import batch_of

TAGS = {
    "the": "DT",
    "a": "DT",
    "on": "IN",
    "in": "IN",
    "of": "IN",
    "black": "JJ",
    "left": "JJ",
    "front": "NN",
    "from": "IN",
    "second": "JJ",
}
NOUNS = ("man", "dog", "right", "top", "middle", "car", "hand", "one", "side")
VOCABULARY = Vocabulary([Entry(word, 9, TAGS.get(word, "NN"), word) for word in (*TAGS, *NOUNS)])


def read(text: str, head: str) -> tuple[Positions, list[str]]:
    words = text.split()
    ids = torch.tensor([[VOCABULARY.id(word) for word in words]])
    inside = torch.ones_like(ids, dtype=torch.bool)
    place = torch.tensor([words.index(head)])
    found = read_positions(
        ids, inside, place, direction_table(VOCABULARY), empty_words(VOCABULARY), VOCABULARY.id("of")
    )
    return found, [word for word, says in zip(words, found.says[0].tolist(), strict=True) if says]


@pytest.mark.parametrize(
    ("text", "head", "says", "nameless"),
    [
        ("the man on the left", "man", ["left"], False),
        ("a man", "man", [], False),
        ("the man in front of the car", "man", [], False),
        ("a black top", "top", [], False),
        ("the top one", "one", ["top"], True),
        ("left", "left", ["left"], True),
        ("on the right side", "side", ["right"], True),
        ("the top left dog", "dog", ["top", "left"], False),
        ("second from the left", "left", ["left"], True),
    ],
)
def test_which_words_say_a_position(text: str, head: str, says: list[str], nameless: bool) -> None:
    found, words = read(text, head)
    assert words == says
    assert found.nameless.tolist() == [nameless]


def test_directions_point_where_they_say() -> None:
    table = direction_table(VOCABULARY)
    assert table[VOCABULARY.id("dog")].tolist() == [0] * AXES
    for word, opposite in (("left", "right"), ("top", "bottom"), ("front", "back")):
        assert (torch.tensor(DIRECTIONS[word]) == -torch.tensor(DIRECTIONS[opposite])).all()
    assert table[VOCABULARY.id("left")].tolist() == [-1, 0, 0]


def corners(batch: Batch) -> Batch:
    """The same with regions at the left, the right, the top middle and everywhere, all equally likely things."""
    boxes = torch.tensor([[0.0, 0.4, 0.2, 0.6], [0.8, 0.4, 1.0, 0.6], [0.4, 0.0, 0.6, 0.2], [0.0, 0.0, 1.0, 1.0]])
    regions = replace(
        batch.regions,
        boxes=boxes * batch.regions.sizes.repeat(1, 2).unsqueeze(1),
        mask=torch.ones(2, 4, dtype=torch.bool),
    )
    return replace(batch, regions=regions)


def test_positions_of_regions_by_hand() -> None:
    found = region_positions(corners(batch_of()).regions)[0]
    wanted = torch.tensor([[-0.8, 0.0, -0.6], [0.8, 0.0, -0.6], [0.0, -0.8, 1.0], [0.0, 0.0, 1.0]])
    assert torch.allclose(found, wanted, atol=1e-6)


@pytest.fixture
def grounder() -> LiteGrounder:
    torch.manual_seed(0)
    sizes = InputSizes(words=len(VOCABULARY), features=5, classes=3)
    return LiteGrounder(LiteConfig(width=6, position=50.0), sizes, VOCABULARY).eval()


def answer(model: LiteGrounder, text: str, head: int) -> Tensor:
    batch = corners(batch_of())
    words = torch.tensor([[VOCABULARY.id(word) for word in text.split()]])
    batch = replace(batch, words=words, tags=torch.zeros_like(words), image_of=torch.tensor([0]))
    phrase = PhraseBatch(*(torch.tensor([at]) for at in (0, 0, words.shape[1], head)))
    return model.answer(batch, phrase)[0]


@pytest.mark.parametrize(("word", "region"), [("left", 0), ("right", 1), ("top", 2)])
def test_the_answer_lies_where_the_phrase_says(grounder: LiteGrounder, word: str, region: int) -> None:
    assert int(answer(grounder, f"the {word} dog", 2).argmax()) == region
    assert int(answer(grounder, f"the {word} one", 2).argmax()) == region


def test_nothing_else_changes(grounder: LiteGrounder) -> None:
    """Without position words, and for parts of bodies, the weight of positions plays no part."""
    without = LiteGrounder(replace(grounder.config, position=0.0), grounder.sizes, VOCABULARY).eval()
    without.load_state_dict(grounder.state_dict())
    for text, head in (("a black dog", 2), ("the left hand", 2)):
        assert torch.equal(answer(grounder, text, head), answer(without, text, head))
    assert not torch.equal(answer(grounder, "the left dog", 2), answer(without, "the left dog", 2))


def test_things_are_counted_once_and_unlikely_ones_not_at_all() -> None:
    lefts = [0.0, 1.0, 20.0, 40.0, 60.0]
    boxes = torch.tensor([[[x, 0.0, x + 10, 10.0] for x in lefts]])
    logits = torch.tensor([[-1.0, 0.0, -0.5, -9.0, -0.2]])  # the first two are one thing, the fourth is none
    found = ranks(logits, boxes, boxes[..., 0])
    assert found.tolist() == [[0, 0, 1, 2, 2]]
    assert ranks(logits, boxes, -boxes[..., 0])[0, [4, 2, 1]].tolist() == [0, 1, 2]


def test_the_second_from_the_left(grounder: LiteGrounder) -> None:
    """Three dogs side by side: the first logits are equal, so that all of them count."""
    for weights in grounder.parameters():
        torch.nn.init.zeros_(weights)
    model = LiteGrounder(replace(grounder.config, mix=0.0), grounder.sizes, VOCABULARY).eval()
    model.load_state_dict(grounder.state_dict())
    order = answer(model, "the second dog from the left", 2).argsort(descending=True)
    assert int(order[0]) == 2  # left, top middle, right
    assert int(answer(model, "the left dog", 2).argmax()) == 0
