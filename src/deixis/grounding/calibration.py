"""Calibration: what a grounder's scores mean. How probably is the box right? Is the thing in the picture at all?

Both are logistic curves (Platt, 1999) over a few signals of an answer, fitted on annotated validation phrases and kept
in ``calibration.json`` beside the weights. Weights of the model are not touched, and neither is the order of regions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deixis.atomic import write_text
from deixis.errors import BadFileError, DeixisError
from deixis.geometry import iou_aligned
from deixis.grounding.logistic import Flags as Flags
from deixis.grounding.logistic import Logistic as Logistic
from deixis.grounding.logistic import Numbers as Numbers
from deixis.reading.plain import read_json_object

FILE = "calibration.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Calibration:
    """The curves of a grounder, what they were fitted on, and how good they are on photos they were not fitted on."""

    right: Logistic
    """Probability that the first box overlaps an annotated one by at least half."""
    found: Logistic
    """Probability that the phrase is about this picture rather than another."""
    threshold: float
    """Below it the answer says ``found: false``."""
    facts: Mapping[str, float | str]
    """``data``, ``split``, ``phrases``, ``right_ece``, ``found_auc``, ``kept`` …"""

    def save(self, folder: Path) -> None:
        """Write ``calibration.json`` into a model folder."""
        data = {"format": FORMAT, **asdict(self)}
        write_text(folder / FILE, json.dumps(data, indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Read the calibration of a model folder, or None where it has none."""
        if not (folder / FILE).is_file():
            return None
        try:
            data = read_json_object(folder / FILE)
            if data["format"] != FORMAT:
                raise ValueError(f"format {data['format']}, expected {FORMAT}")
            return cls(_logistic(data["right"]), _logistic(data["found"]), float(data["threshold"]), data["facts"])
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise BadFileError(f"{folder / FILE} is damaged ({error}): run `deixis calibrate` again") from error

    def judge(self, logits: Tensor, boxes: Tensor, presence: Tensor) -> tuple[Numbers, Numbers]:
        """Return for each phrase the probabilities that its first box is right and that it is there at all, (P,)."""
        seen = signals(logits, boxes, presence).cpu().numpy()
        return self.right(seen), self.found(seen)


def signals(logits: Tensor, boxes: Tensor, presence: Tensor) -> Tensor:
    """Return what tells a sure answer from a guess, (P, 3).

    The share of the best region, the share of all regions that overlap it by half (many boxes of one thing divide the
    share among them), both as log-odds, and how present the phrase is in the image.

    Args:
        logits: Scores of regions, -inf for padding, (P, N).
        boxes: The regions' boxes, (P, N, 4).
        presence: Any score that grows with how surely the phrase is about this image, (P,).
    """
    shares = torch.softmax(logits.double(), -1)
    best = shares.argmax(-1)
    rows = torch.arange(best.shape[0], device=best.device)  # not len(), which a trace would take for fixed
    overlap = iou_aligned(boxes.double(), boxes[rows, best].double().unsqueeze(1)) >= 0.5  # (P, N)
    overlap = overlap | (torch.arange(shares.shape[1], device=best.device) == best.unsqueeze(1))  # also without area
    both = torch.stack([shares[rows, best], (shares * overlap).sum(-1)], -1).clamp(1e-6, 1 - 1e-6)
    return torch.cat([both.logit(), presence.double().unsqueeze(-1)], -1)


def cross_fitted(signals_of: Numbers, labels: Flags, groups: NDArray[np.int64], folds: int = 5) -> Numbers:
    """Return probabilities for phrases whose photo the curve was not fitted on, (P,)."""
    out = np.zeros(len(labels))
    fold = groups % folds
    for at in np.unique(fold):
        held = fold == at
        out[held] = Logistic.fit(signals_of[~held], labels[~held])(signals_of[held])
    return out


def calibration_error(probability: Numbers, label: Flags, bins: int = 10) -> float:
    """Return the expected calibration error: the mean gap between belief and frequency in bins of equal width."""
    gaps = [abs(belief - frequency) * count for belief, frequency, count in reliability(probability, label, bins)]
    return sum(gaps) / len(label)


def reliability(probability: Numbers, label: Flags, bins: int = 10) -> list[tuple[float, float, int]]:
    """Return mean belief, frequency and count of each bin that has any, from doubtful to sure."""
    place = np.minimum((probability * bins).astype(np.int64), bins - 1)
    rows = []
    for at in range(bins):
        inside = place == at
        if inside.any():
            rows.append((float(probability[inside].mean()), float(label[inside].mean()), int(inside.sum())))
    return rows


def area_under_curve(score: Numbers, label: Flags) -> float:
    """Return how often a true one scores above a false one, ties counting half."""
    order = np.argsort(score, kind="stable")
    _, number, counts = np.unique(score[order], return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    rank = (ends - (counts - 1) / 2)[number]  # mean rank of equal scores, from 1
    true = int(label.sum())
    false = len(label) - true
    if not true or not false:
        raise DeixisError("an area under the curve needs both true and false ones")
    return float((rank[label[order]].sum() - true * (true + 1) / 2) / (true * false))


def keep_threshold(probability: Numbers, keep: float) -> float:
    """Return the threshold that the share ``keep`` of these probabilities reaches."""
    return float(np.quantile(probability, 1 - keep))


def _logistic(data: Mapping[str, Any]) -> Logistic:
    weights = tuple(float(weight) for weight in data["weights"])
    if len(weights) != 3:
        raise ValueError(f"a curve has {len(weights)} weights instead of 3")
    return Logistic(weights, float(data["bias"]))
