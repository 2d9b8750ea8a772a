"""METEOR 1.5 through its Java original, kept running as one process.

Denkowski and Lavie, "Meteor Universal" (2014), with the English paraphrases and the settings of the COCO evaluation
(``-l en -norm``). Loading the paraphrases takes seconds, so one process serves every later call.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from deixis.errors import BadFileError, DeixisError
from deixis.metrics.captions.java import LineProcess, find_java, jar_folder

_BLOCK = 64  # an answer is some 150 characters, so the answers of a block always fit in a pipe


class Meteor:
    """Scores tokenised captions with METEOR 1.5. Use it in a ``with`` block or close it; see :func:`shared_meteor`."""

    def __init__(self, *, limit: float = 120.0, memory: str = "2G") -> None:
        folder = jar_folder("meteor")
        for name in ("meteor-1.5.jar", "data/paraphrase-en.gz"):
            if not (folder / name).is_file():
                raise BadFileError(f"METEOR lacks {folder / name}: reinstall pycocoevalcap")
        java = [str(find_java()), f"-Xmx{memory}", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8"]
        command = [*java, "-jar", "meteor-1.5.jar", "-", "-", "-stdio", "-l", "en", "-norm"]
        self._process = LineProcess(command, folder, name="METEOR", limit=limit)

    @property
    def pid(self) -> int | None:
        """The id of the Java process, or None while it is not running."""
        return self._process.pid

    def score(
        self, captions: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]
    ) -> tuple[float, NDArray[np.float64]]:
        """Return METEOR of the corpus (from summed counts, not the mean) and of each caption, (C,)."""
        if not captions:
            raise DeixisError("there are no captions to score")
        if len(captions) != len(references):
            raise DeixisError(f"{len(captions)} captions but references for {len(references)}: one list per caption")
        questions = [_question(caption, refs) for caption, refs in zip(captions, references, strict=True)]
        counts: list[str] = []
        for start in range(0, len(questions), _BLOCK):
            block = questions[start : start + _BLOCK]
            counts += self._process.ask(block, len(block))
        # The answers to this one line are only written once all of it has been read: nothing can get stuck.
        answers = self._process.ask([" ||| ".join(["EVAL", *counts])], len(counts) + 1)
        try:
            *each, corpus = map(float, answers)
        except ValueError:
            bad = next(line for line in answers if not _is_number(line))
            raise DeixisError(f"METEOR answered {bad!r} where a score was due") from None
        return corpus, np.array(each, np.float64)

    def close(self) -> None:
        """End the Java process."""
        self._process.close()

    def __enter__(self) -> Meteor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def shared_meteor() -> Meteor:
    """Return this process's one METEOR, started at its first question and ended with the interpreter."""
    return _shared(os.getpid())  # a forked worker must not talk to its parent's Java


@lru_cache(maxsize=1)
def _shared(_pid: int) -> Meteor:
    return Meteor()


def _question(caption: Sequence[str], references: Sequence[Sequence[str]]) -> str:
    if not references:
        raise DeixisError("a caption has no references to be compared with: give at least one")
    return " ||| ".join(["SCORE", *(_plain(reference) for reference in references), _plain(caption)])


def _plain(words: Sequence[str]) -> str:
    """Join words; what the line protocol uses as separators cannot be part of one."""
    return " ".join(" ".join(words).replace("|||", "").split())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
