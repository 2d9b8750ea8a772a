"""``deixis export-model``: a model as ONNX files, to be answered with without torch, or by a page in the browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from deixis.defaults import BEAM


def export_model(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="lite, a bundle folder or a model on the hub.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write; it must not exist yet.")],
    form: Annotated[
        Literal["onnx", "page"],
        typer.Option("--format", help="onnx: ONNX files; page: those, and a page that answers in the browser."),
    ] = "onnx",
    beam: Annotated[
        int, typer.Option(help="Width of the search for captions, fixed in the files; 1 is greedy.")
    ] = BEAM,
    weights: Annotated[
        Literal["half", "int8", "smallest"],
        typer.Option(
            help="half: no number changes; int8: eight bits where answers rarely change; smallest: everywhere."
        ),
    ] = "half",
    runtime: Annotated[
        Path | None,
        typer.Option(help="For a page: onnxruntime-web, as npm packed it; else it is sought in this folder."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Write a model as ONNX files: regions, captioner and grounder, to be answered with by numpy or in a browser."""
    from deixis.answering.load import load
    from deixis.errors import DeixisError
    from deixis.portable.export import export_model as export
    from deixis.portable.runtime import runtime_files

    if runtime is not None and form != "page":
        raise DeixisError(f"--runtime {runtime} is for a page: add --format page")
    web = runtime_files(runtime) if form == "page" else None
    manifest = export(
        load(model),
        output,
        beam=beam,
        weights=weights,
        runtime=web,
        told=lambda name: typer.echo(f"writing {name}", err=True),
    )
    size = sum(facts.bytes for facts in manifest.files.values())
    if as_json:
        facts = {"folder": str(output), "format": form, "weights": weights, "bytes": size}
        typer.echo(json.dumps({**facts, "files": sorted(manifest.files)}))
        return
    again = f"python -m http.server -d {output}" if form == "page" else f"python -m deixis.portable {output} PHOTO"
    typer.echo(f"wrote {output}, {size / 1e6:.1f} MB; try: {again}")
