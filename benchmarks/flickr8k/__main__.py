"""Train and measure the rows of a table on Flickr8k's photos, and write the table into the docs.

    python -m benchmarks.flickr8k --list
    python -m benchmarks.flickr8k --table scan --threads 1
    python -m benchmarks.flickr8k --table reir --rows reir-tsd reir-str --seeds 1
    python -m benchmarks.flickr8k --table infoground --render
    python -m benchmarks.flickr8k --table captioning --remeasure
    python -m benchmarks.flickr8k --plots

Runs go to ``$DEIXIS_HOME/runs/flickr8k/ROW-sSEED`` and go on where they stopped; results, a small file each, lie in
``benchmarks/flickr8k/results`` and are not made twice.
"""

from __future__ import annotations

import argparse
import shlex
import sys

from rich.console import Console

from benchmarks.flickr8k import render, results
from benchmarks.flickr8k.measure import measure
from benchmarks.flickr8k.tables import TABLES, Row, Table
from benchmarks.flickr8k.work import Worker, ready, run_folder, settings
from deixis.errors import DeixisError


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", nargs="+", choices=sorted(TABLES), default=[], help="which tables")
    parser.add_argument("--rows", nargs="+", help="only these rows")
    parser.add_argument("--seeds", nargs="+", type=int, help="only these seeds")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--list", action="store_true", help="show tables and rows with what is done, and stop")
    parser.add_argument("--dry-run", action="store_true", help="show what would be trained, and stop")
    parser.add_argument("--render", action="store_true", help="train nothing: write the tables from the results")
    parser.add_argument("--remeasure", action="store_true", help="train nothing: measure again rows that have results")
    parser.add_argument("--plots", action="store_true", help="draw the plots of docs/images from the results")
    options = parser.parse_args()
    console = Console(stderr=True)
    if options.list or not (options.table or options.plots):
        for table in TABLES.values():
            print(f"{table.name}: {table.title}")
            for row in table.rows:
                print(f"    {row.name:28} {state(table, row):30} {row.recipe}")
        return 0
    tables = [TABLES[name] for name in options.table]
    try:
        todo = (measured if options.remeasure else missing)(tables, options.rows, options.seeds)
        if options.dry_run:
            for _, row, seed in todo:
                print(f"{row.name}-s{seed}: {command(row, seed)}")
            return 0
        worker = Worker(options.threads, console)
        for table, row, seed in [] if options.render else todo:
            path = run_folder(row, seed) if options.remeasure else worker.run(row, seed)
            result = measure(worker, table, row, seed, path)
            results.save(result, results.folder_of(table.split, table.on))
            shown = ", ".join(f"{name} {100 * (result.value('bare', name) or 0):.1f}" for name in table.compared)
            console.print(f"{row.name}-s{seed}: {shown}")
            render.write(table)  # so that a queue that is stopped leaves the page as it is known so far
        for table in tables:
            render.write(table)
        if options.plots:
            from benchmarks.flickr8k.plots import draw  # matplotlib is a tool of developers, and slow to import

            for name, drawn in draw().items():
                print(f"docs/images/{name}" if drawn else f"{name}: the results hold nothing to draw yet")
    except DeixisError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    return 0


def missing(tables: list[Table], rows: list[str] | None, seeds: list[int] | None) -> list[tuple[Table, Row, int]]:
    """Return what has no result yet: the first seed of every table, then the next; rows of one seed come last."""
    return [entry for entry in wanted(tables, rows, seeds) if not has_result(*entry)]


def measured(tables: list[Table], rows: list[str] | None, seeds: list[int] | None) -> list[tuple[Table, Row, int]]:
    """Return what has a result whose run is still there, each run once though several tables may show it."""
    found = {
        (table.split, table.on, row.name, seed): (table, row, seed)
        for table, row, seed in wanted(tables, rows, seeds)
        if has_result(table, row, seed) and ready(row, seed)
    }
    return list(found.values())


def wanted(tables: list[Table], rows: list[str] | None, seeds: list[int] | None) -> list[tuple[Table, Row, int]]:
    """Return what was asked for: the first seed of every table, then the next; rows of one seed come last."""
    asked = [
        (table, row, seed)
        for table in tables
        for row in table.rows
        for seed in row.seeds
        if (rows is None or row.name in rows) and (seeds is None or seed in seeds)
    ]
    return sorted(asked, key=lambda entry: (len(entry[1].seeds) == 1, entry[2], tables.index(entry[0])))


def has_result(table: Table, row: Row, seed: int) -> bool:
    """Whether a row with a seed was measured on the photos of a table."""
    return results.current(row, seed, results.folder_of(table.split, table.on)) is not None


def command(row: Row, seed: int) -> str:
    """Return what a user types to train one row alone."""
    return shlex.join(["deixis", "train", row.recipe, *settings(row, seed)])


def state(table: Table, row: Row) -> str:
    """Say which seeds of a row are measured, trained or missing."""
    words = []
    for seed in row.seeds:
        done = has_result(table, row, seed)
        words.append(f"{seed}: {'measured' if done else 'trained' if ready(row, seed) else 'not run'}")
    return ", ".join(words)


if __name__ == "__main__":
    sys.exit(main())
