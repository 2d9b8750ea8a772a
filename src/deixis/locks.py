"""One writer at a time: a lock beside a file or inside a folder, which says who holds it.

The operating system keeps the lock (``flock``), so a killed process lets go of it at once and nobody has to clean up
by hand. The file of the lock only tells the next one who came first; it goes away when the writer is done.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

from deixis.atomic import cannot_write
from deixis.errors import DeixisError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


def lock_file(path: Path) -> Path:
    """Return where the lock of a file or folder lies; a path that does not exist yet counts as a file."""
    return path / ".lock" if path.is_dir() else path.with_name(f".{path.name}.lock")


class Lock:
    """The right to write a path, from the moment it is made until :meth:`release` or the end of the process.

    Args:
        path: The file, or the folder (which must exist then), that nobody else may write.
        shown: What the message calls it, where a person knows it by another name.
    """

    def __init__(self, path: str | Path, shown: str | Path | None = None) -> None:
        self.path = lock_file(Path(path))
        self._handle: int | None = None
        if fcntl is None:
            return
        try:
            while self._handle is None:
                self._handle = self._take(shown or path)
        except PermissionError:
            return  # where not even this may be written, the first write says so itself
        except OSError as error:
            if error.errno == errno.EROFS:
                return
            raise cannot_write(self.path, error) from error
        facts = {"pid": os.getpid(), "host": socket.gethostname(), "since": datetime.now(UTC).isoformat("T", "seconds")}
        try:
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, json.dumps(facts | {"command": shlex.join(sys.argv)[:200]}).encode(), 0)
        except OSError as error:
            self.release()
            raise cannot_write(self.path, error) from error

    def _take(self, shown: object) -> int | None:
        """Lock the file; None where the one before removed it in the meantime, so that the lock would be of nothing."""
        assert fcntl is not None
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = _holder(handle)
            os.close(handle)
            raise DeixisError(
                f"{shown} is being written by {holder}: wait for it, end it, or choose another place"
            ) from error
        except OSError:  # a file system without locks: better no lock than no work
            return handle
        try:
            mine = os.path.samestat(os.fstat(handle), self.path.stat())
        except FileNotFoundError:
            mine = False
        if mine:
            return handle
        os.close(handle)
        return None

    def release(self) -> None:
        """Let another writer in; safe to call twice."""
        if self._handle is not None:
            self.path.unlink(missing_ok=True)  # while it is still ours: nobody else can have taken it
            os.close(self._handle)
            self._handle = None


@contextmanager
def only_writer(path: str | Path, shown: str | Path | None = None) -> Iterator[Lock]:
    """Be the only one who writes a file or folder for as long as the block lasts.

    >>> with only_writer("out.jsonl"):  # doctest: +SKIP
    ...     append_answers()
    """
    lock = Lock(path, shown)
    try:
        yield lock
    finally:
        lock.release()


def _holder(handle: int) -> str:
    """Return who holds a lock, in words; its file may be empty for a moment after it was taken."""
    try:
        facts = json.loads(os.pread(handle, 4096, 0))
        since = datetime.fromisoformat(facts["since"]).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"process {int(facts['pid'])} on {facts['host']} since {since} ({facts['command']})"
    except (ValueError, KeyError, TypeError):
        return "another process that has just begun"
