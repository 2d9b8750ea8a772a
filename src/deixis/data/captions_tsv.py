"""Captions alone: ``image id <tab> sentence`` a line, plain or gzip, with or without Entities markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from deixis.data.dataset import UNKNOWN_ID, BadExampleError, Dataset
from deixis.data.files import EMPTY_CAPTION
from deixis.data.flickr30k_entities import BROKEN_SENTENCE, unmark
from deixis.data.sentences import sentence_with_phrases
from deixis.reading.files import read_text
from deixis.types.example import Example, ImageFile
from deixis.types.sentence import Phrase, Sentence

_ENDINGS = (".tsv", ".tsv.gz")


class CaptionsTsv(Dataset):
    """A text-only dataset; each file is a split of its own name. Its examples name images that are not here."""

    format = "captions-tsv"

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """A ``.tsv`` file, or a folder that has some."""
        return bool(_files(path))

    @cached_property
    def _split_files(self) -> Mapping[str, Path]:
        return {file.name.split(".")[0]: file for file in _files(self.path)}

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the files."""
        return tuple(self._split_files)

    @cached_property
    def _loaded(self) -> dict[str, dict[str, list[tuple[int, str]]]]:
        return {}

    def _lines(self, split: str) -> dict[str, list[tuple[int, str]]]:
        """Each image's lines of a split with their numbers."""
        if split not in self._loaded:
            file = self._split_files[split]
            found: dict[str, list[tuple[int, str]]] = {}
            for number, line in enumerate(read_text(file).split("\n"), 1):
                if not line.strip():
                    continue
                id, tab, text = line.partition("\t")
                if not tab or not id.strip():
                    self.problems.note(BROKEN_SENTENCE, f"{file}, line {number}: no tab between image and sentence")
                    continue
                found.setdefault(id.strip(), []).append((number, text))
            self._loaded[split] = found
        return self._loaded[split]

    def _ids_of(self, split: str) -> Sequence[str]:
        return tuple(self._lines(split))

    def _read(self, id: str) -> Example:
        captions: list[Sentence] = []
        own = None
        for split in self.splits:
            for number, text in self._lines(split).get(id, ()):
                own = own or split
                sentence = self._sentence(text.rstrip("\r"), f"{self._split_files[split]}, line {number}")
                if sentence is not None:
                    captions.append(sentence)
        if own is None:
            raise BadExampleError(UNKNOWN_ID, f"{self.path}: there is no image {id!r}")
        return Example(id, ImageFile(Path(f"{id}.jpg")), None, tuple(captions), own)

    def _sentence(self, line: str, place: str) -> Sentence | None:
        text, marks = unmark(line, place)
        if not text.strip():
            self.problems.note(EMPTY_CAPTION, place)
            return None
        phrases = [
            (start, end, Phrase(0, 0, chain, types, visual=chain != "0" and "notvisual" not in types))
            for start, end, chain, types in marks
        ]
        return sentence_with_phrases(text, phrases)[0]


def _files(path: Path) -> list[Path]:
    candidates = [path] if path.is_file() else sorted(path.iterdir()) if path.is_dir() else []
    return [file for file in candidates if file.name.endswith(_ENDINGS) and file.is_file()]
