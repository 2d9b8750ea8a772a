"""SPICE through its Java original.

Anderson et al., "SPICE: Semantic Propositional Image Caption Evaluation" (ECCV 2016). The jar comes with pycocoevalcap;
the parser it needs (Stanford CoreNLP 3.6.0, 400 MB) comes with nobody, so the user puts two files in a folder. The jar
writes its result through Java's JavaScript engine, which Java 15 dropped: a later Java needs Nashorn's jars there too.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deixis.errors import BadFileError, DeixisError
from deixis.home import cache_home
from deixis.metrics.captions.java import find_java, jar_folder

CORENLP = ("stanford-corenlp-3.6.0.jar", "stanford-corenlp-3.6.0-models.jar")
_SOURCE = "http://nlp.stanford.edu/software/stanford-corenlp-full-2015-12-09.zip"
_LAST_WITH_JAVASCRIPT = 14


def spice_folder() -> Path:
    """Return where the user puts the files SPICE lacks: ``$DEIXIS_SPICE``, else ``spice`` in Deixis's cache folder."""
    chosen = os.environ.get("DEIXIS_SPICE")
    return Path(chosen).expanduser() if chosen else cache_home() / "spice"


def spice(
    captions: Sequence[Sequence[str]],
    references: Sequence[Sequence[Sequence[str]]],
    *,
    limit: float = 3600.0,
    memory: str = "8G",
) -> NDArray[np.float64]:
    """Return SPICE (its F score over all tuples) of each tokenised caption, (C,); the corpus score is the mean.

    One Java process parses everything, for at most ``limit`` seconds.
    """
    if not captions:
        raise DeixisError("there are no captions to score")
    if len(captions) != len(references):
        raise DeixisError(f"{len(captions)} captions but references for {len(references)}: one list per caption")
    java = find_java()
    jars = _jars(java)
    questions = [
        {"image_id": at, "test": " ".join(caption), "refs": [" ".join(reference) for reference in refs]}
        for at, (caption, refs) in enumerate(zip(captions, references, strict=True))
    ]
    with tempfile.TemporaryDirectory(prefix="deixis-spice-") as folder:
        asked, answered = Path(folder) / "captions.json", Path(folder) / "scores.json"
        asked.write_text(json.dumps(questions), encoding="utf-8")
        command = [str(java), f"-Xmx{memory}", "-cp", os.pathsep.join(map(str, jars)), "edu.anu.spice.SpiceScorer"]
        command += [str(asked), "-out", str(answered), "-silent"]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            raise DeixisError(
                f"SPICE took longer than {limit:g} s and was ended: give it more with limit=..."
            ) from None
        except OSError as error:
            raise DeixisError(f"cannot start SPICE with {java}: {error}") from None
        if done.returncode or not answered.is_file():
            last = " ".join(done.stderr.decode(errors="replace").split())[-500:]
            raise DeixisError(f"SPICE failed (exit code {done.returncode}): {last or 'it said nothing'}")
        return _read(answered, len(captions))


def _jars(java: Path) -> list[Path]:
    """Return the class path, or say which file is missing and where it goes."""
    folder = jar_folder("spice")
    scorer, library, own = folder / "spice-1.0.jar", folder / "lib", spice_folder()
    if not scorer.is_file():
        raise BadFileError(f"SPICE lacks {scorer}: reinstall pycocoevalcap")
    missing = [name for name in CORENLP if not (own / name).is_file() and not (library / name).is_file()]
    if missing:
        raise BadFileError(
            f"SPICE lacks {' and '.join(missing)}: unpack {_SOURCE} and put them in {own} (or in a folder that the "
            "environment variable DEIXIS_SPICE names)"
        )
    version = java_version(java)
    if version > _LAST_WITH_JAVASCRIPT and not list(own.glob("nashorn-core-*.jar")):
        raise BadFileError(
            f"SPICE lacks a JavaScript engine: {java} is Java {version}, and only Java 8 to {_LAST_WITH_JAVASCRIPT} "
            f"has one. Set JAVA_HOME to such a Java, or put nashorn-core-15.4.jar and the asm jars it needs in {own}"
        )
    # CoreNLP of the user's folder first; the manifest of the scorer names the rest, and a path twice does no harm.
    return [scorer, *sorted(own.glob("*.jar")), *sorted(library.glob("*.jar"))]


def java_version(java: Path) -> int:
    """Return the major version of a Java: 8 for "1.8.0_101", 17 for "17.0.15"."""
    try:
        told = subprocess.run([str(java), "-version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DeixisError(f"cannot run {java}: {error}") from None
    text = (told.stderr + told.stdout).decode(errors="replace")
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    if not found:
        raise DeixisError(f"{java} does not tell its version: {' '.join(text.split())[:200] or 'it said nothing'}")
    return int(found.group(1))


def _read(path: Path, number: int) -> NDArray[np.float64]:
    """Read the F scores back in the order of the captions."""
    scores = np.full(number, math.nan)
    try:
        for item in json.loads(path.read_text(encoding="utf-8")):
            scores[item["image_id"]] = float(item["scores"]["All"]["f"])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise BadFileError(f"SPICE wrote a result we cannot read: {error!r}") from None
    if np.isnan(scores).any():
        raise DeixisError(f"SPICE gave no score for caption number {int(np.argmax(np.isnan(scores)))}")
    return scores
