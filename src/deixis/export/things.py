"""One view of captions and phrases for every format: which things have boxes, what they are called, how sure it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from deixis.errors import BadFileError, DeixisError
from deixis.metrics.files.json_lines import read_json_file, show
from deixis.metrics.files.results import records_of
from deixis.text.parsed import GROUP_NOUNS
from deixis.text.rules.chunker import chunk
from deixis.text.rules.lemmas import lemmatise_noun
from deixis.text.tokens import tokenise
from deixis.text.vocabulary import Vocabulary
from deixis.types import Box, GroundedCaption, GroundedPhrases, GroundedWord, Phrase, Sentence

Answer = GroundedCaption | GroundedPhrases
QUANTITIES = GROUP_NOUNS | {
    *("bit", "bunches", "chunk", "collection", "couples", "crowds", "dozen", "dozens", "groups", "handful", "kind"),
    *("kinds", "pairs", "part", "piece", "pieces", "piles", "rows", "slice", "slices", "sort", "stacks", "type"),
}
"""Nouns that say how much of a thing there is and not what it is: "a group of people" are people. A cup of coffee is a
cup all the same, for the cup is what one sees."""


@dataclass(frozen=True, slots=True)
class Thing:
    """One box of one word or phrase of an answer."""

    text: str
    """The word or phrase as it stands."""
    box: Box
    """Cut to the image."""
    frame: int
    score: float
    trusted: bool
    """False for a word the grounder doubts and for a phrase that is probably not in the image."""
    number: int
    """Which word or phrase of its answer; several boxes share it."""
    span: tuple[int, int] | None = None
    """Its characters in :func:`text_of` the answer."""
    named: str | None = None
    """What somebody who asked for it wants it to be called."""

    @property
    def label(self) -> str:
        """What kind of thing it is: what it was named, else see :func:`label_of`."""
        return self.named or label_of(self.text)


def things_of(answer: Answer, *, doubtful: bool = False) -> list[Thing]:
    """Return the boxes of an answer in the order of its text; with ``doubtful`` also those of what is doubted.

    "A group of people" is one thing where both nouns have the same box, as a grounder gives it to them: two detections
    of it would be one too many.
    """
    found = []
    if isinstance(answer, GroundedCaption):
        told: set[int] = set()
        for number, word in enumerate(answer.words):
            if not word.groundable or number in told:
                continue
            start, end = word.start, word.end
            counted = _counted(answer.words, number)
            if counted is not None:
                end = answer.words[counted].end
                if (word.boxes, word.frames) == (answer.words[counted].boxes, answer.words[counted].frames):
                    told.add(counted)
                    word = answer.words[counted]  # whether there are people is what one wants to know
            if word.trusted or doubtful:
                score = word.score if word.presence is None else word.presence
                text = word.text if counted is None else answer.text[start:end]
                for box, frame in zip(word.boxes, word.frames or (0,) * len(word.boxes), strict=True):
                    cut = inside(box, answer.size)
                    found.append(Thing(text, cut, frame, score, word.trusted, number, (start, end)))
        return found
    for number, phrase in enumerate(answer.phrases):
        if phrase.found or doubtful:
            placed = None if phrase.start is None or phrase.end is None else (phrase.start, phrase.end)
            for box, frame in zip(phrase.boxes, phrase.frames or (0,) * len(phrase.boxes), strict=True):
                cut = inside(box, answer.size)
                found.append(Thing(phrase.text, cut, frame, phrase.score, phrase.found, number, placed, phrase.label))
    return found


def _counted(words: Sequence[GroundedWord], number: int) -> int | None:
    """Return which word is counted by a word of quantity, such as "people" by "group" in "a group of young people"."""
    if words[number].text.lower() not in QUANTITIES or [word.text for word in words[number + 1 : number + 2]] != ["of"]:
        return None
    near = range(number + 2, min(number + 6, len(words)))
    return next((at for at in near if words[at].groundable and words[at].boxes), None)


def text_of(answer: Answer) -> str | None:
    """Return the sentence of an answer, or None for phrases that stand alone."""
    return answer.text if isinstance(answer, GroundedCaption) else answer.sentence


@cache
def label_of(text: str) -> str:
    """Return the head noun of a word or phrase in the singular: "two red hats" is a hat, "a man in a hat" a man.

    Of a quantity the label is what there is so much of: "a group of people" is people, "a piece of cake" cake.
    """
    tokens = tokenise(text)
    if not tokens:
        return " ".join(text.lower().split()) or "thing"
    words = [token.text.lower() for token in tokens]
    first = 0
    while True:
        head = _head(text, first)
        if words[head] not in QUANTITIES or words[head + 1 : head + 2] != ["of"] or head + 2 == len(words):
            return lemmatise_noun(words[head])
        first = head + 2


def _head(text: str, first: int) -> int:
    """Return which word is the head noun of a phrase that begins with the word ``first``; without a noun, the last."""
    tokens = tokenise(text)
    head = chunk(Sentence(text, tokens, (Phrase(first, len(tokens)),)), _NO_WORDS).phrases[0].head
    return len(tokens) - 1 if head is None else head


_NO_WORDS = Vocabulary(())


def labels_in(answers: Iterable[Answer], *, doubtful: bool = False) -> list[str]:
    """Return the different labels of all answers, in alphabetical order."""
    return sorted({thing.label for answer in answers for thing in things_of(answer, doubtful=doubtful)})


def inside(box: Box, size: tuple[int, int]) -> Box:
    """Return a box cut to the image."""
    width, height = size
    x1, y1, x2, y2 = box
    return (
        min(max(x1, 0.0), width),
        min(max(y1, 0.0), height),
        min(max(x2, 0.0), width),
        min(max(y2, 0.0), height),
    )


def relative(box: Box, size: tuple[int, int]) -> Box:
    """Return the box with sides as shares of the image, 0 to 1."""
    width, height = size
    return box[0] / width, box[1] / height, box[2] / width, box[3] / height


def only_photos(answers: Sequence[Answer], format: str) -> Sequence[Answer]:
    """Return the answers, or say that a format knows no clips."""
    for answer in answers:
        if answer.segment is not None:
            raise DeixisError(
                f"{answer.image!r} is a clip, and {format} has no place for boxes on frames: use anet, csv or json"
            )
    return answers


def read_answers(path: Path) -> list[Answer]:
    """Read captions and phrases in our JSON: one object, a list, or one a line."""
    file = read_json_file(path)
    found: list[Answer] = []
    for place, value in records_of(file):
        kind = value.get("kind") if isinstance(value, dict) else None
        if kind not in ("caption", "phrases"):
            what = f'has "kind": {show(kind)}' if isinstance(value, dict) else f"is {show(value)}"
            raise file.error(
                place,
                f"{what}: export takes what `deixis caption --json`, `ground --json` or `evaluate -o` "
                'write, objects with "kind": "caption" or "phrases"',
            )
        try:
            found.append((GroundedCaption if kind == "caption" else GroundedPhrases).from_json(value))
        except BadFileError as error:
            raise file.error(place, str(error)) from error
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise file.error(place, f"is not our JSON: {error}") from error
    return found
