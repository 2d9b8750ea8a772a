"""Where a trained ReIR model gains or loses: by its first or second stage, with boxes as proposed or as moved.

    python -m benchmarks.reir_stages RUN …

The same weights answer four times; nothing is trained. Prints R@1 (any-box and merged-box) and pointing (any-box).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console
from torch import Tensor

from benchmarks.flickr8k.work import Worker
from deixis.data.batch import Batch
from deixis.grounding.phrase_cases import phrase_cases
from deixis.grounding.reir.model import Reir
from deixis.grounding.reir.refinement import move
from deixis.metrics.grounding.phrases import ANY_BOX, MERGED_BOX, score_phrases
from deixis.models.names import load
from deixis.training.recipe import Recipe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+")
    options = parser.parse_args()
    worker = Worker(None, Console(stderr=True))
    print("| run | stage | boxes | R@1 | R@1 (merged) | pointing |\n|---|---|---|---|---|---|")
    for name in options.runs:
        loaded = load(name)
        model = loaded.model
        if not isinstance(model, Reir):
            parser.error(f"{name} holds a {loaded.kind}, not a model of ReIR")
        examples, source = worker.photos(Recipe.from_plain(loaded.config.recipe))
        both = model.ranked_boxes
        for stage in ("first", "second") if model.fine is not None else ("first",):
            for boxes in ("proposed", "moved") if bool(model.moves) else ("proposed",):
                model.ranked_boxes = partial(answer, model, both, stage, boxes)  # type: ignore[method-assign]
                cases = phrase_cases(model, loaded.vocabulary, examples, source, batch=16)
                found, merged = (score_phrases(cases, protocol).scores for protocol in (ANY_BOX, MERGED_BOX))
                shown = f"{found['R@1']:.3f} | {merged['R@1']:.3f} | {found['pointing']:.3f}"
                print(f"| {Path(name).name} | {stage} | {boxes} | {shown} |", flush=True)


def answer(
    model: Reir, both: Callable[[Batch], tuple[Tensor, Tensor]], stage: str, boxes: str, batch: Batch
) -> tuple[Tensor, Tensor]:
    """Return scores by the first stage or by both (equation 11), with boxes as proposed or as that stage moves them."""
    logits, moved = both(batch)
    done = model(batch)
    places = done.coarse.boxes
    if stage == "first":
        logits = done.coarse.scores.masked_fill(~done.coarse.mask, float("-inf"))
        if boxes == "moved" and done.coarse.offsets is not None:
            places = move(places, done.coarse.offsets, batch.regions.sizes[done.image])
    elif boxes == "moved":
        places = moved
    return logits, places


if __name__ == "__main__":
    main()
