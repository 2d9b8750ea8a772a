"""Starting the server: models, a socket, and the rule that only a guarded server may be seen by others."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from deixis.errors import DeixisError
from deixis.serve.app import STATIC, make_app
from deixis.serve.connections import protocol_for
from deixis.serve.guard import LOOPBACK_NAMES, Access, is_loopback
from deixis.serve.limits import Limits
from deixis.serve.memory import staying_small
from deixis.serve.service import Service

if TYPE_CHECKING:
    from deixis.answering.load import Deixis
    from deixis.answering.search.index import PhotoIndex


def check_access(host: str, token: str, insecure: bool) -> None:
    """Refuse to be reachable by other machines without a token."""
    if not is_loopback(host) and not token and not insecure:
        raise DeixisError(
            f"everybody who can reach {host} could use this server: set a token (--token, or DEIXIS_TOKEN), or say "
            "--insecure"
        )
    if token and len(token) < 8:
        raise DeixisError("the token is shorter than 8 characters: take a longer one")


def names_for(models: list[str]) -> dict[str, str]:
    """Return a short name for each model, by which clients call it: the last part of its path, numbered if taken.

    >>> names_for(["runs/cyclical", "other/cyclical", "lite"])
    {'cyclical': 'runs/cyclical', 'cyclical-2': 'other/cyclical', 'lite': 'lite'}
    """
    found: dict[str, str] = {}
    for model in models:
        short = name = Path(model).name or model
        number = 2
        while name in found:
            name, number = f"{short}-{number}", number + 1
        found[name] = model
    return found


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes any free one."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, proto)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(256)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DeixisError(f"cannot listen on {host}:{port}: {reason}; choose another --port") from error
    return found


def address_of(listening: socket.socket, host: str) -> str:
    """Return the address people type."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}/"


def serve(
    models: Mapping[str, Deixis],
    listening: socket.socket,
    *,
    host: str,
    token: str = "",
    allow_hosts: tuple[str, ...] = (),
    limits: Limits | None = None,
    index: PhotoIndex | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Answer until interrupted."""
    service = Service(models, limits, index)
    warm_up(models)
    local = is_loopback(host)
    names = frozenset((*LOOPBACK_NAMES, host, *allow_hosts)) if local or allow_hosts else frozenset()
    proxies = frozenset(name.lower() for name in allow_hosts)
    config = uvicorn.Config(
        make_app(service, Access(token, frozenset(name.lower() for name in names), proxies)),
        http=protocol_for(service.limits),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # a client must not choose the address its requests are counted under
        timeout_keep_alive=round(service.limits.idle_seconds),
        # Only a ceiling: what was taken is finished, and every request has a limit of its own.
        timeout_graceful_shutdown=round(service.limits.clip_patience) + 5,
        h11_max_incomplete_event_size=64 * 1024,
    )
    ready()
    with (
        staying_small(),
        contextlib.suppress(KeyboardInterrupt),
    ):  # which uvicorn raises once more after it has ended in good order
        uvicorn.Server(config).run(sockets=[listening])


def warm_up(models: Mapping[str, Deixis]) -> None:
    """Answer an example once, so that the first visitor does not wait for what is made on first use."""
    photo = STATIC / "examples" / "coffee.jpg"
    for model in models.values():
        seen = model.regions([photo])[0]
        if "attention" in model.methods:
            model.look(seen)
        model.ground(seen, ["a cup"])
