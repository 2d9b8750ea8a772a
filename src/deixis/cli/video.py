"""``deixis video``: a clip in, a grounded sentence for each of its segments out."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from deixis.cli.options import Captioner, Check, Threshold
from deixis.defaults import CLIP_BEAM
from deixis.errors import DeixisError

if TYPE_CHECKING:
    from rich.console import Console

    from deixis.answering.clips import Reading
    from deixis.answering.segments import Segment
    from deixis.models.bundle import Method
    from deixis.types import GroundedCaption
    from deixis.video import Clip


def video(
    clip: Annotated[Path, typer.Argument(metavar="CLIP", help="A clip: MP4, MOV, WebM, MKV, AVI, …")],
    model: Annotated[str, typer.Option(help="A run, checkpoint or bundle folder, a hub name, or lite.")] = "lite",
    grounder: Annotated[str | None, typer.Option(help="Take the grounder of this run or bundle.")] = None,
    captioner: Captioner = None,
    segments: Annotated[
        Path | None, typer.Option(help='Starts and ends: JSON {"timestamps": [[0, 4.5], …]}, or CSV/TSV.')
    ] = None,
    every: Annotated[str | None, typer.Option(help="Or cut the clip every so long: 5s, 1:30.")] = None,
    frames: Annotated[int, typer.Option(min=1, max=100, help="Frames looked at in a segment.")] = 10,
    beam: Annotated[int, typer.Option(min=1, max=50, help="Beam width; 1 is greedy.")] = CLIP_BEAM,
    check: Check = None,
    threshold: Threshold = None,
    method: Annotated[
        str | None, typer.Option(help="Where words point: attention, or grounder; else what suits the model.")
    ] = None,
    smooth: Annotated[bool, typer.Option(help="Follow one thing from frame to frame.")] = True,
    together: Annotated[
        bool | None,
        typer.Option("--together/--apart", help="Read all frames at once or each as a photo; else what was learned."),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with the clip and moving boxes.")] = None,
    mp4: Annotated[Path | None, typer.Option(help="Write the clip with boxes, words and sentences drawn in.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Append captions as JSON lines; segments that are there are skipped."),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, …")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per segment.")] = False,
) -> None:
    """Caption a clip: a sentence for each segment, and in every sampled frame the box of each thing it names.

    Without --segments and --every, a shot up to 10 s is one segment and a longer one is cut every 5 s. No
    segment that the clock cuts reaches over a hard cut.
    """
    from deixis.answering.clips import ClipOptions, caption_segments
    from deixis.answering.load import load
    from deixis.answering.resumable_lines import AnswerLines, require_alike
    from deixis.answering.segments import choose_segments, parse_seconds, read_segments
    from deixis.answering.shots import find_cuts
    from deixis.cli.outputs import check_output, counted
    from deixis.export.terminal import answer_console
    from deixis.types import GroundedCaption
    from deixis.video import read_clip

    check_output(html, "page.html")
    check_output(mp4, "drawn.mp4")
    _check_mp4(mp4, clip)
    facts = read_clip(clip)
    given = None if segments is None else read_segments(segments, clip)
    length = None if every is None else parse_seconds(every)
    cuts = find_cuts(clip) if given is None else []
    wanted = choose_segments(facts.duration, given, length, cuts=cuts, clip=str(clip))
    reading: Reading | None = None if together is None else "together" if together else "apart"
    options = ClipOptions(frames, beam, check, cast("Method | None", method), smooth, reading, threshold)
    loaded = load(model, grounder=grounder, captioner=captioner, device=device)
    loaded.require_method(method)
    checked = loaded.checks(check)
    console = answer_console(None)
    answers: dict[str, GroundedCaption] = {}
    with ExitStack() as stack:
        lines = None
        if output is not None:
            opened = AnswerLines.open(output, GroundedCaption.from_json, model=loaded.name, key=_key)
            lines = stack.enter_context(opened)
            answers = dict(lines.answers)
            require_alike(output, answers.values(), checked=checked)
        waiting = [segment for segment in wanted if _named(clip, segment) not in answers]
        for answer in caption_segments(loaded, facts, waiting, options=options):
            answers[_key(answer)] = answer
            if lines is not None:
                lines.add([answer])
            if as_json:
                typer.echo(json.dumps(answer.to_json(), ensure_ascii=False))
            else:
                _print(console, answer)
    everything = [answers[_named(clip, segment)] for segment in wanted]
    written = _write(facts, everything, html, mp4)
    if not as_json:
        if output is not None:
            skipped = f", of which {len(wanted) - len(waiting)} there before" if len(waiting) < len(wanted) else ""
            typer.echo(f"{output}: {counted(len(everything), 'segment')}{skipped}")
        for path in written:
            typer.echo(f"wrote {path}")


def _key(answer: GroundedCaption) -> str:
    return _named(answer.image, answer.segment or (0.0, 0.0))


def _named(clip: str | Path, segment: Segment) -> str:
    return f"{clip} {segment[0]:.3f} {segment[1]:.3f}"


def _check_mp4(mp4: Path | None, clip: Path) -> None:
    """Refuse a name before any work is done."""
    if mp4 is None:
        return
    if mp4.suffix.lower() != ".mp4":
        raise DeixisError(f"{mp4} should be the name of an .mp4 file")
    if mp4.exists() and clip.exists() and mp4.samefile(clip):
        raise DeixisError(f"{mp4} is the clip itself: give the drawn clip another name")


def _print(console: Console, answer: GroundedCaption) -> None:
    """Print a sentence with its times, and for every thing the frames it is on and its first box."""
    from rich.style import Style
    from rich.text import Text

    from deixis.export.draw import drawing_of
    from deixis.export.terminal import coloured, thing_style

    drawing = drawing_of(answer)
    start, end = answer.segment or (0.0, 0.0)
    console.print(Text(f"{start:.1f} to {end:.1f} s  ", style="bold").append_text(coloured(drawing)), soft_wrap=True)
    things = [(at, word) for at, word in enumerate(answer.words) if word.groundable]
    width = max((len(word.text) for _, word in things), default=0)
    for at, word in things:
        number = drawing.colours.get(f"word {at}")
        line = Text("  ").append(word.text, thing_style(number) if number is not None else Style(dim=True))
        sides = " ".join(f"{side:.0f}" for side in word.boxes[0]) if word.boxes else "-"
        line.append(f"{'':{width - len(word.text) + 2}}{sides:<22}{word.score:.2f}")
        line.append(f"  on {len(set(word.frames))} of {len(answer.frame_times)} frames")
        if word.presence is not None:
            line.append(f"  there: {word.presence:.2f}")
        console.print(line.append("" if word.trusted else "  doubtful"), soft_wrap=True)


def _write(clip: Clip, answers: list[GroundedCaption], html: Path | None, mp4: Path | None) -> list[Path]:
    """Write the page and the drawn clip that were asked for."""
    written: list[Path] = []
    if mp4 is not None:
        written.append(_draw(clip, answers, mp4))
    if html is not None:
        from deixis.cli.pictures import write_page_of_clip

        written.append(write_page_of_clip(html, clip.path, answers))
    return written


def _draw(clip: Clip, answers: list[GroundedCaption], mp4: Path) -> Path:
    """Write the drawn clip, with a bar on stderr where somebody looks: every frame is drawn, which takes a while."""
    from rich.console import Console
    from rich.progress import Progress

    from deixis.export.clip import write_annotated_clip

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("drawing", total=clip.duration)
        return write_annotated_clip(mp4, clip.path, answers, progress=lambda second: bar.update(task, completed=second))
