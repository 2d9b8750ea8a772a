"""Searching the server's folder on the page, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.browser


def test_a_phrase_finds_photos_with_boxes_and_a_click_opens_one(album_visit: Any, sentences: dict[str, str]) -> None:
    page = album_visit.page
    assert "3 photos" in page.inner_text("#album-count")
    page.fill("#album-query", "a cup on a table")
    page.press("#album-query", "Enter")
    page.wait_for_selector("#album-found li:nth-child(3) svg g", state="attached")
    first = page.locator("#album-found li").first
    assert "coffee.jpg" in first.inner_text()
    assert first.locator("svg g").count() == 2, "a cup and a table"
    assert first.locator(".legend b").all_inner_texts() == ["a cup", "a table"], "which colour is which"
    third = page.locator("#album-found li").nth(2)
    assert third.locator(".legend s").count() + third.locator(".legend b").count() == 2
    box, stage = (first.locator(part).bounding_box() for part in ("img", ".stage"))
    assert abs(box["width"] - stage["width"]) < 2, "boxes lie on the photo"
    wide = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert wide
    first.locator("button").click()
    assert album_visit.sentence == sentences["coffee"]
    page.fill("#album-query", "zyzzyva")
    page.press("#album-query", "Enter")
    page.wait_for_selector("#problem:not([hidden])")
    assert "knows no word" in page.inner_text("#problem")
    assert all("422" in complaint for complaint in album_visit.complaints), "only what the browser says of the refusal"


def test_a_server_without_a_folder_shows_no_search(visit: Any) -> None:
    assert visit.page.locator("#album").is_hidden()
