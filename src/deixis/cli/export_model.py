"""``deixis export-model``: a model as ONNX files, to be answered with without torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from deixis.defaults import BEAM


def export_model(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="lite, a bundle folder or a model on the hub.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write; it must not exist yet.")],
    form: Annotated[Literal["onnx"], typer.Option("--format", help="What to write.")] = "onnx",
    beam: Annotated[
        int, typer.Option(help="Width of the search for captions, fixed in the files; 1 is greedy.")
    ] = BEAM,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Write a model as ONNX files: regions, captioner and grounder, to be answered with by numpy or in a browser."""
    from deixis.answering.load import load
    from deixis.portable.export import export_model as export

    manifest = export(load(model), output, beam=beam, told=lambda name: typer.echo(f"writing {name}", err=True))
    size = sum(facts.bytes for facts in manifest.files.values())
    if as_json:
        typer.echo(json.dumps({"folder": str(output), "format": form, "bytes": size, "files": sorted(manifest.files)}))
        return
    typer.echo(f"wrote {output}, {size / 1e6:.1f} MB; try: python -m deixis.portable {output} PHOTO")
