"""``deixis serve``: the page and the HTTP interface, on this machine unless told otherwise."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from deixis.cli.options import Captioner

MIB = 2**20


def serve(
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model", help="A run, checkpoint or bundle folder, a hub name, or lite; several can be compared."
        ),
    ] = None,
    grounder: Annotated[
        str | None, typer.Option(help="Take the grounder of this run or bundle for all models.")
    ] = None,
    captioner: Captioner = None,
    folder: Annotated[
        Path | None, typer.Option(help="Let people search the photos in and below this folder of yours, by phrase.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; others than loopback need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8008,
    token: Annotated[
        str, typer.Option(envvar="DEIXIS_TOKEN", show_envvar=True, help="Ask clients for this bearer token.")
    ] = "",
    insecure: Annotated[bool, typer.Option(help="Let other machines in without a token.")] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Name under which a proxy calls this server, beside loopback's.")
    ] = None,
    megabytes: Annotated[int, typer.Option(min=1, help="Largest photo.")] = 32,
    clip_megabytes: Annotated[int, typer.Option(min=1, help="Largest clip.")] = 200,
    megapixels: Annotated[float, typer.Option(min=0.01, help="Most pixels of a photo, in millions.")] = 64,
    seconds: Annotated[float, typer.Option(min=1, help="Longest wait for an answer to a photo.")] = 30,
    waiting: Annotated[int, typer.Option(min=1, help="Photos that may wait.")] = 64,
    per_client: Annotated[int, typer.Option(min=0, help="Places one address may hold; 0: any number.")] = 16,
    connections: Annotated[int, typer.Option(min=1, help="Connections at once.")] = 256,
    batch: Annotated[int, typer.Option(min=1, help="Photos answered in one pass.")] = 8,
    remember: Annotated[
        int, typer.Option(min=0, help="Photos whose regions stay in memory for the next question.")
    ] = 32,
    threads: Annotated[int, typer.Option(min=0, help="Processor threads; 0 takes what torch finds best.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, …")] = "cpu",
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print where the server is as one JSON object.")] = False,
) -> None:
    """Show the page and answer programs: POST /v1/caption, /v1/ground, /v1/video; GET /healthz, /metrics.

    Only this machine can reach the server unless --host says otherwise, and then a token is needed.
    """
    from rich.console import Console

    from deixis.serve.limits import Limits
    from deixis.serve.run import address_of, check_access, listen, names_for
    from deixis.serve.run import serve as run

    check_access(host, token, insecure)
    listening = listen(host, port)  # before the models: a taken port should say so at once
    address = address_of(listening, host)
    limits = Limits(
        photo_bytes=megabytes * MIB,
        clip_bytes=clip_megabytes * MIB,
        pixels=round(megapixels * 1e6),
        seconds=seconds,
        waiting=waiting,
        per_client=per_client,
        connections=connections,
        connections_per_client=max(64, 4 * per_client) if per_client else 0,
        batch=batch,
        remember=remember,
    )
    import torch

    from deixis.answering.load import load

    if threads:
        torch.set_num_threads(threads)
    loaded = {}
    for name, model in names_for(models or ["lite"]).items():
        loaded[name] = load(model, grounder=grounder, captioner=captioner, device=device)
        loaded[name].name = name  # answers name the model as clients do, not by a folder of this machine

    index = None
    if folder is not None:
        from deixis.answering.search.index import PhotoIndex
        from deixis.cli.search import updated

        index = PhotoIndex(next(iter(loaded.values())), folder)
        updated(index)

    def ready() -> None:
        if as_json:
            known = {name: list(model.methods) for name, model in loaded.items()}
            typer.echo(json.dumps({"url": address, "models": known, "token": bool(token), "process": os.getpid()}))
        else:
            console = Console(highlight=False)
            console.print(f"Deixis answers at [bold]{address}[/bold]", soft_wrap=True)
            if token:
                console.print("The page asks for the token once.", style="dim")
            console.print("Stop it with Ctrl+C.", style="dim")
        if browser:
            import webbrowser

            webbrowser.open(address)

    run(
        loaded,
        listening,
        host=host,
        token=token,
        allow_hosts=tuple(allow_host or ()),
        limits=limits,
        index=index,
        ready=ready,
    )
