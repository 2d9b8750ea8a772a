"""A small real model for the server: captioner and grounder taught the three example photos by heart in seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
import torch
from PIL import Image

from deixis.answering.load import Deixis, load
from deixis.captioning.captioner import Captioner
from deixis.captioning.config import CaptionerConfig, DecoderConfig, EncoderConfig, InputSizes
from deixis.data.batch import Batch, WordKind
from deixis.data.pad import pad_regions
from deixis.grounding.ranking import triplet_loss
from deixis.grounding.scan import Scan, ScanConfig
from deixis.images import load_image
from deixis.regions.lite import LiteExtractor
from deixis.serve.app import STATIC
from deixis.serve.limits import Limits
from deixis.serve.service import Service
from deixis.text.vocabulary import Entry, Vocabulary
from deixis.training.checkpoint import ModelConfig, save_model
from deixis.training.recipe import Recipe

CAPTIONS = {
    "astronaut": "a woman in a suit with a helmet",
    "chelsea": "a cat with eyes",
    "coffee": "a cup of coffee on a table",
}
NOUNS = ("woman", "suit", "helmet", "cat", "eyes", "cup", "coffee", "table")
REGIONS = 20


def plain_recipe(model: dict[str, object], objective: str) -> Recipe:
    return Recipe.from_plain(
        {
            "about": {"title": "A small model for tests"},
            "data": {"dataset": "examples", "store": "none", "regions": REGIONS},
            "model": model,
            "stages": [{"name": "only", "epochs": 1, "objectives": [objective]}],
        }
    )


@pytest.fixture(scope="session")
def example_photos() -> dict[str, Path]:
    return {name: STATIC / "examples" / f"{name}.jpg" for name in CAPTIONS}


@pytest.fixture(scope="session")
def bundle(example_photos: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle folder with a captioner that knows its three sentences and a matcher that tells them apart."""
    torch.manual_seed(1)
    extractor = LiteExtractor.load()
    pixels = [np.asarray(load_image(example_photos[name])) for name in CAPTIONS]
    found = [one.top(REGIONS) for one in extractor.extract(pixels)]
    words = sorted({word for text in CAPTIONS.values() for word in text.split()})
    entries = [Entry(word, 9, "NN" if word in NOUNS else "DT", word, word in NOUNS) for word in words]
    vocabulary = Vocabulary(entries)
    sizes = InputSizes.of(found[0], len(vocabulary))
    rows = [vocabulary.encode(text, end=True) for text in CAPTIONS.values()]
    length = max(len(row) for row in rows)
    said = torch.tensor([row + [0] * (length - len(row)) for row in rows])
    nouns = torch.tensor([vocabulary.id(noun) for noun in NOUNS])
    tags = torch.where(torch.isin(said, nouns), int(WordKind.NOUN), int(WordKind.OTHER))
    batch = Batch(pad_regions(found), said, torch.arange(len(rows)), tags)

    captioner = Captioner(
        CaptionerConfig(64, EncoderConfig(dropout=0.0), DecoderConfig(word_dropout=0.0, output_dropout=0.0)), sizes
    )
    optimizer = torch.optim.Adam(captioner.parameters(), lr=5e-3)
    for _ in range(80):
        loss = captioner.decode(captioner.encode(batch.regions), said).cross_entropy(said)[0][said != 0].mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    scan = Scan(ScanConfig(width=64, word_width=32), sizes, vocabulary)
    optimizer = torch.optim.Adam(scan.parameters(), lr=2e-3)
    for _ in range(40):
        loss = triplet_loss(scan.table(batch), batch.image_of, margin=0.2, negatives="hardest").mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    folder = tmp_path_factory.mktemp("models") / "small"
    models = {
        "captioner": (captioner, {"kind": "captioner", "width": 64}, "cross_entropy"),
        "grounder": (scan, {"kind": "scan", "width": 64, "word_width": 32}, "matching"),
    }
    for role, (model, settings, objective) in models.items():
        config = ModelConfig(
            recipe=plain_recipe(settings, objective),
            fingerprint=extractor.fingerprint,
            extractor={"extractor": "lite", "max_regions": 100},
            sizes=asdict(sizes),
        )
        (folder / role).mkdir(parents=True)
        save_model(folder / role, model, vocabulary, config)
    return folder


@pytest.fixture(scope="session")
def model(bundle: Path) -> Deixis:
    loaded = load(bundle)
    loaded.name = "small"
    return loaded


@pytest.fixture
def service(model: Deixis) -> Iterator[Service]:
    made = Service({"small": model})
    yield made
    made.close()


@pytest.fixture
def limited(model: Deixis) -> Iterator[Callable[..., Service]]:
    """Make services with limits of one's own; they end with the test."""
    made: list[Service] = []

    def make(**limits: float) -> Service:
        made.append(Service({"small": model}, Limits(**limits)))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for service in made:
        service.close()


@pytest.fixture(scope="session")
def sentences() -> dict[str, str]:
    """What the small model says of each example photo."""
    return {name: f"{text.capitalize()}." for name, text in CAPTIONS.items()}


@pytest.fixture(scope="session")
def clip(example_photos: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four seconds: the coffee, moving to the right."""
    path = tmp_path_factory.mktemp("clips") / "coffee.mp4"
    with Image.open(example_photos["coffee"]) as image:
        photo = np.asarray(image.convert("RGB").resize((480, 320)))
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(10))
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        for at in range(40):
            left = 159 - 4 * at
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(photo[40:280, left : left + 320]), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path
