"""``deixis regions truth``: a store whose regions are a dataset's human boxes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer


def truth(
    data: Annotated[str, typer.Argument(help="A dataset with human boxes.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the store.")],
    classes: Annotated[
        str, typer.Option(help="Object classes, one a line; boxes of other phrases are left out.")
    ] = "class-lists/flickr30k_classes_480.txt",
    split: Annotated[str | None, typer.Option(help="Only this split; all of them if not given.")] = None,
    features: Annotated[
        str, typer.Option(help="What is known of a region: its classes alone, or its lite feature too.")
    ] = "classes",
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Take a dataset's human boxes as regions: the perfect detector. Only recipes with data.supervision may use it."""
    from deixis.data.locations import find
    from deixis.data.open import open_dataset
    from deixis.data.truth_store import write_truth_store
    from deixis.errors import DeixisError

    if features not in ("classes", "lite"):
        raise DeixisError(f"unknown --features {features!r}: there are classes and lite")
    dataset = open_dataset(find(data, "data"))
    store = write_truth_store(
        dataset, output, classes, split=split, features="lite" if features == "lite" else "classes"
    )
    for item in store.header.failed:
        print(f"deixis: left out {item['id']}: {item['reason']}", file=sys.stderr)
    regions = sum(int(shard["regions"]) for shard in store.header.shards)
    facts = {"store": str(output), "images": len(store), "failed": len(store.header.failed), "regions": regions}
    if json_output:
        typer.echo(json.dumps(facts | {"fingerprint": store.fingerprint}))
    else:
        typer.echo(
            f"{len(store):,} images, {regions:,} regions in {output} ({store.fingerprint}): human boxes, so only "
            "recipes with data.supervision: true may use them"
        )
