"""The folder of ``deixis serve --folder``: search, photos by name, and nothing outside of it."""

from __future__ import annotations

import asyncio
import io
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from PIL import Image

from deixis.answering.load import Deixis
from deixis.answering.search.index import PhotoIndex
from deixis.serve.app import make_app
from deixis.serve.schema import grounded_schema
from deixis.serve.service import Service


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, example_photos: dict[str, Path]) -> Path:
    made = tmp_path_factory.mktemp("album")
    (made / "deep").mkdir()
    for name, path in example_photos.items():
        shutil.copy(path, made / "deep" / f"{name}.jpg")
    Image.new("RGB", (8, 8)).save(made.parent / "secret.jpg")
    return made


@pytest.fixture(scope="module")
def service(model: Deixis, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    index = PhotoIndex(model, folder, tmp_path_factory.mktemp("index") / "made")
    index.update()
    made = Service({"small": model}, index=index)
    yield made
    made.close()


def get(service: Service, path: str, **query: Any) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(make_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get(path, params=query)

    with ThreadPoolExecutor(1) as aside:  # a browser test may have a loop of its own here
        return aside.submit(asyncio.run, ask()).result()


def test_search_answers_as_the_command_line_does(service: Service) -> None:
    told = get(service, "/v1/search", query="a cup on a table", top=2).json()
    assert (told["query"], told["photos"], len(told["found"])) == ("a cup on a table", 3, 2)
    best = told["found"][0]["answer"]
    jsonschema.validate(best, grounded_schema())
    assert best["image"] == "deep/coffee.jpg", "named below the folder: the machine's own paths stay here"
    assert [phrase["text"] for phrase in best["phrases"]] == ["a cup", "a table"]
    assert get(service, "/v1/models").json()["folder"] == {"photos": 3}


def test_photos_are_sent_small(service: Service) -> None:
    reply = get(service, "/v1/photo", image="deep/coffee.jpg", side=100)
    assert reply.headers["content-type"] == "image/jpeg"
    assert max(Image.open(io.BytesIO(reply.content)).size) == 100


@pytest.mark.parametrize("name", ["../secret.jpg", "/etc/passwd", "deep/../deep/coffee.jpg", "gone.jpg", ""])
def test_no_name_leads_out_of_the_folder(service: Service, name: str) -> None:
    reply = get(service, "/v1/photo", image=name)
    assert reply.status_code == 422
    assert "there is no photo" in reply.json()["error"]["message"]


def test_what_cannot_be_searched_is_said(service: Service, model: Deixis) -> None:
    for query in ("", "   ", "zyzzyva", "x" * 5000):
        assert get(service, "/v1/search", query=query).status_code == 422
    assert get(service, "/v1/search", query="a cat", top=0).status_code == 422
    bare = Service({"small": model})
    try:
        assert get(bare, "/v1/search", query="a cat").status_code == 404
        assert get(bare, "/v1/models").json()["folder"] is None
    finally:
        bare.close()
