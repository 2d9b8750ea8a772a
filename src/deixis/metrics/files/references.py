"""What a submission is scored against: a reference file of the field, or a data set that `deixis.data` reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from deixis.data.dataset import Dataset
from deixis.data.open import open_dataset
from deixis.errors import BadFileError, DeixisError
from deixis.metrics.files.grounding import is_grounding_reference, read_reference
from deixis.metrics.files.json_lines import JsonFile, read_json_file, show
from deixis.metrics.files.phrases import ReferencePhrase, phrases_of_examples, phrases_of_records
from deixis.metrics.files.results import read_plain_phrases
from deixis.types import Example

Kind = Literal["grounding file", "caption file", "phrase file", "data set"]


@dataclass(frozen=True, eq=False)
class Reference:
    """A reference, opened but not yet read for any purpose; ``ids`` are those of the split, or None for all."""

    path: Path
    kind: Kind
    split: str
    file: JsonFile | None = None
    dataset: Dataset | None = None
    ids: frozenset[str] | None = None

    def json(self) -> JsonFile:
        """Return the file of a reference that is one."""
        assert self.file is not None
        return self.file

    @cached_property
    def examples(self) -> tuple[list[Example], list[str]]:
        """The examples of a data set's split, and what was wrong with those that could not be read."""
        assert self.dataset is not None
        splits = [None] if self.split == "all" else self.split.split("+")
        found = [example for split in splits for example in self.dataset.examples(split)]
        if not found:
            raise DeixisError(f"{self.path} has no examples in split {self.split}")
        wanted = sum(len(self.dataset.ids(split)) for split in splits)
        notes = []
        if wanted > len(found):
            notes.append(
                f"{wanted - len(found)} of {wanted} examples of {self.path} could not be read: `deixis data info`"
            )
        return found, notes


def open_reference(path: Path, splits: Sequence[str] = (), split_file: Path | None = None) -> Reference:
    """Open a reference and settle which part of it counts.

    A grounding file needs ids for a split: from ``split_file``, or from the one ``split_ids*.json`` beside it. Without
    a split everything in the reference counts.
    """
    split = "+".join(splits) or "all"
    file = _as_json(_annotations_in(path))
    if file is not None and is_grounding_reference(file.data):
        ids = split_ids(file.path, splits, split_file) if splits else None
        return Reference(file.path, "grounding file", split, file=file, ids=ids)
    if file is not None and split_file is None and not splits:
        kind = _plain_kind(file)
        if kind is not None:
            return Reference(path, kind, split, file=file)
    if split_file is not None:
        raise DeixisError(f"--split-file belongs to ActivityNet-Entities and GVD reference files; {path} is none")
    try:
        dataset = open_dataset(path)
    except BadFileError as error:
        if file is None or path.is_dir():
            raise
        raise BadFileError(
            f"{path} is no reference we know (ActivityNet-Entities, GVD Flickr30k, COCO captions, plain phrase boxes): "
            f"it has {_shape(file)}"
        ) from error
    for name in splits:
        dataset.find_split(name)
    return Reference(path, "data set", split, dataset=dataset)


def split_ids(reference: Path, splits: Sequence[str], split_file: Path | None) -> frozenset[str]:
    """Return the ids of the splits, such as ``validation``, from a file ``{"validation": ["v_…", …]}``."""
    if split_file is None:
        beside = sorted(reference.parent.glob("split_ids*.json"))
        if len(beside) != 1:
            raise DeixisError(
                f"which items are in split {'+'.join(splits)!r}? give --split-file: there "
                f"{'is no' if not beside else 'are several'} split_ids*.json beside {reference}"
            )
        split_file = beside[0]
    file = read_json_file(split_file)
    table = file.object_at(file.data, [], "split to ids")
    ids: set[str] = set()
    for given in splits:
        longer = [given] if given in table else [name for name in table if name.startswith(given)]
        if len(longer) != 1:  # "val" may stand for "validation"
            raise DeixisError(f"{split_file} has no split {given!r}; it has {', '.join(table)}")
        name = longer[0]
        ids.update(file.id_at(value, [name, at]) for at, value in enumerate(file.list_at(table[name], [name], "ids")))
    return frozenset(ids)


def reference_phrases(reference: Reference) -> tuple[list[ReferencePhrase], list[str]]:
    """Return the phrases to ground, and notes."""
    if reference.kind == "phrase file":
        return phrases_of_records(read_plain_phrases(reference.json()), reference.json()), []
    if reference.kind != "data set":
        raise DeixisError(f"{reference.path} is a {reference.kind}: it has no phrases with boxes to ground")
    examples, notes = reference.examples
    return phrases_of_examples(examples), notes


def reference_texts(reference: Reference, notes: list[str]) -> dict[str, list[str]]:
    """Return the captions of every item by id; what has to be said of them is added to ``notes``."""
    if reference.kind == "caption file":
        return _caption_file_texts(reference.json())
    if reference.kind == "grounding file":
        known = read_reference(reference.json(), str.lower, reference.ids)
        return {"/".join(key): list(texts) for key, texts in known.texts.items()}
    if reference.kind == "data set":
        examples, problems = reference.examples
        notes += problems
        return {example.id: [caption.text for caption in example.captions] for example in examples if example.captions}
    raise DeixisError(f"{reference.path} is a {reference.kind}: it has no captions")


def _caption_file_texts(file: JsonFile) -> dict[str, list[str]]:
    """Return the captions of a COCO caption file by image id."""
    found: dict[str, list[str]] = {}
    for at, value in enumerate(file.list_at(file.data["annotations"], ["annotations"], "captions")):
        record = file.object_at(value, ["annotations", at], "image_id and caption")
        image = file.id_at(record.get("image_id"), ["annotations", at, "image_id"])
        text = file.text_at(record.get("caption"), ["annotations", at, "caption"], "a caption")
        found.setdefault(image, []).append(text)
    return found


def match_ids(given: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """Return for each given id the known one: itself, a file's bare name, or a segment's other name."""
    found = {}
    for name in given:
        for form in (name, Path(name).stem, "/".join(clip_key(name))):
            if form in known:
                found[name] = form
                break
    return found


def clip_key(example: str) -> tuple[str, ...]:
    """Return video and segment of an id such as ``v_abc_segment_00`` as ActivityNet-Entities names them."""
    video, mark, segment = example.rpartition("_segment_")
    return (video, segment.lstrip("0") or "0") if mark else (example,)


def _annotations_in(path: Path) -> Path:
    """Return the one grounding file of a folder that has one, so that boxes are scored as they were published."""
    if not path.is_dir():
        return path
    named = [file for name in ("anet_entities_cleaned*.json", "flickr30k_cleaned*.json") for file in path.glob(name)]
    found = [file for file in named if "skeleton" not in file.name]
    return found[0] if len(found) == 1 else path


def _as_json(path: Path) -> JsonFile | None:
    if not path.is_file() or not path.name.removesuffix(".gz").endswith((".json", ".jsonl")):
        return None
    return read_json_file(path)


def _plain_kind(file: JsonFile) -> Kind | None:
    if isinstance(file.data, dict):
        notes = file.data.get("annotations")
        if isinstance(notes, list) and notes and isinstance(notes[0], dict) and "caption" in notes[0]:
            return "caption file"
        return None
    first = file.data[0] if isinstance(file.data, list) and file.data else None
    return "phrase file" if isinstance(first, dict) and "phrase" in first else None


def _shape(file: JsonFile) -> str:
    if isinstance(file.data, dict):
        return f"the keys {', '.join(map(show, list(file.data)[:6])) or 'of an empty object'}"
    return f"a list of {len(file.data)}" if isinstance(file.data, list) else show(file.data)
