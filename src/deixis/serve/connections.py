"""Connections that end: limits on how many there are, how long one may say nothing, and how slowly it may listen.

uvicorn ends a connection that is idle after an answer, but waits for ever for the first line of a request, for headers
that come byte by byte, and for a client that does not read its answer. Here a clock on each connection ends those.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from deixis.serve.limits import Limits

STEP = 1.0
"""Seconds between two looks at a connection."""


class TimedProtocol(H11Protocol):
    """HTTP/1.1 on one connection that is ended when it keeps the server waiting."""

    limits: ClassVar[Limits] = Limits()

    _address: str | None = None
    _clock: asyncio.TimerHandle | None = None
    _idle_since = 0.0
    _stuck_since = 0.0
    _unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new connection, or end it at once where there are too many."""
        super().connection_made(transport)
        self._address = address = self.client[0] if self.client else ""
        mine = [one for one in self.connections if isinstance(one, TimedProtocol) and one._address == address]
        most = self.limits.connections_per_client
        if len(self.connections) > self.limits.connections or (most and len(mine) > most):
            transport.abort()
            return
        self._idle_since = self._stuck_since = self.loop.time()
        self._clock = self.loop.call_later(STEP, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock with the connection."""
        if self._clock is not None:
            self._clock.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what comes, unless the connection is being ended."""
        if not self.transport.is_closing():
            super().data_received(data)

    def _look(self) -> None:
        now = self.loop.time()
        if self.cycle is not None and not self.cycle.response_complete:
            self._idle_since = now  # a request is under way: how long its body may take is the guard's affair
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent < self._unsent:
            self._stuck_since = now
        self._unsent = unsent
        silent = now - self._idle_since > self.limits.idle_seconds and not unsent
        if silent or now - self._stuck_since > self.limits.seconds:
            self.transport.abort()
            return
        self._clock = self.loop.call_later(STEP, self._look)


def protocol_for(limits: Limits) -> type[TimedProtocol]:
    """Return the protocol with limits of one's own, for uvicorn to make one for each connection."""
    return type("LimitedProtocol", (TimedProtocol,), {"limits": limits})
