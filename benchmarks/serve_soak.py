"""Good and bad traffic at once against ``deixis serve``: it must answer well, stay small, and end in good order.

    python -m benchmarks.serve_soak [--seconds 600] [--clients 8] [--model lite] [--threads 2] [--json]

A server is started on loopback. Eight clients ask for some minutes: captions and phrases of the example photos, and
between them damaged photos, bombs, answers that cannot be drawn, clips that are none, headers that never end, bodies
that stop, uploads that are broken off. Then the server gets SIGTERM in the middle of all that. Aims: no status 5xx but
503 (no place is free), every refusal of a bad file within ten seconds, answers equal to those of the command line
(words equal, boxes and scores within 0.01), memory in the last quarter at most 5 % above the second, and after SIGTERM
every question that was let in is answered. The exit code is 1 where one is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil

from benchmarks.fuzz import attacks
from benchmarks.fuzz.mutate import damaged
from benchmarks.serve_load import EXAMPLES, Load

PHRASES = ("a cup", "a cat", "a woman", "a red car")
NEAR = 0.01
"""By which a coordinate or a score may differ: photos that are answered in one pass round in another order."""
REFUSED_WITHIN = 10.0


@dataclass
class Record:
    """What all clients met."""

    statuses: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    refusals: list[float] = field(default_factory=list)
    equal: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, kind: str, status: int | str) -> None:
        """Count an answer; an error of the server's own is a fault."""
        with self.lock:
            self.statuses[f"{kind} {status}"] += 1
            if isinstance(status, int) and status >= 500 and status != 503:
                self.wrong.append(f"{kind}: status {status}")

    def fault(self, text: str) -> None:
        """Keep what should not have been."""
        with self.lock:
            self.wrong.append(text)


def known_answers(model: str, photos: list[Path]) -> dict[str, Any]:
    """Return what the command line says of the photos."""
    command = [sys.executable, "-m", "deixis"]
    caption = [*command, "caption", *map(str, photos), "--model", model, "--json"]
    made = subprocess.run(caption, capture_output=True, text=True, check=True).stdout
    known: dict[str, Any] = {}
    for line in made.splitlines():
        if line.strip():
            found = json.loads(line)
            for answer in found if isinstance(found, list) else [found]:
                known[f"caption {Path(answer['image']).name}"] = answer
    for photo in photos:
        ground = [*command, "ground", str(photo), *PHRASES, "--model", model, "--json"]
        made = subprocess.run(ground, capture_output=True, text=True, check=True).stdout
        known[f"ground {photo.name}"] = json.loads(made)
    return known


def same(a: Any, b: Any) -> bool:
    """Tell whether two answers say the same, up to rounding."""
    if isinstance(a, dict) and isinstance(b, dict):
        kept = [key for key in a if key not in ("image", "model")]
        return set(a) == set(b) and all(same(a[key], b[key]) for key in kept)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return isinstance(a, int | float) and isinstance(b, int | float) and abs(a - b) <= NEAR
    return bool(a == b)


class Client:
    """One client: a good question, then something bad, and again."""

    def __init__(
        self, address: str, photos: dict[str, bytes], known: dict[str, Any], record: Record, seed: int
    ) -> None:
        self.address, self.photos, self.known, self.record = address, photos, known, record
        self.rng = random.Random(seed)
        self.http = httpx.Client(base_url=address, timeout=60)
        self.bombs = {
            "scans": attacks.many_scans(1000, 2000),
            "segments": attacks.many_segments(1_000_000),
            "chunks": attacks.many_chunks(150_000),
            "exif": attacks.overlapping_exif(2000, 30_000),
            "blocks": attacks.many_blocks(50_000),
            "animated": attacks.animated("WEBP", 1500),
            "empty": b"",
        }

    def good(self) -> None:
        """Ask what the command line was asked, and compare."""
        name = self.rng.choice(list(self.photos))
        kind = self.rng.choice(("caption", "ground"))
        fields = {"phrase": list(PHRASES)} if kind == "ground" else {}
        answer = self.http.post(f"v1/{kind}", files={"image": (name, self.photos[name])}, data=fields)
        self.record.note(kind, answer.status_code)
        if answer.status_code == 200:
            if same(self.known[f"{kind} {name}"], answer.json()):
                with self.record.lock:
                    self.record.equal += 1
            else:
                self.record.fault(f"{kind} {name}: not what the command line says: {answer.text[:300]}")

    def bad(self) -> None:
        """Do one of the things that should not stop the server."""
        ways = (
            self.bomb,
            self.bomb,
            self.broken_photo,
            self.broken_photo,
            self.drawing,
            self.clip,
            self.silence,
            self.stop,
        )
        began = time.monotonic()
        status = self.rng.choice(ways)()
        if status in (413, 422) and time.monotonic() - began > REFUSED_WITHIN:
            self.record.fault(f"a bad file was refused only after {time.monotonic() - began:.1f} s")
        if status in (413, 422):
            with self.record.lock:
                self.record.refusals.append(time.monotonic() - began)

    def _post(self, kind: str, path: str, **more: Any) -> int:
        answer = self.http.post(path, **more)
        self.record.note(kind, answer.status_code)
        return answer.status_code

    def bomb(self) -> int:
        """Send a photo that asks for endless work."""
        name = self.rng.choice(list(self.bombs))
        return self._post(f"bomb {name}", "v1/caption", files={"image": (name, self.bombs[name])})

    def broken_photo(self) -> int:
        """Send a photo with damage; it may still be good enough."""
        photo = damaged(self.rng.choice(list(self.photos.values())), self.rng)
        return self._post("damaged photo", "v1/ground", files={"image": ("photo", photo)}, data={"phrase": "a cup"})

    def drawing(self) -> int:
        """Ask for a drawing of a damaged answer."""
        name = self.rng.choice(list(self.photos))
        answer = damaged(json.dumps(self.known[f"caption {name}"]).encode(), self.rng, name="a.json")
        fields = {"answer": answer.decode("utf-8", "replace"), "format": self.rng.choice(("png", "html"))}
        return self._post("drawing", "v1/draw", files={"image": (name, self.photos[name])}, data=fields)

    def clip(self) -> int:
        """Send random bytes as a clip."""
        return self._post("no clip", "v1/video", files={"clip": ("a.mp4", self.rng.randbytes(20_000))})

    def _socket(self) -> socket.socket:
        place = urlsplit(self.address)
        return socket.create_connection((place.hostname or "", place.port or 80), timeout=5)

    def silence(self) -> int:
        """Leave a connection behind that says half a line; the server must close it by itself."""
        with contextlib.suppress(OSError):
            connection = self._socket()
            connection.sendall(self.rng.choice((b"", b"POST /v1/cap", b"GET / HTTP/1.1\r\nX-A: ")))
            threading.Timer(30, connection.close).start()
        self.record.note("silence", "left")
        return 0

    def stop(self) -> int:
        """Break an upload off."""
        head = b"POST /v1/caption HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=x\r\n"
        with contextlib.suppress(OSError), self._socket() as connection:
            connection.sendall(head + b"Content-Length: 1000000\r\n\r\n--x\r\n")
        self.record.note("broken off", "left")
        return 0

    def run(self, until: float, ended: threading.Event) -> None:
        """Ask until it is time."""
        while time.monotonic() < until and not ended.is_set():
            try:
                self.good()
                self.bad()
            except httpx.HTTPError as error:
                # The server closes a connection whose body it will not read; a client may see that before the answer.
                if ended.is_set():
                    return
                self.record.note("connection", type(error).__name__)


def start(model: str, threads: int) -> tuple[subprocess.Popen[str], str]:
    """Start a server on loopback, and return it with its address."""
    command = [sys.executable, "-m", "deixis", "serve", "--model", model, "--port", "0", "--json"]
    # The regions of four photos are remembered, so that a memory that fills up is not taken for one that leaks.
    command += ["--threads", str(threads), "--per-client", "0", "--remember", "4"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"serve_soak: the server did not start: {process.communicate()[1][-500:]}")
    return process, json.loads(line)["url"]


def end_under_load(
    process: subprocess.Popen[str], address: str, ask: Callable[[], int], clients: int
) -> dict[str, Any]:
    """Send SIGTERM while clients wait for answers, and tell what they got and how long the server took."""
    answers: list[int | str] = []

    def one() -> None:
        try:
            answers.append(ask())
        except httpx.HTTPError as error:
            answers.append(type(error).__name__)  # it came after the signal: nobody took it

    threads = [threading.Thread(target=one) for _ in range(clients)]
    for thread in threads:
        thread.start()
    taken, before, patience = 0, 0, time.monotonic() + 20
    while not taken and len(answers) < clients and time.monotonic() < patience:
        before, taken = len(answers), questions(address)  # in this order: what is answered in between counts in both
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join()
    code = process.wait(60)
    answered = sum(answer == 200 for answer in answers) - before
    seconds = round(time.monotonic() - began, 2)
    others = [answer for answer in answers if answer != 200]
    return {"taken": taken, "answered": answered, "others": others, "seconds": seconds, "exit": code}


def questions(address: str) -> int:
    """Return how many questions the server has let in and not answered, by its own figures."""
    lines = httpx.get(f"{address}metrics", timeout=30).text.splitlines()
    return int(float(next(line for line in lines if line.startswith("deixis_questions ")).split()[1]))


def main() -> int:
    """Run, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--model", default="lite")
    parser.add_argument("--threads", type=int, default=2, help="of the server")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    paths = sorted(EXAMPLES.glob("*.jpg"))
    photos = {path.name: path.read_bytes() for path in paths}
    known = known_answers(options.model, paths)
    record, memory, ended = Record(), Load(options.clients), threading.Event()
    process, address = start(options.model, options.threads)
    try:
        server = psutil.Process(process.pid)
        clients = [Client(address, photos, known, record, seed) for seed in range(options.clients)]
        until = time.monotonic() + options.seconds
        threads = [threading.Thread(target=client.run, args=(until, ended)) for client in clients]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) and process.poll() is None:
            memory.memory.append(server.memory_info().rss)
            time.sleep(0.5)
        ended.set()
        for thread in threads:
            thread.join(60)
        if process.poll() is not None:
            record.fault(f"the server ended by itself with {process.returncode}")
        name = next(iter(photos))

        def ask() -> int:
            with httpx.Client(base_url=address, timeout=60) as http:
                return http.post("v1/caption", files={"image": (name, photos[name])}).status_code

        end = end_under_load(process, address, ask, 2 * options.clients)
    finally:
        process.kill()
    return report(record, memory, end, options.json)


def tenths(sizes: list[int]) -> list[int]:
    """Return the mean memory of each tenth of the time in megabytes: a leak goes on, a heap that fills up ends."""
    bounds = [len(sizes) * at // 10 for at in range(11)]
    parts = [sizes[first:last] for first, last in itertools.pairwise(bounds)]
    return [round(sum(part) / len(part) / 2**20) for part in parts if part]


def report(record: Record, memory: Load, end: dict[str, Any], as_json: bool) -> int:
    """Print the figures beside their aims; return 1 if one is missed."""
    good = {
        "no_error": not record.wrong,
        "answered": record.equal > 0,
        "memory": memory.growth <= 0.05,
        "sigterm": 0 < end["taken"] <= end["answered"] and end["exit"] in (0, -signal.SIGTERM),
    }
    slowest = max(record.refusals, default=0.0)
    result = {
        "requests": sum(record.statuses.values()),
        "equal_to_cli": record.equal,
        "statuses": dict(sorted(record.statuses.items())),
        "wrong": record.wrong[:20],
        "slowest_refusal_seconds": round(slowest, 2),
        "memory_mb": round(memory.memory[-1] / 2**20),
        "memory_most_mb": round(max(memory.memory) / 2**20),
        "memory_growth": round(memory.growth, 4),
        "memory_by_tenths_mb": tenths(memory.memory),
        "sigterm": end,
        "aims": good,
    }
    if as_json:
        print(json.dumps(result))
    else:
        for key, value in result.items():
            print(f"{key}: {value}")
    return 0 if all(good.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
