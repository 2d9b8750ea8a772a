"""On which frames of a clip a thing is there: what the grounder says of each frame, without flicker.

Each frame has a probability that the thing is on it. Cut at a threshold, a thing whose probability trembles around it
would come and go. Of all ways to be there and not, the one is taken whose evidence is largest, where every change costs
something (Viterbi's algorithm with two states): a weak frame between sure ones is kept, a weak find alone is left out,
and plain evidence wins either way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from deixis.grounding.logistic import Presence

CHANGE = 0.5
"""What it costs that a thing comes or goes, in log-odds: a single frame is outvoted by its neighbours where its
probability lies within about .25 of a threshold of a half."""
SURE = 1e-4
"""Probabilities are kept this far from 0 and 1."""


def steadily_there(
    trusted: Sequence[bool],
    probabilities: Sequence[float | None],
    presence: Presence | None,
    threshold: float | None = None,
) -> list[bool]:
    """Return on which frames a thing is.

    Args:
        trusted: What the grounder says of each frame by itself; the answer where no probability was fitted.
        probabilities: That the thing is on each frame.
        presence: What the probabilities were made by; None: they are no probabilities of being there.
        threshold: Takes the place of the fitted one.
    """
    known = [value for value in probabilities if value is not None]
    if presence is None or len(known) < len(probabilities):
        return list(trusted)
    least = presence.threshold if threshold is None else threshold
    return steady([_log_odds(value) - _log_odds(least) for value in known])


def steady(evidence: Sequence[float], change: float = CHANGE) -> list[bool]:
    """Return where something is: the sum of the evidence there, less ``change`` for every coming and going, is largest.

    >>> steady([2.0, -0.1, 2.0, -3.0, 0.1, -3.0])
    [True, True, True, False, False, False]
    """
    if not evidence:
        return []
    away, here = 0.0, evidence[0]
    stayed: list[tuple[bool, bool]] = []  # for each later frame: was it there before, if it is away, if it is here
    for value in evidence[1:]:
        stayed.append((here - change > away, here >= away - change))
        away, here = max(away, here - change), max(here, away - change) + value
    found = [here >= away]
    for if_away, if_here in reversed(stayed):
        found.append(if_here if found[-1] else if_away)
    return found[::-1]


def _log_odds(probability: float) -> float:
    kept = min(max(probability, SURE), 1 - SURE)
    return math.log(kept / (1 - kept))
