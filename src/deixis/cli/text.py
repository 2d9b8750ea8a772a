"""``deixis text``: parse captions once, and build what training and scoring need from them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from deixis.errors import BadFileError, DeixisError

if TYPE_CHECKING:
    from deixis.types import Sentence

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Parse captions; build vocabularies, relations and object classes.",
)


class Head(StrEnum):
    """Which word of a phrase names its class."""

    syntactic = "syntactic"
    last_noun = "last-noun"


@app.callback()
def _group() -> None:
    """Keep ``prepare`` a command of its own while it is the only one."""


@app.command()
def prepare(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA", help="A dataset, a .tsv(.gz) of captions, or a .txt(.gz) with one caption a line."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for the tables.")],
    split: Annotated[str | None, typer.Option(help="Only this split. By default train, if there is one.")] = None,
    threshold: Annotated[int, typer.Option(min=1, help="Keep words seen at least so many times.")] = 5,
    relations_more_than: Annotated[int, typer.Option(min=0, help="Keep relations seen more often than this.")] = 100,
    relations_at_most: Annotated[int | None, typer.Option(min=1, help="Keep at most so many relations.")] = None,
    classes: Annotated[Path | None, typer.Option(help="Take the object classes from this list, one a line.")] = None,
    class_threshold: Annotated[int, typer.Option(min=1, help="Else keep nouns that head so many phrases.")] = 50,
    head: Annotated[Head, typer.Option(help="Which word of a phrase names its class.")] = Head.syntactic,
    pronouns: Annotated[bool, typer.Option(help="Let pronouns be object classes (ActivityNet-Entities).")] = False,
    processes: Annotated[int, typer.Option(min=1, help="How many processes parse.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Parse a corpus and write vocabulary.json, relations.json, classes.txt and lemmas.json.

    Parses are kept in $DEIXIS_HOME/parses: a stopped run goes on where it was, and the same captions are parsed once.
    """
    from deixis.text.classes import HeadRule, ObjectClasses
    from deixis.text.corpus import Corpus
    from deixis.text.parse import corpus_cache, parse_sentences, parser_name

    if output.exists() and not output.is_dir():
        raise DeixisError(f"{output} is a file; -o takes a folder")
    parser = parser_name()  # a missing parser is better told before a large dataset is read
    given = None if classes is None else ObjectClasses.from_list(classes)
    sentences, used = _captions(data, split)
    with _progress() as progress:
        task = progress.add_task("Parsing", total=len(sentences))
        parsed = parse_sentences(
            sentences,
            processes,
            cache=corpus_cache(),
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    rules: dict[Head, Literal["syntactic", "last noun"]] = {Head.syntactic: "syntactic", Head.last_noun: "last noun"}
    rule: HeadRule = rules[head]
    corpus = Corpus.build(
        parsed,
        threshold=threshold,
        relations_more_than=relations_more_than,
        relations_at_most=relations_at_most,
        class_threshold=class_threshold,
        classes=given,
        head=rule,
        pronouns=pronouns,
    )
    corpus.save(output)
    summary = {"data": str(data), "split": used, "parser": parser, "output": str(output), **corpus.summary()}
    if as_json:
        print(json.dumps(summary, indent=2))
        return
    table = Table(show_header=False, box=None)
    for key, value in summary.items():
        table.add_row(key.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value or "all"))
    Console().print(table)


def _captions(path: Path, split: str | None) -> tuple[list[Sentence], str | None]:
    """Return the sentences of a corpus and the split they come from (None: all there is)."""
    if path.name.endswith((".txt", ".txt.gz")) and path.is_file():
        if split is not None:
            raise DeixisError(f"{path} is a plain text and has no split {split!r}")
        return list(_lines(path)), None
    from deixis.data import open_dataset

    dataset = open_dataset(path)
    if split is None and "train" in dataset.splits:
        split = "train"
    captions = [caption for example in dataset.examples(split) for caption in example.captions]
    if not captions:
        raise BadFileError(f"{path} has no captions" + ("" if split is None else f" in its split {split!r}"))
    return captions, split


def _lines(path: Path) -> Iterator[Sentence]:
    from deixis.text.tokens import tokenise
    from deixis.types import Sentence

    open_text = gzip.open if path.name.endswith(".gz") else open
    try:
        with open_text(path, "rt", encoding="utf-8") as file:
            for line in file:
                text = " ".join(line.split())
                if text:
                    yield Sentence(text, tokenise(text))
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise BadFileError(f"{path} cannot be read as text: {error}") from None


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
