"""The server with the small model of all tests, which knows the three example photos by heart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from deixis.answering.load import Deixis, load
from deixis.serve.app import STATIC
from deixis.serve.limits import Limits
from deixis.serve.service import Service


@pytest.fixture(scope="session")
def sentences() -> dict[str, str]:
    """What the small model says of each example photo."""
    return {
        "astronaut": "A woman in a suit with a helmet.",
        "chelsea": "A cat with eyes.",
        "coffee": "A cup of coffee on a table.",
    }


@pytest.fixture(scope="session")
def example_photos(sentences: dict[str, str]) -> dict[str, Path]:
    return {name: STATIC / "examples" / f"{name}.jpg" for name in sentences}


@pytest.fixture(scope="session")
def model(small_bundle: Path) -> Deixis:
    loaded = load(small_bundle)
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
