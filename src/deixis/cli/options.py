"""Options that several commands share, so that they are called the same and mean the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

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
Things = Annotated[
    bool, typer.Option("--things", help='Answer with whole things: "blue shirt" is who wears it, as in RefCOCO.')
]
