"""The exported model answers as torch does, without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from deixis.answering.load import Deixis
from deixis.errors import DeixisError
from deixis.portable.export import SAFE, export_model
from deixis.portable.manifest import PARTS
from deixis.portable.runner import Portable
from deixis.types import Box
from tests.portable.conftest import PHOTOS

PHRASES = ["a person", "a cup", "a red hat", "qwzx"]


@pytest.fixture(scope="module")
def model(exported: Path) -> Portable:
    return Portable.load(exported, threads=1)


def far(one: tuple[Box, ...], other: tuple[Box, ...]) -> float:
    assert len(one) == len(other)
    return float(np.abs(np.array(one) - np.array(other)).max()) if one else 0.0


def assert_same_caption(model: Portable, lite: Deixis, photo: Image.Image) -> None:
    mine, theirs = model.caption(photo), lite.caption(photo)
    assert mine.text == theirs.text
    assert mine.score == pytest.approx(theirs.score, abs=1e-3)
    for word, other in zip(mine.words, theirs.words, strict=True):
        assert far(word.boxes, other.boxes) < 1
        assert (word.text, word.start, word.groundable, word.trusted) == (
            other.text, other.start, other.groundable, other.trusted
        )  # fmt: skip
        assert word.presence == pytest.approx(other.presence, abs=1e-2)


def shapes() -> list[Image.Image]:
    """The example photos, one of them also cut tall and wide and as a thumbnail, which has few regions."""
    first = Image.open(PHOTOS[0]).convert("RGB")
    width, height = first.size
    tall, wide = first.crop((0, 0, width // 4, height)), first.crop((0, 0, width, height // 4))
    return [*(Image.open(photo).convert("RGB") for photo in PHOTOS), tall, wide, first.resize((40, 30))]


def test_captions_are_those_of_torch(model: Portable, lite: Deixis) -> None:
    assert len(PHOTOS) >= 3
    for photo in shapes():
        assert_same_caption(model, lite, photo)


def test_phrases_are_those_of_torch(model: Portable, lite: Deixis) -> None:
    for photo in shapes():
        for how in ({"phrases": PHRASES, "boxes": 3}, {"sentence": "A man in a red hat holds a cup."}):
            mine, theirs = model.ground(photo, **how), lite.ground(photo, **how)
            assert len(mine.phrases) >= 3
            for phrase, other in zip(mine.phrases, theirs.phrases, strict=True):
                assert (phrase.text, phrase.found, phrase.start) == (other.text, other.found, other.start)
                assert far(phrase.boxes, other.boxes) < 1
                assert phrase.score == pytest.approx(other.score, abs=1e-3)
                assert phrase.presence == pytest.approx(other.presence, abs=1e-3)


def test_thresholds_are_taken(model: Portable) -> None:
    seen = model.look(PHOTOS[0])
    assert not any(word.trusted for word in model.caption(seen, threshold=1.0).words if word.groundable)
    assert all(phrase.found for phrase in model.ground(seen, PHRASES[:3], threshold=0.0))
    assert all(word.presence is None for word in model.caption(seen, check=False).words)


def test_a_greedy_search_is_exported_too(lite: Deixis, tmp_path: Path) -> None:
    export_model(lite, tmp_path / "greedy", beam=1)
    photo = Image.open(PHOTOS[1])
    assert Portable.load(tmp_path / "greedy").caption(photo).text == lite.caption(photo, beam=1).text


def test_eight_bits_rarely_change_an_answer(lite: Deixis, exported: Path, tmp_path: Path) -> None:
    export_model(lite, tmp_path / "int8", weights="int8")
    whole, small = (
        {part: (folder / f"{part}.onnx").stat().st_size for part in PARTS} for folder in (exported, tmp_path / "int8")
    )
    assert {part for part in PARTS if small[part] < 0.7 * whole[part]} == set(SAFE)
    assert {part for part in PARTS if small[part] == whole[part]} == set(PARTS) - set(SAFE)
    model = Portable.load(tmp_path / "int8", threads=1)
    answers = [(model.caption(photo), lite.caption(photo)) for photo in shapes()]
    equal = [(mine, theirs) for mine, theirs in answers if mine.text == theirs.text]
    assert len(equal) >= len(answers) - 2, "194 of 200 photos of Flickr8k have the same sentence"
    for mine, theirs in equal:
        for word, other in zip(mine.words, theirs.words, strict=True):
            assert far(word.boxes, other.boxes) < 1


def test_torch_is_not_needed(exported: Path) -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'yaml', 'safetensors', 'typer']));"
        "from deixis.portable.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(exported), str(PHOTOS[0]), "--json", "--threads", "1"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["kind"] == "caption"
    assert answer["text"]


def test_nothing_to_look_for_is_said(model: Portable) -> None:
    with pytest.raises(DeixisError, match="nothing to look for"):
        model.ground(PHOTOS[0])
