"""Whether two commits give the same answers with the same weights, byte for byte.

    python -m benchmarks.same_answers f3060d6 1c68988
    python -m benchmarks.same_answers main HEAD --photos 2 --no-train

Takes each commit out of git into a folder of its own and runs the same commands there, with the weights of the commit:
captions with their boxes, checked and not, phrases, the regions of a photo, and a few steps of training on drawn
scenes. Prints a table with the SHA-256 of what each printed or wrote, and leaves with 1 where two differ.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PHOTOS = ("astronaut.jpg", "chelsea.jpg", "coffee.jpg")
PHRASES = ("a woman", "a flag", "a cup of coffee", "a dog")
WEIGHTS = "src/deixis/weights"
TRAIN = (
    "size=cpu", "data.store=store", "data.dataset=scenes", "data.min_count=1", "data.parse=false", "data.regions=10",
    "model.width=32", "stages.words.epochs=1", "stages.words.batch=4", "validation.samples=0", "log_every=1",
)  # fmt: skip
VARIES = frozenset({"seconds", "time", "images_per_second", "captions_per_second", "speed", "memory", "wait", "when"})
"""What a log says about the clock and the machine."""


def take_out(commit: str, folder: Path) -> str:
    """Put the package of a commit, and its recipes, into a folder, and return what git calls its weights."""

    def git(*arguments: str) -> bytes:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout

    there = {"src", "recipes"} & set(git("ls-tree", "--name-only", commit).decode().split())
    with tarfile.open(fileobj=io.BytesIO(git("archive", commit, *sorted(there)))) as archive:
        archive.extractall(folder, filter="data")
    return git("rev-parse", f"{commit}:{WEIGHTS}").decode().strip()


def run(source: Path, work: Path, *arguments: str) -> bytes:
    """Run a command of a commit in a folder and return what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(source / "src"), "DEIXIS_HOME": str(work / "home")}
    environment |= {"OMP_NUM_THREADS": "1", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-m", "deixis", *arguments], cwd=work, env=environment, capture_output=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"deixis {' '.join(arguments)} of {source.name}: {done.stderr.decode()[-500:]}")
    return done.stdout


def answers(source: Path, work: Path, photos: list[str]) -> dict[str, bytes]:
    """Return what a commit says of photos: captions and phrases as JSON."""
    said = {"caption": run(source, work, "caption", *photos, "--json", "--no-check")}
    said["caption --check"] = run(source, work, "caption", *photos, "--json", "--check")
    said["caption --beam 1"] = run(source, work, "caption", *photos, "--json", "--no-check", "--beam", "1")
    said["ground"] = b"".join(run(source, work, "ground", photo, *PHRASES, "--json") for photo in photos)
    return said


def learned(source: Path, work: Path, scenes: Path) -> dict[str, bytes]:
    """Return what a commit learns in a few steps on scenes: its regions, its losses, its weights."""
    (work / "scenes").symlink_to(scenes)
    run(source, work, "regions", "extract", "scenes", "-o", "store", "--max-regions", "10", "--processes", "0")
    run(source, work, "train", "captioning/baseline", *TRAIN, "-o", "run", "--no-tensorboard", "--threads", "1")
    steps = [json.loads(line) for line in (work / "run" / "metrics.jsonl").read_text().splitlines()]
    kept = [{name: value for name, value in step.items() if name not in VARIES} for step in steps]
    stored = sorted((work / "store").rglob("*.safetensors"))
    (weights,) = sorted((work / "run").rglob("model.safetensors"))[-1:]
    return {
        "regions extract": b"".join(path.read_bytes() for path in stored),
        "train: losses": json.dumps(kept, sort_keys=True).encode(),
        "train: weights": weights.read_bytes(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--photos", type=int, default=len(PHOTOS), help="how many of the example photos")
    parser.add_argument("--no-train", dest="train", action="store_false", help="answers only")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        found: list[dict[str, bytes]] = []
        weights: list[str] = []
        for commit in (given.before, given.after):
            source, work = Path(name) / f"source-{len(found)}", Path(name) / f"work-{len(found)}"
            source.mkdir()
            work.mkdir()
            weights.append(take_out(commit, source))
            photos = []
            for photo in PHOTOS[: given.photos]:
                (work / photo).symlink_to(ROOT / "examples" / "photos" / photo)
                photos.append(photo)
            said = answers(source, work, photos)
            if given.train:
                scenes = Path(name) / "scenes"
                if not scenes.exists():
                    run(ROOT, Path(name), "data", "scenes", str(scenes), "--train", "8", "--val", "2", "--test", "2")
                said |= learned(source, work, scenes)
            found.append(said)
    same = {what: found[0][what] == found[1][what] for what in found[0]}
    print(f"weights: {weights[0][:12]} and {weights[1][:12]}, {'the same' if len(set(weights)) == 1 else 'OTHERS'}")
    print(f"| what | {given.before} | {given.after} | |\n|---|---|---|---|")
    for what, equal in same.items():
        sums = [hashlib.sha256(said[what]).hexdigest()[:16] for said in found]
        print(f"| {what} | `{sums[0]}` | `{sums[1]}` | {'same' if equal else 'DIFFERENT'} |")
    if not all(same.values()) or len(set(weights)) > 1:
        sys.exit(1)


if __name__ == "__main__":
    main()
