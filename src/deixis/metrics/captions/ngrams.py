"""Counting n-grams of many captions at once, and matching them with the n-grams of references.

BLEU and CIDEr both ask one question: which n-grams of a caption occur in its references, and how often? Here every
n-gram (up to four words) of the references gets a number, exactly and without hashing: an n-gram is its first n-1
words (already numbered) and its last word, and a sorted array of such pairs is the whole dictionary. Counting and
matching are then a few sorts and look-ups over arrays, whatever the number of captions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, repeat

import numpy as np
from numpy.typing import NDArray

from deixis.errors import DeixisError

Token = str | int
Tokens = Sequence[Token]
Ints = NDArray[np.int64]

ORDERS = 4
"""BLEU and CIDEr look at n-grams of one to four words."""

_WORD_BITS = 31
_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class NgramCounts:
    """The n-grams of C captions as E entries, sorted by caption and then by n-gram. Orders count from 0."""

    lengths: Ints  # (C,) words
    caption: Ints  # (E,)
    ngram: Ints  # (E,)
    order: Ints  # (E,)
    count: Ints  # (E,)
    size: int  # one more than the largest n-gram number that can occur


class NgramTable:
    """The numbers of all n-grams seen; an n-gram of order n is a position in ``keys[n]`` plus ``starts[n]``."""

    def __init__(self, words: dict[Token, int], keys: Sequence[Ints]) -> None:
        self.words = words
        self.keys = tuple(keys)  # order 0 has no keys: a word's number is its position
        self.starts = np.cumsum([0, len(words), *(len(k) for k in self.keys)])  # (ORDERS + 1,)

    def __len__(self) -> int:
        return int(self.starts[-1])

    @classmethod
    def build(
        cls, captions: Sequence[Tokens], base: NgramTable | None = None
    ) -> tuple[NgramTable, NgramCounts, Ints | None]:
        """Number the n-grams of ``captions`` (and of ``base``).

        Returns the table, the counts of the captions, and where each number of ``base`` went.
        """
        _check_cut(captions)
        known = base.words if base else {}
        numbered: dict[Token, int] = defaultdict(count(len(known)).__next__, known)  # a new word takes the next number
        flat = np.fromiter(map(numbered.__getitem__, chain.from_iterable(captions)), np.int64)
        lengths = np.fromiter(map(len, captions), np.int64, len(captions))
        at, left = _positions(lengths)
        ids, keys, numbers = flat, [], [flat]
        moved = None if base is None else [np.arange(len(base.words))]
        for order in range(1, ORDERS):
            keep = left[at] > order
            at, ids = at[keep], ids[keep]
            key = ids << _WORD_BITS | flat[at + order]
            if base is None or moved is None:
                unique, ids = np.unique(key, return_inverse=True)
            else:
                old = base.keys[order - 1]
                old = moved[-1][old >> _WORD_BITS] << _WORD_BITS | old & ((1 << _WORD_BITS) - 1)
                unique = _distinct(np.concatenate([old, key]))
                ids = np.searchsorted(unique, key)
                moved.append(np.searchsorted(unique, old))
            keys.append(unique)
            numbers.append(ids)
        table = cls(dict(numbered), keys)
        numbers = [n + start for n, start in zip(numbers, table.starts, strict=False)]
        counts = _count(lengths, left, numbers, len(table))
        if moved is None:
            return table, counts, None
        return table, counts, np.concatenate([m + s for m, s in zip(moved, table.starts, strict=False)])

    def count(self, captions: Sequence[Tokens]) -> NgramCounts:
        """Count n-grams; those the table does not know get numbers from ``len(self)`` on, valid in this call only."""
        _check_cut(captions)
        known = self.words
        fresh: dict[Token, int] = {}
        flat = np.fromiter(map(known.get, chain.from_iterable(captions), repeat(-1)), np.int64)
        if (flat < 0).any():
            each = chain.from_iterable(captions)
            unseen = (fresh.setdefault(w, len(fresh)) + len(known) for w, i in zip(each, flat, strict=True) if i < 0)
            flat[flat < 0] = np.fromiter(unseen, np.int64)
        lengths = np.fromiter(map(len, captions), np.int64, len(captions))
        at, left = _positions(lengths)
        ids, extra = flat, len(self)
        numbers = [np.where(flat < len(known), flat, flat - len(known) + extra)]
        extra += len(fresh)
        for order, keys in enumerate(self.keys, 1):
            keep = left[at] > order
            at, ids = at[keep], ids[keep]
            unique, back = np.unique(ids << _WORD_BITS | flat[at + order], return_inverse=True)
            found, there = _find(keys, unique)
            new = ~there
            rank = np.cumsum(new) - 1  # of the new ones among themselves
            local = np.where(new, len(keys) + rank, found).astype(np.int64)
            ids = local[back]
            numbers.append(np.where(new, extra + rank, found + self.starts[order])[back])
            extra += int(new.sum())
        return _count(lengths, left, numbers, extra)

    def ngrams(self) -> Iterator[tuple[Token, ...]]:
        """Yield every n-gram in the order of its number."""
        names = list(self.words)
        level: list[tuple[Token, ...]] = [(w,) for w in names]
        yield from level
        for keys in self.keys:
            prefixes, last = (keys >> _WORD_BITS).tolist(), (keys & ((1 << _WORD_BITS) - 1)).tolist()
            level = [(*level[p], names[w]) for p, w in zip(prefixes, last, strict=True)]
            yield from level


def _check_cut(captions: Sequence[Tokens]) -> None:
    """Refuse whole texts, which would be read letter by letter, and tensors, whose elements equal nothing."""
    for caption in captions:
        if isinstance(caption, str):
            raise DeixisError(f"the caption {caption!r} is not cut into words: use deixis.text.tokens.scoring_words")
        if len(caption) and not isinstance(caption[0], str | int | np.integer):
            raise DeixisError(
                f"a caption starts with {caption[0]!r}: its tokens must be words or numbers (use .tolist())"
            )


def _distinct(numbers: Ints) -> Ints:
    """Sort and drop repetitions; for millions of numbers several times quicker than the hashing of ``np.unique``."""
    numbers = np.sort(numbers)
    return numbers[np.concatenate([[True], numbers[1:] != numbers[:-1]])] if len(numbers) else numbers


def _find(keys: Ints, wanted: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return where each wanted number belongs in the sorted keys, and whether it is there."""
    place = np.asarray(np.searchsorted(keys, wanted), np.int64)
    there = place < len(keys)
    there[there] = keys[place[there]] == wanted[there]
    return place, there


def _positions(lengths: Ints) -> tuple[Ints, Ints]:
    """Return every place in the joined captions, and how many words its caption still has from there."""
    at = np.arange(int(lengths.sum()))
    return at, np.repeat(np.cumsum(lengths), lengths) - at


def _count(lengths: Ints, left: Ints, numbers: Sequence[Ints], size: int) -> NgramCounts:
    """Merge equal n-grams of a caption into one entry with its count."""
    caption = np.repeat(np.arange(len(lengths)), lengths)
    owners = [caption[left > order] for order in range(ORDERS)]
    key = np.concatenate([o * size + n for o, n in zip(owners, numbers, strict=True)])
    order = np.repeat(np.arange(ORDERS), [len(n) for n in numbers])
    # The order rides in the two lowest bits, which neither splits nor reorders entries of one n-gram.
    unique, count = np.unique(key << 2 | order, return_counts=True)
    entry = unique >> 2
    return NgramCounts(
        lengths, entry // size if size else entry, entry % size if size else entry, unique & 3, count, size
    )


@dataclass(frozen=True, slots=True)
class Matches:
    """M pairs of an entry of a caption and an entry of one of its references with the same n-gram."""

    counts: NgramCounts
    rows: Ints  # (C,) the image of each caption
    entry: Ints  # (M,) entry of the caption
    reference_entry: Ints  # (M,) entry of the reference


class ReferenceNgrams:
    """The counted n-grams of the references of I images, kept so that captions can be matched again and again."""

    def __init__(self, references: Mapping[str, Sequence[Tokens]], base: NgramTable | None = None) -> None:
        if not references:
            raise DeixisError("there are no references: give at least one image with at least one reference caption")
        for name, captions in references.items():
            if not captions:
                raise DeixisError(
                    f"image {name!r} has no reference captions: give at least one, or leave the image out"
                )
        self.row_of = {name: row for row, name in enumerate(references)}
        number = np.fromiter((len(c) for c in references.values()), np.int64, len(references))
        self.image = np.repeat(np.arange(len(number)), number)  # (R,) the image of each reference
        self.first = np.concatenate([[0], np.cumsum(number)])  # (I + 1,) first reference of each image
        self.table, counts, self.moved = NgramTable.build(
            [c for captions in references.values() for c in captions], base
        )
        self.lengths = counts.lengths  # (R,)
        # A training set has tens of millions of entries, so they are kept small.
        self.reference = counts.caption.astype(np.int32)  # (E,)
        self.ngram = counts.ngram.astype(np.int32)  # (E,)
        self.order = counts.order.astype(np.int8)  # (E,)
        self.count = counts.count.astype(np.int32)  # (E,)
        self._entries = np.searchsorted(counts.caption, self.first)  # (I + 1,) first entry of each image

    def rows(self, ids: Iterable[str]) -> Ints:
        """Return the row of each image; an unknown image is an error that names it."""
        try:
            return np.fromiter((self.row_of[name] for name in ids), np.int64)
        except KeyError as missing:
            raise DeixisError(
                f"image {missing.args[0]!r} has no references among the {len(self.row_of)} known"
            ) from None

    def document_frequencies(self) -> Ints:
        """Return in how many images' references each n-gram occurs, (G,)."""
        size = len(self.table)
        seen = _distinct(self.image[self.reference] * size + self.ngram)
        return np.bincount(seen % size, minlength=size)

    def blocks(self, captions: Sequence[Tokens], rows: Ints) -> Iterator[Matches]:
        """Match captions with the references of their images, some thousand captions at a time to bound memory."""
        for start in range(0, len(captions), _BLOCK):
            yield self._match(captions[start : start + _BLOCK], rows[start : start + _BLOCK])

    def _match(self, captions: Sequence[Tokens], rows: Ints) -> Matches:
        counts = self.table.count(captions)
        low = self._entries[rows]
        number = self._entries[rows + 1] - low
        ends = np.cumsum(number)
        candidate = np.repeat(np.arange(len(rows)), number)
        entry = np.arange(int(number.sum())) + np.repeat(low - (ends - number), number)
        # Most reference n-grams occur in no caption of the block; one look-up table drops them before the search.
        present = np.zeros(counts.size, np.bool_)
        present[counts.ngram] = True
        keep = present[self.ngram[entry]]
        candidate, entry = candidate[keep], entry[keep]
        wanted = candidate * counts.size + self.ngram[entry]
        have = counts.caption * counts.size + counts.ngram
        found, keep = _find(have, wanted)
        return Matches(counts, rows, found[keep], entry[keep])
