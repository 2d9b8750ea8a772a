"""How fast a page with thousands of photos is written, and how fast it opens in Chromium.

    python benchmarks/page_speed.py DATA [--count 2000]

Opening is measured from the start of loading to the first sentence on the screen, to the first photo decoded and to
the end of the file; then the page is scrolled to its last card, whose photo must appear. On a busy machine only the
processor time of the page's thread means something.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from deixis.data import open_dataset
from deixis.data.dataset import Dataset
from deixis.export.draw import Drawing, drawing_of_example
from deixis.export.page import write_page
from deixis.images import load_image
from deixis.types import ImageFile

_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
_WATCH = """
window.seen = {};
const watch = () => {
  if (!seen.sentence && document.querySelector(".sentence")?.offsetHeight) seen.sentence = performance.now();
  const photo = document.querySelector(".stage img");
  if (!seen.photo && photo?.complete && photo.naturalWidth) seen.photo = performance.now();
  if (!seen.photo) requestAnimationFrame(watch);
};
requestAnimationFrame(watch);
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        started = time.perf_counter()
        write_page(page, drawings(open_dataset(given.data), given.count), title=f"{given.count} photos")
        print(f"written in {time.perf_counter() - started:.1f} s, {page.stat().st_size / 2**20:.1f} MB")
        open_in_chromium(page, given.chromium)


def drawings(dataset: Dataset, count: int) -> Iterator[Drawing]:
    """Yield the first ``count`` photos of a dataset, each with its first caption."""
    made = 0
    for split in dataset.splits:
        for id in dataset.ids(split):
            example = dataset[id]
            if made == count:
                return
            if isinstance(example.source, ImageFile) and example.captions:
                made += 1
                yield drawing_of_example(example, [load_image(example.source)])


def open_in_chromium(page: Path, chromium: str) -> None:
    """Print when what was there."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.add_init_script(_WATCH)
        probe = tab.context.new_cdp_session(tab)
        probe.send("Performance.enable")
        tab.goto(page.as_uri(), wait_until="load")
        tab.wait_for_function("window.seen.photo && document.documentElement.dataset.ready")
        work = {row["name"]: row["value"] for row in probe.send("Performance.getMetrics")["metrics"]}["ThreadTime"]
        end = tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        seen = tab.evaluate("window.seen")
        print(f"first sentence after {seen['sentence']:.0f} ms, first photo {seen['photo']:.0f} ms, all {end:.0f} ms")
        print(f"the page's own thread worked {1000 * work:.0f} ms for all of it")
        started = time.perf_counter()
        last = tab.locator("article").last
        last.scroll_into_view_if_needed()
        tab.wait_for_function(
            "() => { const p = [...document.querySelectorAll('article')].at(-1).querySelector('img');"
            " return p && p.complete && p.naturalWidth > 0 }"
        )
        print(f"last photo {1000 * (time.perf_counter() - started):.0f} ms after scrolling to it")
        print(f"{tab.locator('.stage img').count()} photos were loaded; memory of the page "
              f"{tab.evaluate('performance.memory.usedJSHeapSize') / 2**20:.0f} MB")  # fmt: skip
        browser.close()


if __name__ == "__main__":
    main()
