"""The index of a folder: made once, resumed when it was stopped, and brought up to date when photos come and go.

Photos are added in segments of a few hundred; a kill costs at most the segment in work. The manifest is the only file
that is ever replaced, so a reader never sees half an update, and an older reader keeps the segments it has mapped.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deixis.answering.phrases import phrases_of_sentence, single_phrases
from deixis.answering.search.folder import scan, state_of
from deixis.answering.search.manifest import FILE, Manifest, model_fingerprint
from deixis.answering.search.segments import PhotoFile, Segment, write_segment
from deixis.answering.search.words import Query, match_sentence, telling_words, word_scores
from deixis.data.batch import RegionBatch
from deixis.data.pad import pad_regions
from deixis.errors import DeixisError
from deixis.home import cache_home
from deixis.locks import only_writer
from deixis.types import GroundedPhrases, Regions

if TYPE_CHECKING:
    from deixis.answering.load import Deixis
    from deixis.answering.work import Place, Source

PER_SEGMENT = 256
LARGE = 4096
"""Photos of a segment that is left as it is; smaller ones are joined."""
MANY_SMALL = 8
"""So many small segments are joined into larger ones."""
CANDIDATES = 100
"""Photos that the grounder itself looks at in the second stage."""
AT_ONCE = 32
_SEGMENT = re.compile(r"segment-\d{6,}")
_OURS = re.compile(rf"{_SEGMENT.pattern}|\.lock|\..*\.partial")
"""What a process may leave that was killed before it wrote its first manifest, or while it deleted an index."""
Progress = Callable[[int, int], None]
"""Told how many photos are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Found:
    """A photo that answers: how well, and where in it."""

    path: Path
    score: float
    """The grounder's match of the whole phrase or sentence: higher is better, comparable within one search only."""
    answer: GroundedPhrases


@dataclass(frozen=True, slots=True)
class Update:
    """What an update of the index did."""

    added: int
    removed: int
    failed: tuple[tuple[str, str], ...]
    """Photos that could not be read, and why."""
    unsettled: int
    """Photos that were written or deleted while they were read; the next update takes them."""


class PhotoIndex:
    """The photos of a folder, ready to be searched.

    >>> index = PhotoIndex(deixis.load(), "photos")  # doctest: +SKIP
    >>> index.update()  # doctest: +SKIP
    >>> [found.path for found in index.search("a dog on a sofa", top=3)]  # doctest: +SKIP
    """

    def __init__(
        self,
        model: Deixis,
        folder: str | Path,
        place: str | Path | None = None,
        *,
        rebuild: bool = False,
        work_at: Place | None = None,
        source: Source | None = None,
    ) -> None:
        """Open the index of a folder; ``work_at`` and ``source`` say where regions are found, and with which model."""
        self.model, self.folder = model, Path(folder).expanduser()
        self.work_at, self.source = work_at, source
        self.place = Path(place).expanduser() if place is not None else default_place(self.folder)
        self._fingerprint = model_fingerprint(model)
        part = model.grounder
        assert part is not None  # or there was no fingerprint
        self._grounder, self._data = part.grounder(), part.config.inputs
        if self.place.exists() and not self.place.is_dir():
            raise DeixisError(f"{self.place} is a file: --index takes a folder")
        if rebuild:
            self._clear()
        self.manifest = self._open()
        self._segments = self._mapped()

    def __len__(self) -> int:
        return sum(len(segment.photos) - len(gone) for segment, gone in self._live())

    @property
    def photos(self) -> list[str]:
        """The photos that are indexed, by their path below the folder."""
        return [segment.photos[row].path for segment, row in self._rows()]

    # --- bringing it up to date

    def update(self, progress: Progress = lambda done, total: None) -> Update:
        """Take in new photos, drop those that are gone, and read anew those that were changed."""
        with self._locked():
            self.manifest = self._open()  # another process may have been here
            self._segments = self._mapped()
            here = scan(self.folder)
            known = {segment.photos[row].path: (segment, row) for segment, row in self._rows()}
            stale = [
                (segment, row)
                for path, (segment, row) in known.items()
                if path not in here or here[path].state != segment.photos[row].state
            ]
            for segment, row in stale:
                self.manifest.segments[segment.folder.name].add(row)
            current = set(known) - {segment.photos[row].path for segment, row in stale}
            failures = self.manifest.failed.items()
            self.manifest.failed = {p: why for p, why in failures if p in here and here[p].state == why[:2]}
            new = [photo for path, photo in here.items() if path not in current and path not in self.manifest.failed]
            if stale:
                self._commit()
            unsettled = self._add(new, progress)
            self._join_small()
            failed = tuple((path, why) for path, (_, _, why) in self.manifest.failed.items())
            changed = sum(segment.photos[row].path in here for segment, row in stale)
            return Update(len(self) - len(current), len(stale) - changed, failed, unsettled)

    def _add(self, photos: Sequence[PhotoFile], progress: Progress) -> int:
        """Index photos, a segment at a time; returns how many would not hold still."""
        from deixis.answering.work import Asked, FindRegions, Place, Source, answer_photos

        unsettled = 0
        for first in range(0, len(photos), PER_SEGMENT):
            part = {str(self.folder / photo.path): photo for photo in photos[first : first + PER_SEGMENT]}
            refused: dict[str, DeixisError] = {}
            files: list[PhotoFile] = []
            regions: list[Regions] = []
            scores: list[NDArray[np.float32]] = []
            asked = (Asked(path, Path(path), None) for path in part)
            place, source = self.work_at or Place(), self.source or Source()
            for some in answer_photos(self.model, asked, FindRegions(), place, source=source):
                refused |= {path: DeixisError(why) for path, why in some.failed}
                batch = some.answers
                if not batch:
                    continue
                seen = [self._kept(one) for _, one in batch]
                table = word_scores(self._grounder, self.model.words, self.manifest.words, self._batch(seen))
                settled = [state_of(Path(path)) == part[path].state for path, _ in batch]
                files += [part[path] for (path, _), same in zip(batch, settled, strict=True) if same]
                regions += [one for one, same in zip(seen, settled, strict=True) if same]
                scores.append(table[:, settled])
                unsettled += settled.count(False)
                progress(min(first + len(files), len(photos)), len(photos))
            for path, why in refused.items():
                if state_of(Path(path)) == part[path].state:
                    self.manifest.failed[part[path].path] = (*part[path].state, str(why))
                else:
                    unsettled += 1
            if files:
                self._write(files, regions, np.concatenate(scores, 1))
            self._commit()
            progress(min(first + PER_SEGMENT, len(photos)), len(photos))
        return unsettled

    def _write(self, files: Sequence[PhotoFile], regions: Sequence[Regions], scores: NDArray[np.floating]) -> None:
        name = f"segment-{self.manifest.next:06d}"
        self.manifest.next += 1
        shutil.rmtree(self.place / name, ignore_errors=True)  # left by a process that was killed
        write_segment(self.place / name, files, regions, scores)
        self.manifest.segments[name] = set()

    def _commit(self) -> None:
        """Make what was done visible, then delete what is no longer named."""
        self.manifest.segments = {
            name: gone for name, gone in self.manifest.segments.items() if not self._all_gone(name, gone)
        }
        self.manifest.save(self.place)
        self._segments = self._mapped()
        for left in self._written():
            if left.name not in self.manifest.segments:
                shutil.rmtree(left, ignore_errors=True)

    def _all_gone(self, name: str, gone: set[int]) -> bool:
        mapped = self._segments.get(name)
        return mapped is not None and len(gone) == len(mapped.photos)

    def _join_small(self) -> None:
        """Join small segments, and those half of whose photos are gone: every one costs a look at each search."""
        live = {segment.folder.name: len(segment.photos) - len(gone) for segment, gone in self._live()}
        small = [
            segment
            for segment, gone in self._live()
            if live[segment.folder.name] < LARGE or 2 * len(gone) > len(segment.photos)
        ]
        wasted = any(2 * len(gone) > len(segment.photos) for segment, gone in self._live())
        if len(small) < MANY_SMALL and not wasted:
            return
        group: list[Segment] = []
        for segment in [*small, None]:
            count = sum(live[one.folder.name] for one in group)
            if group and (segment is None or count + live[segment.folder.name] > LARGE):
                self._join(group)
                group = []
            if segment is not None:
                group.append(segment)

    def _join(self, group: Sequence[Segment]) -> None:
        names = [segment.folder.name for segment in group]
        gone = [self.manifest.segments[name] for name in names]
        kept = [[row for row in range(len(one.photos)) if row not in out] for one, out in zip(group, gone, strict=True)]
        rows = [(one, row) for one, own in zip(group, kept, strict=True) for row in own]
        scores = np.concatenate([one.scores[:, own] for one, own in zip(group, kept, strict=True)], 1)
        self._write([one.photos[row] for one, row in rows], [one.regions(row) for one, row in rows], scores)
        for name in names:
            del self.manifest.segments[name]
        self._commit()

    # --- searching

    def search(self, query: str, *, top: int = 20, candidates: int | None = None) -> list[Found]:
        """Return the photos that fit a phrase or sentence best, with the boxes that answer it.

        Args:
            query: Such as ``a dog on a sofa``.
            top: How many photos to return.
            candidates: How many the grounder looks at itself; those that score best by single words.
        """
        if top < 1:
            raise DeixisError(f"top should be at least 1, got {top}")
        words = self.model.words
        sentence = phrases_of_sentence(query, words)
        if not sentence.phrases:
            sentence = single_phrases([query], words)[0]
        asked = Query.of(sentence, words, self.manifest.words)
        best = self._best(asked.words, max(candidates or CANDIDATES, top))
        matches: list[float] = []
        for first in range(0, len(best), AT_ONCE):
            batch = self._batch([segment.regions(row) for segment, row in best[first : first + AT_ONCE]])
            matches += match_sentence(self._grounder, words, sentence, batch).tolist()
        order = sorted(range(len(best)), key=lambda at: -matches[at])
        found: list[Found] = []
        for at in order:
            segment, row = best[at]
            path = self.folder / segment.photos[row].path
            if not path.is_file():  # deleted since the last update
                continue
            answer = self.model.ground_sentences(segment.regions(row), [sentence], name=str(path))[0]
            found.append(Found(path, matches[at], answer))
            if len(found) == top:
                break
        return found

    def _best(self, words: Sequence[str], count: int) -> list[tuple[Segment, int]]:
        """Return the photos with the highest sum of the scores of words, best first."""
        row_of = {word: row for row, word in enumerate(self.manifest.words)}
        rows = [row_of[word] for word in words]
        scores: list[NDArray[np.float32]] = []
        segments: list[Segment] = []
        for segment, gone in self._live():
            part = np.zeros(len(segment.photos), dtype=np.float32)
            for row in rows:
                part += segment.scores[row]
            if gone:
                part[list(gone)] = -np.inf
            scores.append(part)
            segments.append(segment)
        if not segments:
            return []
        whole = np.concatenate(scores)
        starts = np.cumsum([0, *(len(part) for part in scores)])
        kept = min(count, int(np.isfinite(whole).sum()))
        best = np.argpartition(-whole, kept - 1)[:kept] if kept else np.empty(0, dtype=np.int64)
        best = best[np.argsort(-whole[best], kind="stable")]
        place = np.searchsorted(starts, best, side="right") - 1
        return [(segments[number], int(at - starts[number])) for number, at in zip(place, best, strict=True)]

    # --- what lies below

    def _kept(self, regions: Regions) -> Regions:
        """Return what is stored of regions: those that the grounder reads, and of those what it reads."""
        kept = regions.top(self._data.regions)
        if not self._data.maps:
            kept = replace(kept, feature_map=None)
        return kept if self._data.word_probs else replace(kept, word_probs=None, word_names=())

    def _batch(self, regions: Sequence[Regions]) -> RegionBatch:
        """Return stored regions as the grounder is called with them."""
        padded = pad_regions(regions, max_regions=self._data.regions, whole=self._data.whole_image)
        return padded.to(self.model.device)

    def _open(self) -> Manifest:
        manifest = Manifest.load(self.place)
        if manifest is None:
            words = tuple(telling_words(self.model.words))
            return Manifest(self.model.name, self._fingerprint, str(self.folder.resolve()), words)
        manifest.require(self.model.name, self._fingerprint, self.folder, self.place)
        return manifest

    def _mapped(self) -> dict[str, Segment]:
        have = getattr(self, "_segments", {})
        words = len(self.manifest.words)
        return {name: have.get(name) or Segment.open(self.place / name, words) for name in self.manifest.segments}

    def _live(self) -> Iterator[tuple[Segment, set[int]]]:
        for name, gone in self.manifest.segments.items():
            if name in self._segments:
                yield self._segments[name], gone

    def _rows(self) -> Iterator[tuple[Segment, int]]:
        for segment, gone in self._live():
            for row in range(len(segment.photos)):
                if row not in gone:
                    yield segment, row

    def _clear(self) -> None:
        """Delete an index, and nothing that is not part of one; killed half-way, the next call deletes the rest."""
        if not self.place.is_dir():
            return
        with self._locked():
            (self.place / FILE).unlink(missing_ok=True)
            for left in self._written():
                shutil.rmtree(left)

    def _written(self) -> list[Path]:
        """Return the folders of segments, named or left behind."""
        return [path for path in self.place.iterdir() if _SEGMENT.fullmatch(path.name) and path.is_dir()]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep a second writer out, and ourselves out of a folder that holds something else."""
        try:
            self.place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DeixisError(
                f"the search index cannot be written to {self.place}: {error.strerror or error}"
            ) from error
        with only_writer(self.place, f"the search index in {self.place}"):
            if not (self.place / FILE).is_file():
                strange = [path.name for path in self.place.iterdir() if not _OURS.fullmatch(path.name)]
                if strange:
                    raise DeixisError(
                        f"{self.place} is not empty ({min(strange)}) and no search index: nothing is written or "
                        "deleted there, name another --index"
                    )
            yield


def default_place(folder: Path) -> Path:
    """Return where the index of a folder is kept when nobody says: in the cache, by the folder's name and path."""
    whole = folder.resolve()
    mark = hashlib.sha256(str(whole).encode(errors="surrogateescape")).hexdigest()[:8]
    return cache_home() / "search" / f"{whole.name or 'root'}-{mark}"
