"""What a row and a table are: a recipe with overrides, its seeds, and what the paper says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from deixis.grounding.baselines import BaselineName
from deixis.metrics.sections import RIGHT_BOX

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

    def settings(self, seed: int) -> tuple[str, ...]:
        """Return its overrides with a seed."""
        return tuple(part.replace("{seed}", str(seed)) for part in self.overrides)

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
    on: str | None = None
    """Another dataset to measure on; its store is named after it as the rows' stores are after ``flickr8k``."""
    split: str = "val"
    """The photos it is measured on. Everything is chosen on val; test is measured when all is settled."""


ANY = ("any-box R@1", "any-box R@5", "any-box R@10", "any-box pointing", "merged-box R@1", "merged-box pointing")
CAPTIONS = ("F1_all", "F1_loc", "F1_all_per_sent", "F1_loc_per_sent", RIGHT_BOX, "attention_accuracy", "CIDEr")
