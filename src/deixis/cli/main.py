"""The ``deixis`` command: a table of contents that loads a room only when one of its commands is called.

Importing torch takes a second, so ``deixis --help`` must not: the table below holds each command's one-line help, and
the module behind a command is imported when it runs.
"""

from __future__ import annotations

import importlib
import io
import os
import shutil
import sys
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from deixis.atomic import disk_is_full
from deixis.cli.examples import EXAMPLES
from deixis.errors import DeixisError

USE, PREPARE, LEARN = "Use it", "Prepare", "Learn and measure"

NARROW = 100
"""Columns below which the help of a command is plain text: tables would cut the names of options."""


@dataclass(frozen=True)
class Entry:
    """Where a command lives (``module:attribute``, a function or a typer app), and what the table of contents says."""

    where: str
    panel: str
    help: str


COMMANDS: dict[str, Entry] = {
    "caption": Entry("deixis.cli.caption:caption", USE, "Caption photos, with a box for every thing that is named."),
    "video": Entry("deixis.cli.video:video", USE, "Caption a clip, with boxes that follow what is named."),
    "serve": Entry("deixis.cli.serve:serve", USE, "Show the page and answer programs over HTTP."),
    "export": Entry("deixis.cli.export:export", USE, "Write answers for other tools: COCO, Label Studio, FiftyOne, …"),
    "export-model": Entry(
        "deixis.cli.export_model:export_model", USE, "Write a model as ONNX files, to answer without torch."
    ),
    "ground": Entry("deixis.cli.ground:ground", USE, "Find phrases in a photo: boxes, or that they are not there."),
    "search": Entry("deixis.cli.search:search", USE, "Find photos of a folder by a phrase, with boxes."),
    "label": Entry("deixis.cli.label:label", USE, "Draft boxes for the captions of a dataset, doubtful ones first."),
    "review": Entry("deixis.cli.review:review", USE, "Make a page on which draft boxes are corrected, offline."),
    "corrections": Entry(
        "deixis.cli.corrections:corrections", USE, "Read corrected labels back: what changed, and training data."
    ),
    "data": Entry("deixis.cli.data:app", PREPARE, "Look at a dataset: what is in it, draw an example, make clips."),
    "regions": Entry("deixis.cli.regions:app", PREPARE, "Find and store the regions of photos; measure their recall."),
    "text": Entry("deixis.cli.text:app", PREPARE, "Parse captions; build vocabularies, relations and object classes."),
    "average": Entry("deixis.cli.average:average", LEARN, "Take the mean of the weights of models of one family."),
    "bundle": Entry("deixis.cli.bundle:bundle", LEARN, "Join a captioner and a grounder into one model; upload it."),
    "train": Entry("deixis.cli.train:train", LEARN, "Train a recipe; stop and resume it at any step."),
    "recipes": Entry("deixis.cli.recipes:recipes", LEARN, "List what can be trained, or show one recipe."),
    "calibrate": Entry("deixis.cli.calibrate:calibrate", LEARN, "Learn what a grounder's scores mean."),
    "evaluate": Entry("deixis.cli.evaluate:evaluate", LEARN, "Measure a model on a dataset: captions and grounding."),
    "score": Entry("deixis.cli.score:score", LEARN, "Score predictions against a dataset or a reference file."),
    "compare": Entry("deixis.cli.score:compare", LEARN, "Put scored runs side by side, with significance."),
}


class LazyGroup(TyperGroup):
    """Shows every command from the table; imports the one that is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a light stand-in that knows name, help and panel; the help page needs no more."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        return TyperCommand(cmd_name, help=entry.help, rich_help_panel=entry.panel, callback=lambda: None)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the real command for a call, importing its module."""
        name, stand_in, rest = super().resolve_command(ctx, args)
        return name, stand_in and _load(str(stand_in.name)), rest


def _load(name: str) -> Any:
    entry = COMMANDS[name]
    module, _, attribute = entry.where.partition(":")
    target = getattr(importlib.import_module(module), attribute)
    if not isinstance(target, typer.Typer):
        single = typer.Typer(add_completion=False)
        single.command(name, help=target.__doc__)(target)
        target = single
    command = typer.main.get_command(target)
    command.name = name
    if name in EXAMPLES:
        command.epilog = "\n\n".join(["Examples:", *EXAMPLES[name]])
    if shutil.get_terminal_size().columns < NARROW:
        _make_plain(command)
    return command


def _make_plain(command: Any) -> None:
    """Let a command and those below it show their help as plain text."""
    command.rich_markup_mode = None
    for below in getattr(command, "commands", {}).values():
        _make_plain(below)


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Captions whose words point at boxes, and boxes for any phrase, learned from image-caption pairs alone.",
    epilog="Every command takes --json (for programs) and --help. Errors go to stderr with exit code 2; --debug shows "
    "where they come from.",
)


def _version(asked: bool) -> None:
    if asked:
        from deixis import __version__

        typer.echo(f"deixis {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
) -> None:
    """Take the options that go before a command; ``--debug`` is read in :func:`main`, wherever it stands."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and turn errors a user can mend into one line and exit code 2."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given or bool(os.environ.get("DEIXIS_DEBUG"))
    given = [argument for argument in given if argument != "--debug"]
    for stream in (sys.stdout, sys.stderr):  # names of files may be no text, and are shown all the same
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(given, prog_name="deixis")
    except DeixisError as error:
        _leave(str(error), debug, error)
    except (OSError, MemoryError) as error:
        if isinstance(error, BrokenPipeError):  # the reader of a pipe has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        if disk_is_full(error):
            file = getattr(error, "filename", None)
            where = f"cannot write {file}: " if file else ""
            _leave(f"{where}the disk is full; make room, then run the same command again", debug, error)
        _leave(f"{type(error).__name__}: {error}", debug, error)


def _leave(message: str, debug: bool, error: BaseException) -> None:
    if debug:
        raise error
    print(f"deixis: {message}", file=sys.stderr)
    sys.exit(error.exit_code if isinstance(error, DeixisError) else 2)


if __name__ == "__main__":
    main()
