"""Draw figure 4 of InfoGround from finished runs: the bound on mutual information against grounding.

    python -m benchmarks.bound_against_accuracy RUN [RUN ...] -o figure4.svg

Each run is a folder of ``deixis train grounding/infoground:none`` (or ``:linear``, ``:two-layers``); its validations
are the dots. A run is validated after each epoch: set ``stages.contrast.epochs`` to as many dots as are wanted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.bound_plot import points_of_run
from benchmarks.flickr8k.plots import draw_bound
from deixis.errors import DeixisError


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--metric", nargs="+", default=["R@1", "pointing"], help="R@1, R@5, R@10, pointing")
    arguments = parser.parse_args()
    try:
        runs = {metric: {run.name: points_of_run(run, metric) for run in arguments.runs} for metric in arguments.metric}
    except DeixisError as error:
        print(f"bound_against_accuracy: {error}", file=sys.stderr)
        return 2
    draw_bound(arguments.output, runs)
    for metric, lines in runs.items():
        for name, points in lines.items():
            bound, best = max(points, key=lambda point: point[1])
            print(f"{name}: best {metric} {100 * best:.1f} at a bound of {bound:.3f} ({len(points)} validations)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
