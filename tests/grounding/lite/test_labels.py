"""The detector's classes in answers: which words name which class, and that they only doubt and lean."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from deixis.data.batch import Batch
from deixis.data.sizes import InputSizes
from deixis.errors import DeixisError
from deixis.grounding.lite.config import LiteConfig
from deixis.grounding.lite.labels import NONE, LabelOptions, Labels
from deixis.grounding.lite.model import LiteGrounder
from deixis.text.coco_names import COCO_NAMES
from deixis.text.rules.lemmas import lemmatise_noun
from deixis.text.vocabulary import PAD, Entry, Vocabulary
from tests.grounding.conftest import batch_of

COCO = LabelOptions(names="coco")
WORDS = ("a", "man", "people", "puppy", "hot", "dog", "dogs", "traffic", "light", "grass", "sofa", "teddy", "bear")
LEMMAS = {"people": "person", "dogs": "dog"}
VOCABULARY = Vocabulary([Entry(word, 9, "NN", LEMMAS.get(word, word)) for word in WORDS])
LABELS = Labels(COCO, len(COCO_NAMES), VOCABULARY)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("dog", "dog"),
        ("dogs", "dog"),
        ("puppy", "dog"),
        ("man", "person"),
        ("people", "person"),
        ("sofa", "couch"),
        ("hot dog", "hot dog"),
        ("traffic light", "traffic light"),
        ("teddy bear", "teddy bear"),
        ("bear", "bear"),
        ("light", None),
        ("hot", None),
        ("traffic", None),
        ("grass", None),
        ("grass dog", "dog"),
    ],
)
def test_phrases_name_a_class_alone_or_with_the_word_before(text: str, name: str | None) -> None:
    *modifiers, head = [VOCABULARY.id(word) for word in text.split()]
    found = LABELS.of_phrases(torch.tensor([head]), torch.tensor([modifiers or [PAD]]))
    assert found.tolist() == [NONE if name is None else COCO_NAMES.index(name)]


def test_every_class_is_named_by_its_own_name() -> None:
    words = dict.fromkeys(" ".join(COCO_NAMES).split())
    vocabulary = Vocabulary([Entry(word, 9, "NN", lemmatise_noun(word)) for word in words])
    labels = Labels(COCO, len(COCO_NAMES), vocabulary)
    for at, name in enumerate(COCO_NAMES):
        *before, head = [vocabulary.id(word) for word in name.split()]
        said = torch.tensor([before or [PAD]])
        assert labels.of_phrases(torch.tensor([head]), said).tolist() == [at], name


def test_regions_without_known_classes_name_none() -> None:
    for none in (Labels(LabelOptions(), len(COCO_NAMES), VOCABULARY), Labels(COCO, 0, VOCABULARY)):
        assert not none.in_use
        assert (none.alone == NONE).all()
        assert none.pairs.shape == (0, 3)
        assert none.of_phrases(torch.tensor([VOCABULARY.id("dog")]), torch.tensor([[PAD]])).tolist() == [NONE]


def test_words_of_captions_name_a_class_where_they_are_the_last_noun() -> None:
    words = torch.tensor([[VOCABULARY.id(word) for word in ["a", "hot", "dog", "a", "dog", "man", "sofa"]]])
    nouns = torch.tensor([[False, False, True, False, True, True, False]])
    named = [NONE if at == NONE else COCO_NAMES[at] for at in LABELS.of_captions(words, nouns)[0].tolist()]
    assert named == [NONE, NONE, "hot dog", NONE, NONE, "person", NONE]


def test_a_class_leans_by_its_logarithm_and_nothing_else_leans() -> None:
    probabilities = torch.tensor([[[0.5, 0.1], [0.0, 0.9]]]).repeat(2, 1, 1)
    lean = LABELS.leaning(torch.tensor([0, NONE]), probabilities)
    expected = COCO.answers * torch.tensor([[0.5, 1e-3], [1.0, 1.0]]).log()
    torch.testing.assert_close(lean, expected)


@pytest.mark.parametrize(
    ("best", "taken"),
    [(0.9, 0.0), (1 / (1 + torch.e**6), 0.0), (1 / (1 + torch.e**8), -1.0), (1 / (1 + torch.e**9), -1.5)],
)
def test_doubt_grows_with_how_sure_the_detector_is_of_the_opposite(best: float, taken: float) -> None:
    doubt = LABELS.doubt(torch.tensor([0]), torch.tensor([best]))
    torch.testing.assert_close(doubt, torch.tensor([taken]), atol=1e-3, rtol=0)
    assert LABELS.doubt(torch.tensor([NONE]), torch.tensor([best])).tolist() == [0.0]
    twice = Labels(replace(COCO, presence=1.0), len(COCO_NAMES), VOCABULARY)
    torch.testing.assert_close(twice.doubt(torch.tensor([0]), torch.tensor([best])), doubt * 2)


@torch.no_grad()
def test_padding_is_never_seen_however_sure() -> None:
    model = _grounder(COCO)
    classes = torch.full((4, len(COCO_NAMES)), 1e-5)
    classes[3, COCO_NAMES.index("dog")] = 0.9
    asked = _asked("dog", classes)
    assert asked.phrases is not None
    assert asked.regions.mask.tolist() == [[True] * 4, [True] * 3 + [False]]
    assert model._best_of_classes(asked.regions)[:, COCO_NAMES.index("dog")].tolist() == pytest.approx([0.9, 1e-5])


def _grounder(options: LabelOptions) -> LiteGrounder:
    torch.manual_seed(0)
    sizes = InputSizes(words=len(VOCABULARY), features=5, classes=len(COCO_NAMES))
    return LiteGrounder(LiteConfig(width=6, position=0.0, labels=options), sizes, VOCABULARY).eval()


def _asked(head: str, classes: Tensor) -> Batch:
    """Two photos and a caption each that says one word, with the classes of all regions given, (N, C)."""
    batch = batch_of()
    words = torch.full_like(batch.words, VOCABULARY.id(head))
    probabilities = classes.expand(*batch.regions.mask.shape, -1)
    regions = replace(batch.regions, class_probs=probabilities, regionness=torch.full(batch.regions.mask.shape, 0.5))
    return replace(batch, words=words, regions=regions)


@torch.no_grad()
def test_answers_and_presence_change_for_words_that_name_a_class_alone() -> None:
    plain, labelled = _grounder(LabelOptions()), _grounder(COCO)
    classes = torch.full((4, len(COCO_NAMES)), 1e-5)
    classes[2, COCO_NAMES.index("dog")] = 0.8
    asked = _asked("puppy", classes)
    assert asked.phrases is not None
    lean = (labelled.phrase_logits(asked) - plain.phrase_logits(asked))[:, :3]
    expected = COCO.answers * torch.tensor([1e-3, 1e-3, 0.8]).log()
    torch.testing.assert_close(lean, expected.expand_as(lean), atol=1e-4, rtol=0)
    torch.testing.assert_close(labelled.phrase_presence(asked)[0], plain.phrase_presence(asked)[0] + COCO.known)
    nowhere = _asked("sofa", classes)
    fallen = labelled.phrase_presence(nowhere) - plain.phrase_presence(nowhere)
    wanted = COCO.presence * (torch.tensor(1e-5).logit() + COCO.doubt) + COCO.known
    torch.testing.assert_close(fallen, wanted.expand_as(fallen), atol=1e-3, rtol=0)
    grass = _asked("grass", classes)
    torch.testing.assert_close(labelled.phrase_logits(grass), plain.phrase_logits(grass))
    torch.testing.assert_close(labelled.phrase_presence(grass), plain.phrase_presence(grass))


def test_other_classes_are_refused_with_the_key_to_change() -> None:
    sizes = InputSizes(words=len(VOCABULARY), features=5, classes=3)
    with pytest.raises(DeixisError, match=r"model\.labels\.names is coco, but these regions have 3 classes"):
        LiteGrounder(LiteConfig(labels=COCO), sizes, VOCABULARY)


def test_regions_without_classes_are_answered_without_labels() -> None:
    sizes = InputSizes(words=len(VOCABULARY), features=5, classes=0)
    model = LiteGrounder(LiteConfig(width=6, labels=COCO), sizes, VOCABULARY).eval()
    assert not model.labels.in_use
    asked = _asked("dog", torch.zeros(4, len(COCO_NAMES)))
    assert torch.isfinite(model.phrase_presence(replace(asked, regions=replace(asked.regions, class_probs=None)))).all()
