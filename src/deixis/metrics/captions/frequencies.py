"""In how many images' references each n-gram occurs: what CIDEr weighs words with.

Self-critical training takes them once from the training references and rewards every later caption with them
(Rennie et al., CVPR 2017), so they can be saved: as ``.safetensors`` (small, quick) or as ``.json`` (readable).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deixis.atomic import whole_file, write_json
from deixis.errors import BadFileError, DeixisError
from deixis.metrics.captions.ngrams import ORDERS, NgramTable, ReferenceNgrams, Token, Tokens
from deixis.reading.plain import read_json


@dataclass(frozen=True, slots=True)
class DocumentFrequencies:
    """How many of ``documents`` images have each n-gram of ``table`` in their references."""

    table: NgramTable
    counts: NDArray[np.int64]  # (G,)
    documents: int
    end: Token | None = None
    """The end-of-sentence token that was added to every reference, if any."""

    @classmethod
    def from_references(
        cls, references: Mapping[str, Sequence[Tokens]], *, end: Token | None = None
    ) -> DocumentFrequencies:
        """Count over tokenised references, image by image."""
        known = ReferenceNgrams(with_end(references, end))
        return cls(known.table, known.document_frequencies(), len(known.row_of), end)

    def save(self, path: str | Path) -> None:
        """Write to ``.safetensors`` or ``.json``."""
        path = Path(path)
        kind = _token_kind(self.table.words)
        head = {"format": "deixis-document-frequencies", "version": 1, "documents": self.documents, "tokens": kind}
        head["end"] = self.end
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".json":
            ngrams = zip(self.table.ngrams(), self.counts.tolist(), strict=True)
            body = {" ".join(map(str, words)): count for words, count in ngrams if count}
            write_json(path, {**head, "ngrams": body}, indent=None)
        elif path.suffix == ".safetensors":
            from safetensors.numpy import save_file

            words = np.frombuffer("\n".join(map(str, self.table.words)).encode(), np.uint8)
            tensors: dict[str, NDArray[Any]] = {"counts": self.counts, "words": words}
            tensors |= {f"keys.{order}": keys for order, keys in enumerate(self.table.keys, 1)}
            with whole_file(path) as partial:
                save_file(tensors, partial, metadata={"deixis": json.dumps(head)})
        else:
            raise DeixisError(f"cannot save document frequencies as {path.name!r}: end it in .safetensors or .json")

    @classmethod
    def load(cls, path: str | Path) -> DocumentFrequencies:
        """Read what :meth:`save` wrote."""
        path = Path(path)
        if not path.is_file():
            raise BadFileError(f"{path}: no such file of document frequencies")
        try:
            return _from_json(path) if path.suffix == ".json" else _from_safetensors(path)
        except DeixisError:
            raise
        except Exception as error:
            raise BadFileError(f"{path}: not a file of document frequencies ({error})") from error


def with_end(references: Mapping[str, Sequence[Tokens]], end: Token | None) -> Mapping[str, Sequence[Tokens]]:
    """Add the end-of-sentence token to every reference that does not carry it yet."""
    if end is None:
        return references
    return {
        name: [caption if len(caption) and caption[-1] == end else [*caption, end] for caption in captions]
        for name, captions in references.items()
    }


def _token_kind(words: Mapping[Token, int]) -> str:
    kinds = {"int" if isinstance(word, int) else "str" for word in words}
    if len(kinds) > 1:
        raise DeixisError("tokens are words in some captions and numbers in others: use one kind")
    for word in words:
        if isinstance(word, str) and (not word or word.split() != [word]):
            raise DeixisError(f"the token {word!r} is empty or holds white space: tokenise the references first")
    return kinds.pop() if kinds else "str"


def _check_head(path: Path, head: object) -> dict[str, object]:
    if not isinstance(head, dict) or head.get("format") != "deixis-document-frequencies" or head.get("version") != 1:
        raise BadFileError(f"{path}: not a file of document frequencies: make one with DocumentFrequencies.save")
    if not isinstance(head.get("documents"), int) or head["documents"] < 1:
        raise BadFileError(f"{path}: 'documents' is {head.get('documents')!r}, must be a positive number")
    return head


def _from_json(path: Path) -> DocumentFrequencies:
    body = read_json(path)
    head = _check_head(path, body)
    number = head.get("tokens") == "int"
    ngrams: list[list[Token]] = [[int(w) if number else w for w in text.split(" ")] for text in body["ngrams"]]
    given = np.fromiter(body["ngrams"].values(), np.int64, len(ngrams))
    if too_long := next((n for n in ngrams if len(n) > ORDERS), None):
        raise BadFileError(f"{path}: the n-gram {too_long} has more than {ORDERS} words")
    table, entries, _ = NgramTable.build(ngrams)
    counts = np.zeros(len(table), np.int64)
    # Each n-gram was counted like a caption; the n-gram itself is the caption's one entry of the full order.
    full = entries.order == entries.lengths[entries.caption] - 1
    counts[entries.ngram[full]] = given[entries.caption[full]]
    return _checked(path, DocumentFrequencies(table, counts, int(str(head["documents"])), _end(head)))


def _from_safetensors(path: Path) -> DocumentFrequencies:
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        head = _check_head(path, json.loads((file.metadata() or {}).get("deixis", "null")))
        text = file.get_tensor("words").tobytes().decode()
        keys = [file.get_tensor(f"keys.{order}") for order in range(1, ORDERS)]
        counts = file.get_tensor("counts")
    names = text.split("\n") if text else []
    words: dict[Token, int] = {int(w) if head.get("tokens") == "int" else w: i for i, w in enumerate(names)}
    table = NgramTable(words, keys)
    if len(counts) != len(table):
        raise BadFileError(f"{path}: {len(counts)} counts for {len(table)} n-grams: the file is damaged")
    return _checked(path, DocumentFrequencies(table, counts, int(str(head["documents"])), _end(head)))


def _end(head: Mapping[str, object]) -> Token | None:
    end = head.get("end")
    return end if isinstance(end, str | int) else None


def _checked(path: Path, frequencies: DocumentFrequencies) -> DocumentFrequencies:
    counts = frequencies.counts
    if len(counts) and (counts.min() < 0 or counts.max() > frequencies.documents):
        worst = counts.min() if counts.min() < 0 else counts.max()
        raise BadFileError(f"{path}: an n-gram occurs in {worst} of {frequencies.documents} documents")
    return frequencies
