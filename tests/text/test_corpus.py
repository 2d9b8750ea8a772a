"""``deixis text prepare`` from captions to tables."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from deixis.cli.main import main
from deixis.text.classes import ObjectClasses, read_lemmas
from deixis.text.relations import RelationVocabulary
from deixis.text.vocabulary import Vocabulary

CAPTIONS = ["A woman holding a dog.", "Two dogs on a table.", "", "A dog sits on a table."]


def prepare(*arguments: object) -> int:
    try:
        main(["text", "prepare", *map(str, arguments)])
    except SystemExit as left:
        return int(left.code or 0)
    return 0


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    path = tmp_path / "captions.txt.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(CAPTIONS))
    return path


def test_tables_of_a_text_file(captions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "tables"
    options = ["--threshold", 2, "--class-threshold", 2, "--relations-more-than", 0, "--json"]
    assert prepare(captions, "-o", out, *options) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["captions"], summary["phrases"], summary["vocabulary"]) == (3, 6, 4)
    assert Vocabulary.load(out / "vocabulary.json").words[4:] == ("a", "dog", "on", "table")
    assert RelationVocabulary.load(out / "relations.json").predicates == ("", "holding", "on", "sitting on")
    assert ObjectClasses.from_list(out / "classes.txt").names == ("dog", "table")
    assert read_lemmas(out / "lemmas.json")["dogs"] == "dog"
    assert {file.name for file in out.iterdir()} == {"vocabulary.json", "relations.json", "classes.txt", "lemmas.json"}


def test_entities_markup_and_a_given_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "train.tsv"
    data.write_text("7\t[/EN#1/people A woman] holding [/EN#2/animals a dog] .\n", encoding="utf-8")
    (tmp_path / "classes.txt").write_text("dog\n")
    out = tmp_path / "tables"
    options = ["--threshold", 1, "--classes", tmp_path / "classes.txt", "--relations-more-than", 0, "--json"]
    assert prepare(data, "-o", out, *options) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["split"], summary["phrases"], summary["relations"], summary["classes"]) == ("train", 2, 1, 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("none.tsv", "-o", "out"), "none.tsv"),
        (("captions.txt.gz", "-o", "captions.txt.gz"), "takes a folder"),
        (("captions.txt.gz", "-o", "out", "--split", "val"), "no split 'val'"),
        (("captions.txt.gz", "-o", "out", "--classes", "none.txt"), "none.txt"),
        (("captions.txt.gz", "-o", "out", "--class-threshold", "99"), "lower the threshold (--class-threshold)"),
        (("broken.txt.gz", "-o", "out"), "broken.txt.gz cannot be read"),
        (("empty.txt", "-o", "out"), "no caption"),
    ],
)
def test_what_goes_wrong_is_one_line_and_leaves_nothing(
    arguments: tuple[str, ...],
    says: str,
    captions: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.txt.gz").write_bytes(captions.read_bytes()[:20])
    (tmp_path / "empty.txt").write_text("\n \n")
    assert prepare(*arguments) == 2
    error = capsys.readouterr().err
    assert says in error
    assert "Traceback" not in error
    assert not (tmp_path / "out").exists()
