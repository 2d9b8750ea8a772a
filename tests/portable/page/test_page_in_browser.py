"""The page in a real Chromium gives the answers of ``deixis.portable``, and asks no other host."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from deixis.geometry import iou
from deixis.portable.page import write_page
from deixis.portable.runner import Portable
from deixis.portable.runtime import PACKED, VERSION, runtime_files
from deixis.types import Box
from tests.portable.conftest import PHOTOS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
PATIENCE = 180_000  # milliseconds
DRAWN = """() => [...document.querySelectorAll('#boxes g')].map((g) => [g.dataset.key, ...['x', 'y', 'width', 'height']
    .map((name) => Number(g.querySelector('rect').getAttribute(name)))])"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("npm")
    command = ["npm", "pack", f"onnxruntime-web@{VERSION}"]
    if shutil.which("npm") is None or subprocess.run(command, cwd=folder, capture_output=True).returncode:
        pytest.skip(f"needs npm and its registry for onnxruntime-web {VERSION}")
    return runtime_files(folder / PACKED)


@pytest.fixture(scope="module")
def address(exported: Path, runtime: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = Path(shutil.copytree(exported, tmp_path_factory.mktemp("page") / "lite-page"))
    write_page(folder, runtime)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def same(a: Box, b: Box) -> bool:
    """What the page takes for two boxes around one thing (``look.js``): their IoU is 0.9, or nearly."""
    return float(iou(np.array([a]), np.array([b]))[0, 0]) >= 0.88


def inside(box: Box, by: float) -> NDArray[np.float64]:
    """A box drawn that much smaller, so that one around the same thing stays visible."""
    x1, y1, x2, y2 = box
    x, y = min(by, (x2 - x1) / 4), min(by, (y2 - y1) / 4)
    return np.array([x1 + x, y1 + y, x2 - x, y2 - y])


def test_answers_are_those_of_python(browser: Browser, address: str, exported: Path) -> None:
    model = Portable.load(exported, threads=1)
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda one: asked.append(one.url))
    page.goto(address)
    for photo in PHOTOS:
        page.set_input_files("#file", str(photo))
        page.wait_for_selector("#panel[aria-busy=true]")
        page.wait_for_selector("#panel[aria-busy=false] .sentence:has(.word)")
        caption = model.caption(photo)
        assert page.text_content("#sentence") == caption.text
        page.fill("#phrase", "a person")
        page.click("text=Find >> nth=-1")
        page.wait_for_selector("#found li")
        found = model.ground(photo, ["a person"]).phrases[0]
        assert ("probably not" in (page.text_content("#found li") or "")) is not found.found
        expected = [(f"word {at}", box) for at, word in enumerate(caption.words) for box in word.boxes]
        expected += [("phrase 0", box) for box in found.boxes]
        drawn = page.evaluate(DRAWN)
        assert sorted(key for key, *_ in drawn) == sorted(key for key, _ in expected)
        for key, box in expected:
            apart = sum(same(box, other) for _, other in expected) - 1  # as many as it may be drawn inside of
            places = [inside(box, depth * 0.01 * max(caption.size)) for depth in range(apart + 1)]
            shown = [np.array([x, y, x + w, y + h]) for k, x, y, w, h in drawn if k == key]
            near = [np.abs(one - place).max() for one in shown for place in places]
            assert min(near) < 1, (key, box, apart)
    for width, next_to in ((1200, ".stage"), (360, "#sentence")):
        page.set_viewport_size({"width": width, "height": 740})
        form, other, words = (page.locator(part).bounding_box() for part in ("#find", next_to, "#words"))
        assert form is not None
        assert other is not None
        assert words is not None
        assert form["y"] < words["y"], "phrases are asked for beside the sentence, not last"
        beside, below = form["x"] >= other["x"] + other["width"], form["y"] >= other["y"] + other["height"]
        assert beside if next_to == ".stage" else below
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not complaints
    assert all(url.startswith((address, "blob:", "data:")) for url in asked)
    context.close()
