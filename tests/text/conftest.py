"""Real captions, parsed once for the tests that compare with spaCy."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from deixis.text.parse import parse_texts
from deixis.text.parsed import Parsed


@pytest.fixture(scope="session")
def real_parses(shared: Path) -> list[Parsed]:
    """1,600 captions of COCO spread over its whole file."""
    with gzip.open(shared / "data/coco/captions_val2014.json.gz", "rt", encoding="utf-8") as file:
        captions = [" ".join(item["caption"].split()) for item in json.load(file)["annotations"]][::126]
    return list(parse_texts(captions, processes=1).values())
