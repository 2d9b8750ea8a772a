"""SIGTERM and Ctrl-C ask a run to save at the next step boundary and leave; a second Ctrl-C leaves at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Self


class StopRequest:
    """Context manager that turns signals into a flag. Outside the main thread it does nothing."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _ask(self, number: int, _frame: FrameType | None) -> None:
        if self.signal == signal.SIGINT and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = number

    @property
    def asked(self) -> bool:
        """Whether to stop."""
        return self.signal is not None
