"""The tables of grounders: SCAN, InfoGround, ReIR, the controls without parts, and all beside what learns nothing.

Stores that the rows name, beside ``flickr8k`` (36 or more regions a photo by ``lite``):

    deixis regions extract flickr8k-entities -o flickr8k-dense --suppress 0.8
    deixis regions whole flickr8k -o flickr8k-whole
    deixis regions whole flickr8k-dense -o flickr8k-dense-whole
    deixis regions extract train2017 -o train2017 --split train
    deixis regions extract train2017/refcoco -o refcoco --split val

Stores lie in ``$DEIXIS_HOME/stores``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.flickr8k.rows import ANY, Row, Table
from deixis.grounding.baselines import BaselineName

HEAD = {"pooling": "head"}  # the paper measures object words, which are the heads of phrases


def _scan(name: str, title: str, row: str | None, **more: Any) -> Row:
    """Ten times the steps of the first tables, 6,660."""
    longer = ("stages.matching.epochs=60",)
    recipe = f"grounding/scan:{row}" if row else "grounding/scan"
    return Row(name, recipe, title, **{"answer": HEAD, "overrides": longer, **more})


SCAN = Table(
    "scan",
    "SCAN and POS-SCAN",
    "phrases",
    (
        _scan("scan", "SCAN, all words", "scan", paper={"attention": 17.63}),
        _scan("pos-scan", "POS-SCAN", None, against="scan", paper={"attention": 28.58}),
        _scan("pos-scan-code", "POS-SCAN as released, normalised over nouns", "code", against="pos-scan"),
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
            "POS-SCAN as released, answering over all words",
            "code",
            against="pos-scan-code",
            of="pos-scan-code",
            answer={**HEAD, "attend_over": "all"},
        ),
        _scan("scan-nouns-adjectives", "nouns and adjectives", "nouns-adjectives", against="scan", seeds=(1,)),
        _scan("scan-image-to-text", "SCAN, image to text", "image-to-text", against="scan", seeds=(1,)),
    ),
    "POS-SCAN table 1, attention accuracy on the object words of Flickr30k Entities val",
    ANY,
    ("any-box R@1", "any-box pointing"),
)


WORDS = Row("masked", "text/masked:coco", "masked language model, captions of Flickr30k and COCO", seeds=(1,))
"""Finds the negatives and reads the words of InfoGround's rows: trained once, to the end of its recipe."""
LANGUAGE = (
    f"model.encoder.weights=flickr8k/{WORDS.name}-s1",
    f"stages.contrast.objectives.language_contrast.language_model=flickr8k/{WORDS.name}-s1",
)
LONGER = ("stages.contrast.epochs=90", "validation.every=5", *LANGUAGE)
"""Ten times the steps of the first tables, 9,990."""


def _info(row: str, title: str, against: str | None, r1: float = 0, pointing: float = 0, **more: Any) -> Row:
    paper = {"any-box R@1": r1, "any-box pointing": pointing} if r1 else {}
    recipe = f"grounding/infoground:{row}"
    return Row(f"infoground-{row}", recipe, title, against, paper, overrides=LONGER, needs=(WORDS.name,), **more)


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
        _info("unsaid", "the same, none of them said of the photo", "infoground-re-ranked"),
        _info("linear", "no negatives, linear maps", "infoground-none", seeds=(1,)),
        _info("two-layers", "no negatives, two hidden layers", "infoground-none", seeds=(1,)),
    ),
    "InfoGround table 2, trained on COCO, Flickr30k test, any-box",
    ANY,
    ("any-box R@1", "any-box pointing"),
)


def _coco(row: str, title: str, against: str | None, r1: float = 0, pointing: float = 0) -> Row:
    paper = {"any-box R@1": r1, "any-box pointing": pointing} if r1 else {}
    recipe = f"grounding/infoground-coco:{row}"
    return Row(f"coco-{row}", recipe, title, against, paper, overrides=LANGUAGE, needs=(WORDS.name,))


INFOGROUND_COCO = Table(
    "infoground-coco",
    "InfoGround trained on 38,039 COCO photos, chosen and measured on Flickr",
    "phrases",
    (
        _coco("random-encoder", "no negatives, random encoder", None, 25.66, 57.37),
        _coco("none", "no negatives, pre-trained encoder", "coco-random-encoder", 35.74, 66.89),
        _coco("random", "random negatives", "coco-none", 36.32, 66.92),
        _coco("plausible", "plausible negatives", "coco-none", 48.05, 74.91),
        _coco("re-ranked", "plausible but untrue negatives", "coco-plausible", 51.67, 76.74),
    ),
    "InfoGround table 2, trained on COCO, Flickr30k test, any-box",
    ANY,
    ("any-box R@1", "any-box pointing"),
)


STEPS = ("stages.match.epochs=20", "model.start=1473")
"""Ten times the steps of the first tables, 4,420; boxes begin to move after a third."""
COUNTED = tuple(
    f"stages.match.objectives.{name}.reduction=count"
    for name in ("reconstruction", "self_taught", "relation_classification")
)


def _reir(row: str | None, title: str, against: str | None, accuracy: float | None = None, **more: Any) -> Row:
    paper = {"merged-box R@1": accuracy} if accuracy is not None else {}
    recipe = f"grounding/reir:{row}" if row else "grounding/reir"
    return Row(f"reir-{row or 'full'}", recipe, title, against, paper, **{"overrides": STEPS, **more})


REIR = Table(
    "reir",
    "ReIR: stages, moving boxes, relations",
    "phrases",
    (
        _reir("baseline", "baseline: coarse matching", None, 48.18),
        _reir("tsd", "two stages (TSD)", "reir-baseline", 50.80),
        _reir("str", "TSD, self-taught regression (STR)", "reir-tsd", 56.88),
        _reir("str-visual", "TSD, STR without the phrase", "reir-tsd", 54.05),
        _reir("vogn-rc", "TSD, object graph and relations (VOGN, RC)", "reir-tsd", 52.48),
        _reir(None, "full model, K = 5", "reir-str", 58.30),
        _reir("uniform", "full model, equal edges", "reir-full", 55.60),
        _reir("k3", "full model, K = 3", "reir-full", 57.47),
        _reir("k10", "full model, K = 10", "reir-full", 57.15),
        _reir("unanchored", "full model, the best box not held", "reir-full"),
        _reir("own-networks", "full model, networks of their own", "reir-full", seeds=(1,)),
        Row(
            "reir-counted",
            "grounding/reir",
            "full model, each loss a mean over its own count",
            "reir-full",
            overrides=(*STEPS, *COUNTED),
            seeds=(1,),
        ),
        _reir("released", "as the released program has it", "reir-full", seeds=(1,)),
        _reir("grounder", "reconstruction alone, after GroundeR", "reir-baseline", seeds=(1,)),
        _reir("kac", "with labels and places, after KAC-Net", "reir-baseline", seeds=(1,)),
    ),
    "ReIR tables 2 and 3, accuracy on Flickr30k val, merged-box",
    ("merged-box R@1", "merged-box R@5", "merged-box R@10", "merged-box pointing", "any-box R@1", "any-box pointing"),
    ("merged-box R@1", "any-box R@1"),
)


def _without_parts(table: Table, store: str, *names: str) -> Table:
    """Return a table with some of its rows on a store of whole things: the control for what parts do."""
    rows = [row for row in table.rows if row.name in names]
    return replace(
        table,
        name=f"{table.name}-whole",
        title=f"{table.title}, on whole things only",
        rows=tuple(
            replace(
                row,
                name=f"{row.name}-whole",
                against=f"{row.against}-whole" if row.against in names else None,
                overrides=(*row.overrides, f"data.store={store}"),
            )
            for row in rows
        ),
    )


INFOGROUND_WHOLE = _without_parts(
    INFOGROUND,
    "flickr8k-whole",
    *(f"infoground-{row}" for row in ("random-encoder", "none", "random", "plausible", "re-ranked", "unsaid")),
)
REIR_WHOLE = _without_parts(
    REIR, "flickr8k-dense-whole", *(f"reir-{row}" for row in ("baseline", "tsd", "str", "vogn-rc", "full"))
)
SCAN_WHOLE = _without_parts(SCAN, "flickr8k-whole", "scan", "pos-scan")


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
        _row(SCAN, "pos-scan", "POS-SCAN"),
        _row(INFOGROUND, "infoground-none", "InfoGround without negatives"),
        _row(INFOGROUND, "infoground-re-ranked", "InfoGround with re-ranked negatives"),
        _row(REIR, "reir-baseline", "ReIR, first stage alone"),
        _row(REIR, "reir-full", "ReIR, full model"),
        Row("lite", "grounding/lite", "`lite`, the grounder in the package", "baseline-objectness", seeds=(1,)),
        Row(
            "ensemble-scan",
            "grounding/infoground:none",
            "InfoGround without negatives and SCAN together",
            "infoground-none",
            joined=("infoground-none", "scan"),
            seeds=(1, 2),
        ),
    ),
    "none: no paper has this table",
    ANY,
    ("any-box R@1", "any-box pointing"),
)

REFCOCO = Table(
    "refcoco",
    "Grounders of Flickr photos asked for referring expressions (RefCOCO val)",
    "phrases",
    tuple(
        replace(row, against=row.against if row.against == "baseline-objectness" else None)
        for row in GROUNDING.rows
        if row.name
        in ("baseline-objectness", "infoground-none", "infoground-re-ranked", "reir-baseline", "reir-full", "lite")
    ),
    "none: nobody publishes this transfer",
    ("any-box R@1", "any-box R@5", "any-box R@10", "any-box pointing"),
    ("any-box R@1", "any-box pointing"),
    on="train2017/refcoco",
)

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
            "ensemble-scan",
        )
    ),
    page="docs/reports/results.md",
    split="test",
)

ALL = (GROUNDING, SCAN, SCAN_WHOLE, INFOGROUND, INFOGROUND_WHOLE, INFOGROUND_COCO, REIR, REIR_WHOLE, REFCOCO)
