"""Real captions, parsed once for the tests that compare with spaCy; and a small masked language model."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from deixis.text.parse import parse_texts
from deixis.text.parsed import Parsed
from deixis.text.vocabulary import Entry, Vocabulary


@pytest.fixture(scope="session")
def real_parses(shared: Path) -> list[Parsed]:
    """1,600 captions of COCO spread over its whole file."""
    with gzip.open(shared / "data/coco/captions_val2014.json.gz", "rt", encoding="utf-8") as file:
        captions = [" ".join(item["caption"].split()) for item in json.load(file)["annotations"]][::126]
    return list(parse_texts(captions, processes=1).values())


# What an animal does tells which animal it is, up to young and old.
DOES = {"dog": "barks", "puppy": "barks", "cat": "meows", "kitten": "meows", "horse": "gallops", "pony": "gallops"}
PLACES = ("street", "field", "garden")

MASKED_RECIPE = """
about: {{title: A small masked model}}
data: {{dataset: {folder}/train.tsv, store: none, vocabulary: {folder}/vocabulary.json, validation: null, parse: false}}
model: {{kind: masked_language_model, width: 16, layers: 1, heads: 2, dropout: 0.0}}
stages:
  - name: guess
    epochs: 40
    batch: 18
    objectives: [{{kind: masked_words, share: 0.3}}]
    optimizer: {{kind: adamw, lr: 5e-3}}
log_every: 1
"""


@pytest.fixture(scope="session")
def animal_words() -> Vocabulary:
    """The words of the made-up captions."""
    words = [Entry("a", 99, "DT", "a"), Entry("in", 99, "IN", "in")]
    words += [Entry(noun, 9, "NN", noun, True) for noun in (*DOES, *PLACES)]
    return Vocabulary([*words, *(Entry(verb, 9, "VBZ", verb) for verb in sorted(set(DOES.values())))])


@pytest.fixture(scope="session")
def train_masked(animal_words: Vocabulary, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Train the small masked model by the shared loop, with overrides; return the folder of its run."""
    from deixis.training.recipe_files import load_recipe
    from deixis.training.train import train

    folder = tmp_path_factory.mktemp("masked")
    captions = [f"A {noun} {DOES[noun]} in a {place} ." for noun, place in product(DOES, PLACES)]
    lines = [f"{at}\t{caption}" for at, caption in enumerate(20 * captions)]
    (folder / "train.tsv").write_text("\n".join(lines) + "\n")
    animal_words.save(folder / "vocabulary.json")
    (folder / "recipe.yaml").write_text(MASKED_RECIPE.format(folder=folder))

    def run(path: Path, *overrides: str, resume: bool = False) -> Path:
        train(load_recipe(folder / "recipe.yaml", overrides), path, tensorboard=False, resume=resume)
        return path

    return run


@pytest.fixture(scope="session")
def masked_run(train_masked: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the small masked model, trained to the end."""
    return train_masked(tmp_path_factory.mktemp("run") / "masked")
