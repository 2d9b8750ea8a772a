"""Where commands work: the options of every command that answers many photos."""

from __future__ import annotations

from typing import Annotated

import typer

from deixis.engines import Engine

EngineOption = Annotated[Engine, typer.Option(help="local, or ray for many machines; the answers are the same.")]
ProcessesOption = Annotated[
    int, typer.Option(min=0, help="Worker processes, one thread each; 0 works in this process with all threads.")
]
