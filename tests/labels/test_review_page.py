"""The review page in a real Chromium: boxes are corrected by mouse and by keyboard, and what is saved is read back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from deixis.errors import DeixisError
from deixis.export import coco
from deixis.labels.compare import compare
from deixis.labels.read import Album, read_labels
from deixis.labels.review_page import merged, write_review
from deixis.types import GroundedPhrase, GroundedPhrases
from tests.labels.files import SIZE, album

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE = 60_000
EVIL = "</script><img src=x onerror=\"document.title='owned'\">"
SENTENCE = "A dog and a ball."


@pytest.fixture
def photos(tmp_path: Path) -> Album:
    return Album(album(tmp_path / "photos"))


@pytest.fixture
def draft(tmp_path: Path, photos: Album) -> Path:
    """Two photos: b.png is sure of its dog, a.jpg doubts a ball, so a.jpg comes first."""
    dog = GroundedPhrase("A dog", ((20.0, 10.0, 120.0, 90.0),), (0,), 0.9, True, 0, 5)
    ball = GroundedPhrase("a ball", ((150.0, 60.0, 170.0, 80.0),), (0,), 0.2, False, 10, 16)
    sure = GroundedPhrase("dog", ((0.0, 0.0, 50.0, 50.0),), (0,), 0.95)
    answers = [
        GroundedPhrases("deep/b.png", SIZE, (sure,)),
        GroundedPhrases("a.jpg", SIZE, (dog, ball), SENTENCE),
    ]
    file = tmp_path / "draft.json"
    file.write_text(json.dumps(coco.labels(answers)))
    return file


def page_of(draft: Path, photos: Album, out: Path) -> Path:
    write_review(out, read_labels(draft, photos, everything=True), photos, saves="corrected.json")
    return out


def test_five_captions_name_one_box(draft: Path, photos: Album) -> None:
    things = read_labels(draft, photos, everything=True).photos["a.jpg"].things
    again = [*things, *things]
    boxes = merged(again)
    assert [(box["label"], box.get("doubted", False)) for box in boxes] == [("ball", True), ("dog", False)]
    assert boxes[1]["mentions"] == [{"phrase": "A dog", "sentence": SENTENCE, "start": 0, "end": 5}]


def test_nothing_to_look_at_is_an_error(draft: Path, photos: Album, tmp_path: Path) -> None:
    labels = read_labels(draft, photos, everything=True)
    with pytest.raises(DeixisError, match="no photo to look at"):
        write_review(tmp_path / "r.html", labels, photos, limit=0, saves="c.json")
    assert not (tmp_path / "r.html").exists()


# --- in the browser


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1300, "height": 900}, accept_downloads=True)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def opened(page: Page, file: Path) -> Page:
    page.goto(file.as_uri())
    page.wait_for_function("() => document.getElementById('picture').naturalWidth > 0")
    return page


def boxes(page: Page) -> list[tuple[str, list[int]]]:
    found: list[dict[str, Any]] = page.evaluate("desk.photo.boxes")
    return [(box["label"], [round(side) for side in box["box"]]) for box in found]


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag from one place of the photo to another, given in its pixels."""
    frame = page.locator("#overlay").bounding_box()
    assert frame is not None
    at = [
        (frame["x"] + x / SIZE[0] * frame["width"], frame["y"] + y / SIZE[1] * frame["height"]) for x, y in (start, end)
    ]
    page.mouse.move(*at[0])
    page.mouse.down()
    page.mouse.move((at[0][0] + at[1][0]) / 2, (at[0][1] + at[1][1]) / 2)
    page.mouse.move(*at[1])
    page.mouse.up()


def saved(page: Page, tmp_path: Path) -> Path:
    with page.expect_download() as download:
        page.click("#save")
    assert download.value.suggested_filename == "corrected.json"
    file = tmp_path / "corrected.json"
    download.value.save_as(file)
    return file


@pytest.mark.browser
def test_by_mouse_and_read_back(tab: Page, draft: Path, photos: Album, tmp_path: Path) -> None:
    page = opened(tab, page_of(draft, photos, tmp_path / "review.html"))
    assert page.inner_text("#name") == "a.jpg", "the doubtful photo comes first"
    assert boxes(page) == [("ball", [150, 60, 170, 80]), ("dog", [20, 10, 120, 90])]
    drag(page, (70, 50), (80, 55))  # the dog, by its middle
    assert boxes(page)[1] == ("dog", [30, 15, 130, 95])
    drag(page, (130, 95), (140, 90))  # its lower right corner
    assert boxes(page)[1] == ("dog", [30, 15, 140, 90])
    drag(page, (5, 5), (25, 12))  # a new box where nothing is
    page.keyboard.type("bird")
    page.keyboard.press("Enter")
    assert boxes(page)[2] == ("bird", [5, 5, 25, 12])
    page.click("#done")
    assert page.inner_text("#name") == "deep/b.png"
    page.locator("#boxes input").fill("puppy")
    page.locator("#boxes input").press("Enter")
    page.click("#done")
    file = saved(page, tmp_path)

    before, after = read_labels(draft, photos), read_labels(file, photos)
    found = {name: [(thing.label, thing.sentence) for thing in photo.things] for name, photo in after.photos.items()}
    assert found == {"a.jpg": [("dog", SENTENCE), ("bird", None)], "deep/b.png": [("puppy", None)]}
    changes = compare(before.photos, after.photos)
    assert (changes.moved, changes.added, changes.relabelled, changes.deleted) == (1, 1, 1, 0)
    assert changes.renamed == {("dog", "puppy"): 1}


@pytest.mark.browser
def test_by_keyboard_alone(tab: Page, draft: Path, photos: Album, tmp_path: Path) -> None:
    page = opened(tab, page_of(draft, photos, tmp_path / "review.html"))
    page.keyboard.press(".")
    page.keyboard.press("k")  # keep the ball that the draft doubts
    page.keyboard.press(".")
    for key in ("ArrowRight", "ArrowDown", "Shift+ArrowLeft", "Alt+ArrowUp"):
        page.keyboard.press(key)
    # 20 10 120 90: right by 2, down by 1, the right side left by 2, up by one pixel
    assert boxes(page)[1] == ("dog", [22, 10, 120, 90])
    page.keyboard.press("n")
    page.keyboard.type("cat")
    page.keyboard.press("Enter")
    assert boxes(page)[2][0] == "cat"
    page.keyboard.press("Delete")
    assert len(boxes(page)) == 2
    page.keyboard.press("z")
    assert len(boxes(page)) == 3
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("d")
    assert page.inner_text("#name") == "deep/b.png"
    page.keyboard.press("PageUp")
    assert page.inner_text("#state") == "Done"
    labels = read_labels(saved(page, tmp_path), photos)
    assert list(labels.photos) == ["a.jpg"], "what is not called done does not count"
    assert sorted(thing.label for thing in labels.photos["a.jpg"].things) == ["ball", "cat", "dog"]
    assert (labels.unreviewed, labels.marked) == (1, True)


@pytest.mark.browser
def test_boxes_stay_inside_the_photo(tab: Page, draft: Path, photos: Album, tmp_path: Path) -> None:
    page = opened(tab, page_of(draft, photos, tmp_path / "review.html"))
    drag(page, (70, 50), (199, 99))
    assert boxes(page)[1] == ("dog", [100, 20, 200, 100])
    drag(page, (100, 20), (260, 150))  # a corner past its opposite and past the border
    (x1, y1, x2, y2) = boxes(page)[1][1]
    assert 0 <= x1 < x2 <= 200
    assert 0 <= y1 < y2 <= 100


@pytest.mark.browser
def test_going_on_after_a_reload_and_from_the_saved_file(tab: Page, draft: Path, photos: Album, tmp_path: Path) -> None:
    tab.on("dialog", lambda dialog: dialog.accept())
    page = opened(tab, page_of(draft, photos, tmp_path / "review.html"))
    page.keyboard.press("d")
    opened(page, tmp_path / "review.html")
    assert page.inner_text("#name") == "deep/b.png", "what was done is still done"
    file = saved(page, tmp_path)
    again = opened(page, page_of(file, photos, tmp_path / "again.html"))
    assert again.inner_text("#name") == "deep/b.png"
    again.keyboard.press("PageDown")
    assert (again.inner_text("#name"), again.inner_text("#state")) == ("a.jpg", "Done")


@pytest.mark.browser
def test_hostile_labels_and_names_stay_text(tab: Page, photos: Album, tmp_path: Path) -> None:
    Image.new("RGB", SIZE).save(photos.folder / "x<img src=x>.png")
    evil = GroundedPhrase(EVIL, ((0.0, 0.0, 50.0, 50.0),), (0,), 0.9, label=EVIL)
    file = tmp_path / "evil.json"
    file.write_text(json.dumps(coco.labels([GroundedPhrases("x<img src=x>.png", SIZE, (evil,))])))
    page = opened(tab, page_of(file, Album(photos.folder), tmp_path / "evil.html"))
    assert page.locator("#boxes input").input_value() == EVIL
    assert page.title() == "Review evil.json"


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 800, 1300])
def test_nothing_sticks_out_on_any_screen(width: int, tab: Page, draft: Path, photos: Album, tmp_path: Path) -> None:
    tab.set_viewport_size({"width": width, "height": 740})
    page = opened(tab, page_of(draft, photos, tmp_path / "review.html"))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#done").is_visible()


@pytest.mark.browser
def test_the_photo_stays_in_sight_beside_a_long_list(tab: Page, draft: Path, photos: Album, tmp_path: Path) -> None:
    tab.set_viewport_size({"width": 1300, "height": 500})
    page = opened(tab, page_of(draft, photos, tmp_path / "review.html"))
    for _ in range(20):
        page.click("#add")
    page.locator("#boxes li").last.scroll_into_view_if_needed()
    stage = page.locator("#stage").bounding_box()
    assert page.evaluate("scrollY") > 300
    assert stage is not None
    assert 0 <= stage["y"] < 100
