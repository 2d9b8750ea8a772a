"""SPICE's command line and files. CoreNLP's models are not to be had here, so a small program stands in for Java:
it checks what the jar would be given and writes the jar's documented output."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from deixis.errors import BadFileError, DeixisError
from deixis.metrics.captions.java import find_java
from deixis.metrics.captions.scores import score_captions
from deixis.metrics.captions.spice import CORENLP, java_version, spice

pytest.importorskip("pycocoevalcap", reason="SPICE needs the java extra")

STAND_IN = """#!{python}
import json, sys
if sys.argv[1:] == ["-version"]:
    sys.exit('openjdk version "{version}" 2020-01-01')
memory, cp, path, main, asked, out, answered, silent = sys.argv[1:]
assert (memory, cp, main, out, silent) == ("-Xmx8G", "-cp", "edu.anu.spice.SpiceScorer", "-out", "-silent"), sys.argv
jars = [jar.rsplit("/", 1)[1] for jar in path.split(":")]
assert jars[0] == "spice-1.0.jar" and "SceneGraphParser-1.0.jar" in jars, jars
assert {{"stanford-corenlp-3.6.0-models.jar", "stanford-corenlp-3.6.0.jar"}} <= set(jars), jars
assert ("nashorn-core-15.4.jar" in jars) == ({version!r} == "17.0.15"), jars
items = json.load(open(asked))
if any("crash" in item["test"] for item in items):
    sys.exit("Error: Could not score batched file input: crash")
share = lambda item: len(set(item["test"].split()) & set(item["refs"][0].split())) / 4
scores = [{{"image_id": i["image_id"], "scores": {{"All": {{"f": share(i), "pr": 0, "re": 0}}}}}} for i in items[::-1]]
json.dump(scores, open(answered, "w"))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "models").mkdir()
    monkeypatch.setenv("DEIXIS_SPICE", str(tmp_path / "models"))
    return tmp_path / "models"


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    for name in CORENLP:
        (folder / name).touch()
    program = folder.parent / "bin" / "java"
    program.parent.mkdir()
    program.write_text(STAND_IN.format(python=sys.executable, version=version))
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder.parent))


def test_it_says_which_files_it_lacks_and_where_they_go(folder: Path) -> None:
    with pytest.raises(
        BadFileError, match=r"lacks stanford-corenlp-3\.6\.0\.jar and stanford-corenlp-3\.6\.0-models"
    ) as e:
        score_captions({"1": "a dog"}, {"1": ["a dog"]}, ("spice",))
    assert str(folder) in str(e.value)
    (folder / CORENLP[0]).touch()
    with pytest.raises(BadFileError, match=r"SPICE lacks stanford-corenlp-3\.6\.0-models\.jar: unpack http"):
        spice([["a"]], [[["a"]]])


def test_a_java_without_javascript_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(folder, monkeypatch, "17.0.15")
    with pytest.raises(BadFileError, match="is Java 17, and only Java 8 to 14"):
        spice([["a"]], [[["a"]]])
    (folder / "nashorn-core-15.4.jar").touch()
    assert spice([["a"]], [[["a"]]]).tolist() == [0.25]


def test_scores_come_back_in_the_order_of_the_captions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(folder, monkeypatch, "1.8.0_101")
    got = spice([["a", "dog"], ["cat"], ["a", "é"]], [[["a", "dog"]], [["a", "dog"]], [["é"]]])
    assert got.tolist() == [0.5, 0.0, 0.25]
    scores = score_captions({"1": "a dog", "2": "cat"}, {"1": ["a dog"], "2": ["a dog"]}, ("spice",))
    assert scores.corpus == {"SPICE": 0.25}


def test_a_crash_shows_the_last_words(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(folder, monkeypatch, "11.0.2")
    with pytest.raises(DeixisError, match=r"exit code 1\): Error: Could not score"):
        spice([["crash"]], [[["a"]]])
    with pytest.raises(DeixisError, match="no captions"):
        spice([], [])


def test_the_version_of_the_real_java() -> None:
    assert java_version(find_java()) >= 8
