from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from benchmarks.serve_soak import end_under_load, start
from deixis.cli.main import main
from deixis.errors import DeixisError
from deixis.serve.guard import is_loopback
from deixis.serve.run import address_of, check_access, listen, names_for


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("::", False),
     ("192.168.1.5", False), ("example.org", False), ("", False)],
)  # fmt: skip
def test_only_loopback_is_open_without_a_token(host: str, local: bool) -> None:
    assert is_loopback(host) == local
    check_access(host, "a long enough token", insecure=False)
    check_access(host, "", insecure=True)
    if local:
        check_access(host, "", insecure=False)
    else:
        with pytest.raises(DeixisError, match="--token"):
            check_access(host, "", insecure=False)
    with pytest.raises(DeixisError, match="shorter than 8"):
        check_access(host, "short", insecure=True)


def test_models_have_short_names() -> None:
    given = ["lite", "runs/a", "old/a", "OWNER/a", "runs/b/"]
    assert names_for(given) == dict(zip(["lite", "a", "a-2", "a-3", "b"], given, strict=True))


def test_a_taken_port_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as left:
            main(["serve", "--port", str(port)])
    assert left.value.code == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert f"127.0.0.1:{port}" in complaint


def test_addresses() -> None:
    listening = listen("127.0.0.1", 0)
    assert address_of(listening, "127.0.0.1") == f"http://127.0.0.1:{listening.getsockname()[1]}/"
    listening.close()
    with pytest.raises(DeixisError, match="cannot listen"):
        listen("no.such.name.invalid", 0)


@pytest.mark.recipe
def test_the_command_serves_and_stops(
    small_bundle: Path, example_photos: dict[str, Path], sentences: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "deixis", "serve", "--model", str(small_bundle), "--port", "0", "--json"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "DEIXIS_TOKEN": "s3cret-token"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        said = json.loads(line)
        assert said["models"] == {"small": ["attention", "grounder"]}
        assert said["token"] is True
        with httpx.Client(base_url=said["url"], timeout=60) as client:
            assert client.get("healthz").json() == {"status": "ok"}
            photo = {"image": example_photos["coffee"].open("rb")}
            assert client.post("v1/caption", files=photo).status_code == 401
            client.headers["Authorization"] = "Bearer s3cret-token"
            photo = {"image": example_photos["coffee"].open("rb")}
            assert client.post("v1/caption", files=photo).json()["text"] == sentences["coffee"]
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=30)
        assert (process.returncode, complaints) == (0, "")
    finally:
        process.kill()
        process.wait()


@pytest.mark.recipe
def test_sigterm_under_load_finishes_what_was_taken(small_bundle: Path, example_photos: dict[str, Path]) -> None:
    photo = example_photos["coffee"].read_bytes()
    process, address = start(str(small_bundle), 1)
    try:

        def ask() -> int:
            with httpx.Client(base_url=address, timeout=120) as client:
                return client.post("v1/caption", files={"image": ("coffee.jpg", photo)}).status_code

        end = end_under_load(process, address, ask, clients=6)
    finally:
        process.kill()
        process.communicate()
    assert 0 < end["taken"] <= end["answered"], end
    assert end["exit"] in (0, -signal.SIGTERM)
