"""Options that several commands share, so that they are called the same and mean the same everywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, get_args, get_type_hints

import typer

if TYPE_CHECKING:
    from deixis.answering.asking import Asking
    from deixis.answering.load import Deixis

Method = Annotated[
    str | None,
    typer.Option(help="Where words point: attention, or grounder; else what suits the model."),
]
Point = Annotated[
    str | None,
    typer.Option(help="How attention becomes a box: auto, argmax, union or soft_vote; else what suits the model."),
]
Objectness = Annotated[float | None, typer.Option(help="Exponent of the regions' objectness beside attention.")]
Regionness = Annotated[float | None, typer.Option(help="Exponent of the regions' regionness beside attention.")]
Check = Annotated[
    bool | None,
    typer.Option(
        "--check/--no-check", help="Ask the grounder whether each thing is there (default: if the model has one)."
    ),
]
Captioner = Annotated[
    str | None,
    typer.Option(help="Take the sentences from a captioner of transformers: hf:OWNER/NAME or hf:FOLDER."),
]
Threshold = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Probability of being there below which a thing is doubted; else as was fitted."),
]


def loaded(
    model: str, grounder: str | None, device: str, *, extractor: bool = True, captioner: str | None = None
) -> Deixis:
    """Load a model as ``--model``, ``--grounder`` and ``--captioner`` name it."""
    from deixis.answering.load import Deixis, load

    if captioner is not None:
        return load(model, grounder=grounder, captioner=captioner, device=device)
    return Deixis.from_pretrained(model, grounder=grounder, device=device, extractor=extractor)


def asked(
    model: Deixis,
    usual: Asking,
    beam: int | None,
    method: str | None,
    point: str | None,
    objectness: float | None,
    regionness: float | None,
    threshold: float | None,
) -> Asking:
    """Return how to ask: as usual, but for what the options say. Options that a model cannot follow are refused."""
    from deixis.captioning.answer import Pointing
    from deixis.errors import DeixisError

    model.require_method(method)
    rules = get_args(get_type_hints(Pointing)["rule"])
    if point is not None and point not in rules:
        raise DeixisError(f"unknown --point {point!r}: there are {', '.join(rules)}")
    given = {"rule": point, "objectness": objectness, "regionness": regionness}
    changes = {key: value for key, value in given.items() if value is not None}
    pointing = replace(model.card.pointing, **changes) if changes else usual.pointing  # type: ignore[arg-type]
    return replace(
        usual,
        beam=usual.beam if beam is None else beam,
        method=method or usual.method,  # type: ignore[arg-type]
        pointing=pointing,
        threshold=usual.threshold if threshold is None else threshold,
    )
