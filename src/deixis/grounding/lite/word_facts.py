"""What the grounder knows of words without learning: their lemmas, groups, number, and where they point."""

from __future__ import annotations

import torch
from torch import Tensor

from deixis.grounding.lite.positions import direction_table, empty_words, ordinal_table
from deixis.grounding.lite.word_groups import WordGroup, word_group
from deixis.text.vocabulary import END, PAD, SPECIAL_WORDS, Vocabulary

ARTICLES = ("a", "an", "the")
PLURAL_TAGS = ("NNS", "NNPS")


def word_facts(vocabulary: Vocabulary) -> dict[str, Tensor]:
    """Return per word: the id that stands for its lemma, its group, whether it is plural, or says nothing."""
    special = [False] * len(SPECIAL_WORDS)
    other = [WordGroup.OTHER] * len(SPECIAL_WORDS)
    entries = vocabulary.entries
    return {
        "lemma": torch.tensor(vocabulary.lemma_ids),
        "group": torch.tensor([*other, *(word_group(entry.word, entry.lemma or entry.word) for entry in entries)]),
        "directions": direction_table(vocabulary),
        "empty": empty_words(vocabulary),
        "ordinals": ordinal_table(vocabulary),
        "plural": torch.tensor([*special, *(entry.tag in PLURAL_TAGS for entry in entries)]).float(),
        "silent": torch.tensor(
            [at in (PAD, END) for at in range(len(special))] + [entry.word in ARTICLES for entry in entries]
        ),
    }
