"""The page in the browser beside the command line: are sentences and boxes the same, and how long does it take?

    deixis export-model lite -o lite-page --format page --runtime onnxruntime-web-1.30.0.tgz
    python -m benchmarks.browser lite-page PHOTOS [--model lite] [--limit 10]

Gives each photo to the page in a headless Chromium as a person does, hears what its worker says, and asks torch
about the same files, in single precision. Every request of the page is noted: none may go to another host.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

import deixis
from deixis.answering.photos import find_photos
from deixis.regions.lite import LiteExtractor
from deixis.types import GroundedCaption

LISTEN = """
const Before = window.Worker;
window.said = [];
window.Worker = class extends Before {
  constructor(...given) { super(...given); this.addEventListener("message", ({ data }) => window.said.push(data)); }
};
"""
PATIENCE = 300_000  # milliseconds


class _Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _heard(page: Any) -> dict[str, Any]:
    """Wait for what the worker says of a photo; the page's policy lets nobody wait inside it."""
    until = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < until:
        for said in page.evaluate("window.said"):
            if said.get("id") is not None:
                return dict(said)
        time.sleep(0.02)
    sys.exit("the page does not answer")


def in_the_browser(folder: Path, photos: list[Path]) -> tuple[list[dict[str, Any]], list[float], list[str]]:
    """Return what the page says of photos, the seconds that each took, and the hosts that it asked."""
    from playwright.sync_api import sync_playwright

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    answers, seconds, asked = [], [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.add_init_script(LISTEN)
        page.on("request", lambda one: asked.append(one.url))
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        page.wait_for_selector("html[data-ready]")
        for photo in photos:
            start = time.perf_counter()
            page.evaluate("window.said = []")
            page.set_input_files("#file", str(photo))
            said = _heard(page)
            seconds.append(time.perf_counter() - start)
            if "answer" not in said:
                sys.exit(f"{photo}: {said}")
            page.wait_for_selector("#panel[aria-busy=false] .sentence:has(.word)")
            assert page.text_content("#sentence") == said["answer"]["text"]
            answers.append(said["answer"])
        browser.close()
    server.shutdown()
    server.server_close()
    return answers, seconds, [url for url in asked if not url.startswith(("http://127.0.0.1:", "blob:", "data:"))]


def distance(page: dict[str, Any], other: GroundedCaption) -> float:
    """Return how far the boxes of two captions of the same words lie apart, infinitely where their number differs."""
    most = 0.0
    for word, same in zip(page["words"], other.words, strict=True):
        if len(word["boxes"]) != len(same.boxes):
            return float("inf")
        if same.boxes:
            most = max(most, float(np.abs(np.array(word["boxes"]) - np.array(same.boxes)).max()))
    return most


def by_torch(photos: list[Path], name: str) -> list[GroundedCaption]:
    """Return what a model says of photos, in single precision as the files compute."""
    model = deixis.load(name)
    if isinstance(model.extractor, LiteExtractor):
        model.extractor.computing_in("float32")
    return [model.caption(photo, check=True) for photo in photos]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("photos", nargs="+")
    parser.add_argument("--model", default="lite")
    parser.add_argument("--limit", type=int, default=10)
    options = parser.parse_args()
    photos = [Path(photo) for photo in find_photos(options.photos)[: options.limit]]
    theirs = by_torch(photos, options.model)
    mine, seconds, elsewhere = in_the_browser(options.folder, photos)
    apart = []
    for photo, one, other in zip(photos, mine, theirs, strict=True):
        if one["text"] == other.text:
            apart.append(distance(one, other))
        else:
            print(f"{photo}: {one['text']!r}, torch {other.text!r}")
    print(f"sentences equal: {len(apart)} of {len(photos)}")
    print(f"boxes of those: {sum(one < 1 for one in apart)} within a pixel, at most {max(apart, default=0):.4f} apart")
    print(f"seconds a photo in the browser: {sorted(seconds)[len(seconds) // 2]:.1f}, the first {seconds[0]:.1f}")
    print(f"requests to other hosts: {len(elsewhere)}")


if __name__ == "__main__":
    main()
