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
    joined: tuple[str, ...] = ()
    """Rows whose runs of the same seed answer together, as an ensemble; nothing is trained for it."""
    size: str = "cpu"
    needs: tuple[str, ...] = ()
    """Rows that are trained before this one: what it starts from, its teachers and judges."""

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
    page: str = "docs/reports/grounding.md"
    split: str = "val"
    """The photos it is measured on. Everything is chosen on val; test is measured when all is settled."""


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


LONGER = ("stages.contrast.epochs=9",)
"""After the 3 epochs of the size `cpu` the losses still fall fast, those with negatives most of all."""


def _info(row: str, title: str, against: str | None, r1: float = 0, pointing: float = 0, **more: Any) -> Row:
    paper = {"any-box R@1": r1, "any-box pointing": pointing} if r1 else {}
    return Row(f"infoground-{row}", f"grounding/infoground:{row}", title, against, paper, overrides=LONGER, **more)


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
        Row(
            "reir-light-relations",
            "grounding/reir",
            "full model, relations weighted 0.1",
            "reir-full",
            overrides=(*NEAR, "stages.match.objectives.relation_classification.weight=0.1"),
            seeds=(1, 2),
        ),
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
BASE = "baseline-8"
"""What all captioners start from: each seed has its own, so that seeds tell how much the start matters too."""
CAPTION_SEEDS = (1, 2)

F1_CIDER = ("F1_all", "F1_loc", "CIDEr")
CYCLICAL_TEST, CYCLICAL_VAL = (4.08, 11.83, 59.6), (4.18, 11.9, 62.1)  # Cyclical's baseline, tables 1 and 4
UP_DOWN = (5.11, 14.67, 57.1)  # POS-SCAN's baseline, table 2
SCAN_DISTILLED = (4.49, 13.49, 58.8)  # and its captioners distilled from SCAN
DISTILLED = (6.47, 17.96, 58.0)  # and from POS-SCAN
GVD = (3.88, 11.70, 60.1)  # without supervision, as Distributed's table 1 has it
DISTRIBUTED = (7.91, 21.54, 62.5)  # K = 4


def _captioner(
    name: str,
    recipe: str,
    title: str,
    paper: Sequence[float] = (),
    base: Sequence[float] = (),
    *more: str,
    against: str = "continued",
    after: str = BASE,
    needs: tuple[str, ...] = (),
) -> Row:
    """One row of the captioning table: one epoch of training from the captioner of another row."""
    stage = () if "begin_at=reward" in more else (POINT,)
    return Row(
        name,
        recipe,
        title,
        None if name == against else against,
        dict(zip(F1_CIDER, paper, strict=False)),
        dict(zip(F1_CIDER, base, strict=False)),
        (f"start_from=flickr8k/{after}-s{{seed}}", *stage, *more),
        CAPTION_SEEDS,
        size="continue",
        needs=(after, *needs),
    )


def _taught(
    name: str, recipe: str, title: str, teacher: str, *figures: Sequence[float], more: tuple[str, ...] = ()
) -> Row:
    """A captioner whose attention learns from a grounder of the grounding tables, its first seed."""
    taught = f"stages.point.objectives.distillation.teacher={_grounder(teacher)}"
    paper, base = figures or ((), ())
    return _captioner(name, recipe, title, paper, base, taught, *more, needs=(teacher,))


def _rewarded(
    name: str,
    title: str,
    paper: Sequence[float],
    base: Sequence[float],
    *,
    after: str = BASE,
    judge: str | None = None,
    recipe: str = "captioning/pos-scan",
) -> Row:
    """A captioner that is trained by rewards after a row: CIDEr, and a grounder's matching score where one judges."""
    judges = () if judge is None else (judge,)
    weights = ", ".join(f"{_grounder(name)}: 1.0" for name in judges)
    more = (f"stages.reward.objectives.self_critical.grounders={{{weights}}}",) if judges else ()
    recipe = recipe if judges else "captioning/pos-scan:none-cider"
    against = "continued" if after == BASE else after
    return _captioner(name, recipe, title, paper, base, *REWARD, *more, against=against, after=after, needs=judges)


def _grounder(row: str) -> str:
    return f"flickr8k/{row}-s1"


def _branches(name: str, row: str, title: str, *paper: float) -> Row:
    return _captioner(name, f"captioning/distributed:{row}", title, paper, GVD if paper else ())


def _detector(name: str, title: str) -> Row:
    """Other regions than the baseline's, so nothing to start from: all stages, the last as long as the others'."""
    return Row(name, f"captioning/{name}", title, "continued", overrides=(POINT,), seeds=(1,))


CAPTIONING = Table(
    "captioning",
    "Captioners: one more epoch from one cross-entropy captioner",
    "captions",
    (
        Row(BASE, "captioning/baseline", "cross entropy, 8 epochs", seeds=CAPTION_SEEDS),
        _captioner("continued", "captioning/continued", "continued cross entropy (control)"),
        _captioner("supervised", "captioning/pos-scan:truth", "human boxes (the bound)", (8.33, 23.09, 58.9), UP_DOWN),
        _captioner("cyclical", "captioning/cyclical", "cyclical", (4.98, 13.53, 61.4), CYCLICAL_TEST),
        _captioner(
            "zero-representation",
            "captioning/cyclical:zero-representation",
            "cyclical, zero representation",
            (5.13, 13.99, 62.0),
            CYCLICAL_TEST,
        ),
        _captioner(
            "consistency", "captioning/cyclical:consistency", "attention consistency", (4.19, 11.3, 61.8), CYCLICAL_VAL
        ),
        _taught("scan-distilled", "captioning/pos-scan:scan", "distilled from SCAN", "scan", SCAN_DISTILLED, UP_DOWN),
        _taught(
            "distilled", "captioning/pos-scan:distilled", "distilled from POS-SCAN", "pos-scan", DISTILLED, UP_DOWN
        ),
        _taught("distilled-lite", "captioning/pos-scan:distilled", "distilled from the `lite` grounder", "lite"),
        *(
            _taught(f"lambda-{w}", f"captioning/pos-scan:lambda-{w}", f"distilled from `lite`, weight {w}", "lite")
            for w in ("0.02", "0.5", "1.0")
        ),
        _rewarded("scst-cider", "SCST with CIDEr", (4.19, 10.71, 67.1), UP_DOWN),
        _rewarded("scst-matching", "SCST with CIDEr and POS-SCAN", (5.37, 13.88, 64.9), UP_DOWN, judge="pos-scan"),
        _rewarded(
            "scan-distilled-cider",
            "distilled from SCAN, SCST with CIDEr",
            (4.72, 13.47, 67.4),
            SCAN_DISTILLED,
            after="scan-distilled",
        ),
        _rewarded(
            "scan-distilled-matching",
            "distilled from SCAN, SCST with CIDEr and SCAN",
            (4.77, 12.25, 67.8),
            SCAN_DISTILLED,
            after="scan-distilled",
            judge="scan",
        ),
        _rewarded(
            "distilled-cider",
            "distilled from POS-SCAN, SCST with CIDEr",
            (6.62, 16.97, 67.5),
            DISTILLED,
            after="distilled",
        ),
        _rewarded(
            "distilled-matching",
            "distilled from POS-SCAN, SCST with CIDEr and SCAN",
            (7.30, 18.44, 68.2),
            DISTILLED,
            after="distilled",
            judge="scan",
        ),
        _branches("distributed-k2", "k2", "distributed, K = 2", 5.2, 15.90, 60.9),
        _branches("distributed-k3", "k3", "distributed, K = 3", 6.78, 20.10, 61.6),
        _captioner("distributed", "captioning/distributed", "distributed, K = 4", DISTRIBUTED, GVD),
        _branches("distributed-k5", "k5", "distributed, K = 5", 7.62, 20.45, 62.4),
        _branches("no-elimination", "no-elimination-k4", "distributed, K = 4, no elimination", 6.82, 18.91, 61.5),
        _captioner(
            "shared-state",
            "captioning/distributed",
            "distributed, K = 4, one language state",
            (),
            (),
            "model.attention.language_state=shared",
        ),
        _captioner("heads", "captioning/distributed:heads-4", "multi-head, 4 heads", (4.75, 13.19), GVD),
        _detector("perfect-detector", "perfect detector (human boxes), from nothing"),
        _detector("biased-detector", "grounding-biased detector (human boxes), from nothing"),
        _taught("combined", "captioning/combined", "everything combined", "lite", more=("end_at=point",)),
        _taught(
            "one-branch",
            "captioning/combined:one-branch",
            "cyclical and distilled from `lite`, one branch",
            "lite",
            more=("end_at=point",),
        ),
        _rewarded("one-branch-cider", "the same, SCST with CIDEr", (), (), after="one-branch"),
        _rewarded(
            "combined-matching",
            "everything combined, SCST with CIDEr and SCAN",
            (),
            (),
            after="combined",
            judge="scan",
            recipe="captioning/combined",
        ),
    ),
    "each against its paper's own baseline: Cyclical tables 1 and 6 (test) and, for consistency, table 4 (val); "
    "POS-SCAN table 2 (val); Distributed tables 1 to 3 (test), against GVD",
    CAPTIONS,
    ("F1_all", "F1_loc", "CIDEr"),
    page="docs/reports/results.md",
)

HEADLINE = replace(
    CAPTIONING,
    name="headline",
    title="Captioners: the headline rows, two seeds",
    rows=tuple(
        row
        for row in CAPTIONING.rows
        if row.name
        in (
            "continued",
            "supervised",
            "cyclical",
            "distilled",
            "distilled-lite",
            "distilled-cider",
            "distributed",
            "combined",
            "one-branch",
            "one-branch-cider",
        )
    ),
)


def _nothing(name: BaselineName, title: str) -> Row:
    return Row(f"baseline-{name}", "grounding/scan", title, seeds=(1,), baseline=name)


def _row(table: Table, name: str, title: str) -> Row:
    """Return a row of another table, compared with objectness alone."""
    row = next(row for row in table.rows if row.name == name)
    return replace(row, title=title, against="baseline-objectness", paper={})


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
        _row(SCAN, "scan", "SCAN"),
        _row(SCAN, "pos-scan-over-all", "POS-SCAN, answering over all words"),
        _row(INFOGROUND, "infoground-none", "InfoGround without negatives"),
        _row(INFOGROUND, "infoground-re-ranked", "InfoGround with re-ranked negatives"),
        _row(REIR, "reir-baseline", "ReIR, first stage alone"),
        _row(REIR, "reir-full", "ReIR, full model"),
        Row("lite", "grounding/lite", "`lite`, the grounder in the package", "baseline-objectness", seeds=(1,)),
        Row(
            "ensemble",
            "grounding/infoground:none",
            "InfoGround without negatives and ReIR's first stage together",
            "infoground-none",
            joined=("infoground-none", "reir-baseline"),
            seeds=(1, 2),
        ),
    ),
    "none: no paper has this table",
    ANY,
    ("any-box R@1", "any-box pointing"),
)

TEST = replace(HEADLINE, name="test", title="Captioners: the headline rows on test", split="test")
TEST_GROUNDING = replace(
    GROUNDING,
    name="test-grounding",
    title="Grounders: the headline rows on test",
    rows=tuple(
        replace(row, seeds=row.seeds[:2])
        for row in GROUNDING.rows
        if row.name
        in (
            "baseline-objectness",
            "infoground-none",
            "infoground-re-ranked",
            "reir-baseline",
            "reir-full",
            "lite",
            "ensemble",
        )
    ),
    page="docs/reports/results.md",
    split="test",
)

ALL = (HEADLINE, CAPTIONING, GROUNDING, SCAN, INFOGROUND, INFOGROUND_COCO, REIR, TEST, TEST_GROUNDING)
TABLES = {table.name: table for table in ALL}
ROWS = {row.name: row for table in reversed(ALL) for row in table.rows}
"""Every row by its name."""
