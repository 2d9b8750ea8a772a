"""Clips made from photos: the boxes they carry are where the pixels are, and they read back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from deixis.data import open_dataset
from deixis.data.activitynet_entities import ActivityNetEntities
from deixis.data.clips import ClipSettings, _heads_by_rule, make_clips
from deixis.data.motion import box_in_view, camera_path, visible_share
from deixis.data.sentences import sentence_with_phrases
from deixis.errors import DeixisError
from deixis.text.classes import ObjectClasses
from deixis.types import ClipSegment, Phrase
from deixis.video import read_clip, sample_frames

RED = (230, 30, 30)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Photos with one red ball of a known box each, on a textured ground."""
    root = tmp_path / "photos"
    root.mkdir()
    rng = np.random.default_rng(3)
    lines = []
    for number in range(6):
        ground = Image.fromarray(rng.integers(90, 160, (30, 40, 3), dtype=np.uint8)).resize((400, 300))
        x, y = (int(v) for v in rng.integers(120, 180, 2))
        ImageDraw.Draw(ground).rectangle((x, y, x + 89, y + 69), fill=RED)
        ground.save(root / f"{number}.png")
        phrase = {"text": "a red ball", "boxes": [[x, y, x + 90, y + 70]]}
        lines.append({"file_name": f"{number}.png", "text": "Look at a red ball.", "phrases": [phrase]})
    (root / "metadata.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    return root


def test_boxes_are_where_the_pixels_are(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "clips"
    every = ClipSettings(boxes="every-frame")
    report = make_clips(open_dataset(photos), out, {"all": 4}, every, classes=ObjectClasses(["ball"]))
    assert report.clips == {"all": 4}
    dataset = open_dataset(out)
    assert isinstance(dataset, ActivityNetEntities)
    assert dataset.classes == ("ball",)
    assert dataset.splits == ("all",)
    examples = list(dataset.examples("all"))
    assert len(examples) == 4
    assert len(dataset.problems) == 0
    seen = 0
    for example in examples:
        assert isinstance(example.source, ClipSegment)
        assert example.source.path is not None
        assert example.size == read_clip(example.source.path).size == (320, 240)
        (caption,) = example.captions
        assert caption.text == "Look at a red ball"
        (ball,) = caption.phrases
        assert (caption.phrase_text(ball), ball.label) == ("ball", "ball")
        frames, _ = sample_frames(example.source.path, example.source.start, example.source.end, example.source.frames)
        for box, at in zip(ball.boxes, ball.frames, strict=True):
            pixels = frames[at].astype(int)
            red = (pixels[..., 0] > 180) & (pixels[..., 1] < 90)  # (H, W)
            rows, columns = np.flatnonzero(red.any(1)), np.flatnonzero(red.any(0))
            found = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
            assert np.abs(np.subtract(found, box)).max() <= 2.5, "an independent search for the red pixels"
            seen += 1
        if len(ball.boxes) > 1:
            assert len(set(ball.boxes)) > 1, "the camera moves"
    assert seen > 20


def test_each_thing_is_boxed_on_the_frame_that_shows_it_best(photos: Path, tmp_path: Path) -> None:
    for rule in ("best-frame", "every-frame"):
        settings = ClipSettings(boxes=rule)
        make_clips(open_dataset(photos), tmp_path / rule, {"all": 6}, settings, classes=ObjectClasses(["ball"]))
    tracks = {
        example.id: example.captions[0].phrases[0] for example in open_dataset(tmp_path / "every-frame").examples("all")
    }
    fewer = 0
    for example in open_dataset(tmp_path / "best-frame").examples("all"):
        (ball,) = example.captions[0].phrases
        track = tracks[example.id]
        assert len(ball.boxes) == 1
        assert (ball.boxes[0], ball.frames[0]) in zip(track.boxes, track.frames, strict=True)
        areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in track.boxes]
        (x1, y1, x2, y2) = ball.boxes[0]
        ratio = (x2 - x1) / (y2 - y1)
        assert ratio == pytest.approx(90 / 70, rel=0.12), "the whole ball is on the frame, not a part of it"
        assert (x2 - x1) * (y2 - y1) >= 0.85 * max(areas), "and hardly any frame shows it larger"
        fewer += len(track.boxes) > 1
    assert fewer >= 4


def test_a_clip_may_carry_several_captions_as_segments(photos: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (photos / "metadata.jsonl").read_text().splitlines()]
    for line in lines:
        box = line["phrases"][0]["boxes"]
        line["text"] = ["Look at a red ball.", "The ball lies there.", "Nothing to see."]
        line["phrases"] = [
            {"text": "a red ball", "boxes": box, "caption": 0},
            {"text": "The ball", "boxes": box, "caption": 1},
        ]
    (photos / "metadata.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    settings = ClipSettings(seconds=2, captions=3)
    make_clips(open_dataset(photos), tmp_path / "clips", {"all": 2}, settings, classes=ObjectClasses(["ball"]))
    dataset = open_dataset(tmp_path / "clips")
    examples = list(dataset.examples("all"))
    assert len(examples) == 4, "the caption without boxes has no segment"
    assert [(e.source.start, e.source.end) for e in examples] == [(0, 2), (2, 4)] * 2  # type: ignore[union-attr]
    source = examples[1].source
    assert isinstance(source, ClipSegment)
    assert source.path is not None
    assert read_clip(source.path).duration == pytest.approx(4, abs=0.11)
    (ball,) = examples[1].captions[0].phrases
    frames, _ = sample_frames(source.path, source.start, source.end, source.frames)
    pixels = frames[ball.frames[0]].astype(int)
    columns = np.flatnonzero(((pixels[..., 0] > 180) & (pixels[..., 1] < 90)).any(0))
    assert (columns[0], columns[-1] + 1) == pytest.approx((ball.boxes[0][0], ball.boxes[0][2]), abs=2.5)


def test_the_same_seed_moves_the_camera_the_same_way(photos: Path, tmp_path: Path) -> None:
    classes = ObjectClasses(["ball"])
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        make_clips(open_dataset(photos), tmp_path / name, {"all": 2}, ClipSettings(seed=seed), classes=classes)
    texts = {name: (tmp_path / name / "anet_entities_clips.json").read_text() for name in "abc"}
    assert texts["a"] == texts["b"]
    assert texts["a"] != texts["c"]
    clip = next((tmp_path / "a" / "videos").iterdir())
    one, two = (sample_frames(tmp_path / name / "videos" / clip.name, count=3)[0] for name in "ab")
    assert np.abs(np.subtract(one, two, dtype=float)).mean() < 2, "encoders may round differently, no more"


def test_nothing_is_left_behind_on_failure(photos: Path, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    with pytest.raises(DeixisError, match="known object class"):
        make_clips(open_dataset(photos), tmp_path / "out", {"all": 2}, classes=ObjectClasses(["cat"]))
    with pytest.raises(DeixisError, match="exists already"):
        make_clips(open_dataset(photos), photos, {"all": 2})
    with pytest.raises(DeixisError, match="60 seconds"):
        ClipSettings(seconds=100)
    with pytest.raises(DeixisError, match="best-frame or every-frame, not 'all'"):
        ClipSettings(boxes="all")  # type: ignore[arg-type]
    with pytest.raises(DeixisError, match="1 to 10 captions"):
        ClipSettings(captions=0)
    assert set(tmp_path.iterdir()) == before


def test_heads_without_a_parser() -> None:
    text = "a group of people near the wooden tables"
    spans = [(0, 17, Phrase(0, 0)), (23, len(text), Phrase(0, 0))]
    sentence = _heads_by_rule(sentence_with_phrases(text, spans)[0])
    heads = [sentence.tokens[phrase.head] for phrase in sentence.phrases if phrase.head is not None]
    assert [(token.text, token.lemma) for token in heads] == [("group", "group"), ("tables", "table")]


@settings(max_examples=60, deadline=None)
@given(st.integers(20, 3000), st.integers(20, 3000), st.integers(10, 60), st.integers(0, 10**6))
def test_the_camera_stays_on_the_photo(width: int, height: int, frames: int, seed: int) -> None:
    windows = camera_path((width, height), frames, np.random.default_rng(seed))
    assert windows.shape == (frames, 4)
    assert (windows[:, :2] >= -1e-6).all()
    assert (windows[:, 2] <= width + 1e-6).all()
    assert (windows[:, 3] <= height + 1e-6).all()
    shape = (windows[:, 2] - windows[:, 0]) / (windows[:, 3] - windows[:, 1])
    assert shape == pytest.approx(width / height), "nothing is squashed"


def test_box_in_view_by_hand() -> None:
    window = np.array([100.0, 50.0, 300.0, 150.0])
    assert box_in_view((150, 75, 250, 125), window, (400, 200)) == (100.0, 50.0, 300.0, 150.0)
    assert box_in_view((0, 50, 110, 150), window, (400, 200)) is None, "a tenth of it is not enough"
    assert box_in_view((60, 50, 200, 150), window, (400, 200)) == (0.0, 0.0, 200.0, 200.0)
    assert visible_share((0, 50, 110, 150), window) == pytest.approx(1 / 11)
    assert visible_share((400, 50, 500, 150), window) == 0.0


@pytest.mark.recipe
def test_real_photos_of_two_splits(shared: Path, tmp_path: Path) -> None:
    dataset = open_dataset(shared / "data" / "flickr8k-entities")
    report = make_clips(dataset, tmp_path / "clips", {"train": 6, "val": 3}, ClipSettings(threshold=2))
    assert report.clips == {"training": 6, "validation": 3}
    made = open_dataset(tmp_path / "clips")
    assert made.splits == ("train", "val")
    for example in made.examples():
        assert example.captions[0].phrases
        assert all(phrase.boxes for phrase in example.captions[0].phrases)
