"""Pages in a real Chromium: words and boxes light up, hostile texts stay texts, thousands open, clips move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av
import numpy as np
import pytest
from PIL import Image

from deixis.export.draw import PALETTE, Drawing, Line, Mark, colour_of, ink_on
from deixis.export.page import write_clip_page, write_page
from deixis.types import GroundedCaption, GroundedWord
from tests.export.answers import DOG, EVIL, PHRASES, caption

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
PATIENCE = 60_000  # milliseconds: a busy machine must not fail a test
PHOTO = Image.new("RGB", (200, 100), (10, 120, 90))


@dataclass
class Opened:
    """A tab, everything it complained about, and everything it asked the network for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, path: Path) -> Page:
        self.page.goto(path.as_uri())
        self.page.wait_for_selector(".panel", timeout=PATIENCE)
        return self.page

    def lit(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = self.page.evaluate(
            """() => {
                const of = selector => [...document.querySelectorAll(selector)].map(found => found.dataset.key);
                return {words: of('.sentence .lit'), boxes: of('svg g.lit'), lines: of('.places li.lit')};
            }"""
        )
        return found


@pytest.fixture(params=[{}], ids=[""])
def tab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Opened]:
    context = browser.new_context(**({"viewport": {"width": 1200, "height": 900}} | request.param))
    context.set_default_timeout(PATIENCE)
    opened = Opened(context.new_page())
    opened.page.on("console", lambda said: opened.complaints.append(said.text) if said.type == "error" else None)
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.page.on("request", lambda asked: opened.requests.append(asked.url))
    yield opened
    context.close()


def test_words_and_boxes_light_up_together(tab: Opened, tmp_path: Path) -> None:
    page = tab.open(write_page(tmp_path / "page.html", [(DOG, PHOTO)]))
    page.wait_for_function("() => document.querySelector('.stage img')?.naturalWidth === 200")
    both = {"words": ["word 1"], "boxes": ["word 1"], "lines": ["word 1"]}
    page.hover("text=dogs >> nth=0")
    assert tab.lit() == both
    page.mouse.move(5, 5)
    assert tab.lit() == {"words": [], "boxes": [], "lines": []}
    stage = page.locator(".stage").bounding_box()
    assert stage is not None
    # The middle of the dogs' box, 70 of 200 across and 50 of 100 down.
    page.mouse.move(stage["x"] + stage["width"] * 0.35, stage["y"] + stage["height"] * 0.5)
    assert tab.lit() == both
    drawn = page.locator("svg g[data-key='word 1'] rect.line").bounding_box()
    assert drawn is not None
    assert (drawn["x"] - stage["x"]) / stage["width"] == pytest.approx(0.1, abs=0.02)
    assert drawn["width"] / stage["width"] == pytest.approx(0.5, abs=0.02)
    assert drawn["height"] / stage["height"] == pytest.approx(0.8, abs=0.04)
    assert not tab.complaints


def test_by_keyboard_alone(tab: Opened, tmp_path: Path) -> None:
    page = tab.open(write_page(tmp_path / "page.html", [(DOG, PHOTO)]))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the answers"
    page.keyboard.press("Tab")
    assert tab.lit()["words"] == ["word 1"]
    page.keyboard.press("Tab")
    assert tab.lit()["words"] == ["word 4"]
    page.keyboard.press("Enter")
    page.evaluate("document.activeElement.blur()")
    assert tab.lit()["boxes"] == ["word 4"], "what was chosen stays lit"
    page.focus("button.word")
    page.keyboard.press("Escape")
    assert tab.lit()["boxes"] == []


def test_a_screen_reader_hears_where_things_are(tab: Opened, tmp_path: Path) -> None:
    page = tab.open(write_page(tmp_path / "page.html", [(DOG, PHOTO), (PHRASES, Image.new("RGB", (64, 48)))]))
    word = page.locator("button.word", has_text="ball")
    assert (
        word.get_attribute("aria-description")
        == "at the bottom right, from 150, 60 to 170, 80, 2\u00a0% of the picture"
    )
    assert page.locator(".places li", has_text="dogs").inner_text().endswith("40\u00a0% of the picture")
    ghost = page.locator("button.word", has_text="ghost")
    told = ghost.get_attribute("aria-description") or ""
    assert told.startswith("doubtful: ")
    assert "sure" not in told  # of what is not there no box is right
    assert page.locator(".places li", has_text="a red hat").inner_text().endswith("90\u00a0% sure of the box")
    page.wait_for_function("() => document.querySelectorAll('.stage img').length === 2")
    assert page.locator(".stage img").first.get_attribute("alt") == DOG.text


def test_hostile_names_and_captions_stay_text(tab: Opened, tmp_path: Path) -> None:
    answer = caption(EVIL, f"{EVIL} a dog", {"dog": (0, 0, 50, 50)})
    evil = Drawing((PHOTO,), (Mark("k", EVIL, ((0.0, 0.0, 9.0, 9.0),)),), (Line(EVIL, ((0, len(EVIL), "k"),)),), EVIL)
    page = tab.open(write_page(tmp_path / "page.html", [(answer, PHOTO), evil], title=EVIL))
    page.wait_for_function("() => document.querySelectorAll('.stage img[src^=data]').length === 2")
    assert page.title() == EVIL
    assert page.locator("img:not(.stage img)").count() == 0
    assert EVIL in page.locator(".sentence").first.inner_text()
    assert page.inner_text("h1") == EVIL
    assert not tab.complaints
    assert [url for url in tab.requests if not url.startswith(("file:", "data:"))] == []


def test_nothing_can_be_fetched_or_run_besides(tab: Opened, tmp_path: Path) -> None:
    page = tab.open(write_page(tmp_path / "page.html", [(DOG, PHOTO)]))
    refused = page.evaluate(
        """() => new Promise(resolve => {
            document.addEventListener('securitypolicyviolation', event => resolve(event.violatedDirective));
            const script = document.createElement('script');
            script.textContent = 'document.title = "owned"';
            document.body.append(script);
        })"""
    )
    assert refused.startswith("script-src")
    assert page.title() == "Deixis"


def test_emoji_do_not_shift_words(tab: Opened, tmp_path: Path) -> None:
    page = tab.open(
        write_page(tmp_path / "page.html", [(caption("x", "👩‍🚀🐶 a dog 🐶", {"dog": (0, 0, 9, 9)}), PHOTO)])
    )
    assert page.inner_text("button.word") == "dog"


def test_many_photos_load_when_they_come_near(tab: Opened, tmp_path: Path) -> None:
    answers = ((caption(f"{at}.jpg", f"photo {at} of a dog", {"dog": (0, 0, 90, 90)}), PHOTO) for at in range(300))
    page = tab.open(write_page(tmp_path / "page.html", answers))
    page.wait_for_selector("html[data-ready]", state="attached")
    assert page.locator(".panel").count() == 300
    assert page.locator(".stage img").count() < 100, "photos far away are not decoded"
    page.locator(".panel").last.scroll_into_view_if_needed()
    page.wait_for_function(
        "() => [...document.querySelectorAll('.panel')].at(-1).querySelector('img')?.naturalWidth > 0"
    )
    page.fill("#filter", "photo 29 ")
    page.wait_for_function("() => document.getElementById('count').textContent === '13 of 300'")
    assert page.locator(".panel:visible").count() == 13, "29, 129, 229 and 290 to 299"
    assert not tab.complaints


@pytest.mark.parametrize("tab", [{"viewport": {"width": 360, "height": 640}}], indirect=True)
def test_on_a_phone_nothing_sticks_out(tab: Opened, tmp_path: Path) -> None:
    tall = caption("a-very-long-file-name-without-any-space-in-it-at-all.jpg", DOG.text, {"dogs": (0, 0, 9, 9)})
    page = tab.open(write_page(tmp_path / "page.html", [(DOG, PHOTO), (tall, Image.new("RGB", (100, 900)))]))
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("tab", [{"color_scheme": "dark"}, {"color_scheme": "light"}], indirect=True)
def test_light_and_dark(tab: Opened, tmp_path: Path) -> None:
    page = tab.open(write_page(tmp_path / "page.html", [(DOG, PHOTO)]))
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    paper, ink = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    brightness = [sum(map(int, colour[4:-1].split(","))) for colour in (paper, ink)]
    assert (brightness[0] < brightness[1]) == dark


def test_colours_are_those_of_the_drawings(tab: Opened, tmp_path: Path) -> None:
    marks = tuple(Mark(f"k{at}", f"thing {at}", ((at, at, at + 40.0, at + 40.0),)) for at in range(9))
    text = " ".join(mark.label for mark in marks)
    spans = [(text.index(mark.label), text.index(mark.label) + len(mark.label), mark.key) for mark in marks]
    page = tab.open(write_page(tmp_path / "page.html", [Drawing((PHOTO,), marks, (Line(text, tuple(spans)),))]))
    found = page.evaluate(
        """() => [...document.querySelectorAll('button.word')].map(word => [
            word.style.getPropertyValue('--thing'), word.style.getPropertyValue('--thing-ink'),
            word.classList.contains('dashed')])"""
    )
    wanted = [[colour_of(at)[0], ink_on(colour_of(at)[0]), colour_of(at)[1]] for at in range(9)]
    assert found == wanted
    assert found[7][0] == PALETTE[0]


def made_clip(path: Path, seconds: float = 2.0, rate: int = 10) -> Path:
    """Write a clip in a form that every Chromium plays."""
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libvpx", rate=rate)
        stream.width, stream.height, stream.pix_fmt = 160, 120, "yuv420p"
        for number in range(round(seconds * rate)):
            pixels = np.full((120, 160, 3), 10 * number, np.uint8)
            frame: Any = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


@pytest.mark.parametrize("embed", [True, False])
def test_boxes_of_a_clip_move_with_the_time(tab: Opened, tmp_path: Path, embed: bool) -> None:
    def said(text: str, start: float, x: float) -> GroundedCaption:
        found = tuple((x + 40.0 * at, 20.0, x + 40.0 * at + 40, 60.0) for at in range(2))
        word = GroundedWord("ball", 2, 6, found, (0, 1), 0.9, True)
        times = (start + 0.25, start + 0.75)
        return GroundedCaption("c", (160, 120), text, (word,), segment=(start, start + 1), frame_times=times)

    clip = made_clip(tmp_path / "clip.webm")
    captions = [said("a ball rolls", 0.0, 0.0), said("a ball stops", 1.0, 80.0)]
    page = tab.open(write_clip_page(tmp_path / "page.html", clip, captions, embed=embed))
    page.wait_for_function("() => document.querySelector('video').readyState >= 2")
    assert page.inner_text(".sentence") == "a ball rolls"

    def left_at(seconds: float) -> float:
        page.evaluate(
            """time => new Promise(resolve => {
                const video = document.querySelector('video');
                video.addEventListener('seeked', () => resolve(), {once: true});
                video.currentTime = time;
            })""",
            seconds,
        )
        return float(page.get_attribute("svg rect.line", "x") or "nan")

    assert left_at(0.25) == pytest.approx(0, abs=0.5)
    assert left_at(0.5) == pytest.approx(20, abs=0.5), "half way between two frames"
    assert left_at(0.75) == pytest.approx(40, abs=0.5)
    assert left_at(1.25) == pytest.approx(80, abs=0.5)
    assert page.inner_text(".sentence") == "a ball stops"
    page.click("text=0.0 to 1.0 s")
    page.wait_for_function("() => document.querySelector('.sentence').textContent === 'a ball rolls'")
    assert page.locator(".segments button[aria-current=true]").count() == 1
    assert not tab.complaints
