"""Camera, addresses, phrases beside the sentence, the history of a visit, and the page for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

pytestmark = pytest.mark.browser


def test_the_camera_gives_a_photo_and_is_off_afterwards(visit: Any) -> None:
    page = visit.page
    page.evaluate(
        "() => { const real = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);"
        "navigator.mediaDevices.getUserMedia = async wish => { window.lent = await real(wish); return window.lent } }"
    )  # remembers the stream; Chromium's own made-up camera gives it
    page.click("#camera")
    expect(page.locator("#camera-take")).to_be_enabled()
    page.click("#camera-take")
    assert visit.sentence
    expect(page.locator("#camera-view")).to_be_hidden()
    assert page.evaluate("window.lent.getTracks().map(track => track.readyState)") == ["ended"]
    width = page.evaluate("document.querySelector('.media img').naturalWidth")
    assert width >= 320
    assert (page.locator("#history button").first.get_attribute("aria-label") or "").startswith("camera-")
    page.click("#camera")
    page.keyboard.press("Escape")
    expect(page.locator("#camera-view")).to_be_hidden()
    assert not visit.complaints


def test_a_camera_that_is_refused_says_what_to_do(visit: Any) -> None:
    page = visit.page
    page.evaluate(
        "() => { navigator.mediaDevices.getUserMedia ="
        " () => Promise.reject(new DOMException('no', 'NotAllowedError')) }"
    )
    page.click("#camera")
    expect(page.locator("#camera-problem")).to_contain_text("was not allowed")
    expect(page.locator("#camera-take")).to_be_disabled()
    page.click("#camera-close")
    page.evaluate("Object.defineProperty(navigator, 'mediaDevices', { value: undefined })")  # as over plain http
    page.click("#camera")
    expect(page.locator("#camera-problem")).to_contain_text("https")


@pytest.mark.parametrize("kind", ["drop", "paste"])
def test_an_address_is_refused_with_the_way_out(visit: Any, kind: str) -> None:
    page = visit.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    script = """kind => {
        const data = new DataTransfer();
        data.setData(kind === 'drop' ? 'text/uri-list' : 'text/plain', 'https://example.org/cat.jpg');
        document.body.dispatchEvent(kind === 'drop'
            ? new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })
            : new ClipboardEvent('paste', { clipboardData: data, bubbles: true }));
    }"""
    page.evaluate(script, kind)
    problem = page.locator("#problem")
    expect(problem).to_contain_text("example.org")
    expect(problem).to_contain_text("Save the photo as a file")
    assert not asked, "nothing is fetched"
    assert not visit.complaints


def test_phrases_stand_beside_the_sentence_also_on_a_phone(
    browser: Browser, server: str, visit: Any, example_photos: dict[str, Path]
) -> None:
    page = visit.choose(example_photos["coffee"]).page
    assert visit.sentence
    sentence, form, picture = (page.locator(part).bounding_box() for part in (".sentence", "#find", ".stage"))
    assert sentence is not None
    assert form is not None
    assert picture is not None
    assert form["x"] >= picture["x"] + picture["width"], "beside the picture, as the sentence is"
    assert 0 <= form["y"] - (sentence["y"] + sentence["height"]) < 60, "right below the sentence"
    assert form["y"] + form["height"] <= 900, "above the fold"
    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    phone = type(visit).of(context, server).ready().choose(example_photos["coffee"])
    assert phone.sentence
    sentence, form, words = (phone.page.locator(part).bounding_box() for part in (".sentence", "#find", ".words"))
    assert sentence is not None
    assert form is not None
    assert words is not None
    assert sentence["y"] < form["y"] < words["y"], "not last"
    phone.page.fill("#phrase", "a cup")
    phone.page.locator("#find button").tap()
    expect(phone.page.locator(".found li")).to_have_count(1)
    expect(phone.page.locator("svg.boxes g[data-key='phrase 0']")).to_have_count(1)
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 360
    context.close()


def test_phrases_are_found_in_a_clip_and_move_with_it(visit: Any, clip: Path) -> None:
    page = visit.choose(clip).page
    assert visit.sentence
    expect(page.get_by_label("Find a phrase in the clip")).to_be_visible()
    page.fill("#phrase", "a cup, zyzzyva")
    page.press("#phrase", "Enter")
    lines = page.locator(".found li")
    expect(lines).to_have_count(2)
    expect(lines.nth(1)).to_contain_text("probably not in this part of the clip")
    expect(lines.nth(0)).to_contain_text("frames; first")
    page.get_by_label("Time in the clip").fill("2")
    expect(page.locator("svg.boxes g[data-key='phrase 0']")).to_have_count(1)
    page.fill("#every", "2")
    page.press("#every", "Tab")
    expect(page.locator(".segments li")).to_have_count(2)
    expect(lines).to_have_count(2)  # asked again for the new segments
    assert not visit.complaints


def test_the_history_of_a_visit_shows_answers_again_without_asking(
    visit: Any, sentences: dict[str, str], clip: Path
) -> None:
    page = visit.page
    expect(page.locator("#visit")).to_be_hidden()
    page.click("#examples button >> nth=1")
    assert visit.sentence == sentences["coffee"]
    page.fill("#phrase", "a table")
    page.press("#phrase", "Enter")
    expect(page.locator(".found li")).to_have_count(1)
    page.click("#examples button >> nth=2")
    expect(page.locator("#status")).to_have_text(sentences["chelsea"])
    visit.choose(clip)
    expect(page.locator("#history li")).to_have_count(3)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/v1/" in request.url else None)
    oldest = page.locator("#history button").nth(2)
    oldest.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_have_text(sentences["coffee"])
    assert visit.sentence == sentences["coffee"]
    expect(page.locator(".found li")).to_have_count(1)
    expect(oldest).to_have_attribute("aria-current", "true")
    assert oldest.locator("canvas").evaluate(
        "c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size > 16"
    ), "a picture, not an empty square"
    assert not asked
    page.reload()
    visit.ready()
    expect(page.locator("#visit")).to_be_hidden()
    assert not visit.complaints


def test_a_broken_file_leaves_no_trace_in_the_history(visit: Any, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no photo")
    page = visit.choose(broken).page
    expect(page.locator("#problem")).to_be_visible()
    expect(page.locator("#visit")).to_be_hidden()


def test_the_page_for_programs_needs_nothing_from_elsewhere(context: BrowserContext, server: str) -> None:
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(server)
    page.click("footer a[href=docs]")
    expect(page.locator("h1")).to_contain_text("HTTP interface")
    page.click("nav a[href='#v1-ground']")
    expect(page.locator("#v1-ground")).to_be_in_viewport()
    assert all(url.startswith(server) for url in asked)
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert not complaints
