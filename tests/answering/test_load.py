"""The Python face: what it answers, that every way of handing in a photo is the same, and what it refuses."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import deixis
from deixis.answering.load import Deixis
from deixis.answering.photos import Seen
from deixis.captioning.answer import Pointing
from deixis.data.pad import pad_regions
from deixis.errors import BadFileError, DeixisError
from deixis.grounding.scan import Scan
from deixis.models.bundle import Card, find_bundle, join
from deixis.models.names import find_model, load_grounder
from deixis.types import Regions

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"
SAID = {
    "astronaut.jpg": "A woman in a suit with a helmet.",
    "chelsea.jpg": "A cat with eyes.",
    "coffee.jpg": "A cup of coffee on a table.",
}


@pytest.fixture(scope="module")
def model(small_bundle: Path) -> Deixis:
    return deixis.load(small_bundle)


@pytest.fixture(scope="module")
def regions(model: Deixis) -> list[Regions]:
    return model.regions([PHOTOS / name for name in SAID])


def test_captions_of_several_photos_are_those_of_each_alone(model: Deixis) -> None:
    together = model.captions([PHOTOS / name for name in SAID])
    assert [caption.text for caption in together] == list(SAID.values())
    assert [caption.image for caption in together] == [str(PHOTOS / name) for name in SAID]
    for name, one in zip(SAID, together, strict=True):
        alone = model.caption(PHOTOS / name)
        assert [word.boxes for word in alone.words] == [word.boxes for word in one.words]
        assert alone.score == pytest.approx(one.score, abs=1e-4)
    assert model.captions([]) == []


def test_words_have_boxes_inside_the_photo_and_exact_spans(model: Deixis) -> None:
    caption = model.caption(PHOTOS / "coffee.jpg")
    assert caption.size == Image.open(PHOTOS / "coffee.jpg").size
    assert [word.text for word in caption.words if word.boxes] == ["cup", "coffee", "table"]
    for word in caption.words:
        assert caption.text[word.start : word.end] == word.text
        for x1, y1, x2, y2 in word.boxes:
            assert 0 <= x1 < x2 <= caption.size[0]
            assert 0 <= y1 < y2 <= caption.size[1]


def test_paths_bytes_images_arrays_and_regions_are_one_photo(model: Deixis, regions: list[Regions]) -> None:
    path = PHOTOS / "chelsea.jpg"
    pixels = np.asarray(Image.open(path))
    handed: list[Seen] = [path, str(path), path.read_bytes(), Image.open(path), pixels, regions[1]]
    answers = [model.caption(photo, name="same") for photo in handed]
    assert all(answer == answers[0] for answer in answers)
    assert model.caption(pixels).image == "photo"
    assert model.caption(Image.open(path)).image == str(path)


@pytest.mark.parametrize("photo", [3, None, [1, 2], b"", b"not a photo", "no/such/file.jpg", np.zeros((4, 4, 3)) - 1])
def test_what_is_no_photo_is_refused(model: Deixis, photo: object) -> None:
    with pytest.raises(DeixisError):
        model.caption(photo)  # type: ignore[arg-type]


def test_a_photo_upside_down_by_exif_is_answered_as_it_is_shown(model: Deixis, tmp_path: Path) -> None:
    upright = Image.open(PHOTOS / "coffee.jpg").resize((300, 200))
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    held = io.BytesIO()
    upright.transpose(Image.Transpose.ROTATE_90).save(held, "JPEG", exif=exif, quality=95)
    answer = model.caption(held.getvalue())
    assert answer.size == (300, 200)
    assert answer.text == SAID["coffee.jpg"]


def test_alternatives_begin_with_the_caption_and_never_repeat(model: Deixis, regions: list[Regions]) -> None:
    found = model.alternatives(regions[0], beam=5)
    assert 1 < len(found) <= 5
    assert found[0].text == model.caption(regions[0], beam=5).text
    assert len({caption.text for caption in found}) == len(found)


def test_a_look_has_the_weights_behind_the_boxes(model: Deixis, regions: list[Regions]) -> None:
    look = model.look(regions[2])
    assert look.attention.shape == (len(look.caption.words), len(look.regions))
    assert np.allclose(look.attention.sum(1), 1, atol=1e-4)
    for word, weights in zip(look.caption.words, look.attention, strict=True):
        if word.boxes:
            assert word.boxes[0] == pytest.approx(look.regions.boxes[int(weights.argmax())].tolist())


def test_the_grounder_can_point_and_judge(model: Deixis, regions: list[Regions]) -> None:
    assert model.methods == ("attention", "grounder")
    compared = 0
    for seen in regions:
        pointed = model.caption(seen, method="grounder")
        expected = model.ground(seen, sentence=pointed.text)
        by_text = {phrase.text.split()[-1]: phrase.boxes for phrase in expected.phrases}
        if len(set(by_text.values())) == len(by_text):  # two things of a caption never share a box: test_apart.py
            assert {word.text: word.boxes for word in pointed.words if word.groundable} == by_text
            compared += 1
    assert compared, "the premise: a photo whose things were found in different places"
    checked = model.caption(regions[1])
    plain = model.caption(regions[1], check=False)
    assert not any(word.presence is not None for word in plain)
    for word, other in zip(checked.words, plain.words, strict=True):
        assert word.boxes == other.boxes
        assert (word.presence is not None) == word.groundable
    with pytest.raises(DeixisError, match="cannot point by 'magic'"):
        model.caption(regions[1], method="magic")  # type: ignore[arg-type]


def test_a_card_chooses_the_way_of_pointing(model: Deixis, regions: list[Regions]) -> None:
    assert model.grounder is not None
    other = Deixis(model.extractor, model.captioner, model.grounder, card=Card("grounder"))
    assert other.caption(regions[0]).words == model.caption(regions[0], method="grounder").words
    union = Deixis(
        model.extractor, model.captioner, model.grounder, card=Card(pointing=Pointing("union", top=20, share=0))
    )
    whole = union.caption(regions[0], method="attention")
    assert any(a.boxes != b.boxes for a, b in zip(whole.words, model.caption(regions[0]).words, strict=True))


def test_the_grounder_chooses_among_captions(model: Deixis, regions: list[Regions]) -> None:
    assert model.grounder is not None
    assert model.chooser is None
    heard = Deixis(model.extractor, model.captioner, model.grounder, card=Card(choice=1e6))
    assert heard.chooser is not None
    whispered = Deixis(model.extractor, model.captioner, model.grounder, card=Card(choice=1e-9))
    for one in regions:
        plain = whispered.alternatives(one, beam=4)
        best = heard.alternatives(one, beam=4)
        assert {caption.text for caption in best} == {caption.text for caption in plain}
        spoken = [[word.text.lower() for word in caption.words] for caption in best]  # a text may be cut differently
        words = [[model.captioner.vocabulary.encode(said, end=True)] for said in spoken]
        batch = pad_regions([one], max_regions=model.grounder.config.inputs.regions)
        scores = [float(heard.chooser.matches(torch.tensor([said]), batch)) for said in words]
        assert scores == sorted(scores, reverse=True), "with such a weight nobody else is asked"
        assert heard.caption(one, beam=4).text == best[0].text
        assert heard.caption(one, beam=1).text == model.caption(one, beam=1).text, "a greedy caption has no rivals"


def test_phrases_alone_in_a_sentence_or_as_parts_of_one(model: Deixis, regions: list[Regions]) -> None:
    alone = model.ground(regions[2], ["a cup", "a table"], name="coffee")
    assert [phrase.text for phrase in alone.phrases] == ["a cup", "a table"]
    assert (alone.image, alone.sentence) == ("coffee", None)
    assert all(phrase.start is None for phrase in alone.phrases)
    sentence = "A cup of coffee on a table."
    whole = model.ground(regions[2], sentence=sentence)
    assert [phrase.text for phrase in whole.phrases] == ["A cup", "coffee", "a table"]
    for phrase in whole.phrases:
        assert sentence[phrase.start : phrase.end] == phrase.text
    part = model.ground(regions[2], ["A  TABLE"], sentence=sentence)
    assert [(phrase.text, phrase.boxes) for phrase in part.phrases] == [("a table", whole.phrases[2].boxes)]


def test_one_phrase_answers_the_same_among_many(model: Deixis, regions: list[Regions]) -> None:
    many = model.ground(regions[0], ["a helmet", *["a cat", "the big table over there"] * 100, "a helmet"])
    alone = model.ground(regions[0], ["a helmet"]).phrases[0]
    for phrase in (many.phrases[0], many.phrases[-1]):
        assert phrase.boxes == alone.boxes
        assert phrase.score == pytest.approx(alone.score, abs=1e-5)
    lists = model.ground_many(regions[:2], [["a helmet"], ["a cat", "eyes"]], names=["x", "y"])
    assert [(answer.image, len(answer.phrases)) for answer in lists] == [("x", 1), ("y", 2)]
    assert lists[0].phrases[0].boxes == alone.boxes


def test_many_photos_several_boxes_and_what_an_answer_keeps(model: Deixis) -> None:
    cat = Image.open(PHOTOS / "chelsea.jpg")
    photos: list[Seen] = [PHOTOS / "coffee.jpg", cat]
    answers = model.ground(photos, ["a cup", "a cat"], boxes=4)
    assert [answer.image for answer in answers] == [str(PHOTOS / "coffee.jpg"), cat.filename]
    assert answers[0].photo is None, "the file is enough"
    assert answers[1].photo is cat
    for answer in answers:
        for phrase in answer:
            assert 1 <= len(phrase.boxes) <= 4
            assert phrase.boxes[0] == phrase.ranked[0]
    assert model.ground(photos[0], ["a cup"]).phrases[0].boxes == answers[0].phrases[0].boxes[:1]
    assert "<svg" in (model.caption(np.asarray(cat))._repr_html_() or "")
    assert model.caption(cat, name="cat").photo is None


def test_a_model_says_what_it_is(model: Deixis) -> None:
    parts = "captioner (captioner) and grounder (scan)"
    assert repr(model) == f"<deixis model {model.name!r}: {parts}, {len(model.words)} words, on cpu>"


@pytest.mark.parametrize("phrase", ["🎉", "zorblax", "ein Hund", "猫", "...", "of the", "‮evil", "\u0000", "é" * 500])
def test_what_cannot_be_read_is_answered_with_no_confidence(model: Deixis, regions: list[Regions], phrase: str) -> None:
    answer = model.ground(regions[0], [phrase]).phrases[0]
    assert (answer.found, answer.score, answer.text) == (False, 0.0, phrase.strip())
    assert len(answer.boxes) == 1


@pytest.mark.parametrize(
    ("phrases", "sentence", "message"),
    [
        ([""], None, "phrase 1 of 1 is empty"),
        (["a cup", "  "], None, "phrase 2 of 2 is empty"),
        (["a cup", 3], None, "phrase 2 of 2 should be text, got int"),
        (["a dog"], "A cup of coffee.", "the phrase 'a dog' does not stand in the sentence"),
        (["cup", "cup"], "A cup of coffee.", "once more"),
        (["up"], "A cup of coffee.", "does not stand in"),
        (None, "", "the sentence is empty"),
        ([], None, "nothing to look for"),
        (["a " * 5000], None, "at most 2,000 are read"),
    ],
)
def test_phrases_that_make_no_sense_are_named(
    model: Deixis, regions: list[Regions], phrases: list[str] | None, sentence: str | None, message: str
) -> None:
    with pytest.raises(DeixisError, match=message):
        model.ground(regions[0], phrases, sentence=sentence)


def test_ten_thousand_phrases(model: Deixis, regions: list[Regions]) -> None:
    assert len(model.ground(regions[0], ["a cup"] * 10_000).phrases) == 10_000


def test_threads_may_share_a_model(model: Deixis, regions: list[Regions]) -> None:
    expected = [model.caption(one, check=True) for one in regions]
    found: dict[int, list[object]] = {}

    def ask(number: int) -> None:
        found[number] = [model.caption(one, check=True) for one in regions]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(answers == expected for answers in found.values())
    assert len(found) == 4


def test_a_captioner_alone_grounds_where_it_looks(small_bundle: Path, regions: list[Regions]) -> None:
    alone = deixis.load(small_bundle / "captioner")
    assert alone.methods == ("attention",)
    assert alone.ground(regions[0], ["a helmet"]).phrases[0].boxes
    with pytest.raises(DeixisError, match="has no grounder to check captions with"):
        alone.caption(regions[0], check=True)
    assert all(word.presence is None for word in alone.caption(regions[0])), "nobody there to check it"
    with pytest.raises(DeixisError, match="holds no grounder"):
        deixis.load(small_bundle, grounder=small_bundle / "captioner")


def test_a_grounder_alone_cannot_caption(small_bundle: Path, regions: list[Regions]) -> None:
    alone = deixis.load(small_bundle / "grounder")
    assert alone.methods == ("grounder",)
    with pytest.raises(DeixisError, match="holds a grounder but no captioner"):
        alone.caption(regions[0])
    both = deixis.load(small_bundle / "captioner", grounder=small_bundle / "grounder")
    assert both.methods == ("attention", "grounder")


def test_regions_of_another_extractor_are_refused(model: Deixis, regions: list[Regions]) -> None:
    from dataclasses import replace

    with pytest.raises(DeixisError, match="was trained on regions of"):
        model.caption(replace(regions[0], fingerprint="other-1"))


def test_names_that_stand_for_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="found no model"):
        deixis.load("no-such-run")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadFileError, match="neither a run nor a model folder"):
        deixis.load(tmp_path / "empty")
    with pytest.raises(AttributeError, match="no attribute 'laod'"):
        deixis.laod  # noqa: B018 - asking for it is the test


def test_a_bundle_teaches_with_its_grounder(small_bundle: Path) -> None:
    assert find_model(str(small_bundle), part="grounder") == small_bundle / "grounder"
    assert find_model(str(small_bundle)) == small_bundle / "captioner"
    words, mark = deixis.load(small_bundle).words, deixis.load(small_bundle).extractor.fingerprint
    assert isinstance(load_grounder(str(small_bundle), fingerprint=mark, vocabulary=words), Scan)


def test_a_damaged_card_is_named(small_bundle: Path, tmp_path: Path) -> None:
    for role in ("captioner", "grounder"):
        (tmp_path / role).symlink_to(small_bundle / role)
    for card in (
        {"format": 2},
        {"format": 1, "method": "magic"},
        {"format": 1, "pointing": {"rule": "argmax", "x": 1}},
    ):
        (tmp_path / "bundle.json").write_text(json.dumps(card))
        with pytest.raises(BadFileError, match="is no card of a bundle"):
            find_bundle(tmp_path)
    (tmp_path / "bundle.json").write_text(json.dumps({"format": 1, "method": "grounder", "pointing": {"top": 2}}))
    assert find_bundle(tmp_path).card == Card("grounder", Pointing(top=2))
    assert join(find_bundle(tmp_path), find_bundle(small_bundle)).card.method == "grounder"


def test_answers_need_no_gradient(model: Deixis) -> None:
    assert model.grounder is not None
    for part in (model.captioner, model.grounder):
        assert not any(weight.requires_grad for weight in part.model.parameters())
    assert torch.is_grad_enabled()


def test_grounders_joined_by_plus_answer_together(model: Deixis, small_bundle: Path, regions: list[Regions]) -> None:
    part = small_bundle / "grounder"
    both = deixis.load(f"{part}+{part}")
    assert both.methods == ("grounder",)
    alone, twice = (one.ground(regions[0], ["a helmet"]).phrases[0] for one in (model, both))
    assert twice.boxes == alone.boxes, "a grounder agrees with itself"
