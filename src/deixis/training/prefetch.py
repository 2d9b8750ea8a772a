"""One batch ahead: a thread prepares the next batch while the model works on this one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


class _End:
    pass


def prefetch(items: Iterable[T], depth: int = 2) -> Iterator[T]:
    """Yield ``items`` in order while a thread computes up to ``depth`` of them ahead; its errors are raised here.

    A thread, not a process: collating copies tensors with the interpreter lock released, and needs no second copy of
    the captions. Leaving the loop early ends the thread.
    """
    ready: queue.Queue[T | _End | BaseException] = queue.Queue(maxsize=depth)
    leave = threading.Event()

    def put(item: T | _End | BaseException) -> bool:
        while not leave.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for item in items:
                if not put(item):
                    return
            put(_End())
        except BaseException as error:
            put(error)

    thread = threading.Thread(target=work, name="deixis-prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item = ready.get()
            if isinstance(item, _End):
                return
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        leave.set()
        thread.join()
