"""The negatives of a whole corpus as one table, made once for a language model and kept on disk."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from deixis.atomic import sweep, temporary_name
from deixis.errors import BadFileError
from deixis.home import cache_home
from deixis.reading.plain import read_json_object
from deixis.text.negatives import (
    NOT_NOUNS,
    LanguageModel,
    NegativeMaker,
    NegativeOptions,
    choose_noun,
    corpus_nouns,
)
from deixis.text.vocabulary import PAD, UNKNOWN, Vocabulary

FORMAT = 1
TENSORS, FACTS = "negatives.safetensors", "negatives.json"


@dataclass(frozen=True, slots=True)
class CorpusCaption:
    """A caption as the table needs it: its id, its words as numbers, and where its nouns are."""

    id: str
    words: tuple[int, ...]
    nouns: tuple[int, ...]

    @property
    def image(self) -> str:
        """The photo it is about: ``IMAGE#INDEX`` is the id of a caption."""
        return self.id.rsplit("#", 1)[0]


def said_lemmas(captions: Iterable[CorpusCaption], vocabulary: Vocabulary) -> dict[str, frozenset[str]]:
    """Return the lemmas of all words that the captions of each photo say."""
    said: dict[str, set[int]] = {}
    for caption in captions:
        said.setdefault(caption.image, set()).update(caption.words)
    return {
        image: frozenset(vocabulary.lemma(vocabulary.words[number]) for number in numbers - {PAD, UNKNOWN})
        for image, numbers in said.items()
    }


def chosen_nouns(
    captions: Iterable[CorpusCaption], vocabulary: Vocabulary, seed: int = 0
) -> list[tuple[CorpusCaption, int]]:
    """Return the captions that have a known noun, each with the place of the one that is replaced."""
    chosen = []
    for caption in captions:
        nouns = [
            at
            for at in caption.nouns
            if caption.words[at] != UNKNOWN and vocabulary.words[caption.words[at]] not in NOT_NOUNS
        ]
        place = choose_noun(nouns, caption.id, seed)
        if place is not None:
            chosen.append((caption, place))
    return chosen


@dataclass(frozen=True, slots=True, eq=False)
class NegativeTable:
    """Row by row: which word of a caption is replaced, and by what. A caption without a noun has no row."""

    ids: tuple[str, ...]
    place: Tensor  # (R,)
    words: Tensor  # (R, K) numbers of the vocabulary, 0 where there are fewer

    @classmethod
    def make(
        cls,
        captions: Sequence[CorpusCaption],
        vocabulary: Vocabulary,
        model: LanguageModel,
        options: NegativeOptions,
        *,
        seed: int = 0,
        batch: int = 256,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """Choose a noun of each caption and find its negatives."""
        maker = NegativeMaker(model, corpus_nouns(vocabulary), options, vocabulary.lemma)
        said = {} if options.allow_said else said_lemmas(captions, vocabulary)
        chosen = chosen_nouns(captions, vocabulary, seed)
        chosen.sort(key=lambda entry: (len(entry[0].words), entry[0].id))  # captions of one length need no padding
        words = torch.full((len(chosen), options.keep), PAD)
        for first in range(0, len(chosen), batch):
            part = chosen[first : first + batch]
            texts = [[vocabulary.words[number] for number in caption.words] for caption, _ in part]
            told = [said.get(caption.image, frozenset()) for caption, _ in part]
            for row, found in enumerate(maker(texts, [place for _, place in part], told), first):
                numbers = [vocabulary.id(candidate.word) for candidate in found.kept]
                words[row, : len(numbers)] = torch.tensor(numbers)
            if on_progress is not None:
                on_progress(min(first + batch, len(chosen)), len(chosen))
        return cls(tuple(c.id for c, _ in chosen), torch.tensor([p for _, p in chosen], dtype=torch.long), words)

    @classmethod
    def cached(
        cls,
        captions: Sequence[CorpusCaption],
        vocabulary: Vocabulary,
        model: LanguageModel,
        options: NegativeOptions,
        *,
        seed: int = 0,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """Return the table from ``$DEIXIS_HOME/negatives``, or make it and keep it there.

        Model, corpus, vocabulary, options and seed are its key: another of them is another table.
        """
        sha = hashlib.sha256(json.dumps([FORMAT, model.name, asdict(options), seed, vocabulary.words]).encode())
        for caption in captions:
            sha.update(json.dumps([caption.id, caption.words, caption.nouns]).encode())
        folder = cache_home() / "negatives" / sha.hexdigest()[:24]
        if folder.is_dir():
            return cls.load(folder)
        table = cls.make(captions, vocabulary, model, options, seed=seed, on_progress=on_progress)
        table.save(folder, {"model": model.name, "seed": seed, **asdict(options)})
        return table

    def save(self, folder: Path, facts: dict[str, object]) -> None:
        """Write the table under a temporary name and rename it."""
        partial = temporary_name(folder)
        sweep(partial.parent)
        partial.mkdir(parents=True)
        save_file({"place": self.place, "words": self.words}, partial / TENSORS)
        digest = hashlib.sha256((partial / TENSORS).read_bytes()).hexdigest()
        data = {"format": FORMAT, **facts, "sha256": digest, "ids": list(self.ids)}
        (partial / FACTS).write_text(json.dumps(data, ensure_ascii=False) + "\n", encoding="utf-8")
        try:
            partial.rename(folder)
        except OSError:  # another process was quicker, with the same table
            shutil.rmtree(partial)
            if not folder.is_dir():
                raise

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read a table back; a damaged one is refused."""
        try:
            data = read_json_object(folder / FACTS)
            whole = hashlib.sha256((folder / TENSORS).read_bytes()).hexdigest() == data["sha256"]
            tensors = load_file(folder / TENSORS)
            table = cls(tuple(data["ids"]), tensors["place"], tensors["words"])
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise BadFileError(f"the negatives in {folder} are damaged ({error!r}): delete the folder") from error
        if not whole or len(table.ids) != len(table.place):
            raise BadFileError(f"the negatives in {folder} are damaged: delete the folder, they are made again")
        return table
