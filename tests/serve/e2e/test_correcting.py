"""Correcting the shown answer on the page, and reading what it saves back with the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from playwright.sync_api import Browser, expect
from typer.testing import CliRunner

from deixis.cli import main as cli

pytestmark = pytest.mark.browser
SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "grounded.schema.json").read_text())


def saved_json(page: Any, to: Path) -> Any:
    with page.expect_download() as download:
        page.click(".save button[data-format=json]")
    download.value.save_as(to)
    data = json.loads(to.read_text())
    for answer in data if isinstance(data, list) else [data]:
        jsonschema.validate(answer, SCHEMA)
    return data


def test_a_word_and_boxes_are_corrected_and_read_back(
    visit: Any, example_photos: dict[str, Path], tmp_path: Path
) -> None:
    page = visit.choose(example_photos["coffee"]).page
    assert visit.sentence == "A cup of coffee on a table."
    before = saved_json(page, tmp_path / "before.json")
    page.click("button.correct")
    expect(page.locator(".sentence")).to_be_hidden()
    page.fill(".typed input >> nth=1", "mug")  # cup
    page.fill(".typed input >> nth=4", "")  # on
    things = page.locator(".things li")
    count = things.count()
    assert count == sum(len(word["boxes"]) for word in before["words"])
    # move the first box by mouse: it is drawn over the photo at the same place
    pick = things.nth(0).locator(".pick")
    pick.click()
    page.locator("svg.hands").scroll_into_view_if_needed()
    knob = page.locator("svg.hands .knob.se").bounding_box()
    assert knob is not None
    page.mouse.move(knob["x"] + knob["width"] / 2 - 3, knob["y"] + knob["height"] / 2 - 3)  # inside the photo
    page.mouse.down()
    page.mouse.move(knob["x"] - 40, knob["y"] - 30, steps=3)
    page.mouse.up()
    # and the last one by keyboard alone, then delete the one between
    things.nth(count - 1).locator(".pick").focus()
    page.keyboard.press("Shift+ArrowLeft")
    things.nth(1).locator(".pick").focus()
    page.keyboard.press("Delete")
    expect(things).to_have_count(count - 1)
    page.get_by_role("button", name="Add a box").click()
    page.get_by_role("button", name="Done").click()
    expect(page.locator(".correcting")).to_be_visible()  # a box without a name is not taken
    page.keyboard.type("a silver spoon")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Done").click()
    expect(page.locator(".correcting")).to_be_hidden()
    assert visit.sentence == "A mug of coffee a table."
    caption, phrases = saved_json(page, tmp_path / "coffee.json")
    words = {word["text"]: word for word in caption["words"]}
    assert caption["text"] == "A mug of coffee a table."
    assert all(caption["text"][word["start"] : word["end"]] == word["text"] for word in caption["words"])
    old = {word["text"]: word for word in before["words"]}
    assert words["mug"]["boxes"][0][:2] == pytest.approx(old["cup"]["boxes"][0][:2], abs=0.01)
    assert words["mug"]["boxes"][0][2] < old["cup"]["boxes"][0][2]
    assert (words["mug"]["score"], words["mug"]["trusted"]) == (1, True)
    assert [phrase["text"] for phrase in phrases["phrases"]] == ["a silver spoon"]
    # what was saved is a label file for the command line: the photo is found by its name
    reading = ["corrections", str(tmp_path / "coffee.json"), "--photos", str(example_photos["coffee"].parent), "--json"]
    done = CliRunner().invoke(cli.app, [*reading, "--draft", str(tmp_path / "before.json")], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["photos"] == 1
    assert facts["changes"]["new_labels"]["spoon"] == 1
    assert facts["changes"]["photos"] == 1
    table = tmp_path / "boxes.csv"
    exporting = ["export", str(tmp_path / "coffee.json"), "-f", "csv", "-o", str(table)]
    assert CliRunner().invoke(cli.app, exporting, catch_exceptions=False).exit_code == 0
    assert "a silver spoon" in table.read_text()
    assert not visit.complaints


def test_cancelling_changes_nothing_and_undo_brings_back(visit: Any, example_photos: dict[str, Path]) -> None:
    page = visit.choose(example_photos["chelsea"]).page
    sentence = visit.sentence
    page.click("button.correct")
    things = page.locator(".things li")
    count = things.count()
    page.get_by_role("button", name="Add a box").click()
    expect(things).to_have_count(count + 1)
    page.get_by_role("button", name="Undo").click()
    expect(things).to_have_count(count)
    page.fill(".typed input >> nth=1", "dog")
    page.keyboard.press("Escape")
    assert visit.sentence == sentence
    assert page.evaluate("document.activeElement.className") == "correct"
    assert not visit.complaints


def test_words_of_a_clip_are_corrected(visit: Any, clip: Path, tmp_path: Path) -> None:
    page = visit.choose(clip).page
    assert visit.sentence
    page.click("button.correct")
    expect(page.locator(".things")).to_have_count(0)
    page.fill(".typed input >> nth=0", "One")
    page.get_by_role("button", name="Done").click()
    assert visit.sentence.startswith("One ")
    assert saved_json(page, tmp_path / "clip.json")[0]["text"].startswith("One ")
    assert not visit.complaints


def test_correcting_with_a_finger_on_a_phone(browser: Browser, server: str, visit: Any, example_photos: Any) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    phone = type(visit).of(context, server).ready().choose(example_photos["coffee"])
    assert phone.sentence
    phone.page.locator("button.correct").tap()
    expect(phone.page.locator(".correcting")).to_be_visible()
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 360
    phone.page.locator(".things .pick").first.tap()
    expect(phone.page.locator("svg.hands .knob")).to_have_count(8)
    assert not phone.complaints
    context.close()
