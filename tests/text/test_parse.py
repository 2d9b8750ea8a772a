"""Parsing keeps our tokens, remembers what it did, and goes on where it was stopped."""

from __future__ import annotations

import gzip
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from deixis.errors import DeixisError, MissingExtraError
from deixis.text import parse
from deixis.text.parse import corpus_cache, parse_sentences, parse_texts, parser_name
from deixis.text.parsed import Parsed, to_sentence
from deixis.text.tokens import tokenise
from deixis.types import Phrase, Sentence, Token

TEXTS = [
    f"{count} small dogs don't chase a {colour} cat." for count in range(2, 12) for colour in ("red", "blue", "grey")
]


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "SHARD", 7)


def test_tokens_stay_ours_and_get_tags_lemmas_and_phrases() -> None:
    (sentence,) = parse_sentences(["Two girls'  dogs DON'T chase the U.S. mailman."], processes=1)
    assert [(t.text, t.start, t.end) for t in sentence.tokens] == [
        (t.text, t.start, t.end) for t in tokenise(sentence.text)
    ]
    assert [t.lemma for t in sentence.tokens][:4] == ["two", "girl", "'", "dog"]
    assert sentence.tokens[3].tag == "NNS"
    assert [sentence.phrase_text(phrase) for phrase in sentence.phrases] == ["Two girls'  dogs", "the U.S. mailman"]
    assert [sentence.tokens[phrase.head or 0].text for phrase in sentence.phrases] == ["dogs", "mailman"]


@pytest.mark.parametrize("text", ["", " ", "?!", "日本語", "a" * 3000, "\u200b", "dog \ud83d dog"])
def test_odd_texts_are_parsed_like_any_other(text: str, tmp_path: Path) -> None:
    for _ in range(2):  # the second time from the cache
        (sentence,) = parse_sentences([text], processes=1, cache=tmp_path)
        assert sentence.text == text
        assert all(token.tag is not None for token in sentence.tokens)


def test_parses_come_back_from_json() -> None:
    parsed = parse_texts(["A “quoted” dog,\tbarking."], processes=1)
    assert all(Parsed.from_json(item.to_json()) == item for item in parsed.values())


def test_phrases_of_other_tokens_are_found_by_their_characters() -> None:
    text = "a T-shirt , don't"
    own = (Token("a", 0, 1), Token("T", 2, 3), Token("-", 3, 4), Token("shirt", 4, 9))
    parsed = parse_texts([text], processes=1)[text]
    (phrase,) = to_sentence(parsed, Sentence(text, own, (Phrase(0, 4, "1", boxes=((0.0, 0.0, 1.0, 1.0),)),))).phrases
    assert (phrase.first, phrase.last, phrase.head, phrase.entity) == (0, 2, 1, "1")


def test_repeated_texts_are_parsed_once_and_all_returned(small_shards: None, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    original = parse._parse

    def watched(texts: list[str]) -> Iterator[Parsed]:
        seen.extend(texts)
        return original(texts)

    monkeypatch.setattr(parse, "_parse", watched)
    sentences = parse_sentences(TEXTS + TEXTS[::-1], processes=1)
    assert [sentence.text for sentence in sentences] == TEXTS + TEXTS[::-1]
    assert seen == TEXTS


def test_a_stopped_parse_goes_on_where_it_was(
    small_shards: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = parse_texts(TEXTS, processes=1)
    original = parse._parse_shard
    parsed_now: list[int] = []

    def stop_at_third(texts: list[str], file: Path) -> list[Parsed]:
        if len(parsed_now) == 2:
            (file.parent / f".{file.name}.1.partial").write_bytes(b"half a sha")  # killed while it wrote
            raise KeyboardInterrupt
        parsed_now.append(len(texts))
        return original(texts, file)

    monkeypatch.setattr(parse, "_parse_shard", stop_at_third)
    with pytest.raises(KeyboardInterrupt):
        parse_texts(TEXTS, processes=1, cache=tmp_path)
    kept = {file.name for file in tmp_path.glob("[!.]*")}
    assert len(kept) == 2

    def count(texts: list[str], file: Path) -> list[Parsed]:
        parsed_now.append(len(texts))
        return original(texts, file)

    parsed_now.clear()
    monkeypatch.setattr(parse, "_parse_shard", count)
    progress: list[tuple[int, int]] = []
    resumed = parse_texts(TEXTS, processes=1, cache=tmp_path, on_progress=lambda *done: progress.append(done))
    assert resumed == whole
    assert parsed_now == [7, 7, 2]  # of 7 + 7 + 7 + 7 + 2
    assert progress == [(7, 30), (14, 30), (21, 30), (28, 30), (30, 30)]
    parsed_now.clear()
    assert parse_texts(TEXTS, processes=1, cache=tmp_path) == whole
    assert parsed_now == []


def test_a_damaged_shard_is_parsed_again(small_shards: None, tmp_path: Path) -> None:
    whole = parse_texts(TEXTS, processes=1, cache=tmp_path)
    cut, other, empty, *_ = sorted(tmp_path.iterdir())
    cut.write_bytes(cut.read_bytes()[:40])
    other.write_bytes(gzip.compress(b'["a","b"]\n'))
    empty.write_bytes(b"")
    assert parse_texts(TEXTS, processes=1, cache=tmp_path) == whole
    assert parse._read_shard(cut, TEXTS[:7]) is None or len(cut.read_bytes()) > 40


@pytest.mark.recipe
def test_several_processes_give_the_same(small_shards: None, tmp_path: Path) -> None:
    assert parse_texts(TEXTS, processes=2, cache=tmp_path) == parse_texts(TEXTS, processes=1)
    assert len(list(tmp_path.iterdir())) == 5


def test_a_process_that_dies_is_reported(small_shards: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def dead() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", "import sys; sys.exit(9)"]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    monkeypatch.setattr(parse, "_start_worker", dead)
    with pytest.raises(DeixisError, match="parsing process ended"):
        parse_texts(TEXTS, processes=2)


@pytest.mark.recipe
def test_a_killed_process_leaves_only_whole_shards(small_shards: None, tmp_path: Path) -> None:
    code = f"""
import time
from pathlib import Path
from deixis.text import parse
parse.SHARD = 7
parse.parse_texts({TEXTS!r}, processes=1, cache=Path({str(tmp_path)!r}), on_progress=lambda *_: time.sleep(1))
"""
    child = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("[!.]*")) and time.monotonic() < deadline and child.poll() is None:
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert 1 <= len(list(tmp_path.glob("[!.]*"))) < 5
    assert parse_texts(TEXTS, processes=1, cache=tmp_path) == parse_texts(TEXTS, processes=1)


def test_the_cache_names_the_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEIXIS_HOME", str(tmp_path))
    assert corpus_cache().parent == tmp_path / "parses"
    assert parser_name() in corpus_cache().name
    assert parser_name().startswith("en_core_web_sm")


@pytest.mark.parametrize(("absent", "says"), [(("spacy",), r"deixis\[train\]"), (parse.MODELS, "spacy download")])
def test_a_missing_package_says_what_to_install(
    absent: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in absent else original(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    parse._model.cache_clear()
    try:
        with pytest.raises(MissingExtraError, match=says):
            parser_name()
    finally:
        parse._model.cache_clear()
