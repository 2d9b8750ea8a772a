"""Fixtures of the metrics room: real COCO captions, and the scorers of pycocoevalcap with a Java they can find."""

from __future__ import annotations

import gzip
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

Captions = dict[str, list[str]]


@pytest.fixture(scope="session")
def coco(shared: Path) -> Captions:
    """1,200 COCO images with five captions each."""
    with gzip.open(shared / "data" / "coco" / "captions_val2014.json.gz", "rt", encoding="utf-8") as file:
        content = json.load(file)
    captions: Captions = defaultdict(list)
    for item in content["annotations"]:
        captions[str(item["image_id"])].append(item["caption"])
    full = [name for name, texts in captions.items() if len(texts) >= 5]
    return {name: captions[name][:5] for name in full[:1200]}


@pytest.fixture(scope="session")
def _java_on_path() -> Iterator[None]:
    """Let pycocoevalcap, which calls plain ``java``, use the Java we would use."""
    pytest.importorskip("pycocoevalcap", reason="parity needs the java extra")
    from deixis.metrics.captions.java import find_java

    before = os.environ.get("PATH", "")
    os.environ["PATH"] = f"{find_java().parent}{os.pathsep}{before}"
    yield
    os.environ["PATH"] = before


@pytest.fixture(scope="session")
def ptb(coco: Captions, _java_on_path: None) -> Captions:
    """The same captions through the Java tokeniser of the COCO evaluation."""
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    tokenised: Captions = PTBTokenizer().tokenize({k: [{"caption": t} for t in v] for k, v in coco.items()})
    return tokenised
