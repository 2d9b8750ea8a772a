"""The tables as data: each row is a recipe with overrides, its seeds, and what the paper says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from deixis.grounding.baselines import BaselineName

SEEDS = (1, 2, 3)
PRIOR = 0.5
"""Exponent of objectness in the second half of each grounding table: one for all rows, chosen on val."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: what is trained, and what it is compared with."""

    name: str
    recipe: str
    title: str
    against: str | None = None
    """The row its difference is taken to, in ours and in the paper's."""
    paper: Mapping[str, float] = field(default_factory=dict)
    """The paper's figures by metric, in per cent."""
    paper_base: Mapping[str, float] = field(default_factory=dict)
    """The figures of the paper's own baseline, where it is not the paper's figure of the row in ``against``."""
    overrides: tuple[str, ...] = ()
    seeds: tuple[int, ...] = SEEDS
    of: str | None = None
    """The row whose runs this one uses: it only answers in another way."""
    answer: Mapping[str, str] = field(default_factory=dict)
    """How it answers: options of the model's ``answers`` (``pooling``) or of itself (``attend_over``)."""
    baseline: BaselineName | None = None
    """A grounder of ``deixis.grounding.baselines``, which learns nothing; the recipe only says with which regions."""
    run: str | None = None
    """A run under ``$DEIXIS_HOME/runs`` to use if the row was trained there; it has one seed."""
    size: str = "cpu"

    @property
    def trained(self) -> str:
        """The name of the row that is trained."""
        return self.of or self.name


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its rows share data, regions, steps and metrics."""

    name: str
    title: str
    kind: Literal["phrases", "captions"]
    rows: tuple[Row, ...]
    paper: str
    """What the published figures are: paper, table, data, protocol."""
    metrics: tuple[str, ...]
    """The columns, as the result files name them."""
    compared: tuple[str, ...]
    """The metrics whose differences are shown."""
    page: str = "docs/grounding.md"


ANY = ("any-box R@1", "any-box R@5", "any-box R@10", "any-box pointing", "merged-box R@1", "merged-box pointing")
CAPTIONS = ("F1_all", "F1_loc", "F1_all_per_sent", "F1_loc_per_sent", "attention_accuracy", "CIDEr")


HEAD = {"pooling": "head"}  # the paper measures object words, which are the heads of phrases


def _scan(name: str, title: str, row: str | None, **more: Any) -> Row:
    return Row(name, f"grounding/scan:{row}" if row else "grounding/scan", title, **{"answer": HEAD, **more})


SCAN = Table(
    "scan",
    "SCAN and POS-SCAN",
    "phrases",
    (
        _scan("scan", "SCAN, all words", "scan", paper={"attention": 17.63}),
        _scan("pos-scan", "POS-SCAN, nouns", None, against="scan", paper={"attention": 28.58}),
        _scan(
            "scan-over-nouns",
            "SCAN, answering over nouns",
            "scan",
            against="scan",
            of="scan",
            answer={**HEAD, "words": "noun"},
        ),
        _scan(
            "pos-scan-over-all",
            "POS-SCAN, answering over all words",
            None,
            against="scan",
            of="pos-scan",
            answer={**HEAD, "attend_over": "all"},
        ),
        _scan("scan-nouns-adjectives", "nouns and adjectives", "nouns-adjectives", against="scan", seeds=(1,)),
        _scan("scan-image-to-text", "SCAN, image to text", "image-to-text", against="scan", seeds=(1,)),
    ),
    "POS-SCAN table 1, attention accuracy on the object words of Flickr30k Entities val",
    ANY,
    ("any-box R@1", "any-box pointing"),
)


def _info(row: str, title: str, against: str | None, r1: float = 0, pointing: float = 0, **more: Any) -> Row:
    paper = {"any-box R@1": r1, "any-box pointing": pointing} if r1 else {}
    return Row(f"infoground-{row}", f"grounding/infoground:{row}", title, against, paper, **more)


INFOGROUND = Table(
    "infoground",
    "InfoGround: word features and negative captions",
    "phrases",
    (
        _info("random-encoder", "no negatives, random encoder", None, 25.66, 57.37),
        _info("none", "no negatives, pre-trained encoder", "infoground-random-encoder", 35.74, 66.89),
        _info("random", "random negatives", "infoground-none", 36.32, 66.92),
        _info("plausible", "plausible negatives", "infoground-none", 48.05, 74.91),
        _info("re-ranked", "plausible but untrue negatives", "infoground-plausible", 51.67, 76.74),
        _info("linear", "no negatives, linear maps", "infoground-none", seeds=(1,)),
        _info("two-layers", "no negatives, two hidden layers", "infoground-none", seeds=(1,)),
    ),
    "InfoGround table 2, trained on COCO, Flickr30k test, any-box",
    ANY,
    ("any-box R@1", "any-box pointing"),
)


def _coco(row: str, title: str, against: str | None, r1: float, pointing: float) -> Row:
    paper = {"any-box R@1": r1, "any-box pointing": pointing}
    return Row(f"coco-{row}", f"grounding/infoground-coco:{row}", title, against, paper, seeds=(1,))


INFOGROUND_COCO = Table(
    "infoground-coco",
    "InfoGround trained on COCO photos, chosen and measured on Flickr",
    "phrases",
    (
        _coco("none", "no negatives", None, 35.74, 66.89),
        _coco("random", "random negatives", "coco-none", 36.32, 66.92),
        _coco("plausible", "plausible negatives", "coco-none", 48.05, 74.91),
        _coco("re-ranked", "plausible but untrue negatives", "coco-plausible", 51.67, 76.74),
    ),
    "InfoGround table 2, trained on COCO, Flickr30k test, any-box",
    ANY,
    ("any-box R@1", "any-box pointing"),
)


NEAR = ("stages.match.objectives.self_taught.overlap=0.4",)
"""`lite` suppresses proposals that overlap by more than .55, so at the paper's .6 only 3 % of them have a neighbour."""


def _reir(row: str | None, title: str, against: str | None, accuracy: float | None = None, **more: Any) -> Row:
    paper = {"merged-box R@1": accuracy} if accuracy is not None else {}
    recipe = f"grounding/reir:{row}" if row else "grounding/reir"
    return Row(f"reir-{row or 'full'}", recipe, title, against, paper, **more)


REIR = Table(
    "reir",
    "ReIR: stages, moving boxes, relations",
    "phrases",
    (
        _reir("baseline", "baseline: coarse matching", None, 48.18),
        _reir("tsd", "two stages (TSD)", "reir-baseline", 50.80),
        _reir("str", "TSD, self-taught regression (STR)", "reir-tsd", 56.88, overrides=NEAR),
        _reir("vogn-rc", "TSD, object graph and relations (VOGN, RC)", "reir-tsd", 52.48),
        _reir(None, "full model, K = 5", "reir-str", 58.30, overrides=NEAR),
        _reir("str-visual", "TSD, STR without the phrase", "reir-tsd", 54.05, overrides=NEAR, seeds=(1,)),
        _reir("uniform", "full model, equal edges", "reir-full", 55.60, overrides=NEAR, seeds=(1,)),
        _reir("k3", "full model, K = 3", "reir-full", 57.47, overrides=NEAR, seeds=(1,)),
        _reir("k10", "full model, K = 10", "reir-full", 57.15, overrides=NEAR, seeds=(1,)),
        _reir("grounder", "reconstruction alone, after GroundeR", "reir-baseline", seeds=(1,)),
        _reir("kac", "with labels and places, after KAC-Net", "reir-baseline", seeds=(1,)),
    ),
    "ReIR tables 2 and 3, accuracy on Flickr30k val, merged-box",
    ("merged-box R@1", "merged-box R@5", "merged-box R@10", "merged-box pointing", "any-box R@1", "any-box pointing"),
    ("merged-box R@1", "any-box R@1"),
)


CLASSES = "class-lists/flickr30k_classes_480.txt"
POINT = "stages.point.epochs=1"
REWARD = ("begin_at=reward", "stages.reward.epochs=1")
BASE = "start_from=baseline-8"
TEACHER = "stages.point.objectives.distillation.teacher=flickr8k/pos-scan-s1"


F1_CIDER = ("F1_all", "F1_loc", "CIDEr")
CYCLICAL_TEST, CYCLICAL_VAL = (4.08, 11.83, 59.6), (4.18, 11.9, 62.1)  # Cyclical's baseline, tables 1 and 4
UP_DOWN = (5.11, 14.67, 57.1)  # POS-SCAN's baseline, table 2
GVD = (3.88, 11.70, 60.1)  # without supervision, as Distributed's table 1 has it


def _captioner(
    name: str, recipe: str, title: str, paper: Sequence[float] = (), base: Sequence[float] = (), *more: str
) -> Row:
    """One row of the captioning table: one epoch more of training from the same cross-entropy captioner."""
    return Row(
        name,
        recipe,
        title,
        None if name == "continued" else "continued",
        dict(zip(F1_CIDER, paper, strict=False)),
        dict(zip(F1_CIDER, base, strict=False)),
        (BASE, POINT, *more),
        (1,),
        run=name,
        size="continue",
    )


CAPTIONING = Table(
    "captioning",
    "Captioners: one more epoch from one cross-entropy captioner",
    "captions",
    (
        Row("baseline-8", "captioning/baseline", "cross entropy, 8 epochs", seeds=(1,), run="baseline-8"),
        _captioner("continued", "captioning/continued", "cross entropy goes on"),
        _captioner("cyclical", "captioning/cyclical", "cyclical", (4.98, 13.53, 61.4), CYCLICAL_TEST),
        _captioner(
            "consistency", "captioning/cyclical:consistency", "attention consistency", (4.19, 11.3, 61.8), CYCLICAL_VAL
        ),
        _captioner(
            "distilled",
            "captioning/pos-scan:distilled",
            "distilled from POS-SCAN",
            (6.47, 17.96, 58.0),
            UP_DOWN,
            TEACHER,
        ),
        _captioner("distributed", "captioning/distributed", "distributed, K = 4", (7.91, 21.54, 62.5), GVD),
        _captioner("combined", "captioning/combined", "everything combined", (), (), "end_at=point", TEACHER),
        _captioner(
            "scst-cider", "captioning/pos-scan:none-cider", "SCST with CIDEr", (4.19, 10.71, 67.1), UP_DOWN, *REWARD
        ),
        _captioner(
            "scst-matching",
            "captioning/pos-scan",
            "SCST with CIDEr and matching",
            (5.37, 13.88, 64.9),
            UP_DOWN,
            *REWARD,
            "stages.reward.objectives.self_critical.grounders={flickr8k/pos-scan-s1: 1.0}",
        ),
    ),
    "each against its paper's own baseline: Cyclical table 1 (test) and, for consistency, table 4 (val); POS-SCAN "
    "table 2 (val), where SCST follows cross entropy without distillation; Distributed table 1 (test), against GVD",
    CAPTIONS,
    ("F1_all", "F1_loc", "CIDEr"),
    page="docs/results.md",
)

HEADLINE = replace(
    CAPTIONING,
    name="headline",
    title="Captioners: the headline rows, two seeds",
    rows=tuple(
        replace(row, seeds=(1, 2))
        for row in CAPTIONING.rows
        if row.name in ("continued", "cyclical", "distilled", "scst-matching", "distributed", "combined")
    ),
)


def _nothing(name: BaselineName, title: str) -> Row:
    return Row(f"baseline-{name}", "grounding/scan", title, seeds=(1,), baseline=name)


def _row(table: Table, name: str) -> Row:
    """Return a row of another table, compared with objectness alone."""
    return replace(next(row for row in table.rows if row.name == name), against="baseline-objectness", paper={})


GROUNDING = Table(
    "grounding",
    "Grounders beside what learns nothing",
    "phrases",
    (
        _nothing("whole", "whole image"),
        _nothing("centre", "centre"),
        _nothing("random", "random region"),
        _nothing("largest", "largest region"),
        _nothing("objectness", "top objectness"),
        replace(_nothing("label", "detector label, equal lemmas"), against="baseline-objectness"),
        _row(SCAN, "scan"),
        _row(SCAN, "pos-scan-over-all"),
        _row(INFOGROUND, "infoground-re-ranked"),
        _row(REIR, "reir-full"),
    ),
    "none: no paper has this table",
    ANY,
    ("any-box R@1", "any-box pointing"),
)

ALL = (HEADLINE, CAPTIONING, GROUNDING, SCAN, INFOGROUND, INFOGROUND_COCO, REIR)
TABLES = {table.name: table for table in ALL}
