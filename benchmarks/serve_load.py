"""Eight clients ask ``deixis serve`` for captions at once: errors, waiting, throughput and memory.

    python -m benchmarks.serve_load [--model lite] [--clients 8] [--seconds 60] [--photos FOLDER] [--threads 2] [--json]

First one client asks alone, then all of them ask, each sending the next photo when it has its answer. The server is a
process of its own and remembers no photo (``--remember 0``), so every answer is worked for. Aims: no error; the 95th
percentile at most ten times the time of a single request; memory that stays flat; at least 1.5 times the answers per
second of one client alone. The exit code is 1 where one is missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "photos"
P95, GAIN, GROWTH = 10.0, 1.5, 0.05


@dataclass
class Load:
    """What a number of clients met in a stretch of time."""

    clients: int
    seconds: float = 0.0
    times: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    @property
    def throughput(self) -> float:
        """Answers a second."""
        return len(self.times) / self.seconds

    def percentile(self, share: float) -> float:
        """Return the time that this share of answers did not exceed."""
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    @property
    def growth(self) -> float:
        """How much larger memory is in the last quarter of the time than in the second."""
        quarter = max(1, len(self.memory) // 4)
        early, late = self.memory[quarter : 2 * quarter], self.memory[-quarter:]
        return statistics.mean(late) / statistics.mean(early) - 1


def ask(address: str, photos: Sequence[bytes], clients: int, seconds: float, server: psutil.Process) -> Load:
    """Let clients ask one photo after the other for some time."""
    load = Load(clients)
    began = time.monotonic()

    def client(number: int) -> None:
        with httpx.Client(base_url=address, timeout=120) as http:
            at = number
            while time.monotonic() - began < seconds:
                asked = time.monotonic()
                try:
                    answer = http.post("v1/caption", files={"image": ("photo.jpg", photos[at % len(photos)])})
                except httpx.HTTPError as error:
                    load.errors.append(repr(error))
                    continue
                at += clients
                if answer.status_code == 200 and answer.json()["text"]:
                    load.times.append(time.monotonic() - asked)
                else:
                    load.errors.append(f"{answer.status_code} {answer.text[:200]}")

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        load.memory.append(server.memory_info().rss)
        threads[0].join(timeout=0.5)
    load.seconds = time.monotonic() - began
    return load


def batch_size(address: str) -> float:
    """Return the mean number of photos in a pass, by the server's own figures."""
    text = httpx.get(f"{address}metrics").text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("deixis_batch_size"))
    return float(values['deixis_batch_size_sum{line="photos"}']) / float(
        values['deixis_batch_size_count{line="photos"}']
    )


def main() -> int:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="lite")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--photos", type=Path, default=EXAMPLES, help="folder of JPEG files (the three examples)")
    parser.add_argument("--threads", type=int, default=2, help="of the server")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    photos = [path.read_bytes() for path in sorted(options.photos.glob("*.jpg"))[:200]]
    if not photos:
        parser.error(f"there is no .jpg file in {options.photos}")
    command = [sys.executable, "-m", "deixis", "serve", "--model", options.model, "--port", "0", "--json"]
    command += ["--remember", "0", "--threads", str(options.threads), "--per-client", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                print("serve_load: the server did not start", file=sys.stderr)
                return 1
            address = json.loads(line)["url"]
            server = psutil.Process(process.pid)
            ask(address, photos, 1, 3, server)  # warm
            alone = ask(address, photos, 1, options.seconds / 3, server)
            ask(address, photos, options.clients, 3, server)
            together = ask(address, photos, options.clients, options.seconds, server)
            size = batch_size(address)
        finally:
            process.terminate()
    return report(alone, together, size, options.json)


def report(alone: Load, together: Load, size: float, as_json: bool) -> int:
    """Print the figures beside their aims; return 1 if one is missed."""
    errors = alone.errors + together.errors
    if errors or not alone.times or not together.times:
        print(f"serve_load: {len(errors)} errors, such as {errors[:1]}", file=sys.stderr)
        return 1
    single = statistics.median(alone.times)
    waits = together.percentile(0.95) / single
    gain = together.throughput / alone.throughput
    good = {"p95": waits <= P95, "throughput": gain >= GAIN, "memory": together.growth <= GROWTH}
    result: dict[str, Any] = {
        "clients": together.clients,
        "seconds": together.seconds,
        "answers": len(together.times),
        "errors": 0,
        "single_ms": 1000 * single,
        "p50_ms": 1000 * together.percentile(0.5),
        "p95_ms": 1000 * together.percentile(0.95),
        "p95_over_single": waits,
        "alone_per_second": alone.throughput,
        "together_per_second": together.throughput,
        "gain": gain,
        "batch": size,
        "memory_mb": together.memory[-1] / 2**20,
        "memory_growth": together.growth,
        "aims": good,
    }
    if as_json:
        print(json.dumps(result))
    else:
        print(f"one client: {alone.throughput:.1f} answers a second, {1000 * single:.0f} ms each")
        print(
            f"{together.clients} clients for {together.seconds:.0f} s: {together.throughput:.1f} a second "
            f"({gain:.2f} times), {len(together.times)} answers, no error, {size:.1f} photos a pass"
        )
        print(
            f"  median {result['p50_ms']:.0f} ms, 95 % within {result['p95_ms']:.0f} ms: {waits:.1f} times a single one"
        )
        print(
            f"  memory {result['memory_mb']:.0f} MB, {100 * together.growth:+.1f} % from the second to the last quarter"
        )
        print("  aims: " + ", ".join(f"{name} {'reached' if met else 'missed'}" for name, met in good.items()))
    return 0 if all(good.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
