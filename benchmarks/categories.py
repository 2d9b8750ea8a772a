"""What a model finds of COCO's categories, asked for as "a dog": where they are, and where they are not.

    python -m benchmarks.categories DATA [--model lite] [--grounder RUN] [--store STORE] [--split val] [--skip 500]

The section of ``deixis evaluate`` alone, without captions and retrieval. ``--skip`` leaves out the photos that
``deixis calibrate --limit`` was fitted on. ``--thresholds`` shows what other thresholds would keep and find.
"""

from __future__ import annotations

import argparse

from deixis.answering.asking import Asking
from deixis.answering.load import Deixis
from deixis.evaluation.category_answers import category_section
from deixis.evaluation.setting import Evaluation, EvaluationOptions, prepare

THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


def main() -> None:
    """Measure and print a line of figures for each threshold, with intervals by photo."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--model", default="lite")
    parser.add_argument("--grounder", default=None)
    parser.add_argument("--store", default=None)
    parser.add_argument("--split", default="val")
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--thresholds", action="store_true")
    given = parser.parse_args()
    model = Deixis.from_pretrained(given.model, grounder=given.grounder, extractor=given.store is None)
    for threshold in (None, *(THRESHOLDS if given.thresholds else ())):
        asking = Asking(threshold=threshold)
        options = EvaluationOptions(given.split, given.store, limit=given.limit, skip=given.skip, asking=asking)
        show(prepare(model, given.data, options))


def show(work: Evaluation) -> None:
    """Print the figures of one threshold."""
    section = category_section(work)
    threshold = work.asking.threshold
    figures = [f"{name} {section.shown(name)} ({section.shown_interval(name)})" for name in section.scores]
    how = "as fitted" if threshold is None else f"from {threshold:g}"
    print(f"{how}: {', '.join(figures)}; {section.items:,} {section.what}, {len(work.examples)} photos", flush=True)


if __name__ == "__main__":
    main()
