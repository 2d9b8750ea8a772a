from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deixis.answering import work
from deixis.answering.label import draft_phrases, groundable, open_drafts
from deixis.answering.load import Deixis, load
from deixis.cli.main import app
from deixis.errors import DeixisError
from deixis.text.rules.chunker import chunk
from deixis.types import GroundedPhrases, Phrase, Sentence

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"


def call(*arguments: str | Path, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["label", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


def test_drafts_in_our_own_form_the_doubtful_first(small_bundle: Path, tmp_path: Path) -> None:
    out = tmp_path / "labels.jsonl"
    facts = json.loads(call(PHOTOS, "-o", out, "--format", "json", "--model", small_bundle, "--json"))
    answers = [GroundedPhrases.from_json(json.loads(line)) for line in out.read_text().splitlines()]
    assert {answer.image for answer in answers} == {"astronaut.jpg", "chelsea.jpg", "coffee.jpg"}
    assert (facts["photos"], facts["captions"], facts["failed"]) == (3, 3, 0)
    assert facts["phrases"] == sum(len(answer.phrases) for answer in answers)
    for answer in answers:
        assert answer.sentence is not None
        for phrase in answer.phrases:
            assert answer.sentence[phrase.start : phrase.end] == phrase.text
    least = [min(phrase.score * phrase.found for phrase in answer.phrases) for answer in answers]
    assert least == sorted(least)
    assert not list(tmp_path.glob(".*")), "what is done leaves nothing behind"


def test_coco_and_label_studio(small_bundle: Path, tmp_path: Path) -> None:
    call(PHOTOS, "-o", tmp_path / "coco.json", "--model", small_bundle)
    coco = json.loads((tmp_path / "coco.json").read_text())
    assert {image["file_name"] for image in coco["images"]} == {"astronaut.jpg", "chelsea.jpg", "coffee.jpg"}
    assert all(0 <= note["score"] <= 1 for note in coco["annotations"])
    call(
        PHOTOS,
        "-o",
        tmp_path / "tasks.json",
        "--format",
        "labelstudio",
        "--model",
        small_bundle,
        "--prefix",
        "http://x/",
    )
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert {task["data"]["image"] for task in tasks} == {
        f"http://x/{name}" for name in ("astronaut.jpg", "chelsea.jpg", "coffee.jpg")
    }
    assert "<RectangleLabels" in (tmp_path / "tasks.config.xml").read_text()


def test_a_stopped_command_goes_on(small_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "labels.json"
    real = Deixis.ground_sentences
    asked: list[str] = []
    monkeypatch.setattr(work, "AT_ONCE", 1)  # answers are kept as soon as those that go together are made

    def dies(
        self: object, seen: object, sentences: list[Sentence], *, name: str, threshold: float | None
    ) -> list[GroundedPhrases]:
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(name)
        return real(self, seen, sentences, name=name, threshold=threshold)  # type: ignore[arg-type]

    monkeypatch.setattr(Deixis, "ground_sentences", dies)
    done = CliRunner().invoke(app, ["label", str(PHOTOS), "-o", str(out), "--model", str(small_bundle)])
    assert done.exit_code != 0
    assert not out.exists()
    drafts = tmp_path / ".labels.json.drafts.jsonl"
    assert len(drafts.read_text().splitlines()) == 2
    asked.clear()

    def counts(
        self: object, seen: object, sentences: list[Sentence], *, name: str, threshold: float | None
    ) -> list[GroundedPhrases]:
        asked.append(name)
        return real(self, seen, sentences, name=name, threshold=threshold)  # type: ignore[arg-type]

    monkeypatch.setattr(Deixis, "ground_sentences", counts)
    call(PHOTOS, "-o", out, "--model", small_bundle)
    assert len(asked) == 1
    assert len(json.loads(out.read_text())["images"]) == 3
    assert not drafts.exists()


def test_a_photo_that_is_missing_does_not_stop_the_others(small_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "coffee.jpg").symlink_to(PHOTOS / "coffee.jpg")
    lines = [{"file_name": "coffee.jpg", "text": "A cup on a table."}, {"file_name": "gone.jpg", "text": "A cat."}]
    (tmp_path / "metadata.jsonl").write_text("\n".join(map(json.dumps, lines)))
    facts = json.loads(call(tmp_path, "-o", tmp_path / "out" / "l.json", "--model", small_bundle, "--json", code=2))
    assert (facts["photos"], facts["phrases"], facts["failed"]) == (1, 2, 1)


def test_which_phrases_are_looked_for(small_bundle: Path) -> None:
    words = load(small_bundle).words
    plain = Sentence("He sees a cup in front of it.", chunk("He sees a cup in front of it.", words).tokens)
    found = groundable(plain, words)
    assert [found.phrase_text(phrase) for phrase in found.phrases] == ["a cup"]
    marked = Sentence("A cup of coffee", chunk("A cup of coffee", words).tokens)
    given = Sentence(marked.text, marked.tokens, (Phrase(0, 2), Phrase(3, 4, visual=False)))
    assert [given.phrase_text(phrase) for phrase in groundable(given, words).phrases] == ["A cup"]
    unseen = Sentence(marked.text, marked.tokens, (Phrase(0, 2, visual=False),))
    assert groundable(unseen, words).phrases == ()


def test_phrases_of_your_own_in_photos_without_captions(small_bundle: Path, tmp_path: Path) -> None:
    album = tmp_path / "album"
    (album / "deep").mkdir(parents=True)
    (album / "coffee.jpg").symlink_to(PHOTOS / "coffee.jpg")
    (album / "deep" / "cat.jpg").symlink_to(PHOTOS / "chelsea.jpg")
    (album / "broken.jpg").write_bytes(b"no photo")
    named = ("--phrases", "a cup, a big cat", "--model", small_bundle, "--json")
    facts = json.loads(call(album, "-o", tmp_path / "labels.json", *named, code=2))
    assert (facts["photos"], facts["captions"], facts["phrases"], facts["failed"]) == (2, 0, 4, 1)
    coco = json.loads((tmp_path / "labels.json").read_text())
    assert {image["file_name"] for image in coco["images"]} == {"coffee.jpg", "deep/cat.jpg"}
    assert [category["name"] for category in coco["categories"]] == ["a big cat", "a cup"], "a phrase is its own label"
    assert not list(tmp_path.glob(".*"))
    (album / "broken.jpg").unlink()
    (tmp_path / "phrases.txt").write_text("# what we want\na cup\n\na big cat, a cup\n")
    again = ("--phrases-file", tmp_path / "phrases.txt", "--boxes", "1", "--model", small_bundle, "--json")
    call(album, "-o", tmp_path / "yolo", "--format", "yolo", *again)
    assert (tmp_path / "yolo" / "classes.txt").read_text() == "a big cat\na cup\n"
    assert (tmp_path / "yolo" / "labels" / "deep" / "cat.txt").is_file()


def test_other_phrases_are_asked_for_again(small_bundle: Path, tmp_path: Path) -> None:
    model = load(small_bundle)
    photos = {"coffee.jpg": PHOTOS / "coffee.jpg"}
    with open_drafts(tmp_path / "l.json", model) as drafts:
        assert sum(draft_phrases(model, photos, ["a cup"], drafts, fail)) == 1
        assert sum(draft_phrases(model, photos, ["a cup"], drafts, fail)) == 1
        assert len(drafts.path.read_text().splitlines()) == 1, "what is done is not done again"
        assert sum(draft_phrases(model, photos, ["a cat", "a cup"], drafts, fail)) == 1
    with open_drafts(tmp_path / "l.json", model) as drafts:
        (answer,) = drafts.answers.values()
        assert [phrase.label for phrase in answer] == ["a cat", "a cup"]


def fail(image: str, error: DeixisError) -> None:
    raise error


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--phrases", " , "], "no phrase to look for"),
        (["--phrases", "dog", "--split", "train"], "--split belongs to datasets with captions"),
        (["--phrases-file", "gone.txt"], "gone.txt"),
        (["--phrases", "dog", "--format", "voc", "-o", str(PHOTOS)], "a folder that is not empty"),
    ],
)
def test_bad_phrases_are_one_line(tmp_path: Path, options: list[str], why: str) -> None:
    with pytest.raises(DeixisError, match=why):
        call(PHOTOS, *(() if "-o" in options else ("-o", tmp_path / "l.json")), *options)
    assert not list(tmp_path.iterdir())
