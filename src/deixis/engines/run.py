"""One way to do many tasks, whatever the engine: tasks in, results out, the same ones on every engine.

A task is a few photos, or anything else that can be sent to another process; a *worker* is what does one. It is built
once in every process that works, by calling ``build()``: it may load a model then. Results are those of one process,
bit for bit, because engines only decide where a task is done, never what is done together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeVar, get_args

from deixis.engines.local import run_here, run_local
from deixis.errors import DeixisError

Engine = Literal["local", "ray"]
ENGINES: tuple[str, ...] = get_args(Engine)

T = TypeVar("T")
R = TypeVar("R")


def run_tasks(
    tasks: Iterable[T],
    build: Callable[[], Callable[[T], R]],
    *,
    engine: str = "local",
    processes: int = 0,
    device: str = "cpu",
    ordered: bool = True,
    describe: Callable[[T], str] = str,
) -> Iterator[R]:
    """Do tasks and yield their results.

    Args:
        tasks: What to do; taken one by one, so that millions need no list.
        build: Makes a worker. For other processes than this one it must be picklable, such as a ``functools.partial``
            of a class.
        engine: ``local``, or ``ray``: the cluster at ``RAY_ADDRESS``, or one started here for as long as it takes.
        processes: How many workers. 0 works in this process, which Ray has no use for: it takes at least one.
        device: Where networks run; on Ray a worker asks for a GPU where this is one.
        ordered: Yield results in the order of the tasks; else as they come, so that nothing waits for a slow one.
        describe: Names a task in a message when its worker died.
    """
    numbered = enumerate(tasks)
    if engine not in ENGINES:
        raise DeixisError(f"unknown engine {engine!r}: there are {' and '.join(ENGINES)}")
    if processes < 0:
        raise DeixisError(f"{processes} processes cannot work: give 0 or more")
    if engine == "ray":
        from deixis.engines.ray import run_ray

        results = run_ray(numbered, build, workers=max(processes, 1), device=device)
    elif processes == 0:
        results = run_here(numbered, build)
    else:
        results = run_local(numbered, build, processes=processes, describe=describe)
    return in_order(results) if ordered else (result for _, result in results)


def in_order(results: Iterator[tuple[int, R]]) -> Iterator[R]:
    """Yield numbered results from 0 up; those that come early wait."""
    early: dict[int, R] = {}
    following = 0
    for number, result in results:
        early[number] = result
        while following in early:
            yield early.pop(following)
            following += 1
