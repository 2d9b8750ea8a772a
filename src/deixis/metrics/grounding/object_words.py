"""What grounding F1 compares: the object words of references and of generated sentences, with their boxes.

An object word is a word whose lemma is one of the data set's object classes. A photo is a clip of one frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from deixis.types import Box


@dataclass(frozen=True, slots=True)
class ReferenceWord:
    """An annotated object word; ``frames`` runs parallel to ``boxes``."""

    index: int
    label: str
    boxes: tuple[Box, ...]
    frames: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReferenceSentence:
    """The annotated words of one reference, in order of their index, and the lemmas of its other tokens."""

    words: tuple[ReferenceWord, ...]
    first: dict[str, ReferenceWord]
    """For each class its first word: what every predicted word of that class is compared with."""
    other_lemmas: frozenset[str] = frozenset()
    """Lemmas of the tokens nobody annotated: a prediction of such a class is neither right nor wrong."""

    @classmethod
    def of(cls, boxes: Iterable[tuple[int, str, Box, int]], other_lemmas: Iterable[str] = ()) -> ReferenceSentence:
        """Build it from (word index, class, box, frame) of every box.

        A word takes the class of its first box; a word that carries two classes is the first word of both if no
        earlier word is.
        """
        label_of: dict[int, str] = {}
        boxes_of: dict[int, list[tuple[Box, int]]] = {}
        earliest: dict[str, int] = {}
        for index, label, box, frame in boxes:
            label_of.setdefault(index, label)
            boxes_of.setdefault(index, []).append((box, frame))
            earliest[label] = min(index, earliest.get(label, index))
        words = {
            index: ReferenceWord(
                index,
                label_of[index],
                tuple(box for box, _ in boxes_of[index]),
                tuple(frame for _, frame in boxes_of[index]),
            )
            for index in sorted(boxes_of)
        }
        first = {label: words[index] for label, index in earliest.items()}
        return cls(tuple(words.values()), first, frozenset(other_lemmas))


@dataclass(frozen=True, slots=True)
class PredictedWord:
    """A generated object word, with one box per frame; ``lemma`` is that of the class name."""

    label: str
    lemma: str
    boxes: tuple[Box, ...]
    frames: tuple[int, ...] = (0,)
    index: int = 0


@dataclass(frozen=True, slots=True)
class GroundedItem:
    """One photo or clip segment: its annotated references and what was generated for it.

    ``predicted`` is None where the submission leaves the item out. ``references`` is empty where nobody annotated the
    item: it can earn nothing then, but still counts among the submitted.
    """

    id: str
    references: tuple[ReferenceSentence, ...]
    predicted: tuple[PredictedWord, ...] | None
    group: str = ""
    """What is drawn together when intervals are made: the photo, or the clip a segment belongs to."""

    @property
    def drawn_with(self) -> str:
        """The group, or the item itself where none is given."""
        return self.group or self.id


@dataclass(frozen=True, slots=True)
class AnnotatedAttention:
    """One reference sentence fed to a model: where it looked at each word, by word index (missing: no box)."""

    id: str
    reference: ReferenceSentence
    predicted: dict[int, PredictedWord] = field(default_factory=dict)
    group: str = ""


def pool(references: Sequence[ReferenceSentence]) -> tuple[ReferenceSentence, ...]:
    """Merge the references of one photo: each class once, with its boxes from all of them (Cyclical, section 4.1).

    The paper scores a generated sentence against "a pool of object words and their ground-truth bounding boxes"; we
    read that as one entry per class: five mentions of the same man neither count five times nor hide four boxes.
    """
    if not references:
        return ()
    boxes: dict[str, list[tuple[Box, int]]] = {}
    for reference in references:
        for word in reference.words:
            boxes.setdefault(word.label, []).extend(zip(word.boxes, word.frames, strict=True))
    words = {
        label: ReferenceWord(at, label, tuple(box for box, _ in found), tuple(frame for _, frame in found))
        for at, (label, found) in enumerate(boxes.items())
    }
    others = frozenset[str]().union(*(reference.other_lemmas for reference in references))
    return (ReferenceSentence(tuple(words.values()), words, others),)
