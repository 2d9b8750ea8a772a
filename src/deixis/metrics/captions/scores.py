"""All caption metrics in one call, for the corpus and for each caption.

``score_captions`` takes plain text, cuts it into words as the COCO evaluation does, and gives the numbers that
evaluation gives (``docs/metrics.md`` says how closely), with BLEU, ROUGE-L and CIDEr computed without Java.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deixis.errors import DeixisError
from deixis.metrics.captions.bleu import bleu
from deixis.metrics.captions.cider import CiderD
from deixis.metrics.captions.frequencies import DocumentFrequencies
from deixis.metrics.captions.ngrams import ORDERS, ReferenceNgrams
from deixis.metrics.captions.rouge import rouge_l
from deixis.text.tokens import scoring_words

METRICS = ("bleu", "rouge", "cider", "cider_plain", "meteor", "spice")
"""What ``metrics`` may name. ``meteor`` and ``spice`` need the ``java`` extra."""

Words = list[str]


@dataclass(frozen=True, slots=True)
class CaptionScores:
    """Scores by printed name (``BLEU-1`` ... ``BLEU-4``, ``ROUGE-L``, ``CIDEr``, ``METEOR``, ...).

    Corpus BLEU and METEOR are made from summed counts, so they are not the mean of the captions' scores; the rest are.
    """

    ids: tuple[str, ...]
    corpus: dict[str, float]
    per_caption: dict[str, NDArray[np.float64]]  # each (C,), in the order of ids

    def as_dict(self) -> dict[str, object]:
        """Return plain JSON values: corpus scores, and the scores of each image's caption."""
        columns = {name: values.tolist() for name, values in self.per_caption.items()}
        rows = {key: {name: column[at] for name, column in columns.items()} for at, key in enumerate(self.ids)}
        return {"captions": len(self.ids), "corpus": self.corpus, "per_caption": rows}


def score_captions(
    candidates: Mapping[str, str],
    references: Mapping[str, Sequence[str]],
    metrics: Collection[str] = ("bleu", "rouge", "cider"),
    *,
    frequencies: DocumentFrequencies | None = None,
) -> CaptionScores:
    """Score one caption for each image against the image's references.

    Args:
        candidates: Image id to caption. A caption without words is allowed and scores 0.
        references: Image id to reference captions; exactly the same ids.
        metrics: Names among :data:`METRICS`.
        frequencies: Document frequencies for CIDEr; those of ``references`` if None, which is what papers report.
    """
    if unknown := [name for name in metrics if name not in METRICS]:
        raise DeixisError(f"unknown caption metric {unknown[0]!r}: choose among {', '.join(METRICS)}")
    check_captions(candidates, references)
    ids = tuple(candidates)
    captions = [scoring_words(candidates[name]) for name in ids]
    words = {name: [scoring_words(text) for text in references[name]] for name in ids}
    return score_words(ids, captions, words, metrics, frequencies=frequencies)


def score_words(
    ids: Sequence[str],
    captions: Sequence[Words],
    references: Mapping[str, Sequence[Words]],
    metrics: Collection[str],
    *,
    frequencies: DocumentFrequencies | None = None,
) -> CaptionScores:
    """Score captions that are cut into words already; see :func:`score_captions`."""
    corpus: dict[str, float] = {}
    each: dict[str, NDArray[np.float64]] = {}
    counted = ReferenceNgrams(references) if {"bleu", "cider", "cider_plain"} & set(metrics) else None
    if "bleu" in metrics and counted is not None:
        scores = bleu(captions, ids, counted)
        for order in range(ORDERS):
            corpus[f"BLEU-{order + 1}"] = float(scores.corpus[order])
            each[f"BLEU-{order + 1}"] = scores.per_caption[:, order]
    if "meteor" in metrics:
        from deixis.metrics.captions.meteor import shared_meteor

        corpus["METEOR"], each["METEOR"] = shared_meteor().score(captions, [references[name] for name in ids])
    if "rouge" in metrics:
        each["ROUGE-L"] = rouge_l(captions, [references[name] for name in ids])
        corpus["ROUGE-L"] = float(each["ROUGE-L"].mean())
    for metric, name in (("cider", "CIDEr"), ("cider_plain", "CIDEr-plain")):
        if metric in metrics and counted is not None:
            plain = metric == "cider_plain"
            if frequencies is None:
                scorer = CiderD(counted, counted.document_frequencies(), len(counted.row_of), plain=plain)
            else:
                scorer = CiderD.from_references(references, frequencies, plain=plain)
            each[name] = scorer.rewards(captions, ids)
            corpus[name] = float(each[name].mean())
    if "spice" in metrics:
        from deixis.metrics.captions.spice import spice

        each["SPICE"] = spice(captions, [references[name] for name in ids])
        corpus["SPICE"] = float(each["SPICE"].mean())
    return CaptionScores(tuple(ids), corpus, each)


def check_captions(candidates: Mapping[str, str], references: Mapping[str, Sequence[str]]) -> None:
    """Refuse what cannot be scored: no captions, ids that do not pair up, captions that are not text."""
    if not candidates:
        raise DeixisError("there are no captions to score")
    if extra := [name for name in candidates if name not in references]:
        raise DeixisError(f"{_some(extra)} captions but no references: leave them out or add references")
    if missing := [name for name in references if name not in candidates]:
        raise DeixisError(
            f"{_some(missing)} references but no caption: a score over the rest would flatter; caption them "
            "(an empty caption counts as 0) or leave their references out"
        )
    for name, text in candidates.items():
        if not isinstance(text, str):
            raise DeixisError(f"the caption of image {name!r} is {text!r} ({type(text).__name__}), must be text")
    for name, texts in references.items():
        if isinstance(texts, str) or not isinstance(texts, Sequence):
            raise DeixisError(f"the references of image {name!r} are {texts!r}, must be a list of captions")
        if not texts:
            raise DeixisError(f"image {name!r} has no reference captions: give at least one, or leave the image out")
        for text in texts:
            if not isinstance(text, str):
                raise DeixisError(f"a reference of image {name!r} is {text!r} ({type(text).__name__}), must be text")


def _some(ids: Iterable[object]) -> str:
    """Name a few images: ``3 images ('1', '2', '3') have``."""
    names = [repr(name) for name in ids]
    if len(names) == 1:
        return f"image {names[0]} has"
    return f"{len(names)} images ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''}) have"
