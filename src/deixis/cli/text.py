"""``deixis text``: parse captions once, and build what training and scoring need from them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from deixis.errors import BadFileError, DeixisError
from deixis.locks import only_writer
from deixis.reading.files import read_lines

if TYPE_CHECKING:
    from deixis.text.negatives import LanguageModel
    from deixis.text.vocabulary import Vocabulary
    from deixis.types import Sentence

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Parse captions; build vocabularies, relations and object classes; show negative captions.",
)


class Head(StrEnum):
    """Which word of a phrase names its class."""

    syntactic = "syntactic"
    last_noun = "last-noun"


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
    output.mkdir(parents=True, exist_ok=True)
    with only_writer(output):
        corpus.save(output)
    summary = {"data": str(data), "split": used, "parser": parser, "output": str(output), **corpus.summary()}
    if as_json:
        print(json.dumps(summary, indent=2))
        return
    table = Table(show_header=False, box=None)
    for key, value in summary.items():
        table.add_row(key.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value or "all"))
    Console().print(table)


Proposer = Annotated[
    str, typer.Option(help="Masked language model: lite, the folder of a run of text/masked, or hf:NAME.")
]
Nouns = Annotated[
    Path | None, typer.Option(help="The vocabulary.json whose nouns may be put in. By default the model's.")
]
Candidates = Annotated[int, typer.Option(min=1, help="How many nouns the model proposes.")]
Keep = Annotated[int, typer.Option(min=1, help="How many of them are kept.")]
Rerank = Annotated[bool, typer.Option(help="Sort out what is likely true as well (synonyms, hypernyms).")]


def _proposer(model: str, vocabulary: Path | None, keep: int, candidates: int) -> tuple[LanguageModel, Vocabulary]:
    """Load the language model that proposes nouns, with the vocabulary that says which words are nouns."""
    from deixis.text.negatives import load_language_model
    from deixis.text.vocabulary import Vocabulary

    if keep > candidates:
        raise DeixisError(f"--keep {keep} is more than --candidates {candidates}")
    loaded = load_language_model(model)
    known = Vocabulary.load(vocabulary) if vocabulary is not None else loaded.vocabulary
    if known is None:
        raise DeixisError(f"{model} does not say which words are nouns: give --vocabulary")
    return loaded, known


@app.command()
def negatives(
    sentence: Annotated[str, typer.Argument(help="A caption, such as 'A man rides a red bike.'")],
    model: Proposer = "lite",
    word: Annotated[str | None, typer.Option(help="Replace only this noun. By default each in turn.")] = None,
    vocabulary: Nouns = None,
    candidates: Candidates = 30,
    keep: Keep = 25,
    rerank: Rerank = True,
    allow_said: Annotated[bool, typer.Option("--allow-said", help="Also take nouns that the caption says.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show plausible but untrue captions: nouns kept and rejected in place of a caption's own.

    These are the negatives of InfoGround (Gupta et al., ECCV 2020, section 2.4 and figure 3).
    """
    from deixis.text.negatives import (
        NOT_NOUNS,
        NegativeMaker,
        NegativeOptions,
        corpus_nouns,
    )
    from deixis.text.rules.chunker import chunk
    from deixis.text.tokens import normal_word
    from deixis.text.vocabulary import NOUN_TAGS

    language_model, known = _proposer(model, vocabulary, keep, candidates)
    tokens = [token for token in chunk(sentence, known).tokens if normal_word(token.text) is not None]
    words = [normal_word(token.text) or "" for token in tokens]
    if not words:
        raise DeixisError(f"{sentence!r} has no word")
    nouns = [at for at, token in enumerate(tokens) if token.tag in NOUN_TAGS and words[at] not in NOT_NOUNS]
    if word is not None:
        nouns = [at for at, other in enumerate(words) if other == normal_word(word)]
        if not nouns:
            raise DeixisError(f"there is no word {word!r} in {sentence!r}: it has {', '.join(words)}")
    if not nouns:
        raise DeixisError(f"found no noun in {sentence!r}: name the word to replace with --word")
    options = NegativeOptions("re-ranked" if rerank else "plausible", candidates, keep, allow_said)
    said = [[] if allow_said else [known.lemma(other) for other in words]] * len(nouns)
    found = NegativeMaker(language_model, corpus_nouns(known), options, known.lemma)([words] * len(nouns), nouns, said)
    if as_json:
        plain = [
            {
                "word": words[entry.place],
                "start": tokens[entry.place].start,
                "end": tokens[entry.place].end,
                **{
                    name: [{"word": c.word, "p": c.p, "q": c.q, "score": c.score} for c in group]
                    for name, group in (("kept", entry.kept), ("rejected", entry.rejected))
                },
            }
            for entry in found
        ]
        print(json.dumps({"sentence": sentence, "model": language_model.name, "negatives": plain}, indent=2))
        return
    table = Table("Caption", "Negatives", "Rejected", show_lines=True)
    for entry in found:
        token = tokens[entry.place]
        shown = Text(sentence)
        shown.stylize("bold underline", token.start, token.end)
        table.add_row(shown, ", ".join(c.word for c in entry.kept), ", ".join(c.word for c in entry.rejected))
    Console().print(table)


@app.command()
def judge(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A dataset; captions of one photo are judged together.")],
    model: Proposer = "lite",
    split: Annotated[str, typer.Option(help="Split to judge on.")] = "train",
    photos: Annotated[int, typer.Option(min=1, help="How many of its photos.")] = 250,
    vocabulary: Nouns = None,
    candidates: Candidates = 30,
    keep: Keep = 25,
    rerank: Rerank = True,
    allow_said: Annotated[
        bool, typer.Option("--allow-said", help="Also take nouns that another caption of the photo says.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Judge a language model by its untrue captions: how often is a noun it keeps true after all?

    A kept noun is true if it is a wider name of the caption's own (a man is a person), or if a caption of the photo
    says it. Negatives are chosen as InfoGround's training chooses them.
    """
    from itertools import islice

    from deixis.data import open_dataset
    from deixis.data.batch import WordKind
    from deixis.data.collate import CaptionEncoder
    from deixis.data.locations import find
    from deixis.text.judge_negatives import judge as judge_negatives
    from deixis.text.negative_table import CorpusCaption
    from deixis.text.negatives import NegativeOptions
    from deixis.text.rules.chunker import chunk

    language_model, known = _proposer(model, vocabulary, keep, candidates)
    encode = CaptionEncoder(known, length=60)
    captions = []
    for example in islice(open_dataset(find(str(data), "data")).examples(split), photos):
        for number, sentence in enumerate(example.captions):
            encoded = encode(chunk(sentence, known))
            nouns = tuple(at for at, tag in enumerate(encoded.tags) if tag == WordKind.NOUN)
            captions.append(CorpusCaption(f"{example.id}#{number}", encoded.words[:-1], nouns))
    options = NegativeOptions("re-ranked" if rerank else "plausible", candidates, keep, allow_said)
    with _progress() as progress:
        task = progress.add_task("Judging", total=len(captions))
        found = judge_negatives(
            captions,
            known,
            language_model,
            options,
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if as_json:
        print(json.dumps({"data": str(data), "split": split, "model": language_model.name, **asdict(found)}, indent=2))
        return
    table = Table(show_header=False, box=None)
    table.add_row("captions with a noun", f"{found.captions:,}")
    table.add_row("negatives a caption", f"{found.kept:.1f}")
    table.add_row("captions whose noun has wider names", f"{found.judged:,}")
    table.add_row("  of which a wider name is kept", f"{found.wider_kept:.1%}")
    table.add_row("  of which a wider name was proposed", f"{found.wider_proposed:.1%}")
    table.add_row("negatives that a caption of the photo says", f"{found.said:.1%}")
    table.add_row("negatives that are another form of the noun", f"{found.same_lemma:.1%}")
    for text, noun, wider in found.examples:
        table.add_row(f"{noun}: {', '.join(wider)}", text)
    Console().print(table)


def _captions(path: Path, split: str | None) -> tuple[list[Sentence], str | None]:
    """Return the sentences of a corpus and the split they come from (None: all there is)."""
    if path.name.endswith((".txt", ".txt.gz")) and path.is_file():
        if split is not None:
            raise DeixisError(f"{path} is a plain text and has no split {split!r}")
        return list(_lines(path)), None
    from deixis.data import open_dataset
    from deixis.data.locations import find

    dataset = open_dataset(find(str(path), "data"))
    if split is None and "train" in dataset.splits:
        split = "train"
    captions = [caption for example in dataset.examples(split) for caption in example.captions]
    if not captions:
        raise BadFileError(f"{path} has no captions" + ("" if split is None else f" in its split {split!r}"))
    return captions, split


def _lines(path: Path) -> Iterator[Sentence]:
    from deixis.text.tokens import tokenise
    from deixis.types import Sentence

    for line in read_lines(path):
        text = " ".join(line.split())
        yield Sentence(text, tokenise(text))


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
