"""``lite`` as ONNX files, exported once."""

from __future__ import annotations

from pathlib import Path

import pytest

import deixis
from deixis.answering.load import Deixis
from deixis.portable.export import export_model
from deixis.regions.lite import LiteExtractor

pytest.importorskip("onnx", reason="exporting needs the extra onnx")
pytest.importorskip("onnxruntime", reason="exported models need the extra onnx")

PHOTOS = sorted((Path(__file__).parents[2] / "examples" / "photos").glob("*.jpg"))


@pytest.fixture(scope="session")
def lite() -> Deixis:
    """In single precision, as the files compute: its default, eight bits, changes about one sentence in five."""
    model = deixis.load("lite")
    assert isinstance(model.extractor, LiteExtractor)
    model.extractor.computing_in("float32")
    return model


@pytest.fixture(scope="session")
def exported(lite: Deixis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("portable") / "lite-onnx"
    export_model(lite, folder)
    return folder
