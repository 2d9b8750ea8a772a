"""How a model is asked: one set of options for the command line, Python, HTTP and evaluation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict, Unpack, get_args, get_type_hints

from deixis.captioning.answer import Pointing
from deixis.captioning.search.fluent import fluent_search
from deixis.captioning.search.strategy import Strategy
from deixis.defaults import BEAM
from deixis.errors import DeixisError
from deixis.models.bundle import Method
from deixis.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from deixis.answering.load import Deixis


class How(TypedDict, total=False):
    """The fields of :class:`Asking` by name, as methods take them: ``model.caption(photo, beam=3, check=False)``."""

    beam: int
    check: bool | None
    method: Method | None
    pointing: Pointing | None
    threshold: float | None
    fluent: bool


@dataclass(frozen=True, slots=True)
class Asking:
    """How a model is asked. What is None is left to the model's card."""

    beam: int = BEAM
    """Beam width; 1 is greedy."""
    check: bool | None = None
    """Ask the grounder whether each thing is really there; None: where the model has one."""
    method: Method | None = None
    """Where words point: where the captioner looked, or where the grounder finds their phrases."""
    pointing: Pointing | None = None
    """How attention becomes a box."""
    threshold: float | None = None
    """Probability of being there below which a word is doubted and a phrase is not found; None: as was fitted."""
    fluent: bool = True
    """Keep from saying what reads badly (:func:`deixis.captioning.search.fluent.fluent_search`); papers do not."""

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise DeixisError(f"beam should be at least 1, got {self.beam}")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise DeixisError(f"threshold should be a probability between 0 and 1, got {self.threshold}")
        if self.threshold is not None and self.check is False:
            raise DeixisError("a threshold belongs to the check: leave it out, or let captions be checked")

    @classmethod
    def of(cls, asking: Asking | None, **how: Unpack[How]) -> Asking:
        """Return what was asked, with single options changed."""
        return replace(asking or cls(), **how)

    def search(self, vocabulary: Vocabulary, *, chosen: bool) -> Strategy:
        """Return the search for captions; ``chosen``: whether a grounder ranks what it finds."""
        if self.fluent:
            return fluent_search(vocabulary, self.beam, chosen=chosen)
        return Strategy("greedy" if self.beam == 1 else "beam", width=self.beam)


@dataclass(frozen=True, slots=True)
class Typed:
    """The options that somebody typed; what is None was left out. The fields are the options of ``deixis caption``."""

    beam: int | None = None
    method: str | None = None
    point: str | None = None
    objectness: float | None = None
    regionness: float | None = None
    threshold: float | None = None

    def asked_of(self, model: Deixis, usual: Asking) -> Asking:
        """Return how to ask: as usual, but for what was typed. Options that a model cannot follow are refused."""
        model.require_method(self.method)
        rules = get_args(get_type_hints(Pointing)["rule"])
        if self.point is not None and self.point not in rules:
            raise DeixisError(f"unknown way to point {self.point[:80]!r}: there are {', '.join(rules)}")
        given = {"rule": self.point, "objectness": self.objectness, "regionness": self.regionness}
        changes = {key: value for key, value in given.items() if value is not None}
        pointing = replace(model.card.pointing, **changes) if changes else usual.pointing  # type: ignore[arg-type]
        return replace(
            usual,
            beam=usual.beam if self.beam is None else self.beam,
            method=self.method or usual.method,  # type: ignore[arg-type]
            pointing=pointing,
            threshold=usual.threshold if self.threshold is None else self.threshold,
        )
