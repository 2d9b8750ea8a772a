"""What stands before every request: who may ask, how much they may send, and the headers every answer carries."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deixis.serve.admission import CLIPS, Admission
from deixis.serve.limits import Limits
from deixis.serve.problems import Problem, refused

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src blob:; "
    "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
}
FORM_BYTES = 2**20
"""What the fields beside a photo or a clip may take."""
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask."""

    token: str = ""
    """What programs send as ``Authorization: Bearer ...``; empty means none is needed."""
    hosts: frozenset[str] = frozenset()
    """Names under which the server may be called, so that no web page can reach a loopback server under a name of its
    own (DNS rebinding); empty means any."""
    proxies: frozenset[str] = frozenset()
    """Names under which proxies show the page; a proxy may call the server by another name than browsers call it."""


class Guard:
    """Checks host, origin and token, limits the body, times the request and adds headers; an ASGI middleware."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        access: Access,
        limits: Limits,
        admission: Admission,
        note: Callable[[str, int, float], None],
        open_paths: Collection[str] = ("/healthz",),
    ) -> None:
        self.app, self.access, self.limits, self.note, self.open_paths = app, access, limits, note, open_paths
        self.admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it before its body is read."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.monotonic()
        status = 500

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store" if _is_private(scope["path"]) else "no-cache")
            await send(message)

        try:
            with ExitStack() as held:
                try:
                    self._check(scope)
                    held.enter_context(self._place(scope))
                except Problem as problem:
                    await (await refused(None, problem))(scope, receive, send_guarded)  # type: ignore[arg-type]
                    return
                await self.app(scope, self._limited(scope, receive, began), send_guarded)
        finally:
            route = getattr(scope.get("route"), "path", None) or "other"
            self.note(route, status, time.monotonic() - began)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = _host_name(headers.get("host", ""))
        if self.access.hosts and host not in self.access.hosts:
            raise Problem(403, f"this server does not answer to the name '{host[:80]}': see --allow-host")
        if scope["method"] not in ("GET", "HEAD") and self._foreign(headers):
            raise Problem(403, "pages of other sites may not use this server")
        path = scope["path"]
        if self.access.token and _is_private(path) and path not in self.open_paths:
            kind, _, given = headers.get("authorization", "").partition(" ")
            same = hmac.compare_digest(given.strip().encode(), self.access.token.encode())
            if kind.lower() != "bearer" or not same:
                raise Problem(401, "this server asks for a token: send 'Authorization: Bearer TOKEN'")
        length = headers.get("content-length", "0")
        if not length.isdigit():
            raise Problem(400, "the Content-Length is not a number")
        self._check_length(path, int(length))

    def _foreign(self, headers: Headers) -> bool:
        """Tell whether a page of another site asks; programs send neither of the two headers."""
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return True
        origin = headers.get("origin")
        if origin is None:
            return False
        scheme, _, place = origin.lower().partition("://")
        if scheme not in ("http", "https") or not place:  # "null" among them: a sandbox, or a file
            return True
        port = {"http": ":80", "https": ":443"}[scheme]
        asked = headers.get("host", "").lower()
        return place.removesuffix(port) != asked.removesuffix(port) and _host_name(place) not in self.access.proxies

    def _place(self, scope: Scope) -> AbstractContextManager[None]:
        """Return what holds a place while a question is read and answered; figures and the page need none."""
        path = scope["path"]
        if scope["method"] != "POST" or not path.startswith("/v1/"):
            return nullcontext()
        length = Headers(scope=scope).get("content-length")
        client = scope["client"][0] if scope.get("client") else ""
        return self.admission.place(path, client, self._most(path) if length is None else int(length))

    def _most(self, path: str) -> int:
        clip = path in CLIPS or path.startswith("/v1/draw")
        return (self.limits.clip_bytes if clip else self.limits.photo_bytes) + FORM_BYTES

    def _check_length(self, path: str, length: int) -> None:
        if length > self._most(path):
            raise Problem(413, f"{length:,} bytes are too many: at most {self._most(path):,} are read")

    def _limited(self, scope: Scope, receive: Receive, began: float) -> Receive:
        """Count the bytes of a body as they come, and stop waiting for one that does not."""
        patience = self.limits.clip_patience if scope["path"] in CLIPS else self.limits.seconds
        got = 0
        complete = False

        async def receive_limited() -> Message:
            nonlocal got, complete
            if complete:  # what follows is only the news of a client that has gone
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.01, began + patience - time.monotonic()))
            except TimeoutError as error:
                raise Problem(408, f"the request did not arrive within {patience:g} s") from error
            if message["type"] == "http.request":
                got += len(message.get("body", b""))
                complete = not message.get("more_body", False)
                self._check_length(scope["path"], got)
            return message

        return receive_limited


def _is_private(path: str) -> bool:
    """Tell answers and figures, which a token protects and nobody stores, from the page's own files."""
    return path.startswith("/v1/") or path in ("/metrics", "/healthz")


def _host_name(host: str) -> str:
    """Return the name of a Host header, without the port and the brackets of an IPv6 address."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
