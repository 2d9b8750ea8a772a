"""What the page does outside its networks, run by node beside the Python that it stands for."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deixis.models.names import SHIPPED
from deixis.portable.rules import rules
from deixis.regions.network.resize import fit
from deixis.text.rules.chunker import chunk
from deixis.text.vocabulary import Vocabulary

PAGE = Path(__file__).parents[3] / "src" / "deixis" / "portable" / "page"
ODD = [
    "I can't see Mr. Smith at 10:30 in the U.S. near the dog's black-and-white ball.",
    "There's a group of people in front of a snow covered street, and she looks at her.",
    "Two 5-year-old girls skateboard down 1 1/2 ramps; it moves over A&B's C++ sign (see No. 5) …",
    "people surf in the café’s wave while a well stocked bar is fencing 😀 the setting",
    "a fruit stand", "a man in a red hat", "qwzx", "the young", "US$ 5 @home #dogs don’t o’clock I. The cat",
]  # fmt: skip


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs a line of JavaScript on the modules of the page; what it logs is read as JSON."""
    if shutil.which("node") is None:
        pytest.skip("needs node (Debian: apt-get install nodejs)")
    folder = tmp_path_factory.mktemp("node")
    shutil.copytree(PAGE, folder, dirs_exist_ok=True)
    (folder / "package.json").write_text('{"type": "module"}')

    def run(code: str, **given: Any) -> Any:
        (folder / "given.json").write_text(json.dumps(given))
        head = 'import fs from "node:fs"; const given = JSON.parse(fs.readFileSync("given.json"));\n'
        (folder / "run.js").write_text(head + code)
        done = subprocess.run(["node", "run.js"], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_sentences_are_read_alike(node: Any, flickr8k: Path | None) -> None:
    sentences = list(ODD)
    if flickr8k is not None:
        from deixis.data.open import open_dataset

        data = open_dataset(flickr8k)
        sentences += [one.text for id in list(data.ids("val"))[:120] for one in data[id].captions]
        assert len(sentences) > 500
    words = Vocabulary.load(SHIPPED / "grounder" / "vocabulary.json")
    code = """
        import { Reader } from "./reading.js";
        const entries = new Map(given.words.map((entry) => [entry.word, entry]));
        const reader = new Reader(given.rules, { entry: (word) => entries.get(word) ?? null });
        console.log(JSON.stringify(given.sentences.map((text) => {
          const { tokens, phrases } = reader.read(text);
          return [tokens.map((token) => [token.text, token.tag]),
            phrases.map(({ first, last, head }) => [first, last, head])];
        })));"""
    found = node(code, rules=rules(), sentences=sentences, words=words.to_json()["words"])
    for text, (tokens, phrases) in zip(sentences, found, strict=True):
        read = chunk(text, words)
        assert tokens == [[token.text, token.tag] for token in read.tokens], text
        assert phrases == [[phrase.first, phrase.last, phrase.head] for phrase in read.phrases], text


def test_photos_are_resized_alike(node: Any) -> None:
    rng = np.random.default_rng(0)
    code = """
        import { fit } from "./pixels.js";
        const { width, height, data } = fit({ ...given, data: Uint8Array.from(given.data) });
        console.log(JSON.stringify([height, width, Array.from(data)]));"""
    sizes = [(451, 300), (40, 30), (900, 37), (1501, 1203), (339, 837), (591, 201), (800, 2600), (2600, 800)]
    for width, height in sizes:  # noise, because what is smooth hides whether rows or columns come first
        pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        high, wide, data = node(code, width=width, height=height, data=pixels.ravel().tolist())
        apart = np.abs(np.array(data).reshape(high, wide, 3) - fit(pixels))
        assert apart.max() <= 1
        assert (apart > 0).mean() < 1e-3
