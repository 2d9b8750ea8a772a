"""What the wrong boxes of grounders look like: a part of the right one, too much around it, or somewhere else.

    python -m benchmarks.wrong_boxes RUN …

Every annotated phrase of val is one of: *right* (IoU of at least .5 with a human box), *part* (80 % or more of the box
lies in a human box), *around* (80 % or more of a human box lies in it), *beside* (the rest that overlap), *elsewhere*.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.flickr8k.work import Worker
from deixis.geometry import area, inside_share, iou
from deixis.grounding.base import WordGrounder
from deixis.grounding.phrase_cases import phrase_cases
from deixis.metrics.grounding.phrases import PhraseCase
from deixis.models.names import load
from deixis.training.recipe import Recipe

KINDS = ("right", "part", "around", "beside", "elsewhere")
MOST = 0.8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+")
    options = parser.parse_args()
    worker = Worker(None, Console(stderr=True))
    print(f"| run | {' | '.join(KINDS)} | median area / human box |\n|{'---|' * (len(KINDS) + 2)}")
    for name in options.runs:
        loaded = load(name, part="grounder")
        if not isinstance(loaded.model, WordGrounder):
            parser.error(f"{name} holds a {loaded.kind}, which grounds no words")
        examples, source = worker.photos(Recipe.from_plain(loaded.config.recipe))
        cases = phrase_cases(loaded.model, loaded.vocabulary, examples, source, batch=16)
        cases = [case for case in cases if case.boxes and case.ranked]
        counts = Counter(map(kind_of, cases))
        shares = " | ".join(f"{counts[kind] / len(cases):.3f}" for kind in KINDS)
        print(f"| {Path(name).name} | {shares} | {np.median([size_of(case) for case in cases]):.2f} |", flush=True)


def kind_of(case: PhraseCase) -> str:
    """Say what the first box of a phrase is, beside the human box it overlaps most."""
    box, human = np.array(case.ranked[:1]), np.array(case.boxes)
    overlap = iou(box, human, plus_one=True)[0]
    best = human[[int(overlap.argmax())]]
    if overlap.max() >= 0.5:
        return "right"
    if overlap.max() == 0:
        return "elsewhere"
    if float(inside_share(box, human).max()) >= MOST:
        return "part"
    return "around" if float(inside_share(best, box)[0, 0]) >= MOST else "beside"


def size_of(case: PhraseCase) -> float:
    """Return the area of the first box in areas of the human box it overlaps most."""
    box, human = np.array(case.ranked[:1]), np.array(case.boxes)
    return float(area(box)[0] / max(float(area(human)[int(iou(box, human)[0].argmax())]), 1.0))


if __name__ == "__main__":
    main()
