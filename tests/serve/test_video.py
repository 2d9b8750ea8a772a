from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from deixis.answering.clip_phrases import ground_clip
from deixis.answering.load import Deixis
from deixis.serve.app import make_app
from deixis.serve.service import Service
from deixis.video import read_clip

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "grounded.schema.json").read_text())


def in_a_thread(run: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a conversation away from this thread, in which Playwright may have a loop of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(run())).result()


def post(service: Service, path: str, clip: bytes, name: str = "coffee.mp4", **fields: Any) -> httpx.Response:
    async def run() -> httpx.Response:
        transport = httpx.ASGITransport(make_app(service), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=120) as client:
            return await client.post(path, files={"clip": (name, clip)}, data=fields)

    answer: httpx.Response = in_a_thread(run)
    return answer


@pytest.fixture
def own_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files that nobody else uses."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_clip_is_captioned_by_segments(service: Service, model: Deixis, clip: Path, own_temporary: Path) -> None:
    answer = post(service, "/v1/video", clip.read_bytes(), every=2)
    assert answer.status_code == 200
    captions = answer.json()
    assert [caption["segment"] for caption in captions] == [[0, 2], [2, 4]]
    expected = [{**caption.to_json(), "image": "coffee.mp4"} for caption in model.video(clip, every=2.0)]
    assert captions == json.loads(json.dumps(expected))
    for caption in captions:
        jsonschema.validate(caption, SCHEMA)
        for word in caption["words"]:
            assert all(frame < len(caption["frame_times"]) for frame in word["frames"])
    page = post(service, "/v1/draw", clip.read_bytes(), answer=json.dumps(captions), format="html")
    assert page.status_code == 200
    assert captions[0]["text"] in page.text
    assert list(own_temporary.iterdir()) == []  # nothing of the clip is left


def test_segments_can_be_given(service: Service, clip: Path) -> None:
    answer = post(service, "/v1/video", clip.read_bytes(), segments="[[1, 3.5]]")
    assert [caption["segment"] for caption in answer.json()] == [[1, 3.5]]
    for wrong in ("[[3, 1]]", "[1, 2]", "now", "[" * 50_000, '[["a", "b"]]', "[[1e400, 2]]"):
        refused = post(service, "/v1/video", clip.read_bytes(), segments=wrong)
        assert refused.status_code == 422, wrong


def test_clips_that_cannot_be_read(
    service: Service, limited: Callable[..., Service], clip: Path, own_temporary: Path
) -> None:
    for data in (b"", b"not a clip", clip.read_bytes()[:500]):
        refused = post(service, "/v1/video", data, name="../<b>holiday</b>.mp4")
        assert refused.status_code == 422
        message = refused.json()["error"]["message"]
        assert "<b>holiday<" not in message or "b>.mp4" in message
        assert str(own_temporary) not in message  # our own folders are nobody's business
    assert post(limited(clip_length=2), "/v1/video", clip.read_bytes()).status_code == 413
    assert post(limited(pixels=1000), "/v1/video", clip.read_bytes()).status_code == 413
    assert post(limited(clip_bytes=1000), "/v1/video", clip.read_bytes()).status_code == 413
    assert list(own_temporary.iterdir()) == []


def test_phrases_are_found_in_a_clip(service: Service, model: Deixis, clip: Path, own_temporary: Path) -> None:
    wanted: dict[str, Any] = {"phrase": ["a cup", "a zyzzyva"], "segments": "[[0, 2], [2, 4]]"}
    answer = post(service, "/v1/video/phrases", clip.read_bytes(), **wanted)
    assert answer.status_code == 200, answer.text
    expected = ground_clip(model, clip, ["a cup", "a zyzzyva"], segments=[(0, 2), (2, 4)], name="coffee.mp4")
    assert answer.json() == json.loads(json.dumps([one.to_json() for one in expected]))
    for one in answer.json():
        jsonschema.validate(one, SCHEMA)
        assert [phrase["text"] for phrase in one["phrases"]] == ["a cup", "a zyzzyva"]
    assert not list(own_temporary.iterdir())
    refused = post(service, "/v1/video/phrases", clip.read_bytes())
    assert (refused.status_code, refused.json()["error"]["message"]) == (422, "nothing to look for: send a phrase")
    assert post(service, "/v1/video/phrases", clip.read_bytes(), phrase="x" * 2000).status_code == 422


def test_a_clip_is_drawn_again_with_its_boxes(service: Service, model: Deixis, clip: Path, own_temporary: Path) -> None:
    captions = json.dumps([caption.to_json() for caption in model.video(clip, every=4.0, frames=2)])
    made = post(service, "/v1/draw", clip.read_bytes(), answer=captions, format="mp4")
    assert (made.status_code, made.headers["content-type"]) == (200, "video/mp4")
    drawn = own_temporary.parent / "drawn.mp4"
    drawn.write_bytes(made.content)
    assert read_clip(drawn).duration == pytest.approx(read_clip(clip).duration, abs=0.2)
    assert not list(own_temporary.iterdir())
    refused = post(service, "/v1/draw", clip.read_bytes(), answer=captions, format="png")
    assert (refused.status_code, "html or mp4" in refused.text) == (422, True)
