"""``deixis regions teach``: what a namer has learned, told to the stores it learned from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def teach(
    stores: Annotated[
        list[str],
        typer.Argument(metavar="STORE...", help="Stores of RUN/untaught: RUN/looked/DATA, or extracted with it."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the new store.")],
    extractor: Annotated[Path, typer.Option(help="The taught extractor, RUN/lite.")],
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Describe regions anew with a namer that learned from them; no photo is looked at again. Stores are joined."""
    from deixis.data.locations import find
    from deixis.regions.lite import LiteExtractor
    from deixis.regions.store.reader import RegionStore
    from deixis.regions.taught_store import write_taught

    opened = [RegionStore.open(find(store, "stores")) for store in stores]
    made = write_taught(opened, LiteExtractor.load(extractor), output)
    if json_output:
        typer.echo(json.dumps({"store": str(output), "images": len(made), "fingerprint": made.fingerprint}))
    else:
        typer.echo(f"{len(made):,} images in {output} ({made.fingerprint})")
