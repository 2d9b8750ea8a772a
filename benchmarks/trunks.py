"""Which trunk should the extractor stand on? The same heads, data and number of steps on each, then the same questions.

    python -m benchmarks.trunks RECIPE CACHE WEIGHTS DATA TEACHERS -o FOLDER [--steps 300] [--photos 600]

RECIPE is the extractor's (``deixis/recipes/regions/lite.yaml``), CACHE the folder that `deixis regions train` prepared
for it, WEIGHTS the published weights, DATA a folder in the layout of Flickr30k Entities, TEACHERS the folder with
YOLOX-nano. Every row is a run folder in FOLDER and its results lie beside it: killed, the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from deixis.cli.regions_train import read_recipe
from deixis.regions.training.run import LiteRecipe, learn

ROWS = {
    "EfficientNet-Lite0": ("efficientnet-lite0", False),
    "TinyViT-5M-22k": ("tinyvit-5m", False),
    "DINOv2-S": ("dinov2-s", False),
    "TinyViT-5M-22k, taught by DINOv2-S": ("tinyvit-5m", True),
}


def shortened(recipe: LiteRecipe, trunk: str, taught: bool, steps: int) -> LiteRecipe:
    """The recipe with another trunk, with or without the dense teacher, for so many steps in one process."""
    schedule = replace(
        recipe.schedule, steps=steps, warm_up=steps // 6, frozen_steps=steps // 6, teach_every=2 if taught else 0
    )
    return replace(recipe, processes=1, shape=replace(recipe.shape, trunk=trunk), schedule=schedule)


def command(*arguments: object) -> Any:
    """The JSON that a command of ours prints last."""
    words = [sys.executable, *map(str, arguments), "--json"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def judge(extractor: Path, data: Path, teachers: Path, store: Path, photos: int) -> dict[str, Any]:
    """Recall, the probe, label matching and time of one extractor."""
    extract = ("regions", "extract", data, "-o", store, "--split", "val", "--extractor", f"lite:{extractor}")
    command("-m", "deixis", *extract, "--processes", 0)
    return {
        "recall": command("-m", "deixis", "regions", "recall", store, data, "--split", "val"),
        "words": command("-m", "benchmarks.regions_words", data, "--photos", photos, "--extractor", extractor),
        "speed": command("-m", "benchmarks.regions_speed", data / "images", teachers, "--extractor", extractor),
    }


def main() -> None:
    """Train and judge every row that has not been."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("recipe", "cache", "weights", "data", "teachers"):
        parser.add_argument(name, type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--photos", type=int, default=600, help="training photos the probe learns from")
    options = parser.parse_args()
    recipe = read_recipe(options.recipe)
    if not isinstance(recipe, LiteRecipe):
        parser.error(f"{options.recipe} teaches a namer; trunks are compared with a recipe such as regions/lite")
    for title, (trunk, taught) in ROWS.items():
        run = options.output / (f"{trunk}-taught" if taught else trunk)
        result = run / "judged.json"
        if not result.is_file():
            plan = shortened(recipe, trunk, taught, options.steps)
            extractor = learn(plan, options.cache, options.weights, run, {"row": title})
            judged = judge(extractor, options.data, options.teachers, run / "store", options.photos)
            result.write_text(json.dumps(judged, indent=1))
        print(title, json.dumps(json.loads(result.read_text())), flush=True)


if __name__ == "__main__":
    main()
