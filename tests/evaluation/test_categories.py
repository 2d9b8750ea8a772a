"""Which categories are known to be in a photo and known not to be, and how answers about them are scored."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from deixis.answering.asking import Asking
from deixis.cli.main import app
from deixis.data.open import open_dataset
from deixis.errors import DeixisError, TooFewError
from deixis.evaluation.categories import as_people_ask, asking_for, categories_of, known_things, names_of
from deixis.evaluation.category_answers import category_section
from deixis.text.tokens import tokenise
from deixis.text.vocabulary import Entry, Vocabulary
from deixis.types import Example, GroundedPhrase, GroundedPhrases, ImageFile, LabelledBox, Sentence

WORDS = Vocabulary([Entry(word, 9, "NN", word, True) for word in ("apple", "dog", "light", "person", "traffic")])


def photo(name: str, caption: str, **boxes: tuple[float, float, float, float]) -> Example:
    objects = tuple(LabelledBox(box, label.replace("_", " ")) for label, box in boxes.items())
    return Example(name, ImageFile(Path(name)), (100, 100), (Sentence(caption, tokenise(caption)),), "val", objects)


def test_what_is_there_what_is_not_and_what_nobody_knows() -> None:
    names = ("apple", "dog", "person", "traffic light", "zebra")
    seen = photo("a", "Two surfers in the light.", dog=(0, 0, 50, 50))
    known = categories_of(seen, names)
    assert known.present == ("dog",)
    # surfers are persons, though none has a box; "light" may be a traffic light
    assert known.absent == ("apple", "zebra")
    assert as_people_ask("umbrella") == "an umbrella"


def test_as_many_absent_ones_are_asked_for_the_same_ones_every_time() -> None:
    examples = [
        photo("a", "A dog.", dog=(0, 0, 50, 50), person=(0, 0, 9, 9)),
        photo("b", "Fruit.", apple=(0, 0, 9, 9)),
        photo("c", "Nothing much."),
        photo("d", "A crossing.", traffic_light=(5, 5, 9, 9)),
    ]
    assert names_of(examples) == ("apple", "dog", "person", "traffic light")
    present, absent = known_things(examples, WORDS)
    asked = [[caption.text for caption in one.captions] for one in present]
    assert asked == [["a dog", "a person"], ["an apple"], [], ["a traffic light"]]
    assert [len(one.captions) for one in absent] == [2, 1, 0, 1]
    assert [one.captions for one in absent] == [one.captions for one in known_things(examples, WORDS)[1]]
    light = present[3].captions[0]
    assert light.phrases[0].boxes == ((5, 5, 9, 9),)
    assert light.tokens[light.phrases[0].head or 0].text == "light"
    assert not any(caption.phrases[0].boxes for one in absent for caption in one.captions)


class Answers:
    """Finds a dog in the upper left of every photo, a person nowhere, and the rest everywhere."""

    words = WORDS

    def ground_sentences(
        self, seen: Any, sentences: list[Sentence], *, name: str, threshold: float | None
    ) -> list[GroundedPhrases]:
        assert threshold is None
        found = {"a dog": ((0.0, 0.0, 50.0, 50.0), True), "a person": ((0.0, 0.0, 9.0, 9.0), False)}
        return [
            GroundedPhrases(name, (100, 100), (GroundedPhrase(one.text, (box,), (0,), 0.5, told),))
            for one in sentences
            for box, told in [found.get(one.text, ((0.0, 0.0, 100.0, 100.0), True))]
        ]


def work(examples: list[Example]) -> Any:
    return SimpleNamespace(
        examples=tuple(examples), model=Answers(), asking=Asking(), drawing={"replicates": 0, "seed": 0},
        seen=lambda names: list(names), dataset=SimpleNamespace(path=Path("photos")),
    )  # fmt: skip


def test_the_figures_are_counted_by_hand() -> None:
    examples = [
        photo("a", "Here.", dog=(0, 0, 50, 40), person=(0, 0, 9, 9)),  # right and large; lost, though its box is right
        photo("b", "There.", dog=(60, 60, 90, 90)),  # found, but elsewhere
        photo("c", "Fruit.", apple=(0, 0, 60, 100)),  # right: over half of the photo
    ]
    section = category_section(work(examples))
    assert section.scores["right"] == pytest.approx(2 / 4)
    assert section.scores["right_large"] == pytest.approx(2 / 2)
    assert section.scores["present_kept"] == pytest.approx(3 / 4)
    # apple in a and b, dog in c are found; person in b and c are not
    assert section.scores["absent_found"] == pytest.approx(3 / 5)
    assert section.items == 9
    with pytest.raises(TooFewError, match="no category of photos"):
        category_section(work([photo("a", "Nothing.")]))


@pytest.fixture
def coco(tmp_path: Path, photos: Path) -> Path:
    """Real photos as a COCO folder: every second one has a dog, the others a cat, where they are said to be."""
    dataset = open_dataset(photos)
    ids = dataset.ids("val")[:12]
    folder = tmp_path / "coco"
    (folder / "annotations").mkdir(parents=True)
    (folder / "images").mkdir()
    images, things, captions = [], [], []
    for at, name in enumerate(ids):
        source = dataset[name].source
        assert isinstance(source, ImageFile)
        with Image.open(source.path) as picture:
            images.append({"id": name, "file_name": f"{name}.png", "width": picture.width, "height": picture.height})
            picture.save(folder / "images" / f"{name}.png")
        things.append({"image_id": name, "category_id": at % 2, "bbox": [5, 5, 60, 60]})
        captions.append({"image_id": name, "caption": dataset[name].captions[0].text})
    categories = [{"id": 0, "name": "dog"}, {"id": 1, "name": "man"}]
    for kind, data in (("instances", things), ("captions", captions)):
        told = {"images": images, "annotations": data, "categories": categories}
        (folder / "annotations" / f"{kind}_val.json").write_text(json.dumps(told))
    return folder


def test_asked_for_with_the_boxes_of_their_instances(coco: Path) -> None:
    dataset = open_dataset(coco)
    assert dataset.names_every_object
    example = dataset[dataset.ids("val")[0]]
    (asked,) = asking_for(example, ["dog"], WORDS).captions
    assert asked.phrases[0].boxes == ((5, 5, 65, 65),)


def test_stores_and_splits_belong_to_datasets() -> None:
    with pytest.raises(DeixisError, match="2 datasets but 1 times --store"):
        CliRunner().invoke(app, ["calibrate", "lite", "a", "b", "--store", "s"], catch_exceptions=False)
