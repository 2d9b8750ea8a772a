"""Memory that was freed goes back to the system, so that a server that has run for a night is as small as a new one.

glibc keeps what is freed inside of its heaps for later, one heap for each few threads, and photos of many sizes leave
holes there that are rarely filled again: the process seems to grow though nothing is held. ``malloc_trim`` gives whole
free pages back from anywhere in a heap. Where there is no glibc this does nothing.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

EVERY = 10.0
"""Seconds between two rounds; one takes some milliseconds."""


@cache
def _trim() -> Any:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # musl, macOS, Windows
        return None


def give_back() -> bool:
    """Give free memory back to the system; returns whether this is known how to do here."""
    trim = _trim()
    if trim is None:
        return False
    trim(0)
    return True


@contextmanager
def staying_small(every: float = EVERY) -> Iterator[None]:
    """Give free memory back now and then, for as long as the block lasts."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(every) and give_back():
            pass

    thread = threading.Thread(target=work, name="deixis-memory", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
