"""The trials of a newcomer: each example of CONTRIBUTING.md built, in the tree and as a package of one's own.

    python -m benchmarks.contributor_trials            # all eight
    python -m benchmarks.contributor_trials dataset    # those with this word in their name

Copies the package, writes the examples as they stand on the page, runs the commands that a contributor would type, and
prints what had to be touched and whether it worked. In the tree a part is a file in its room and a line in
``registry.py`` (and its recipe); outside it is the file, named as ``package.module:Class``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "deixis"
BLOCK = re.compile(r"```(?:python|yaml)\n# (\S+)\n(.*?)```", re.S)
CAPTIONS = {"astronaut.jpg": "a woman in a suit", "chelsea.jpg": "a cat with eyes", "coffee.jpg": "a cup on a table"}
FEW = ("data.train=all", "data.regions=4", "log_every=1", "--threads", "1", "--no-tensorboard")

MAKES_QUARTERS = '''

def quarters(name: str, device: str) -> Extractor:
    """Build the extractor of quarters."""
    from deixis.regions.quarters import Quarters

    return Quarters(device)
'''


@dataclass
class Trial:
    """A folder of a contributor with a copy of the package, and what was touched there."""

    folder: Path
    examples: dict[str, str]
    touched: list[str] = field(default_factory=list)

    @property
    def package(self) -> Path:
        """The copy that may be changed."""
        return self.folder / "src" / "deixis"

    def write(self, place: Path, text: str) -> None:
        """Write a file of one's own."""
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        self.touched.append(f"{place.relative_to(self.folder)} ({len(text.splitlines())} lines)")

    def append(self, place: Path, text: str) -> None:
        """Add to a file that is there."""
        place.write_text(place.read_text(encoding="utf-8") + text, encoding="utf-8")
        self.touched.append(f"{place.relative_to(self.folder)} ({len(text.strip().splitlines())} lines)")

    def register(self, kind: str, name: str, where: str) -> None:
        """Add a line to the registry."""
        file = self.package / "registry.py"
        found = re.subn(
            rf'(    "{kind}": \{{[^\n]*\n)', rf'\1        "{name}": "{where}",\n', file.read_text(), count=1
        )
        assert found[1] == 1, kind
        file.write_text(found[0], encoding="utf-8")
        self.touched.append("registry.py (1 line)")

    def deixis(self, *arguments: str, trusted: str = "") -> str:
        """Run a command with the copy, and return what it printed."""
        path = os.pathsep.join((str(self.folder / "src"), str(self.folder)))
        environment = {**os.environ, "PYTHONPATH": path, "DEIXIS_HOME": str(self.folder / "home")}
        environment |= {"OMP_NUM_THREADS": "1", "DEIXIS_PACKAGES": trusted}
        done = subprocess.run(
            [sys.executable, "-m", "deixis", *arguments],
            cwd=self.folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"deixis {' '.join(arguments)}: {done.stderr.strip()[-300:]}")
        return done.stdout


def objective_outside(trial: Trial) -> None:
    trial.write(trial.folder / "mine" / "sharp.py", trial.examples["mine/sharp.py"])
    trial.write(trial.folder / "sharp.yaml", trial.examples["sharp.yaml"])
    trial.deixis("train", "sharp.yaml", "data.dataset=captioned", *FEW, "-o", "run")
    assert '"sharp"' in (trial.folder / "run" / "metrics.jsonl").read_text()


def objective_inside(trial: Trial) -> None:
    trial.write(trial.package / "objectives" / "sharp.py", trial.examples["mine/sharp.py"])
    trial.register("objective", "sharp", "deixis.objectives.sharp:Sharp")
    recipe = trial.examples["sharp.yaml"].replace('"mine.sharp:Sharp"', "sharp")
    trial.write(trial.package / "recipes" / "captioning" / "sharp.yaml", recipe)
    assert "captioning/sharp" in trial.deixis("recipes")
    trial.deixis("train", "captioning/sharp", "data.dataset=captioned", *FEW, "-o", "run")
    assert '"sharp"' in (trial.folder / "run" / "metrics.jsonl").read_text()


def dataset_outside(trial: Trial) -> None:
    trial.write(trial.folder / "mine" / "pairs.py", trial.examples["mine/pairs.py"])
    assert "3" in trial.deixis("data", "info", "pairs", "--format", "mine.pairs:Pairs")


def dataset_inside(trial: Trial) -> None:
    trial.write(trial.package / "data" / "pairs.py", trial.examples["mine/pairs.py"])
    trial.register("reader", "pairs", "deixis.data.pairs:Pairs")
    assert "pairs" in trial.deixis("data", "info", "pairs", "--json")


def extractor_outside(trial: Trial) -> None:
    trial.write(trial.folder / "mine" / "quarters.py", trial.examples["mine/quarters.py"])
    named = ("--extractor", "mine.quarters:Quarters", "--processes", "0")
    trial.deixis("regions", "extract", "captioned", "-o", "store", *named)
    assert "quarters:1" in trial.deixis("regions", "info", "store")


def extractor_inside(trial: Trial) -> None:
    trial.write(trial.package / "regions" / "quarters.py", trial.examples["mine/quarters.py"])
    trial.append(trial.package / "regions" / "registry.py", MAKES_QUARTERS)
    trial.register("extractor", "quarters", "deixis.regions.registry:quarters")
    trial.deixis("regions", "extract", "captioned", "-o", "store", "--extractor", "quarters", "--processes", "0")
    assert "quarters:1" in trial.deixis("regions", "info", "store")


def method_outside(trial: Trial) -> None:
    trial.write(trial.folder / "mine" / "colours.py", trial.examples["mine/colours.py"])
    trial.write(trial.folder / "colours.yaml", trial.examples["colours.yaml"])
    trial.deixis("train", "colours.yaml", "data.dataset=captioned", *FEW, "-o", "run")
    assert "a cup" in trial.deixis("ground", "captioned/coffee.jpg", "a cup", "--model", "run", trusted="mine")


def method_inside(trial: Trial) -> None:
    """The model goes to ``grounding/``, its objective, which may know it, to ``objectives/``."""
    head, model = trial.examples["mine/colours.py"].split("class Colours", 1)
    model, objective = model.split("class OwnImage", 1)
    above = "\n".join(line for line in head.splitlines() if "deixis.objectives" not in line)
    trial.write(trial.package / "grounding" / "colours.py", f"{above}\n\n\nclass Colours{model}")
    below = f"{head.rstrip()}\nfrom deixis.grounding.colours import Colours\n"
    trial.write(trial.package / "objectives" / "own_image.py", f"{below}\n\nclass OwnImage{objective}")
    trial.register("model", "colours", "deixis.grounding.colours:Colours")
    trial.register("objective", "own_image", "deixis.objectives.own_image:OwnImage")
    recipe = trial.examples["colours.yaml"].replace('"mine.colours:Colours"', "colours")
    recipe = recipe.replace('"mine.colours:OwnImage"', "own_image")
    trial.write(trial.package / "recipes" / "grounding" / "colours.yaml", recipe)
    trial.deixis("train", "grounding/colours", "data.dataset=captioned", *FEW, "-o", "run")
    assert "a cup" in trial.deixis("ground", "captioned/coffee.jpg", "a cup", "--model", "run")


TRIALS: dict[str, Callable[[Trial], None]] = {
    "an objective, in the tree": objective_inside,
    "an objective, a package of one's own": objective_outside,
    "a dataset, in the tree": dataset_inside,
    "a dataset, a package of one's own": dataset_outside,
    "an extractor, in the tree": extractor_inside,
    "an extractor, a package of one's own": extractor_outside,
    "a method, in the tree": method_inside,
    "a method, a package of one's own": method_outside,
}


def prepared(folder: Path) -> Trial:
    """Return a folder with a copy of the package and photos, with captions in a known form and in one of one's own."""
    shutil.copytree(PACKAGE, folder / "src" / "deixis", ignore=shutil.ignore_patterns("__pycache__", "weights"))
    (folder / "src" / "deixis" / "weights").symlink_to(PACKAGE / "weights")
    for name in ("captioned", "pairs"):
        (folder / name).mkdir()
        for photo in CAPTIONS:
            shutil.copy(ROOT / "examples" / "photos" / photo, folder / name)
    lines = (f'{{"file_name": "{photo}", "text": "{text}"}}\n' for photo, text in CAPTIONS.items())
    (folder / "captioned" / "metadata.jsonl").write_text("".join(lines))
    (folder / "pairs" / "pairs.txt").write_text("".join(f"{photo}\t{text}\n" for photo, text in CAPTIONS.items()))
    return Trial(folder, dict(BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))))


def main() -> None:
    wrong = 0
    print("| trial | touched | works |\n|---|---|---|", flush=True)
    for name, attempt in TRIALS.items():
        if not all(word in name for word in sys.argv[1:]):
            continue
        with tempfile.TemporaryDirectory() as folder:
            trial = prepared(Path(folder))
            try:
                attempt(trial)
                came = "yes"
            except (AssertionError, RuntimeError) as error:
                wrong += 1
                came = f"NO: {error}"
            print(f"| {name} | {', '.join(trial.touched)} | {came} |", flush=True)
    if wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
