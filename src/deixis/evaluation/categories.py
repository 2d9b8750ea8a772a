"""Things that are known to be in a photo, and things that are known not to be: the categories of a dataset.

A dataset that draws a box around every thing of its categories (COCO) says what is there, and nearly what is not: a
category counts as absent where no instance has a box and no caption has a word of its name or for one of its kind
("surfer" for a person). What is neither is not asked about. Each is asked for as people do: "a dog", "an apple".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from deixis.text.rules.chunker import chunk
from deixis.text.rules.hypernyms import wider_names
from deixis.text.rules.lemmas import lemmatise
from deixis.text.tokens import scoring_words, tokenise
from deixis.text.vocabulary import Vocabulary
from deixis.types import Example, Phrase, Sentence


@dataclass(frozen=True, slots=True)
class Categories:
    """What is known of a photo: the categories of which it shows something, and those of which it shows nothing."""

    present: tuple[str, ...]
    absent: tuple[str, ...]


def names_of(examples: Iterable[Example]) -> tuple[str, ...]:
    """Return the categories that the objects of these photos have, in alphabetical order."""
    return tuple(sorted({thing.label for example in examples for thing in example.objects}))


def categories_of(example: Example, names: Sequence[str]) -> Categories:
    """Return which of the categories are in a photo, and which are surely not."""
    present = {thing.label for thing in example.objects}
    said = {lemmatise(word) for caption in example.captions for word in scoring_words(caption.text)}
    said |= {wider for word in said for wider in wider_names(word)}
    unsaid = [name for name in names if not said & {lemmatise(word) for word in scoring_words(name)}]
    return Categories(
        tuple(name for name in names if name in present), tuple(name for name in unsaid if name not in present)
    )


def as_people_ask(category: str) -> str:
    """Return a category as a phrase.

    >>> as_people_ask("apple"), as_people_ask("hot dog")
    ('an apple', 'a hot dog')
    """
    return f"{'an' if category[:1].lower() in 'aeiou' else 'a'} {category}"


def asking_for(example: Example, categories: Iterable[str], vocabulary: Vocabulary) -> Example:
    """Return a photo whose captions ask for categories, one each, with the boxes of their instances."""
    return replace(example, captions=tuple(_asked(example, name, vocabulary) for name in categories))


def known_things(examples: Sequence[Example], vocabulary: Vocabulary) -> tuple[list[Example], list[Example]]:
    """Return the photos asking for what they show, and asking for as many things each that they do not show.

    As many, so that a probability fitted on both has even odds to begin with; which of the absent ones is drawn at
    random, the same ones every time.
    """
    names = names_of(examples)
    rng = np.random.default_rng(0)
    present, absent = [], []
    for example in examples:
        known = categories_of(example, names)
        count = min(len(known.present), len(known.absent))
        drawn = sorted(rng.choice(len(known.absent), size=count, replace=False).tolist()) if count else []
        present.append(asking_for(example, known.present, vocabulary))
        absent.append(asking_for(example, [known.absent[at] for at in drawn], vocabulary))
    return present, absent


def _asked(example: Example, category: str, vocabulary: Vocabulary) -> Sentence:
    text = as_people_ask(category)
    tokens = tokenise(text)
    boxes = tuple(thing.box for thing in example.objects if thing.label == category)
    phrase = Phrase(0, len(tokens), category, boxes=boxes, frames=(0,) * len(boxes))
    return chunk(Sentence(text, tokens, (phrase,)), vocabulary)
