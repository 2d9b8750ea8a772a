"""What a notebook shows of an answer, in a real Chromium: words and boxes light each other up without any script."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from deixis.export.notebook import html_of
from tests.export.answers import DOG

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
PHOTO = Image.new("RGB", (200, 100), (10, 120, 90))


def faint(page: Page, part: str) -> list[str]:
    """Return the things of an answer whose boxes are faded out at the moment."""
    page.wait_for_timeout(400)  # opacity moves
    found: list[str] = page.evaluate(
        """part => [...document.querySelectorAll(part + ' g')]
            .filter(group => Number(getComputedStyle(group).opacity) < 0.5).map(group => group.className.baseVal)""",
        part,
    )
    return sorted(found)


def test_hovering_a_word_leaves_its_box_alone(browser: Browser, tmp_path: Path) -> None:
    other = Image.new("RGB", (200, 100), (90, 20, 90))
    cells = f"<div id='one'>{html_of(DOG, PHOTO)}</div><div id='two'>{html_of(DOG, other)}</div>"
    file = tmp_path / "cell.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{cells}")
    context = browser.new_context(java_script_enabled=True, viewport={"width": 800, "height": 900})
    page = context.new_page()
    page.goto(file.as_uri())
    groups = sorted(page.evaluate("[...document.querySelectorAll('#one g')].map(g => g.className.baseVal)"))
    assert len(groups) > 1, "the premise"
    assert faint(page, "#one") == []
    page.hover("#one .w.t0")
    assert faint(page, "#one") == [name for name in groups if name != "t0"]
    assert faint(page, "#two") == [], "another answer of the notebook is left alone"
    page.mouse.move(790, 890)
    page.focus("#one .w.t1")
    assert faint(page, "#one") == [name for name in groups if name != "t1"]
    page.evaluate("document.activeElement.blur()")
    box = page.locator("#one g.t1 rect.line").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert "t1" not in faint(page, "#one")
    assert page.evaluate("getComputedStyle(document.querySelector('#one .w.t1')).backgroundColor") != "rgba(0, 0, 0, 0)"
    context.close()
