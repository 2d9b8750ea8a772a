"""CHAIR: how often captions name objects that are not in the image.

Rohrbach et al., "Object Hallucination in Image Captioning" (EMNLP 2018), section 2.1. CHAIR_i is the share of object
mentions that are hallucinated, CHAIR_s the share of captions with at least one. Which words name which object is up to
the vocabulary you give; as there, an object counts as present if it is annotated or if a reference caption names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deixis.errors import BadFileError, DeixisError
from deixis.reading.files import read_text
from deixis.reading.plain import expect_texts, parse_json
from deixis.text.tokens import scoring_words

_IRREGULAR = {
    "men": "man", "women": "woman", "children": "child", "people": "person", "feet": "foot", "teeth": "tooth",
    "geese": "goose", "mice": "mouse", "oxen": "ox", "buses": "bus", "busses": "bus", "shoes": "shoe", "axes": "axe",
    "skis": "ski", "taxis": "taxi",
    "knives": "knife", "wives": "wife", "lives": "life", "leaves": "leaf", "loaves": "loaf", "wolves": "wolf",
    "shelves": "shelf", "scarves": "scarf", "calves": "calf", "halves": "half", "hooves": "hoof", "thieves": "thief",
}  # fmt: skip
_HISSING = ("sses", "shes", "ches", "xes", "zzes", "toes")


class ObjectVocabulary:
    """Objects and the words for them: ``{"person": ["man", "woman"], "dog": ["puppy"], "hot dog": []}``.

    An object's own name is one of its words. Words may be several ("traffic light"); the longest that fits wins, so a
    "hot dog" is no dog. Plurals need not be listed. A name listed for two objects is an error.
    """

    def __init__(self, objects: Mapping[str, Iterable[str]]) -> None:
        if not objects:
            raise DeixisError("the object vocabulary is empty: give at least one object")
        self.objects = tuple(objects)
        self._object_of: dict[tuple[str, ...], str] = {}
        for name, synonyms in objects.items():
            if isinstance(synonyms, str):
                raise DeixisError(f"the words for object {name!r} are {synonyms!r}, must be a list of words")
            for text in (name, *synonyms):
                words = _key(scoring_words(text))
                if not words:
                    raise DeixisError(f"object {name!r} has the word {text!r}, which is empty")
                other = self._object_of.setdefault(words, name)
                if other != name:
                    raise DeixisError(f"{text!r} is listed for the object {other!r} and for {name!r}: keep one")
        self._longest = max(map(len, self._object_of))

    @classmethod
    def load(cls, path: str | Path) -> ObjectVocabulary:
        """Read a JSON object of lists, or a text file with one object a line, its synonyms after it between commas."""
        path = Path(path)
        text = read_text(path)
        if path.suffix != ".json":
            lines = ([part.strip() for part in line.split(",")] for line in text.splitlines() if line.strip())
            return cls({first: [word for word in rest if word] for first, *rest in lines})
        objects = parse_json(text, str(path))
        if not isinstance(objects, dict) or not all(isinstance(words, list) for words in objects.values()):
            raise BadFileError(f'{path}: must be like {{"person": ["man", "woman"]}}, an object of lists')
        for name, words in objects.items():
            expect_texts(words, f"{path}: {name}")
        return cls(objects)

    def mentions(self, caption: str) -> list[str]:
        """Return the objects a caption names, in order, each as often as it is named."""
        words = _key(scoring_words(caption))
        found, at = [], 0
        while at < len(words):
            for size in range(min(self._longest, len(words) - at), 0, -1):
                name = self._object_of.get(words[at : at + size])
                if name is not None:
                    found.append(name)
                    at += size
                    break
            else:
                at += 1
        return found


@dataclass(frozen=True, slots=True)
class Chair:
    """Hallucination rates, and what was hallucinated where."""

    chair_i: float
    """Hallucinated mentions divided by mentions."""
    chair_s: float
    """Captions with a hallucinated object divided by captions."""
    recall: float
    """Mean share of an image's objects that its caption names, over images with objects."""
    mentions: int
    captions: int
    hallucinated: dict[str, list[str]]
    """Image id to the objects its caption made up; images without are left out."""


def chair(
    captions: Mapping[str, str],
    vocabulary: ObjectVocabulary,
    objects: Mapping[str, Iterable[str]],
    references: Mapping[str, Sequence[str]] | None = None,
) -> Chair:
    """Compare the objects that captions name with the objects of their images.

    Args:
        captions: Image id to caption.
        vocabulary: The objects that count, and the words for them.
        objects: Image id to the objects annotated in it, as named in the vocabulary.
        references: Image id to reference captions; the objects these name count as present too.
    """
    if not captions:
        raise DeixisError("there are no captions to measure")
    if missing := [name for name in captions if name not in objects and name not in (references or {})]:
        raise DeixisError(
            f"image {missing[0]!r} has neither objects nor references: every object would count as made up"
        )
    mentions = wrong = 0
    recalls: list[float] = []
    hallucinated: dict[str, list[str]] = {}
    for name, caption in captions.items():
        present = _present(name, vocabulary, objects.get(name, ()), (references or {}).get(name, ()))
        named = vocabulary.mentions(caption)
        made_up = [item for item in named if item not in present]
        mentions, wrong = mentions + len(named), wrong + len(made_up)
        if made_up:
            hallucinated[name] = made_up
        if present:
            recalls.append(len(present.intersection(named)) / len(present))
    return Chair(
        chair_i=wrong / mentions if mentions else 0.0,
        chair_s=len(hallucinated) / len(captions),
        recall=sum(recalls) / len(recalls) if recalls else 0.0,
        mentions=mentions,
        captions=len(captions),
        hallucinated=hallucinated,
    )


def _present(image: str, vocabulary: ObjectVocabulary, annotated: Iterable[str], references: Sequence[str]) -> set[str]:
    present = set(annotated)
    if unknown := sorted(present.difference(vocabulary.objects)):
        raise DeixisError(f"image {image!r} has the object {unknown[0]!r}, which is not in the vocabulary")
    for text in references:
        present.update(vocabulary.mentions(text))
    return present


def _key(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(_key_of, words))


def _key_of(word: str) -> str:
    """Return a form in which an English noun and its plural are equal; not always the singular ("cookie": "cooky")."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("ies"):
        return word.removesuffix("ies") + "y"
    if word.endswith("ie"):
        return word.removesuffix("ie") + "y"
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return word[:-2] if word.endswith(_HISSING) else word[:-1]
