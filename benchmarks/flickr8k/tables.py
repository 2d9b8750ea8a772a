"""All tables: the captioners', and those of the grounders, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.flickr8k.grounding_tables import ALL as GROUNDING_TABLES
from benchmarks.flickr8k.grounding_tables import TEST_GROUNDING, WORDS
from benchmarks.flickr8k.rows import CAPTIONS, PRIOR, Row, Table
from deixis.metrics.sections import RIGHT_BOX

__all__ = ["CAPTIONS", "CLASSES", "PRIOR", "ROWS", "TABLES", "Row", "Table"]

CLASSES = "class-lists/flickr30k_classes_480.txt"
POINT = "stages.point.epochs=1"
REWARD = ("begin_at=reward", "stages.reward.epochs=1")
BASE = "baseline-8"
"""What all captioners start from: each seed has its own, so that seeds tell how much the start matters too."""
CAPTION_SEEDS = (1, 2, 3)
FIVE = (1, 2, 3, 4, 5)
"""Of the cycle, the combination and what they are compared with: their differences are small beside the seeds'."""

FIVE_SEEDS: tuple[str, ...] = (
    "continued",
    "cyclical",
    "consistency",
    "distilled-lite",
    "distributed",
    "combined",
    "one-branch",
    "one-branch-cider",
    "combined-matching",
)

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
    seeds = FIVE if name in FIVE_SEEDS else CAPTION_SEEDS
    return Row(
        name,
        recipe,
        title,
        None if name == against else against,
        dict(zip(F1_CIDER, paper, strict=False)),
        dict(zip(F1_CIDER, base, strict=False)),
        (f"start_from=flickr8k/{after}-s{{seed}}", *stage, *more),
        seeds,
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
        Row(BASE, "captioning/baseline", "cross entropy, 8 epochs", seeds=FIVE),
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
    ("F1_all", "F1_loc", RIGHT_BOX, "CIDEr"),
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

TEST = replace(HEADLINE, name="test", title="Captioners: the headline rows on test", split="test")

ALL = (HEADLINE, CAPTIONING, *GROUNDING_TABLES, TEST, TEST_GROUNDING)
TABLES = {table.name: table for table in ALL}
ROWS = {WORDS.name: WORDS, **{row.name: row for table in reversed(ALL) for row in table.rows}}
"""Every row by its name."""
