"""``deixis bundle``: a captioner and a grounder as one folder that stands alone, or as a model on the hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from deixis.grounding.presence import Presence
    from deixis.models.bundle import Bundle


def bundle(
    captioner: Annotated[str, typer.Argument(metavar="CAPTIONER", help="A run, a model folder or another bundle.")],
    grounder: Annotated[str | None, typer.Argument(metavar="[GROUNDER]", help="The run of a grounder.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The folder to write.")] = None,
    push: Annotated[str | None, typer.Option(help="Upload to the Hugging Face hub as OWNER/NAME.")] = None,
    private: Annotated[bool, typer.Option("--private", help="Make a new hub repository private.")] = False,
    method: Annotated[
        Literal["attention", "grounder"] | None,
        typer.Option(help="Where words point when nobody says; else as it was."),
    ] = None,
    rule: Annotated[
        Literal["auto", "argmax", "union", "soft_vote"] | None, typer.Option(help="How attention becomes a box.")
    ] = None,
    objectness: Annotated[float | None, typer.Option(help="Exponent of objectness in attention.")] = None,
    regionness: Annotated[float | None, typer.Option(help="Exponent of regionness in attention.")] = None,
    choice: Annotated[
        float | None, typer.Option(help="Weight of the grounder's match among the captions of a beam; 0: no say.")
    ] = None,
    calibrate: Annotated[
        str | None, typer.Option(metavar="DATA", help="Fit the probabilities of --check on this dataset.")
    ] = None,
    split: Annotated[str, typer.Option(help="The split of --calibrate; never one you report on.")] = "val",
    store: Annotated[str | None, typer.Option(help="Region store of --calibrate's photos.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Keep single precision; half is half the size.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Join a captioner and a grounder into one folder that `deixis caption --model FOLDER` takes."""
    from dataclasses import replace

    from deixis.answering.load import Deixis
    from deixis.errors import DeixisError, TooFewError
    from deixis.evaluation.check import calibrate as fit
    from deixis.evaluation.setting import EvaluationOptions
    from deixis.models.bundle import find_bundle, join, write_bundle
    from deixis.models.publish import push_to_hub

    if output is None and push is None:
        raise DeixisError("say where the bundle goes: -o FOLDER, or --push OWNER/NAME")
    found = join(find_bundle(captioner), None if grounder is None else find_bundle(grounder))
    given = {"rule": rule, "objectness": objectness, "regionness": regionness}
    pointing = replace(found.card.pointing, **{key: value for key, value in given.items() if value is not None})  # type: ignore[arg-type]
    if choice is not None and not 0 <= choice < float("inf"):
        raise DeixisError(f"--choice should be 0 or more, got {choice}")
    chosen = found.card.choice if choice is None else choice
    found = replace(
        found, card=replace(found.card, method=method or found.card.method, pointing=pointing, choice=chosen)
    )
    model = Deixis.from_bundle(found)  # parts that do not fit each other are refused before anything is written
    done: dict[str, Any] = {}
    if calibrate is not None:
        presence: Presence | None
        try:
            presence, done["check"] = fit(model, calibrate, EvaluationOptions(split=split, store=store))
        except TooFewError as error:
            presence, done["warning"] = _taken_over(found, str(error))
            typer.echo(f"deixis: warning: {done['warning']}", err=True)
        found = replace(found, card=replace(found.card, presence=presence))
    if output is not None:
        write_bundle(output, found, half=not full)
        size = sum(file.stat().st_size for file in output.rglob("*") if file.is_file())
        done |= {"folder": str(output), "bytes": size}
    if push is not None:
        done["address"] = push_to_hub(found, push, private=private, half=not full)
    if as_json:
        typer.echo(json.dumps(done))
        return
    for name, value in done.get("check", {}).items():
        typer.echo(f"check: {name} {value:.3f}")
    if output is not None:
        typer.echo(f"wrote {output}, {done['bytes'] / 1e6:.1f} MB")
    if push is not None:
        typer.echo(f"uploaded to {done['address']}")


def _taken_over(found: Bundle, why: str) -> tuple[Presence | None, str]:
    """Return the fit that stands in for one that could not be made, and what to tell the user."""
    from deixis.evaluation.check import presence_of_start

    if found.card.presence is not None:
        return found.card.presence, f"{why}; the fit that {found.name} has is kept"
    start = presence_of_start(found)
    if start is not None:
        return start[1], f"{why}; the fit of {start[0]}, which the grounder started from, is taken over"
    return None, f"{why}; without a fit `--check` goes by the scores of boxes"
