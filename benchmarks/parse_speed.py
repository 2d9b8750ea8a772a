"""How many captions a second are parsed, beside plain spaCy on the same captions with the same number of processes.

    python benchmarks/parse_speed.py CAPTIONS [--captions 20000] [--processes 2] [--json FILE]

CAPTIONS is a .tsv(.gz) with the text in the last column or a .txt(.gz) with one caption a line. Everything counts:
starting the processes, loading the pipeline, writing and reading the shards. Meaningful on an idle machine only; the
load at the start is printed. ``--captions 0`` takes all of them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import tempfile
import time
from pathlib import Path

from deixis.text.parse import parse_texts, parser_name
from deixis.text.parsed import to_sentence
from deixis.text.tokens import scoring_words, tokenise


def main() -> None:
    options = parse_options()
    captions = read(options.file)
    captions = captions[: options.captions or None]
    result: dict[str, object] = {"parser": parser_name(), "captions": len(captions), "processes": options.processes}
    result["load_at_start"] = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        parsed = parse_texts(captions, options.processes, cache=Path(folder))
        result["deixis_captions_per_second"] = len(captions) / (time.perf_counter() - start)
        start = time.perf_counter()
        parse_texts(captions, options.processes, cache=Path(folder))
        result["from_cache_per_second"] = len(captions) / (time.perf_counter() - start)
    start = time.perf_counter()
    for caption in captions:
        to_sentence(parsed[caption])
    result["phrases_and_relations_per_second"] = len(captions) / (time.perf_counter() - start)
    for name, function in (("tokenise", tokenise), ("scoring_words", scoring_words)):
        start = time.perf_counter()
        for caption in captions:
            function(caption)
        result[f"{name}_per_second"] = len(captions) / (time.perf_counter() - start)
    result["plain_spacy_captions_per_second"] = plain_spacy(captions, options.processes)
    for key, value in result.items():
        print(f"{key.replace('_', ' '):36} {value:,.1f}" if isinstance(value, float) else f"{key:36} {value}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def plain_spacy(captions: list[str], processes: int) -> float:
    """What a user gets who types the usual two lines."""
    import spacy

    start = time.perf_counter()
    nlp = spacy.load(parser_name().rsplit("-", 1)[0])
    for document in nlp.pipe(captions, n_process=processes):
        list(document.noun_chunks)
    return len(captions) / (time.perf_counter() - start)


def read(file: Path) -> list[str]:
    open_text = gzip.open if file.name.endswith(".gz") else open
    with open_text(file, "rt", encoding="utf-8") as lines:
        texts = [line.rstrip("\n").rsplit("\t", 1)[-1] for line in lines]
    return [re.sub(r"\[/EN#\S+ ([^\]]*)\]", r"\1", text) for text in texts if text.strip()]


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("file", metavar="CAPTIONS", type=Path)
    parser.add_argument("--captions", type=int, default=20_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
