"""``make bench``: every speed figure of the docs, one after the other, on an idle machine.

    python -m benchmarks [NAME ...] [--busy]

Data and teachers are looked for in ``../shared`` or where ``$DEIXIS_SHARED`` says; benchmarks that need them are left
out, by name, where they are not there. Refuses to run while more than a quarter of the processors is taken.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil

BUSY = 25  # percent of all processors


def benchmarks(shared: Path | None) -> dict[str, list[str] | None]:
    """Return each benchmark's arguments, or None where it lacks what it needs."""
    data = shared / "data" if shared is not None else None
    photos = data / "flickr8k-entities" if data is not None else None
    return {
        "captioner_speed": [],
        "ground_speed": [],
        "serve_load": [],
        "against_grounding_dino": [],
        "store_speed": [],
        "search_speed": [],
        "grounding_metrics": [],
        "caption_metrics": [] if data is not None else None,
        "parse_speed": [str(data / "flickr30k-captions" / "train.tsv.gz")] if data is not None else None,
        "regions_speed": [str(photos / "images"), str(shared / "teachers")] if photos and shared else None,
        "extract_speed": [str(photos), "--limit", "1000", "--kills", "2"] if photos is not None else None,
        "page_speed": [str(photos)] if photos is not None and shutil.which("chromium") else None,
    }


def find_shared() -> Path | None:
    """Return the folder with the real data, if it is here."""
    given = os.environ.get("DEIXIS_SHARED")
    folder = Path(given) if given else Path(__file__).resolve().parents[2] / "shared"
    return folder if (folder / "data").is_dir() else None


def main() -> int:
    """Run the chosen benchmarks; the exit code is 1 if one failed."""
    parser = argparse.ArgumentParser(description="Speed figures, as ratios against yardsticks in the same run.")
    known = benchmarks(find_shared())
    parser.add_argument("names", nargs="*", help=f"which ones (all): {', '.join(known)}")
    parser.add_argument(
        "--busy", action="store_true", help="run all the same on a busy machine; the figures mean little"
    )
    options = parser.parse_args()
    for name in options.names:
        if name not in known:
            parser.error(f"unknown benchmark '{name}'; there are {', '.join(known)}")
    taken = psutil.cpu_percent(2.0)
    if taken > BUSY and not options.busy:
        print(f"benchmarks: {taken:.0f} % of the processors are taken: wait, or pass --busy", file=sys.stderr)
        return 2
    failed = []
    for name in options.names or known:
        arguments = known[name]
        print(f"\n== {name}", flush=True)
        if arguments is None:
            print("left out: needs the shared data and teachers (DEIXIS_SHARED)")
        elif subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *arguments], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
