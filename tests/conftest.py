"""Fixtures for every test: the shared real data, an own cache folder, few threads, and one browser for all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A busy machine must not fail a property by its clock; in CI the same examples run every time.
settings.register_profile(
    "deixis", deadline=None, derandomize=bool(os.environ.get("CI")), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("deixis")
os.environ.setdefault("OMP_NUM_THREADS", "1")


def _find_shared() -> Path | None:
    chosen = os.environ.get("DEIXIS_SHARED")
    for folder in [Path(chosen)] if chosen else [Path(__file__).resolve().parents[2] / "shared"]:
        if (folder / "data").is_dir():
            return folder
    return None


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real data beside the repository; CI must have it."""
    folder = _find_shared()
    if folder is None:
        if os.environ.get("CI"):
            pytest.fail("CI needs the shared folder beside the repository (or DEIXIS_SHARED)")
        pytest.skip("needs the shared real data: put it beside the repository or set DEIXIS_SHARED")
    return folder


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEIXIS_HOME", str(tmp_path / "deixis-home"))


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The free dataset that Deixis draws itself (``deixis data scenes``): captions and boxes, nothing beside needed."""
    from deixis.data.scenes import make_scenes

    folder = tmp_path_factory.mktemp("drawn") / "scenes"
    make_scenes(folder, {"train": 48, "val": 24, "test": 8})
    return folder


@pytest.fixture(scope="session")
def flickr8k() -> Path | None:
    """Real photos with captions and boxes where they are; None elsewhere, and tests that can take drawn scenes do."""
    folder = _find_shared()
    if folder is None and os.environ.get("CI"):
        pytest.fail("CI needs the shared folder beside the repository (or DEIXIS_SHARED)")
    return folder / "data" / "flickr8k-entities" if folder else None


@pytest.fixture(scope="module")
def _cluster() -> Iterator[None]:
    """A Ray cluster of this machine, for all tests of a file: starting one takes longer than most of them."""
    import logging

    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'deixis[ray]'")
    ray.init(log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
    yield
    ray.shutdown()


@pytest.fixture(autouse=True)
def _ray(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("ray"):
        request.getfixturevalue("_cluster")


EXAMPLES = Path(__file__).parents[1] / "examples" / "photos"
BY_HEART = {
    "astronaut.jpg": "a woman in a suit with a helmet",
    "chelsea.jpg": "a cat with eyes",
    "coffee.jpg": "a cup of coffee on a table",
}
THINGS = ("woman", "suit", "helmet", "cat", "eyes", "cup", "coffee", "table")


@pytest.fixture(scope="session")
def small_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of real models on real regions: a captioner and a matcher that know three photos by heart."""
    from dataclasses import asdict

    import torch

    from deixis.answering.photos import read_photo
    from deixis.captioning.model.captioner import Captioner
    from deixis.captioning.model.config import CaptionerConfig, DecoderConfig, EncoderConfig
    from deixis.data.collate import CaptionEncoder, EncodedExample, collate
    from deixis.data.pad import pad_regions
    from deixis.data.sizes import InputSizes
    from deixis.grounding.scan import Scan, ScanConfig
    from deixis.models.checkpoint import ModelConfig, save_model
    from deixis.objectives.ranking import triplet_loss
    from deixis.regions.lite import LiteExtractor
    from deixis.regions.store.as_stored import as_stored
    from deixis.text.rules.chunker import chunk
    from deixis.text.vocabulary import Entry, Vocabulary
    from deixis.training.recipe import Recipe

    torch.manual_seed(1)
    extractor = LiteExtractor.load().computing_in("int8")  # as answers do
    found = extractor.extract([read_photo(EXAMPLES / name) for name in BY_HEART])
    words = sorted({word for text in BY_HEART.values() for word in text.split()})
    entries = [Entry(word, 9, "NN" if word in THINGS else "IN", word, word in THINGS) for word in words]
    vocabulary = Vocabulary(entries)
    sizes = InputSizes.of(found[0], len(vocabulary))
    encoder = CaptionEncoder(vocabulary)
    examples = [EncodedExample(name, (encoder(chunk(text, vocabulary)),), (text,)) for name, text in BY_HEART.items()]
    batch = collate(examples, pad_regions([as_stored(one) for one in found], max_regions=20))
    captioner = Captioner(
        CaptionerConfig(64, EncoderConfig(dropout=0.0), DecoderConfig(word_dropout=0.0, output_dropout=0.0)), sizes
    )
    matcher = Scan(ScanConfig(width=64, word_width=32), sizes, vocabulary)

    def said() -> torch.Tensor:
        decoded = captioner.decode(captioner.encode(batch.regions), batch.words)
        return decoded.cross_entropy(batch.words)[0][batch.words != 0].mean()

    def matched() -> torch.Tensor:
        return triplet_loss(matcher.table(batch), batch.image_of, margin=0.2, negatives="hardest").mean()

    folder = tmp_path_factory.mktemp("bundle") / "small"
    kinds: dict[str, dict[str, object]] = {
        "captioner": {"kind": "captioner", "width": 64},
        "grounder": {"kind": "scan", "width": 64, "word_width": 32},
    }
    for role, model, loss, rate, steps in (
        ("captioner", captioner, said, 5e-3, 160),
        ("grounder", matcher, matched, 2e-4, 150),
    ):
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        for _ in range(steps):
            optimizer.zero_grad()
            loss().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        recipe = Recipe.from_plain(
            {
                "about": {"title": f"A small {role}"},
                "data": {"dataset": "examples", "store": "none", "regions": 20},
                "model": kinds[role],
                "stages": [{"name": "only", "epochs": 1, "objectives": ["cross_entropy"]}],
            }
        )
        settings = {"extractor": "lite", "max_regions": 100}
        (folder / role).mkdir(parents=True)
        config = ModelConfig(recipe.plain(), extractor.fingerprint, settings, asdict(sizes), metrics={"cider": 1.25})
        save_model(folder / role, model, vocabulary, config)
    return folder


BROWSER_FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
    "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
]  # fmt: skip


def _find_browser() -> str | None:
    chosen = os.environ.get("DEIXIS_CHROMIUM")
    names = ("chromium", "chromium-browser", "google-chrome")
    return chosen or next((found for name in names if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real headless Chromium: one for all tests of a process, because Playwright starts only once in each.

    ``make test`` skips tests that need it where none is installed; with ``DEIXIS_BROWSER=required`` (CI) they fail.
    """
    path = _find_browser()
    if path is None:
        if os.environ.get("DEIXIS_BROWSER") == "required":
            pytest.fail("these tests must run here (DEIXIS_BROWSER=required), but there is no Chromium")
        pytest.skip("needs Chromium: install it (Debian: apt-get install chromium) or set DEIXIS_CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=BROWSER_FLAGS)
        yield launched
        launched.close()
