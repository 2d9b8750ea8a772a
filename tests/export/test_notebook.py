from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from deixis.errors import DeixisError
from deixis.export import notebook
from deixis.types import GroundedPhrase, GroundedPhrases
from tests.export.answers import DOG, EVIL, PHRASES, caption

PHOTO = Image.new("RGB", (200, 100), (10, 120, 90))


def test_an_answer_shows_its_photo_boxes_and_words() -> None:
    shown = notebook.html_of(DOG, PHOTO)
    assert 'src="data:image/webp;base64,' in shown
    assert "<script" not in shown
    assert "http" not in shown
    boxed = [word for word in DOG.words if word.boxes]
    assert boxed, "the premise"
    assert shown.count('class="w t') == len(boxed)
    assert shown.count('class="line"') == sum(len(word.boxes) for word in boxed)
    text = re.sub(r"<[^>]+>", "", re.sub(r"<style>.*?</style>", "", shown))
    assert text == DOG.text


def test_it_shows_itself_from_its_file_or_from_the_photo_it_keeps(tmp_path: Path) -> None:
    from dataclasses import replace

    assert DOG._repr_html_() is None, "without a photo a notebook prints the text"
    PHOTO.save(tmp_path / "dog.png")
    assert "<svg" in (replace(DOG, image=str(tmp_path / "dog.png"))._repr_html_() or "")
    kept = replace(DOG, photo=np.asarray(PHOTO))
    assert "<svg" in (kept._repr_html_() or "")
    assert kept == DOG
    assert "photo" not in kept.to_json()


def test_draw_and_save(tmp_path: Path) -> None:
    assert DOG.draw(PHOTO).width > DOG.draw(PHOTO, width=300).width >= 300
    page = DOG.save(tmp_path / "a" / "dog.html", PHOTO)
    assert page.read_text().startswith("<!doctype html>")
    assert Image.open(DOG.save(tmp_path / "dog.png", PHOTO)).format == "PNG"
    assert json.loads(DOG.save(tmp_path / "dog.json").read_text()) == DOG.to_json()
    with pytest.raises(DeixisError, match=r"\.html, \.png or \.json, not as 'dog\.doc'"):
        DOG.save(tmp_path / "dog.doc", PHOTO)
    with pytest.raises(DeixisError, match=r"no photo .* give it"):
        DOG.draw()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "dog.json", "dog.png"]


def test_a_clip_says_how_it_is_shown() -> None:
    from dataclasses import replace

    clip = replace(DOG, segment=(0.0, 2.0))
    assert clip._repr_html_() is None
    with pytest.raises(DeixisError, match="is a clip: `deixis video"):
        clip.draw(PHOTO)


def test_hostile_texts_stay_texts() -> None:
    shown = notebook.html_of(caption(EVIL, f"{EVIL} a dog", {"dog": (0, 0, 50, 50)}), PHOTO)
    assert "<script" not in shown
    assert "<img src" not in shown.replace('<img alt="', "")


def test_answers_are_iterated_and_say_what_they_are() -> None:
    assert list(DOG) == list(DOG.words)
    assert [phrase.text for phrase in PHRASES] == [phrase.text for phrase in PHRASES.phrases]
    assert repr(DOG).startswith(f"<caption {DOG.text!r}: ")
    absent = GroundedPhrase("a cat", ((0.0, 0.0, 9.0, 9.0),), found=False)
    there = GroundedPhrase("dogs", ((1.0, 2.0, 3.0, 4.0), (5.0, 6.0, 7.0, 8.0)), (0, 0), 0.5)
    both = GroundedPhrases("a.jpg", (40, 30), (there, absent), model="lite")
    assert repr(there) == "<phrase 'dogs' at 1 2 3 4 and 1 more, score 0.50>"
    assert repr(absent) == "<phrase 'a cat', probably not in the photo>"
    assert repr(both) == "<phrases found: 'dogs'; probably not there: 'a cat'; a.jpg (40x30), by lite>"


def test_detections_of_supervision() -> None:
    pytest.importorskip("supervision")
    found = PHRASES.to_supervision()
    assert len(found) == sum(len(phrase.boxes) for phrase in PHRASES if phrase.found)


def test_show_outside_a_notebook_opens_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[int, int]] = []
    monkeypatch.setattr(Image.Image, "show", lambda self, title: opened.append(self.size))
    assert not notebook.in_notebook()
    buffer = io.BytesIO()
    PHOTO.save(buffer, "PNG")
    DOG.show(buffer.getvalue())
    assert len(opened) == 1
