"""What people do with the page, done in a real headless Chromium."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, expect

pytestmark = pytest.mark.browser


def contrast(page: Any, selector: str) -> float:
    """WCAG's contrast of an element's text with the first opaque background behind it."""
    script = """element => {
        const luminance = colour => {
            const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(Number).map(v => v / 255)
                .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
            return .2126 * r + .7152 * g + .0722 * b;
        };
        let behind = element;
        const opaque = e => /^rgb\\(/.test(getComputedStyle(e).backgroundColor);
        while (behind.parentElement && !opaque(behind)) behind = behind.parentElement;
        const a = luminance(getComputedStyle(element).color);
        const b = luminance(getComputedStyle(behind).backgroundColor);
        return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    }"""
    return float(page.locator(selector).first.evaluate(script))


def test_upload_and_hover(visit: Any, example_photos: dict[str, Path], sentences: dict[str, str]) -> None:
    page = visit.choose(example_photos["chelsea"]).page
    assert visit.sentence == sentences["chelsea"]
    assert page.inner_text("#status") == sentences["chelsea"]  # what a screen reader hears
    words = page.locator("button.word")
    assert words.all_inner_texts() == ["cat", "eyes"]
    cat = words.nth(0)
    cat.hover()
    assert visit.lit() == {"words": ["word 1"], "boxes": ["word 1"], "lines": ["word 1"]}
    assert "from" in (cat.get_attribute("aria-description") or "")
    # The box on the screen is where the text says.
    numbers = page.locator(".words li span").first.inner_text()
    told = [int(part) for part in numbers.replace(",", "").split() if part.isdigit()][:4]
    box, photo = page.locator("svg g.lit rect.line").bounding_box(), page.locator(".media img").bounding_box()
    assert box is not None
    assert photo is not None
    scale = photo["width"] / 451
    assert abs((box["x"] - photo["x"]) / scale - told[0]) < 5
    assert abs(box["width"] / scale - (told[2] - told[0])) < 8
    page.mouse.move(2, 2)
    assert visit.lit()["words"] == []
    # A point inside the box lights up the word: of boxes over each other the smallest.
    page.mouse.move(box["x"] + 12, box["y"] + 12)
    assert len(visit.lit()["words"]) == 1
    assert visit.lit()["words"] == visit.lit()["boxes"]
    assert not visit.complaints


def test_examples_heat_and_other_sentences(visit: Any, sentences: dict[str, str]) -> None:
    page = visit.page
    page.click("#examples button >> nth=2")
    assert visit.sentence == sentences["chelsea"]
    page.check("#heat")
    page.hover("button.word >> nth=0")
    expect(page.locator(".stage.looking")).to_be_visible()
    warm = page.evaluate(
        "() => { const c = document.querySelector('canvas'); const d = c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data; return Math.max(...d.filter((_, at) => at % 4 === 3)) }"
    )
    assert warm > 200
    page.hover("span.word >> nth=0")  # with heat, words that name nothing can be asked too
    expect(page.locator(".stage.looking")).to_be_visible()
    page.click("#others summary")
    page.wait_for_selector("#alternatives li >> nth=1")
    assert page.locator("#alternatives li").first.inner_text().startswith(sentences["chelsea"])
    assert not visit.complaints


def test_phrases_found_and_not_found(visit: Any, example_photos: dict[str, Path]) -> None:
    page = visit.choose(example_photos["coffee"]).page
    assert visit.sentence
    page.fill("#phrase", "a table, zebra")
    page.press("#phrase", "Enter")
    page.wait_for_selector(".found li >> nth=1")
    lines = page.locator(".found li")
    assert "from" in lines.nth(0).inner_text()
    assert lines.nth(0).inner_text().replace("\n", " ").endswith("% sure of the box ×")
    assert "%" not in lines.nth(1).inner_text()  # a number beside "probably not" would be read as its opposite
    assert "probably not in the picture" in lines.nth(1).inner_text()
    told = r"a table: found, \d+\s% sure of the box, zebra: probably not in the picture"  # what a screen reader hears
    assert re.fullmatch(told, page.inner_text("#status"))
    lines.nth(0).hover()
    assert visit.lit()["boxes"] == ["phrase 0"]
    page.click(".found .drop >> nth=1")
    expect(lines).to_have_count(1)
    page.fill("#phrase", "\U0001f98a")  # a fox that no vocabulary holds
    page.click("#find button")
    expect(lines).to_have_count(2)
    assert "probably not" in lines.nth(1).inner_text()
    assert not visit.complaints


def test_two_models_side_by_side(visit: Any, example_photos: dict[str, Path], sentences: dict[str, str]) -> None:
    page = visit.choose(example_photos["astronaut"]).page
    assert visit.sentence == sentences["astronaut"]
    page.check("#compare")
    page.wait_for_selector(".panel >> nth=1 >> button.word")
    panels = page.locator(".panel")
    left, right = panels.nth(0).bounding_box(), panels.nth(1).bounding_box()
    assert left is not None
    assert right is not None
    assert left["x"] + left["width"] <= right["x"]
    choices = panels.nth(1).locator("select option").all_inner_texts()
    assert choices == [f"{name} ({how})" for name in ("small", "other") for how in ("attention", "grounder")]
    lines = [panels.nth(at).locator(".words li") for at in (0, 1)]
    assert lines[0].all_text_contents() != lines[1].all_text_contents()  # another method points elsewhere
    panels.nth(1).locator("select").select_option(label="other (attention)")
    expect(lines[1]).to_have_text(lines[0].all_text_contents())
    page.fill("#phrase", "a woman")
    page.press("#phrase", "Enter")
    for panel in (0, 1):
        expect(panels.nth(panel).locator(".found li")).to_have_count(1)
    page.uncheck("#compare")
    expect(panels).to_have_count(1)
    assert not visit.complaints


def test_keyboard_alone(visit: Any, example_photos: dict[str, Path], sentences: dict[str, str]) -> None:
    page = visit.page

    def tab_to(selector: str, most: int = 40) -> None:
        for _ in range(most):
            page.keyboard.press("Tab")
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"the Tab key does not reach {selector}")

    tab_to("#file")  # Space or Enter would open the system's own window here
    tab_to("#examples button")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert visit.sentence == sentences["coffee"]
    tab_to("button.word")
    assert visit.lit()["words"] == ["word 1"]
    assert visit.lit()["boxes"] == ["word 1"]
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"  # one sees where one is
    page.keyboard.press("Tab")
    assert visit.lit()["words"] == ["word 3"]
    page.keyboard.press("Enter")  # keep it lit
    tab_to(".save button")
    assert visit.lit()["words"] == ["word 3"]
    page.keyboard.press("Escape")
    assert visit.lit()["words"] == []
    tab_to("#phrase")
    page.keyboard.type("a cup")
    page.keyboard.press("Enter")
    page.wait_for_selector(".found li")
    tab_to("#others summary")
    page.keyboard.press("Enter")
    page.wait_for_selector("#alternatives li")
    assert not visit.complaints


def test_screen_readers_get_names_roles_and_places(visit: Any, example_photos: dict[str, Path]) -> None:
    page = visit.choose(example_photos["chelsea"]).page
    sentence = visit.sentence
    assert page.locator(".media img").get_attribute("alt") == sentence
    assert page.get_by_role("button", name="cat", exact=True).count() == 1
    assert page.get_by_role("status").inner_text() == sentence
    assert page.get_by_label("Find a phrase in the picture").count() == 1
    for selector in ("input", "select", "button"):
        for element in page.locator(selector).all():
            named = element.evaluate(
                "e => Boolean(e.labels?.length || e.ariaLabel || e.textContent.trim() || e.querySelector('img[alt]'))"
            )
            assert named, element.evaluate("e => e.outerHTML")
    assert page.locator("svg.boxes").get_attribute("aria-hidden") == "true"
    assert page.locator("h1").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_are_readable(
    browser: Browser, server: str, visit: Any, example_photos: dict[str, Path], scheme: str
) -> None:
    context = browser.new_context(color_scheme=scheme)  # type: ignore[arg-type]
    other = type(visit).of(context, server).ready().choose(example_photos["coffee"])
    assert other.sentence
    background = other.page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in background[4:-1].split(",")) / 3
    assert (brightness < 60) == (scheme == "dark")
    for selector in ("h1", "header p", ".sentence span.word", ".words li span", "footer p", ".button", "#find label"):
        assert contrast(other.page, selector) >= 4.5, selector
    other.page.hover("button.word >> nth=0")
    assert contrast(other.page, "button.word.lit") >= 4.5
    context.close()


def test_phone(browser: Browser, server: str, visit: Any, example_photos: dict[str, Path]) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    phone = type(visit).of(context, server).ready()
    page = phone.page
    page.wait_for_selector("#examples li:nth-child(8) img")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360, "the examples stay within the page"
    phone.choose(example_photos["astronaut"])
    assert phone.sentence
    top = page.locator(".panel").bounding_box()
    assert top is not None
    assert 0 <= top["y"] < 740 / 2, "the answer is in sight"
    page.locator("button.word").nth(1).tap()
    assert phone.lit_after_a_tap()["boxes"] == ["word 4"]
    page.locator("button.word").nth(1).tap()  # once more puts it out
    expect(page.locator(".sentence .lit")).to_have_count(0)
    page.check("#compare")
    page.wait_for_selector(".panel >> nth=1 >> button.word")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360  # nothing sticks out
    upper, lower = (page.locator(".panel").nth(at).bounding_box() for at in (0, 1))
    assert upper is not None
    assert lower is not None
    assert upper["y"] + upper["height"] <= lower["y"]
    for selector in (".button", "#find button", ".save button", "#phrase"):
        box = page.locator(selector).first.bounding_box()
        assert box is not None
        assert box["height"] >= 40, selector
    assert not phone.complaints
    context.close()


def test_a_broken_file_says_so_and_the_next_one_works(
    visit: Any, example_photos: dict[str, Path], sentences: dict[str, str], tmp_path: Path
) -> None:
    page = visit.page
    hostile = tmp_path / "<img src=x onerror=document.title='owned'>.jpg"
    hostile.write_bytes(example_photos["coffee"].read_bytes()[:300])
    visit.choose(hostile)
    expect(page.locator("#problem")).to_contain_text("<img src=x onerror=document.title='owned'>.jpg is damaged")
    assert page.locator("#problem").get_attribute("role") == "alert"
    expect(page.locator("#work")).to_be_hidden()
    good = tmp_path / "<svg onload=alert(1)>.jpg"
    good.write_bytes(example_photos["coffee"].read_bytes())
    visit.choose(good)
    assert visit.sentence == sentences["coffee"]
    expect(page.locator("#problem")).to_be_hidden()
    assert page.title() == "Deixis"
    assert [said for said in visit.complaints if "422" not in said] == []  # the browser notes the refusal itself


def test_two_people_at_once(browser: Browser, server: str, visit: Any, sentences: dict[str, str]) -> None:
    context = browser.new_context()
    other = type(visit).of(context, server).ready()
    visit.page.click("#examples button >> nth=0")
    other.page.click("#examples button >> nth=2")
    assert other.sentence == sentences["chelsea"]
    assert visit.sentence == sentences["astronaut"]
    other.page.click("#examples button >> nth=0")  # and someone who changes their mind
    other.page.click("#examples button >> nth=1")
    expect(other.page.locator("#status")).to_have_text(sentences["coffee"])
    assert other.sentence == sentences["coffee"]
    context.close()


def test_saving(
    visit: Any, example_photos: dict[str, Path], context: BrowserContext, sentences: dict[str, str]
) -> None:
    page = visit.choose(example_photos["coffee"]).page
    assert visit.sentence
    saved = {}
    for kind in ("json", "png", "html"):
        with page.expect_download() as download:
            page.click(f".save button[data-format={kind}]")
        assert download.value.suggested_filename == f"coffee.{kind}"
        saved[kind] = Path(download.value.path())
    assert json.loads(saved["json"].read_text())["text"] == sentences["coffee"]
    with Image.open(saved["png"]) as image:
        assert image.format == "PNG"
    alone = context.new_page()
    fetched: list[str] = []
    alone.on("request", lambda request: fetched.append(request.url))
    alone.goto(saved["html"].rename(saved["html"].with_suffix(".html")).as_uri())
    assert alone.locator(".sentence").first.inner_text() == sentences["coffee"]
    assert all(url.startswith(("file:", "data:", "blob:")) for url in fetched)


def test_dropping_and_pasting(visit: Any, example_photos: dict[str, Path], sentences: dict[str, str]) -> None:
    page = visit.page
    script = """([name, bytes, kind]) => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(bytes)], name, { type: 'image/jpeg' }));
        const event = kind === 'drop'
            ? new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })
            : new ClipboardEvent('paste', { clipboardData: data, bubbles: true });
        document.body.dispatchEvent(event);
    }"""
    for kind, name in (("drop", "coffee"), ("paste", "chelsea")):
        page.evaluate(script, [f"{name}.jpg", list(example_photos[name].read_bytes()), kind])
        expect(page.locator("#status")).to_have_text(sentences[name])
    assert not visit.complaints


def test_a_token_is_asked_for_once(
    context: BrowserContext, guarded_server: str, visit: Any, sentences: dict[str, str]
) -> None:
    guest = type(visit).of(context, guarded_server)
    for secret in ("wrong", "s3cret-token"):
        guest.page.wait_for_selector("dialog[open]")
        guest.page.fill("#secret", secret)
        guest.page.press("#secret", "Enter")
    guest.ready().page.click("#examples button >> nth=1")
    assert guest.sentence == sentences["coffee"]
    guest.page.reload()
    guest.ready()  # remembered for this tab
    assert guest.page.locator("dialog[open]").count() == 0


def test_scrubbing_through_a_clip(visit: Any, clip: Path) -> None:
    page = visit.choose(clip).page
    assert visit.sentence.endswith(".")
    slider = page.get_by_label("Time in the clip")
    expect(slider).to_be_visible()
    seen = set()
    for seconds in (0.5, 2.0, 3.5):
        slider.fill(str(seconds))
        expect(page.locator(".time output")).to_contain_text(f"{seconds:.1f} of")
        seen.add(page.locator("svg.boxes").inner_html())
    assert len(seen) > 1  # boxes move
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator(".time output")).to_contain_text("0.0 of")
    page.click(".play")
    expect(page.locator(".play")).to_have_text("Pause")
    with page.expect_download() as download:
        page.click(".save button[data-format=json]")
    captions = json.loads(Path(download.value.path()).read_text())
    assert captions[0]["segment"][0] == 0
    assert not visit.complaints
