"""``examples/gradio_app.py`` with a stand-in for Gradio, and served by Gradio itself where that is installed."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest
from PIL import Image

import deixis

FILE = Path(__file__).parents[1] / "examples" / "gradio_app.py"
FLOWER = FILE.parent / "photos" / "flower.jpg"
PHRASES = ["a flower", "qwzx"]


class RefusedError(Exception):
    """Stands for ``gradio.Error``."""


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function behind the app; the app itself is not made."""
    stand_in = MagicMock(spec=ModuleType, Image=MagicMock(), Textbox=MagicMock(), AnnotatedImage=MagicMock())
    stand_in.Interface, stand_in.Error = MagicMock(), RefusedError
    monkeypatch.setitem(sys.modules, "gradio", stand_in)
    made = runpy.run_path(str(FILE))
    assert stand_in.Interface.call_args.args[0] is made["answer"]
    return made["answer"]


def test_it_is_short() -> None:
    code = [line for line in FILE.read_text().splitlines() if line.strip()]
    assert len(code) <= 30


def test_it_answers_as_the_model_does(answer: Any) -> None:
    photo = Image.open(FLOWER)
    model = deixis.load("lite")
    caption, found = model.caption(photo), model.ground(photo, PHRASES)
    assert any(not word.trusted for word in caption.words), "nothing is doubted: take another photo"
    assert [phrase.found for phrase in found] == [True, False]
    (shown, boxes), text = answer(photo, " a flower,, qwzx ")
    assert shown is photo
    assert text == caption.text
    things = [word for word in caption.words if word.trusted] + [found.phrases[0]]
    assert boxes == [(tuple(map(round, box)), one.text) for one in things for box in one.boxes]
    assert boxes[-1][1] == "a flower"


def test_no_photo_is_said_in_words(answer: Any) -> None:
    with pytest.raises(RefusedError, match="photo"):
        answer(None, "")


@pytest.mark.skipif(importlib.util.find_spec("gradio") is None, reason="needs the extra gradio")
def test_gradio_serves_it() -> None:
    from gradio_client import Client, handle_file

    app = runpy.run_path(str(FILE))["app"]
    _, address, _ = app.launch(prevent_thread_lock=True, quiet=True)
    try:
        shown, text = Client(address, verbose=False).predict(handle_file(FLOWER), "a flower", api_name="/answer")
        assert text == deixis.load("lite").caption(FLOWER).text
        assert "a flower" in [one["label"] for one in shown["annotations"]]
    finally:
        app.close()
