"""The bound on mutual information against grounding, over the course of training.

InfoGround (Gupta et al., ECCV 2020), figure 4 and section 3.4: both rise together, until the bound goes on rising and
grounding does not. ``benchmarks/bound_against_accuracy.py`` draws it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from deixis.errors import BadFileError
from deixis.training.run import Run

Points = Sequence[tuple[float, float]]


def points_of_run(path: Path, metric: str = "pointing") -> list[tuple[float, float]]:
    """Return (bound, metric) at every validation of a run, in order."""
    found = []
    for entry in Run(path).entries():
        values = entry.get("validation")
        if isinstance(values, Mapping) and "bound" in values:
            if metric not in values:
                raise BadFileError(f"{path} has no {metric!r} among its validations: {', '.join(values)}")
            found.append((float(values["bound"]), float(values[metric])))
    if not found:
        raise BadFileError(f"{path} has logged no bound: it is no run of InfoGround that was validated on phrases")
    return found


def moving_average(points: Points, window: int = 3) -> list[tuple[float, float]]:
    """Return the mean of each point with its neighbours, the paper's dashed line."""
    reach = window // 2
    means = []
    for at in range(len(points)):
        near = points[max(0, at - reach) : at + reach + 1]
        means.append((sum(x for x, _ in near) / len(near), sum(y for _, y in near) / len(near)))
    return means
