"""Pages as a parser sees them: everything inside, nothing from outside, no text that becomes markup."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from deixis.errors import BadFileError, DeixisError
from deixis.export.draw import Drawing, Line, Mark
from deixis.export.page import FEW, find_photo, page_text, write_clip_page, write_page
from deixis.export.page_parts import drawing_view
from deixis.types import GroundedCaption
from tests.export.answers import CLIP, DOG, EVIL, PHRASES, caption

PHOTO = Image.new("RGB", (200, 100), (10, 120, 90))


class Page(HTMLParser):
    """The elements of a page, with the text inside each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.elements.append((f"/{tag}", {}, ""))  # what follows is no text of the element

    def handle_data(self, data: str) -> None:
        if self.elements:
            tag, attributes, text = self.elements[-1]
            self.elements[-1] = (tag, attributes, text + data)

    def by_id(self, name: str) -> str:
        return next(text for _, attributes, text in self.elements if attributes.get("id") == name)

    @property
    def answers(self) -> Any:
        return json.loads(self.by_id("answers"))

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _, _ in self.elements}


def picture_in(page: Page, block: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(page.by_id(block))))


def test_answers_and_photos_are_inside() -> None:
    page = Page(page_text([(DOG, PHOTO), (PHRASES, np.zeros((48, 64, 3), np.uint8))]))
    first, second = page.answers["items"]
    assert first["texts"] == [
        {"text": "two dogs chase a ball", "spans": [[4, 8, "word 1"], [17, 21, "word 4"]]},
    ]
    assert [(mark["text"], mark["boxes"]) for mark in first["marks"]] == [
        ("dogs", [[20, 10, 120, 90]]),
        ("ball", [[150, 60, 170, 80]]),
    ]
    assert second["marks"][1]["doubted"]
    assert first["title"] == "dog.jpg", "no folders of this machine"
    assert picture_in(page, first["pictures"][0]["block"]).size == (200, 100)
    assert second["size"] == [64, 48]


def test_the_policy_allows_our_script_and_style_and_nothing_else() -> None:
    page = Page(page_text([(DOG, PHOTO)]))
    policy = next(
        attributes["content"] or ""
        for tag, attributes, _ in page.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        (text,) = [text for name, attributes, text in page.elements if name == tag and "type" not in attributes]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    for _, attributes, _ in page.elements:
        assert not attributes.get("src")
        assert (attributes.get("href") or "#").startswith("#")


@settings(max_examples=40)
@given(st.text(max_size=40) | st.sampled_from([EVIL, "<!--", "]]>", "\u2028", "\ud800", "<noscript>", '"><x>']))
def test_no_text_becomes_markup(text: str) -> None:
    plain = Page(page_text([Drawing((PHOTO,), (Mark("k", "dog", ((1, 2, 3, 4),)),), (Line("dog"),))])).tags
    mark = Mark("k", text, ((1.0, 2.0, 3.0, 4.0),))
    drawing = Drawing((PHOTO,), (mark,), (Line(text, ((0, len(text), "k"),)),), text)
    page = Page(page_text([drawing], title=text))
    assert page.tags == plain
    item = page.answers["items"][0]
    assert item["texts"][0]["text"] == item["title"] == item["marks"][0]["text"] == text


def test_spans_count_as_javascript_does() -> None:
    view = drawing_view(Drawing((), (), (Line("a 👩‍🚀 dog", ((6, 9, "k"),)),)), 0)
    text, ((start, end, _),) = view["texts"][0]["text"], view["texts"][0]["spans"]
    units = text.encode("utf-16-le")
    assert units[2 * start : 2 * end].decode("utf-16-le") == "dog"


def test_many_have_small_photos_and_few_large_ones(tmp_path: Path) -> None:
    large = Image.effect_noise((2000, 1000), 30)
    few = Page(page_text([(DOG, large)]))
    assert picture_in(few, "p0-0").size == (1600, 800)
    answers = ((caption(f"{at}.jpg", "a dog", {"dog": (0, 0, 9, 9)}), large) for at in range(FEW + 1))
    many = Page(write_page(tmp_path / "many.html", answers).read_text())
    assert picture_in(many, "p0-0").size == (560, 280)
    assert len(many.answers["items"]) == FEW + 1


def test_photos_are_found_by_path_name_and_bare_name(tmp_path: Path) -> None:
    PHOTO.save(tmp_path / "1234.webp")
    assert find_photo(str(tmp_path / "1234.webp")) == tmp_path / "1234.webp"
    assert find_photo("1234", tmp_path) == tmp_path / "1234.webp"
    assert find_photo("elsewhere/1234.webp", tmp_path) == tmp_path / "1234.webp"
    with pytest.raises(BadFileError, match=r"no photo '99'.*which folder"):
        find_photo("99", tmp_path)


def test_a_missing_photo_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match=r"photos/dog\.jpg"):
        write_page(tmp_path / "page.html", [(PHRASES, PHOTO), DOG])
    assert list(tmp_path.iterdir()) == []


def test_a_clip_is_inside_or_linked(tmp_path: Path) -> None:
    clip = tmp_path / "a clip #1.mp4"
    clip.write_bytes(b"not really a clip")
    inside = Page(write_clip_page(tmp_path / "in.html", clip, [CLIP]).read_text())
    assert base64.b64decode(inside.by_id("clip")) == b"not really a clip"
    segment = inside.answers["clip"]["segments"][0]
    assert segment["segment"] == [3.0, 8.0]
    assert len(segment["times"]) == 10
    assert segment["marks"][0]["frames"] == [0, 4]
    (tmp_path / "pages").mkdir()
    linked = Page(write_clip_page(tmp_path / "pages" / "out.html", clip, [CLIP], embed=False).read_text())
    assert linked.answers["clip"]["address"] == "./../a%20clip%20%231.mp4"
    with pytest.raises(BadFileError, match="nowhere"):
        write_clip_page(tmp_path / "x.html", tmp_path / "nowhere.mp4", [CLIP])
    with pytest.raises(DeixisError, match="no captions"):
        write_clip_page(tmp_path / "x.html", clip, list[GroundedCaption]())
