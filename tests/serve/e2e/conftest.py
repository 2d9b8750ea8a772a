"""A real server in this process, and people who visit it with the browser of all tests."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, expect

from deixis.answering.load import Deixis, load
from deixis.answering.search.index import PhotoIndex
from deixis.serve.app import make_app
from deixis.serve.guard import Access
from deixis.serve.run import address_of, listen
from deixis.serve.service import Service

LIT = """panel => {
    const of = selector => [...panel.querySelectorAll(selector)].map(found => found.dataset.key).sort();
    return {words: of('.sentence .lit'), boxes: of('svg .lit'), lines: of('li.lit')};
}"""
PATIENCE = 60_000  # milliseconds: a busy machine must not fail a test
expect.set_options(timeout=PATIENCE)


def _served(service: Service, access: Access) -> Iterator[str]:
    listening = listen("127.0.0.1", 0)
    config = uvicorn.Config(make_app(service, access), log_level="warning", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield address_of(listening, "127.0.0.1")
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="session")
def server(model: Deixis, small_bundle: Path) -> Iterator[str]:
    """The address of a server with two models, each with two methods."""
    other = load(small_bundle)
    other.name = "other"
    yield from _served(Service({"small": model, "other": other}), Access(hosts=frozenset({"127.0.0.1"})))


@pytest.fixture
def guarded_server(model: Deixis) -> Iterator[str]:
    """The address of a server that asks for a token."""
    yield from _served(Service({"small": model}), Access("s3cret-token"))


@dataclass
class Visit:
    """A page that someone has opened, and everything its console complained about."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, context: BrowserContext, address: str) -> Visit:
        context.set_default_timeout(PATIENCE)
        visit = cls(context.new_page())
        visit.page.on("console", lambda said: visit.complaints.append(said.text) if said.type == "error" else None)
        visit.page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        visit.page.goto(address)
        return visit

    def ready(self) -> Visit:
        self.page.wait_for_selector("html[data-ready]")
        return self

    def choose(self, file: Path) -> Visit:
        self.page.set_input_files("#file", str(file))
        return self

    @property
    def sentence(self) -> str:
        """What the first panel says, once it says it and the photo below has its size."""
        self.page.wait_for_selector(".panel[aria-busy=false] .sentence:has(.word)")
        self.page.wait_for_function("[...document.querySelectorAll('.media img')].every(photo => photo.complete)")
        return self.page.inner_text(".panel >> nth=0 >> .sentence").replace("\xa0", " ")

    def lit(self, panel: int = 0) -> dict[str, list[str]]:
        """What is lit up in a panel: keys of words, boxes and lines of the lists."""
        found: dict[str, list[str]] = self.page.locator(".panel").nth(panel).evaluate(LIT)
        return found

    def lit_after_a_tap(self) -> dict[str, list[str]]:
        """What is lit up in the first panel, once something is: a tap has done its work only after it was taken."""
        self.page.wait_for_function(f"() => ({LIT})(document.querySelector('.panel')).boxes.length")
        return self.lit()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    opened = browser.new_context(viewport={"width": 1200, "height": 900})
    yield opened
    opened.close()


@pytest.fixture
def visit(context: BrowserContext, server: str) -> Visit:
    return Visit.of(context, server).ready()


@pytest.fixture
def album_visit(
    context: BrowserContext, model: Deixis, example_photos: dict[str, Path], tmp_path: Path
) -> Iterator[Visit]:
    """The page of a server that has a folder to search."""
    folder = tmp_path / "album"
    folder.mkdir()
    for path in example_photos.values():
        shutil.copy(path, folder)
    index = PhotoIndex(model, folder, tmp_path / "index")
    index.update()
    service = Service({"small": model}, index=index)
    for address in _served(service, Access(hosts=frozenset({"127.0.0.1"}))):
        yield Visit.of(context, address).ready()
