"""``deixis regions whole``: a store of whole things only, without parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def whole(
    store: Annotated[str, typer.Argument(help="A region store.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the new store.")],
    objectness: Annotated[float, typer.Option(help="Leave out regions that are less surely one whole thing.")] = 0.2,
    max_regions: Annotated[int | None, typer.Option(help="Regions per photo or frame, beside the whole image.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Keep only the whole things of a store: to see whether parts are what a method stumbles over."""
    from deixis.data.locations import find
    from deixis.regions.store.reader import RegionStore
    from deixis.regions.whole_things import write_whole_things

    old = RegionStore.open(find(store, "stores"))
    made = write_whole_things(old, output, objectness=objectness, most=max_regions)
    before, after = (sum(int(shard["regions"]) for shard in part.header.shards) for part in (old, made))
    facts = {"store": str(output), "images": len(made), "regions": after, "before": before}
    if json_output:
        typer.echo(json.dumps(facts | {"fingerprint": made.fingerprint}))
    else:
        typer.echo(f"{len(made):,} images, {after:,} of {before:,} regions in {output} ({made.fingerprint})")
