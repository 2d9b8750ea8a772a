"""What every reader is: named splits of ids, examples by id or as a stream, and a record of what is wrong."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar

from deixis.data.random_splits import SHARES, drawn, is_undivided
from deixis.errors import BadFileError, DeixisError
from deixis.images import IMAGE_SUFFIXES
from deixis.types.example import Example

UNKNOWN_ID = "id in a split list that does not exist"


class BadExampleError(BadFileError):
    """One example cannot be used; the rest of the dataset can. ``kind`` groups such errors in ``data info``."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[type[BadExampleError], tuple[str, str]]:
        return type(self), (self.kind, str(self))


class Problems:
    """What was found wrong while reading: for each kind, the places where it was seen, each counted once."""

    def __init__(self) -> None:
        self._places: dict[str, dict[str, None]] = {}

    def note(self, kind: str, place: str) -> None:
        """Remember one problem. The place names file and spot; noting it again changes nothing."""
        self._places.setdefault(kind, {})[place] = None

    def add(self, other: Problems) -> None:
        """Take over what another record holds."""
        for kind, places in other._places.items():
            self._places.setdefault(kind, {}).update(places)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds seen so far, in the order of their first appearance."""
        return tuple(self._places)

    def count(self, kind: str) -> int:
        """Return how often a kind was seen."""
        return len(self._places.get(kind, ()))

    def places(self, kind: str, limit: int | None = 3) -> tuple[str, ...]:
        """Return the first places of a kind."""
        return tuple(self._places.get(kind, ()))[:limit]

    def __len__(self) -> int:
        return sum(len(places) for places in self._places.values())


def _bare(id: str) -> str:
    """Return an id as people may shorten it: without leading zeros and the ending of an image."""
    stem, dot, ending = id.rpartition(".")
    stem = stem if dot and f".{ending.lower()}" in IMAGE_SUFFIXES else id
    return stem.lstrip("0") or stem


class Dataset(ABC):
    """A dataset on disk, opened without reading it all.

    ``dataset[id]`` raises for an example that cannot be used; ``examples()`` passes over it and notes the problem.
    Things that do not make an example useless (a missing image, a box cut at the border) are only noted.
    """

    format: ClassVar[str]
    """The name by which ``open_dataset(path, format=...)`` knows this reader."""
    many_files: ClassVar[bool] = False
    """Whether each example is parsed from files of its own, so that several processes read faster than one."""
    names_every_object: ClassVar[bool] = False
    """Whether objects are labelled with categories, and every thing of such a category has a box: absence is known."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems = Problems()

    @property
    def name(self) -> str:
        """The folder's or file's name, for people."""
        return self.path.resolve().name

    @classmethod
    @abstractmethod
    def recognises(cls, path: Path) -> bool:
        """Whether what lies at a path looks like this format. Cheap: names of files, at most the head of one."""

    @property
    @abstractmethod
    def splits(self) -> tuple[str, ...]:
        """The splits by name. One example may be in several (two published divisions of one dataset)."""

    @abstractmethod
    def _ids_of(self, split: str) -> Sequence[str]:
        """Return the ids of one existing split in their stored order."""

    @abstractmethod
    def _read(self, id: str) -> Example:
        """Read one example, or raise a :class:`BadExampleError`."""

    @property
    def drawn_splits(self) -> tuple[str, ...]:
        """``train``, ``val`` and ``test`` where the dataset has no splits of its own (``drawn.py``), else none."""
        return tuple(SHARES) if is_undivided(self.splits) else ()

    def find_split(self, split: str) -> str:
        """Return the full name of a split: itself, or the only one that begins so (``val`` for ``val2017``)."""
        if split in self.splits or split in self.drawn_splits:
            return split
        longer = [name for name in self.splits if name.startswith(split)]
        if len(longer) != 1:
            raise DeixisError(f"{self.path} has no split {split!r}; it has {', '.join(self.splits) or 'none'}")
        return longer[0]

    def ids(self, split: str | None = None) -> tuple[str, ...]:
        """Return the ids of a split, or of all splits without repeats."""
        if split is not None:
            name = self.find_split(split)
            return tuple(self._ids_of(name)) if name in self.splits else drawn(self._ids_of(self.splits[0]), name)
        return tuple(dict.fromkeys(id for name in self.splits for id in self._ids_of(name)))

    def __getitem__(self, id: str) -> Example:
        try:
            return self._read(id)
        except BadExampleError as error:
            if error.kind != UNKNOWN_ID:
                raise
            same = [known for known in self.ids() if _bare(known) == _bare(id)]
            if len(same) == 1:
                return self._read(same[0])
            near = same or get_close_matches(id, self.ids(), 3)
            hint = f"did you mean {', '.join(near[:3])}?" if near else "`deixis data show DATA` lists them"
            raise BadExampleError(UNKNOWN_ID, f"{error}: {hint}") from None

    def examples(self, split: str | None = None) -> Iterator[Example]:
        """Read one example after the other; those that cannot be used are left out and noted in ``problems``."""
        for id in self.ids(split):
            try:
                yield self._read(id)
            except BadExampleError as error:
                self.problems.note(error.kind, str(error))

    def __len__(self) -> int:
        return len(self.ids())
