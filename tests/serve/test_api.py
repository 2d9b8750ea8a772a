from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import numpy as np
import pytest
from PIL import Image

from deixis.answering.asking import Asking, Typed
from deixis.answering.load import Deixis
from deixis.serve.app import make_app
from deixis.serve.guard import Access
from deixis.serve.service import Service
from deixis.types import GroundedCaption

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "grounded.schema.json").read_text())
Make = Callable[..., Service]
Talk = Callable[[httpx.AsyncClient], Awaitable[Any]]


def in_a_thread(run: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a conversation away from this thread, in which Playwright may have a loop of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(run())).result()


def talk(service: Service, conversation: Talk, access: Access | None = None) -> Any:
    async def run() -> Any:
        transport = httpx.ASGITransport(make_app(service, access), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
            return await conversation(client)

    return in_a_thread(run)


def post(service: Service, path: str, photo: bytes | Path, **fields: Any) -> httpx.Response:
    data = photo.read_bytes() if isinstance(photo, Path) else photo
    name = fields.pop("name", photo.name if isinstance(photo, Path) else "photo.jpg")
    answer = talk(service, lambda client: client.post(path, files={"image": (name, data)}, data=fields))
    assert isinstance(answer, httpx.Response)
    return answer


def error_of(answer: httpx.Response) -> tuple[int, str, str]:
    error = answer.json()["error"]
    assert set(error) == {"code", "message"}
    return answer.status_code, error["code"], error["message"]


def jpeg(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 255, (height, width, 3), np.uint8)).save(file, "JPEG")
    return file.getvalue()


def test_a_caption_is_the_one_the_model_gives(
    service: Service, model: Deixis, example_photos: dict[str, Path], sentences: dict[str, str]
) -> None:
    for name, photo in example_photos.items():
        answer = post(service, "/v1/caption", photo)
        assert answer.status_code == 200
        jsonschema.validate(answer.json(), SCHEMA)
        assert answer.json()["text"] == sentences[name]
        assert answer.json() == json.loads(json.dumps(model.caption(photo, name=photo.name).to_json()))


def test_pointing_is_asked_for_as_on_the_command_line(
    service: Service, model: Deixis, example_photos: dict[str, Path]
) -> None:
    photo = example_photos["coffee"]
    told = {"method": "attention", "point": "union", "objectness": "0.5"}
    asking = Typed(method="attention", point="union", objectness=0.5).asked_of(model, Asking())
    for path in ("/v1/caption", "/v1/look"):
        answer = post(service, path, photo, **told).json()
        caption = answer.get("caption", answer)
        assert caption == json.loads(json.dumps(model.caption(photo, asking, name=photo.name).to_json()))
    plain = post(service, "/v1/caption", photo, method="attention", point="argmax", objectness="30").json()
    assert plain["words"] != caption["words"], "what was asked for must be heard"
    assert error_of(post(service, "/v1/caption", photo, point="sideways"))[0] == 422
    assert "soft_vote" in error_of(post(service, "/v1/caption", photo, point="sideways"))[2]


def test_phrases_are_found_or_not(service: Service, model: Deixis, example_photos: dict[str, Path]) -> None:
    photo = example_photos["coffee"]
    answer = post(service, "/v1/ground", photo, phrase=["a cup", "zebra"])
    jsonschema.validate(answer.json(), SCHEMA)
    assert [(one["text"], one["found"]) for one in answer.json()["phrases"]] == [("a cup", True), ("zebra", False)]
    expected = model.ground(photo, ["a cup", "zebra"], name="coffee.jpg").to_json()
    assert answer.json() == json.loads(json.dumps(expected))
    sentence = post(service, "/v1/ground", photo, sentence="A cup on a table").json()
    assert [one["text"].lower() for one in sentence["phrases"]] == ["a cup", "a table"]


def test_a_look_has_weights_for_every_word(service: Service, example_photos: dict[str, Path]) -> None:
    look = post(service, "/v1/look", example_photos["coffee"]).json()
    jsonschema.validate(look["caption"], SCHEMA)
    weights = np.array(look["attention"])
    assert weights.shape == (len(look["caption"]["words"]), len(look["regions"]))
    assert np.allclose(weights.sum(1), 1, atol=0.01)
    assert look["regions"][-1] == [0, 0, 600, 400]
    cup = next(at for at, word in enumerate(look["caption"]["words"]) if word["text"] == "cup")
    best = look["regions"][int(weights[cup].argmax())]
    assert np.allclose(best, look["caption"]["words"][cup]["boxes"][0], atol=0.06)


def test_alternatives_come_best_first(service: Service, example_photos: dict[str, Path]) -> None:
    captions = post(service, "/v1/alternatives", example_photos["chelsea"], beam=3).json()
    assert captions[0]["text"] == "A cat with eyes."
    assert len({caption["text"] for caption in captions}) == len(captions) > 1
    for caption in captions:
        jsonschema.validate(caption, SCHEMA)


def test_other_sentences_come_from_the_search_of_the_one_shown(
    service: Service, example_photos: dict[str, Path]
) -> None:
    """The page asks for both without a beam: the sentence shown must be the first of those weighed."""
    for photo in example_photos.values():
        shown = post(service, "/v1/look", photo).json()["caption"]
        first, *others = post(service, "/v1/alternatives", photo).json()
        assert (first["text"], first["score"]) == (shown["text"], pytest.approx(shown["score"]))
        assert others


def test_the_photo_of_a_phone_with_50_megapixels_is_read(service: Service, tmp_path: Path) -> None:
    Image.new("L", (8160, 6144), 128).save(tmp_path / "phone.jpg", quality=30)
    answer = post(service, "/v1/ground", tmp_path / "phone.jpg", phrase="a cup")
    assert answer.json()["size"] == [8160, 6144], answer.text


def test_methods_and_checks_can_be_chosen(service: Service, model: Deixis, example_photos: dict[str, Path]) -> None:
    photo = example_photos["astronaut"]
    for method in model.methods:
        for check in (False, True):
            answer = post(service, "/v1/caption", photo, method=method, check=check)
            expected = model.caption(photo, name=photo.name, method=method, check=check).to_json()
            assert answer.json() == json.loads(json.dumps(expected))


def test_a_drawing_is_a_picture_or_a_page(service: Service, example_photos: dict[str, Path]) -> None:
    photo = example_photos["coffee"]
    for path, fields in (("/v1/caption", {}), ("/v1/ground", {"phrase": "a cup"})):
        found = json.dumps(post(service, path, photo, **fields).json())
        drawn = post(service, "/v1/draw", photo, answer=found, format="png")
        assert drawn.headers["content-type"] == "image/png"
        with Image.open(io.BytesIO(drawn.content)) as image:
            assert image.format == "PNG"
            assert image.width > 600
        page = post(service, "/v1/draw", photo, answer=found, format="html")
        assert page.headers["content-type"].startswith("text/html")
        assert "cup" in page.text
        assert "http://" not in page.text.replace("http://www.w3.org", "")
    for wrong in ("{", "[" * 100_000, '{"deixis": 2}', "[1]", '"x"'):
        assert error_of(post(service, "/v1/draw", photo, answer=wrong, format="png"))[:2] == (422, "unusable")


def test_broken_files_are_refused_with_their_name(service: Service, example_photos: dict[str, Path]) -> None:
    good = example_photos["coffee"].read_bytes()
    for data in (b"", b"not a photo", good[:100], good[: len(good) // 2]):
        status, code, message = error_of(post(service, "/v1/caption", data, name="holiday.jpg"))
        assert (status, code) == (422, "unusable")
        assert "holiday.jpg" in message
    answer = talk(service, lambda client: client.post("/v1/caption", data={"beam": "3"}))
    assert error_of(answer)[:2] == (422, "unusable")
    assert "image" in error_of(answer)[2]


@pytest.mark.parametrize(
    ("path", "fields", "words"),
    [
        ("/v1/caption", {"beam": "0"}, "beam"),
        ("/v1/caption", {"beam": "1000"}, "beam"),
        ("/v1/caption", {"check": "perhaps"}, "check"),
        ("/v1/caption", {"model": "huge"}, "no model 'huge' here; there are small"),
        ("/v1/caption", {"method": "magic"}, "it has attention, grounder"),
        ("/v1/ground", {}, "send a phrase"),
        ("/v1/ground", {"phrase": " "}, "empty"),
        ("/v1/ground", {"phrase": ["a cup"] * 101}, "at most 100"),
        ("/v1/ground", {"phrase": "a" * 1001}, "1000 characters"),
        ("/v1/ground", {"sentence": "A cup", "phrase": "a dog"}, "does not stand in"),
    ],
)
def test_fields_that_cannot_be_used(
    service: Service, example_photos: dict[str, Path], path: str, fields: dict[str, Any], words: str
) -> None:
    status, _, message = error_of(post(service, path, example_photos["coffee"], **fields))
    assert status == 422
    assert words in message


def test_limits_on_bytes_and_pixels(limited: Make) -> None:
    service = limited(photo_bytes=100_000, pixels=10_000)
    assert error_of(post(service, "/v1/caption", jpeg(500, 500)))[:2] == (413, "too_large")  # file over 100 kB
    status, _, message = error_of(post(service, "/v1/caption", jpeg(101, 100)))
    assert (status, "101x100" in message) == (413, True)
    assert post(service, "/v1/caption", jpeg(100, 100)).status_code == 200
    assert error_of(post(service, "/v1/caption", b"x" * 2_000_000))[:2] == (413, "too_large")  # by its Content-Length

    async def endless() -> AsyncIterator[bytes]:
        head = '--x\r\nContent-Disposition: form-data; name="image"; filename="a.jpg"\r\n\r\n'
        yield head.encode()
        while True:
            yield b"x" * 65536

    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = talk(service, lambda client: client.post("/v1/caption", content=endless(), headers=kind))
    assert error_of(answer)[:2] == (413, "too_large")  # counted as it came


def test_limits_on_time(limited: Make) -> None:
    service = limited(seconds=0.3)

    async def trickling() -> AsyncIterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="photo"; filename="a.jpg"\r\n\r\n'
        for _ in range(50):
            yield b"-"
            await asyncio.sleep(0.1)

    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = talk(service, lambda client: client.post("/v1/caption", content=trickling(), headers=kind))
    assert error_of(answer)[:2] == (408, "too_slow")


def test_a_full_queue_and_a_greedy_client(
    limited: Make, example_photos: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, gate = threading.Event(), threading.Event()
    real = Deixis.captions

    def held(self: Deixis, *given: Any, **more: Any) -> list[GroundedCaption]:
        begun.set()
        assert gate.wait(30)
        return real(self, *given, **more)

    monkeypatch.setattr(Deixis, "captions", held)
    photo = example_photos["coffee"].read_bytes()

    def asked(**limits: int) -> list[httpx.Response]:
        begun.clear()
        gate.clear()
        service = limited(**limits)

        async def run(client: httpx.AsyncClient) -> list[httpx.Response]:
            async def one() -> httpx.Response:
                return await client.post("/v1/caption", files={"image": ("a.jpg", photo)})

            tasks = [asyncio.create_task(one())]
            while not begun.is_set():  # the worker is busy with the first
                await asyncio.sleep(0.01)
            tasks += [asyncio.create_task(one()) for _ in range(5)]
            while sum(task.done() for task in tasks) < 3:
                await asyncio.sleep(0.01)
            gate.set()
            return list(await asyncio.gather(*tasks))

        answers: list[httpx.Response] = talk(service, run)
        return answers

    # One runs, two wait, three find no place.
    answers = asked(waiting=2, per_client=0)
    refused = [answer for answer in answers if answer.status_code != 200]
    assert [error_of(answer)[:2] for answer in refused] == [(503, "busy")] * 3
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
    answers = asked(per_client=3)
    refused = [answer for answer in answers if answer.status_code != 200]
    assert [error_of(answer)[:2] for answer in refused] == [(429, "too_many")] * 3
    assert all(answer.headers["retry-after"] == "1" for answer in refused)


def test_a_late_answer_is_refused(
    limited: Make, example_photos: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    monkeypatch.setattr(Deixis, "captions", lambda self, images, *asking, **more: gate.wait(30) and [])
    service = limited(seconds=0.5)
    answer = post(service, "/v1/caption", example_photos["coffee"])
    assert error_of(answer)[:2] == (503, "late")
    assert answer.headers["retry-after"] == "5"
    gate.set()


def test_requests_at_once_share_passes_and_change_nothing(
    limited: Make, model: Deixis, example_photos: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    real = Deixis.captions

    def counted(self: Deixis, images: Any, *asking: Any, **more: Any) -> list[GroundedCaption]:
        sizes.append(len(images))
        return real(self, images, *asking, **more)

    alone = {name: model.caption(photo, name=photo.name).to_json() for name, photo in example_photos.items()}
    monkeypatch.setattr(Deixis, "captions", counted)
    service = limited(batch=4)

    async def run(client: httpx.AsyncClient) -> None:
        async def one(name: str) -> tuple[str, Any]:
            photo = example_photos[name]
            answer = await client.post("/v1/caption", files={"image": (photo.name, photo.read_bytes())})
            return name, answer.json()

        for name, answer in await asyncio.gather(*(one(name) for name in [*example_photos] * 4)):
            assert answer["text"] == alone[name]["text"]
            for word, expected in zip(answer["words"], alone[name]["words"], strict=True):
                assert np.allclose(word["boxes"], expected["boxes"], atol=0.1)
                assert word["score"] == pytest.approx(expected["score"], abs=1e-3)

    talk(service, run)
    assert sum(sizes) == 12
    assert max(sizes) == 4
    assert len(sizes) <= 6


def test_a_photo_is_looked_at_once(
    limited: Make, model: Deixis, example_photos: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    real = type(model.extractor).extract

    def counted(self: Any, images: Any, **more: Any) -> Any:
        looked.append(len(images))
        return real(self, images, **more)

    monkeypatch.setattr(type(model.extractor), "extract", counted)
    for remember, passes in ((1, 2), (0, 4)):
        looked.clear()
        service = limited(remember=remember)
        for path, fields in (("/v1/caption", {}), ("/v1/ground", {"phrase": "a cup"}), ("/v1/look", {})):
            assert post(service, path, example_photos["coffee"], **fields).status_code == 200
        post(service, "/v1/caption", example_photos["chelsea"])
        assert len(looked) == passes


def test_a_token_guards_the_answers(service: Service) -> None:
    async def run(client: httpx.AsyncClient) -> None:
        for path in ("/v1/models", "/metrics"):
            assert error_of(await client.get(path))[:2] == (401, "token_needed")
            for wrong in ("Bearer wrong", "Basic s3cret-token", "Bearer", "Bearer s3cret-tokeN", "Bearer é"):
                answer = await client.get(path, headers=[(b"Authorization", wrong.encode())])
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == "Bearer"
            good = await client.get(path, headers={"Authorization": "Bearer s3cret-token"})
            assert good.status_code == 200
        for path in ("/", "/healthz", "/static/page.js", "/openapi.json"):
            assert (await client.get(path)).status_code == 200

    talk(service, run, Access("s3cret-token"))


def test_other_names_and_other_sites_are_refused(service: Service) -> None:
    async def run(client: httpx.AsyncClient) -> None:
        for host, status in (("127.0.0.1:8008", 200), ("[::1]:8008", 200), ("LOCALHOST", 200), ("evil.example", 403)):
            assert (await client.get("/v1/models", headers={"Host": host})).status_code == status
        for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 422), ("none", 422)):
            answer = await client.post("/v1/caption", headers={"Sec-Fetch-Site": site})
            assert answer.status_code == status

    talk(service, run, Access(hosts=frozenset({"127.0.0.1", "::1", "localhost"})))


@pytest.mark.parametrize(
    ("origin", "host", "status"),
    [
        ("http://127.0.0.1:8008", "127.0.0.1:8008", 422),
        ("http://127.0.0.1", "127.0.0.1:80", 422),
        ("https://captions.example.org", "captions.example.org", 422),
        ("https://captions.example.org", "127.0.0.1:8008", 422),  # a proxy that calls us by another name
        ("http://127.0.0.1:9000", "127.0.0.1:8008", 403),
        ("http://evil.example", "127.0.0.1:8008", 403),
        ("null", "127.0.0.1:8008", 403),
        ("file://", "127.0.0.1:8008", 403),
    ],
)
def test_the_origin_of_a_page_is_checked(service: Service, origin: str, host: str, status: int) -> None:
    access = Access(hosts=frozenset({"127.0.0.1", "captions.example.org"}), proxies=frozenset({"captions.example.org"}))
    given = {"Origin": origin, "Host": host}
    answer = talk(service, lambda client: client.post("/v1/caption", headers=given), access)
    assert answer.status_code == status  # 422: let in, but it sent no photo


def _drawable(**changes: Any) -> dict[str, Any]:
    word = {"text": "cup", "start": 2, "end": 5, "boxes": [[0, 0, 9, 9]], "frames": [0], "groundable": True}
    caption = {"deixis": 1, "kind": "caption", "image": "a", "size": [20, 20], "text": "a cup", "words": [word]}
    word |= {key[5:]: value for key, value in changes.items() if key.startswith("word_")}
    return caption | {key: value for key, value in changes.items() if not key.startswith("word_")}


@pytest.mark.parametrize(
    "changes",
    [{"word_boxes": 5}, {"word_boxes": True}, {"word_frames": 5}, {"segment": True}, {"segment": [1]}, {"words": 5},
     {"word_boxes": [[0, 0, 1e300, 1]]}, {"word_frames": [1e300]}, {"size": [10**400, 1]}, {"text": "a cup" * 9000},
     {"word_text": "x" * 30_000}, {"words": [{}] * 600}, {"frame_times": 5}, {"word_start": True, "word_end": {}}],
)  # fmt: skip
def test_answers_that_cannot_be_drawn_are_refused(service: Service, changes: dict[str, Any]) -> None:
    answer = json.dumps(_drawable(**changes))
    for format in ("png", "html"):
        drawn = post(service, "/v1/draw", jpeg(20, 20), answer=answer, format=format)
        assert error_of(drawn)[:2] == (422, "unusable")


def test_boxes_far_outside_are_drawn(service: Service) -> None:
    far = json.dumps(_drawable(word_boxes=[[-1e14, -1e14, 1e14, 1e14]], size=[1, 1]))
    assert post(service, "/v1/draw", jpeg(20, 20), answer=far, format="png").status_code == 200


def test_every_answer_carries_the_policy(service: Service) -> None:
    async def run(client: httpx.AsyncClient) -> None:
        for path in ("/", "/static/page.js", "/v1/models", "/nowhere", "/static/../app.py", "/v1/caption"):
            answer = await client.get(path)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
        assert error_of(await client.get("/nowhere"))[:2] == (404, "not_found")
        assert error_of(await client.get("/v1/caption"))[:2] == (405, "method_not_allowed")
        assert (await client.get("/v1/models")).headers["cache-control"] == "no-store"

    talk(service, run)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("<img src=x onerror=alert(1)>.jpg", "<img src=x onerror=alert(1)>.jpg"),
        ("C:\\photos\\dog.jpg", "dog.jpg"),
        ("../../../etc/passwd", "passwd"),
        ("dog\u202egpj.exe", "doggpj.exe"),
        ("x" * 500, "x" * 200),
    ],
)
def test_hostile_names_are_text(service: Service, example_photos: dict[str, Path], given: str, shown: str) -> None:
    answer = post(service, "/v1/caption", example_photos["chelsea"].read_bytes(), name=given)
    assert answer.json()["image"] == shown
    assert answer.headers["content-type"] == "application/json"


def test_openapi_describes_the_answers(service: Service) -> None:
    described = talk(service, lambda client: client.get("/openapi.json")).json()
    assert {"/v1/caption", "/v1/ground", "/v1/video", "/healthz", "/metrics"} <= set(described["paths"])
    caption = described["paths"]["/v1/caption"]["post"]["responses"]
    assert caption["200"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/caption"}
    assert {"413", "422", "429", "503"} <= set(caption)
    known = described["components"]["schemas"]

    def check(node: Any) -> None:
        if isinstance(node, dict):
            if "$ref" in node:
                assert node["$ref"].removeprefix("#/components/schemas/") in known
            for value in node.values():
                check(value)
        elif isinstance(node, list):
            for value in node:
                check(value)

    check(described)
    assert talk(service, lambda client: client.get("/v1/schema")).json() == SCHEMA


def test_health_and_figures(service: Service, example_photos: dict[str, Path]) -> None:
    assert talk(service, lambda client: client.get("/healthz")).json() == {"status": "ok"}
    post(service, "/v1/caption", example_photos["coffee"])
    text = talk(service, lambda client: client.get("/metrics")).text
    assert 'deixis_requests_total{route="/v1/caption",status="200"} 1' in text
    assert 'deixis_batch_size_count{line="photos"} 1' in text
    service.close()
    answer = talk(service, lambda client: client.get("/healthz"))
    assert answer.status_code == 503
