"""Clips of real photos: what is said of each segment, where its words point on every frame, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import torch
from PIL import Image

import deixis
from deixis.answering.clips import ClipOptions, agreed_sentence, caption_clip, learned_from_clips
from deixis.answering.load import Deixis
from deixis.captioning.model.captioner import Captioner
from deixis.captioning.search.strategy import Strategy
from deixis.data.pad import pad_regions
from deixis.errors import BadFileError, DeixisError
from deixis.types import GroundedPhrases, Regions, Sentence
from deixis.video import read_clip

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"


def film(path: Path, names: Sequence[str], seconds: float = 2.0, rate: int = 5) -> Path:
    """Show photos one after the other, each moving a little to the right."""
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=rate)
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        stream.options = {"crf": "16", "preset": "ultrafast"}
        for number, name in enumerate(names):
            photo = Image.open(PHOTOS / f"{name}.jpg").convert("RGB").resize((340, 240))
            for at in range(round(seconds * rate)):
                picture = photo.crop((at % 10, 0, at % 10 + 320, 240))
                frame = av.VideoFrame.from_ndarray(np.asarray(picture), format="rgb24")
                frame.pts, frame.time_base = number * round(seconds * rate) + at, Fraction(1, rate)
                container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


@pytest.fixture(scope="module")
def model(small_bundle: Path) -> Deixis:
    return deixis.load(small_bundle)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return film(tmp_path_factory.mktemp("clips") / "cat.mp4", ["chelsea", "coffee"])


def test_each_segment_has_its_sentence_with_boxes_on_its_frames(model: Deixis, clip: Path) -> None:
    first, second = model.video(clip, segments=[(2.0, 4.0), (0.0, 2.0)], frames=3)
    assert (first.text, second.text) == ("A cat with eyes.", "A cup of coffee on a table.")
    assert (first.segment, second.segment) == ((0.0, 2.0), (2.0, 4.0))
    assert first.frame_times == pytest.approx((1 / 3, 1, 5 / 3))
    assert first.size == (320, 240)
    assert (first.image, first.model) == (str(clip), model.name)
    for caption in (first, second):
        assert type(caption).from_json(caption.to_json()) == caption
        for word in caption.words:
            assert caption.text[word.start : word.end] == word.text
            assert bool(word.frames) == word.groundable  # on every frame where the matcher believes in it
            assert set(word.frames) <= {0, 1, 2}
            for x1, y1, x2, y2 in word.boxes:
                assert 0 <= x1 < x2 <= 320
                assert 0 <= y1 < y2 <= 240


def test_the_frames_agree_on_the_sentence_most_of_them_would_say(model: Deixis) -> None:
    cat, cup = model.regions([PHOTOS / "chelsea.jpg", PHOTOS / "coffee.jpg"])
    captioner, vocabulary = model.captioner.model, model.captioner.vocabulary
    assert isinstance(captioner, Captioner)
    batch = pad_regions([cup, cat, cat], max_regions=20)
    with torch.inference_mode():
        words, score, attention = agreed_sentence(captioner, batch, Strategy())
        ids = torch.tensor([words])
        alone = []
        for one in (cup, cat, cat):  # the same by hand, one frame at a time
            decoded = captioner.decode(captioner.encode(pad_regions([one], max_regions=20)), ids)
            logs = decoded.log_probs[0, 0].gather(1, ids.T).squeeze(1)
            alone.append(float(logs[ids[0] != 0].mean()))
    assert vocabulary.decode(words) == ["a", "cat", "with", "eyes"]
    assert score == pytest.approx(np.mean(alone), abs=1e-4)
    assert attention.shape[1:3] == (3, len(words))
    assert attention.sum(-1)[:, :, :4].flatten().tolist() == pytest.approx([1.0] * 12 * len(attention), abs=1e-4)


def test_without_smoothing_a_clip_of_one_photo_points_as_the_photo_does(model: Deixis, tmp_path: Path) -> None:
    still = film(tmp_path / "still.mp4", ["coffee"], seconds=0.2)  # one frame
    (caption,) = model.video(still, frames=4, smooth=False)
    assert read_clip(still).duration == pytest.approx(0.2)
    (frame,) = {word.boxes for word in caption.words if word.text == "cup"}
    assert len(set(frame)) == 1, "one frame on show four times is looked at once"
    assert caption.text == "A cup of coffee on a table."


class _Doubting:
    """A grounder that knows where the truth lies: it doubts what it is told to doubt, by the size of the frame."""

    def __init__(self, wrapped: Any, doubts: Sequence[tuple[str, int]]) -> None:
        self.wrapped, self.doubts, self.calls = wrapped, set(doubts), 0

    def ground(self, regions: Regions, sentence: Sentence, phrases: Sequence[int] | None = None) -> GroundedPhrases:
        answer: GroundedPhrases = self.wrapped.ground(regions, sentence, phrases)
        frame, self.calls = self.calls, self.calls + 1
        changed = [
            replace(p, found=(p.text, frame) not in self.doubts, score=0.9 - 0.1 * frame) for p in answer.phrases
        ]
        return replace(answer, phrases=tuple(changed))


def test_a_doubted_thing_has_no_box_on_that_frame(
    small_bundle: Path, clip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = deixis.load(small_bundle)
    doubts = [("A cup", 1), *(("a table", frame) for frame in range(3))]
    monkeypatch.setattr(model, "_judge", _Doubting(model._judge, doubts))
    (caption,) = model.video(clip, segments=[(2.0, 4.0)], frames=3, check=True)
    words = {word.text: word for word in caption.words}
    assert words["cup"].frames == (0, 2)
    assert words["cup"].trusted
    assert words["cup"].presence == pytest.approx(0.9), "it is there if one frame shows it"
    assert (words["coffee"].frames, words["coffee"].trusted) == ((0, 1, 2), True)
    assert (words["table"].frames, words["table"].trusted) == ((0, 1, 2), False), "found nowhere: kept, but doubted"


def test_the_grounder_can_point(model: Deixis, clip: Path) -> None:
    (looked,) = model.video(clip, segments=[(0.0, 2.0)], frames=2, smooth=False)
    (found,) = model.video(clip, segments=[(0.0, 2.0)], frames=2, smooth=False, method="grounder", check=False)
    from deixis.video import sample_frames

    for at, picture in enumerate(sample_frames(clip, 0.0, 2.0, 2)[0]):
        expected = {p.text.split()[-1]: p for p in model.ground(picture, sentence=found.text).phrases}
        for word in found.words:
            if word.groundable and at in word.frames:
                assert word.boxes[word.frames.index(at)] == expected[word.text].boxes[0]
    assert looked.text == found.text
    assert all(word.presence is None for word in found.words), "nobody asked"


def test_a_captioner_of_clips_reads_all_frames_at_once(small_bundle: Path, clip: Path) -> None:
    model = deixis.load(small_bundle)
    assert not learned_from_clips(model.captioner)
    config = replace(model.captioner.config, extractor={**model.captioner.config.extractor, "frames": 10})
    of_clips = Deixis(model.extractor, replace(model.captioner, config=config), model.grounder)
    assert learned_from_clips(of_clips.captioner)
    (together,) = of_clips.video(clip, segments=[(0.0, 2.0)], frames=3, smooth=False)
    (asked,) = model.video(clip, segments=[(0.0, 2.0)], frames=3, smooth=False, reading="together")
    assert together.words == asked.words
    assert together.text == "A cat with eyes."
    # the same by hand: all regions in one batch, the best of each frame
    from deixis.regions.extraction.tasks import join_frames
    from deixis.video import sample_frames

    seen = join_frames(model.regions(sample_frames(clip, 0.0, 2.0, 3)[0])).top(20)
    captioner = model.captioner.model
    assert isinstance(captioner, Captioner)
    ids = torch.tensor([model.captioner.vocabulary.encode("a cat with eyes", end=True)])
    with torch.inference_mode():
        weights = captioner.decode(captioner.encode(pad_regions([seen])), ids).mean_attention[0, 1]  # (N,)
    cat = together.words[1]
    for frame, box in zip(cat.frames, cat.boxes, strict=True):
        rows = (seen.frame == frame).nonzero().flatten()
        assert box == pytest.approx(seen.boxes[rows[weights[rows].argmax()]].tolist())


def test_rotated_phone_clips_are_answered_upright(model: Deixis, tmp_path: Path) -> None:
    upright = film(tmp_path / "upright.mp4", ["coffee"], seconds=1)
    frames = list(av.open(str(upright)).decode(video=0))
    with av.open(str(tmp_path / "phone.mp4"), "w") as container:
        stream: Any = container.add_stream("libx264", rate=5)
        stream.width, stream.height, stream.pix_fmt = 240, 320, "yuv420p"
        for frame in frames:
            pixels: Any = np.ascontiguousarray(np.rot90(frame.to_ndarray(format="rgb24"), -1))
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode(None))
    data = bytearray((tmp_path / "phone.mp4").read_bytes())
    at = data.index(b"tkhd") + 4 + 40  # the matrix of the track's header: turned by a quarter
    quarter = [0, -1, 0, 1, 0, 0, 0, 0, 1]
    for place, value in enumerate(quarter):
        unit = 0x40000000 if place % 3 == 2 else 0x10000
        data[at + 4 * place : at + 4 * place + 4] = (value * unit & 0xFFFFFFFF).to_bytes(4, "big")
    (tmp_path / "phone.mp4").write_bytes(data)
    assert read_clip(tmp_path / "phone.mp4").rotation != 0
    (caption,) = model.video(tmp_path / "phone.mp4", frames=2)
    assert caption.size == (320, 240)
    assert caption.text == "A cup of coffee on a table."


def test_variable_frame_rates_follow_the_clock(model: Deixis, tmp_path: Path) -> None:
    with av.open(str(tmp_path / "vfr.mp4"), "w") as container:
        stream: Any = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
        for name, times in (("chelsea", [0, 100, 200, 3000]), ("coffee", [4000, 4100, 7900])):
            pixels = np.asarray(Image.open(PHOTOS / f"{name}.jpg").convert("RGB").resize((320, 240)))
            for time in times:
                frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
                frame.pts, frame.time_base = time, Fraction(1, 1000)
                container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    found = model.video(tmp_path / "vfr.mp4", segments=[(0, 4), (4, 7.9)], frames=4)
    assert [caption.text for caption in found] == ["A cat with eyes.", "A cup of coffee on a table."]


def test_segments_may_come_from_a_file_or_the_clock(model: Deixis, clip: Path, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps({"timestamps": [[0, 99]]}))
    (caption,) = model.video(clip, segments=tmp_path / "s.json", frames=1)
    assert caption.segment is not None
    assert caption.segment == pytest.approx((0.0, 4.0), abs=0.01)
    assert [c.segment for c in caption_clip(model, clip, every=2.0, frames=1, name="mine")] == [(0, 2), (2, 4)]
    with pytest.raises(DeixisError, match="begins after the end"):
        model.video(clip, segments=[(5.0, 6.0)])


def test_what_cannot_be_captioned_says_why(model: Deixis, clip: Path, tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="there is no file"):
        model.video(tmp_path / "missing.mp4")
    (tmp_path / "broken.mp4").write_bytes(clip.read_bytes()[:200])
    (tmp_path / "text.mp4").write_text("hello")
    for name in ("broken.mp4", "text.mp4"):
        with pytest.raises(BadFileError, match=name):
            model.video(tmp_path / name)
    with av.open(str(tmp_path / "sound.mp4"), "w") as container:
        stream: Any = container.add_stream("aac", rate=44100)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 44100
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    with pytest.raises(BadFileError, match="no video in it"):
        model.video(tmp_path / "sound.mp4")
    with pytest.raises(DeixisError, match="no option 'bean': there are frames, beam"):
        caption_clip(model, clip, bean=3)
    with pytest.raises(DeixisError, match="cannot point by 'magic'"):
        model.video(clip, method="magic")  # type: ignore[arg-type]
    with pytest.raises(DeixisError, match="1 to 100 frames"):
        ClipOptions(frames=0)
    with pytest.raises(DeixisError, match="beam should be at least 1"):
        ClipOptions(beam=0)
    alone = Deixis(model.extractor, model.captioner)
    with pytest.raises(DeixisError, match="no grounder"):
        alone.video(clip, check=True)
