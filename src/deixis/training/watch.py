"""What people see of a run while it goes: a rich progress bar on a terminal, plain lines elsewhere, TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from deixis.training.report import write_report
from deixis.training.run import Run


class Watch:
    """Shows steps and validations. ``enabled`` is False in all processes but the main one.

    Args:
        enabled: Whether to show anything at all.
        console: Where to; stderr when None, so that --json keeps stdout to itself.
        run: Its folder gets the TensorBoard files and the report; None for neither.
        tensorboard: Write TensorBoard files if the package is there.
    """

    def __init__(
        self, *, enabled: bool = True, console: Console | None = None, run: Run | None = None, tensorboard: bool = True
    ) -> None:
        self.enabled = enabled
        self.console = console or Console(stderr=True)
        self.run = run
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._tenth = 0
        self._writer = _tensorboard(run) if enabled and tensorboard and run is not None else None

    def __enter__(self) -> Self:
        if self.enabled and self.console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._progress = Progress(*columns, TextColumn("{task.fields[note]}"), console=self.console)
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = self._task = None
        if self._writer is not None:
            self._writer.close()

    def epoch(self, stage: str, epoch: int, epochs: int, done: int, total: int) -> None:
        """Begin, or go on in, an epoch."""
        if self._progress is not None:
            if self._task is not None:
                self._progress.remove_task(self._task)
            text = f"{stage}, epoch {epoch + 1} of {epochs}"
            self._task = self._progress.add_task(text, total=total, completed=done, note="")

    def work(self, text: str, done: int, total: int) -> None:
        """Show work that comes before the steps, such as finding negatives: a bar, or elsewhere a line each tenth."""
        if self._progress is not None:
            if self._task is None or self._progress.tasks[-1].description != text:
                if self._task is not None:
                    self._progress.remove_task(self._task)
                self._task = self._progress.add_task(text, total=total, note="")
            self._progress.update(self._task, completed=done)
        elif self.enabled and 10 * done // total > self._tenth:
            self.console.print(f"{text}: {done} of {total}")
        self._tenth = 10 * done // total if done < total else 0

    def step(self, entry: Mapping[str, Any]) -> None:
        """Show one optimizer step."""
        if self._progress is not None and self._task is not None:
            note = f"loss {entry['loss']:.3f}  {entry['captions_per_second']:.0f} captions/s"
            self._progress.update(self._task, advance=1, note=note)
        if self._writer is not None:
            for name, value in entry.items():
                if isinstance(value, int | float) and name not in ("step", "epoch"):
                    self._writer.add_scalar(f"train/{name}", value, entry["step"])

    def validation(self, entry: Mapping[str, Any], *, better: bool) -> None:
        """Show one validation."""
        if not self.enabled:
            return
        shown = "  ".join(f"{name} {value:.3f}" for name, value in entry["validation"].items())
        mark = " (best so far)" if better else ""
        self.console.print(f"{entry['stage']}, epoch {entry['epoch']}, step {entry['step']}: {shown}{mark}")
        if self._writer is not None:
            for name, value in entry["validation"].items():
                self._writer.add_scalar(f"validation/{name}", value, entry["step"])

    def saved(self, run: Run) -> None:
        """Bring the run's report up to date after a checkpoint."""
        if self.enabled:
            write_report(run)


def _tensorboard(run: Run) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(run.path / "tensorboard"))
