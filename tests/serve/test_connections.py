"""A real server on loopback, and connections that keep it waiting."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn

from benchmarks.fuzz import attacks
from deixis.serve.app import make_app
from deixis.serve.connections import protocol_for
from deixis.serve.run import listen
from deixis.serve.service import Service

Address = tuple[str, int]


@pytest.fixture
def running(limited: Callable[..., Service]) -> Iterator[Callable[..., Address]]:
    """Start real servers with limits of one's own."""
    started: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(**limits: float) -> Address:
        service = limited(**limits)
        listening = listen("127.0.0.1", 0)
        address: Address = listening.getsockname()[:2]
        config = uvicorn.Config(make_app(service), http=protocol_for(service.limits), ws="none", log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        started.append((server, thread))
        while not server.started:
            time.sleep(0.01)
        return address

    yield start
    for server, thread in started:
        server.should_exit = True
        thread.join(20)


def seconds_until_closed(connection: socket.socket, drip: bytes = b"") -> float:
    """Say a byte now and then, and return when the server has had enough."""
    began = time.monotonic()
    connection.settimeout(0.2)
    while time.monotonic() - began < 15:
        try:
            if drip:
                connection.sendall(drip)
            if connection.recv(4096) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    else:
        pytest.fail("the connection is still open after 15 s")
    return time.monotonic() - began


@pytest.mark.parametrize("begin", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Drip: "])
def test_connections_that_never_ask_are_ended(running: Callable[..., Address], begin: bytes) -> None:
    address = running(idle_seconds=1.5)
    with socket.create_connection(address) as connection:
        connection.sendall(begin)
        assert 1.0 < seconds_until_closed(connection, drip=b"a" if begin else b"") < 10


def test_a_connection_that_has_asked_may_not_drip_its_next_question(running: Callable[..., Address]) -> None:
    address = running(idle_seconds=1.5)
    with socket.create_connection(address) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Drip: ")
        assert seconds_until_closed(connection, drip=b"a") < 10


def test_more_connections_than_allowed_are_closed_as_they_come(running: Callable[..., Address]) -> None:
    address = running(connections=3, idle_seconds=30)
    held = [socket.create_connection(address) for _ in range(3)]
    time.sleep(0.2)
    with socket.create_connection(address) as one_more:
        assert seconds_until_closed(one_more) < 1
    for connection in held:
        connection.close()
    time.sleep(0.2)
    assert httpx.get(f"http://{address[0]}:{address[1]}/healthz").status_code == 200


def test_one_address_has_a_share_of_the_connections(running: Callable[..., Address]) -> None:
    address = running(connections_per_client=2, idle_seconds=30)
    held = [socket.create_connection(address) for _ in range(2)]
    time.sleep(0.2)
    with socket.create_connection(address) as one_more:
        assert seconds_until_closed(one_more) < 1
    for connection in held:
        connection.close()


def test_a_client_that_does_not_read_is_left(running: Callable[..., Address]) -> None:
    address = running(seconds=1.5, idle_seconds=30)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(address)
        ask = b"GET /static/examples/coffee.jpg HTTP/1.1\r\nHost: localhost\r\n\r\n"
        connection.settimeout(0.5)

        def keep_asking() -> None:
            for _ in range(200):
                connection.sendall(ask)
                time.sleep(0.1)

        with pytest.raises(OSError):  # many answers are asked for, none is read: the server must hang up in the end
            keep_asking()
    assert httpx.get(f"http://{address[0]}:{address[1]}/healthz").status_code == 200


def test_photos_that_ask_for_endless_work_hold_nobody_up(
    running: Callable[..., Address], example_photos: dict[str, Path]
) -> None:
    address = running()
    url = f"http://{address[0]}:{address[1]}/v1/caption"
    bombs = [attacks.many_scans(2000, 3000), attacks.many_segments(2_000_000), attacks.many_chunks(300_000)]
    began = time.monotonic()
    for bomb in bombs:
        answer = httpx.post(url, files={"image": ("bomb", bomb)}, timeout=60)
        assert answer.status_code == 422
        assert answer.json()["error"]["message"].startswith("bomb has more than")
    answer = httpx.post(url, files={"image": example_photos["coffee"].read_bytes()}, timeout=60)
    assert answer.status_code == 200
    assert time.monotonic() - began < 20
