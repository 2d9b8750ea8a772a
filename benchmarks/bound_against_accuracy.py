"""Draw figure 4 of InfoGround from finished runs: the bound on mutual information against grounding.

    python benchmarks/bound_against_accuracy.py RUN [RUN ...] -o figure4.svg

Each run is a folder of ``deixis train grounding/infoground[:linear|:two-layers]``; its validations are the dots.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from deixis.training.bound_plot import bound_plot, points_of_run
from deixis.training.files import write_text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--metric", default="pointing", help="R@1, R@5, R@10 or pointing")
    arguments = parser.parse_args()
    runs = {run.name: points_of_run(run, arguments.metric) for run in arguments.runs}
    write_text(arguments.output, bound_plot(runs, arguments.metric))
    for name, points in runs.items():
        bound, best = max(points, key=lambda point: point[1])
        print(f"{name}: best {arguments.metric} {100 * best:.1f} at a bound of {bound:.3f} ({len(points)} validations)")


if __name__ == "__main__":
    main()
