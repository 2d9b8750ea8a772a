"""How near a word is to the name of a detector's class, in any embedding of words.

ReIR (Liu et al., CVPR 2021, section 3.2.2, equation 3) and KAC-Net before it compare a phrase with the label that the
detector gave a region, in a space learned from text alone. The comparison is a table of words by labels, made once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from deixis.data.batch import PhraseBatch
from deixis.errors import BadFileError, DeixisError
from deixis.text.rules.lemmas import lemmatise_noun
from deixis.text.word_encoders import load_transformer, minilm_folder

Embed = Callable[[Sequence[str]], Tensor]
"""Gives each text a vector, (n,) -> (n, W); zeros for one it does not know."""


@dataclass(frozen=True, slots=True)
class LabelPriorConfig:
    """Where the nearness of words and labels comes from."""

    kind: Literal["none", "lemma", "minilm", "vectors"] = "minilm"
    """``lemma``: 1 where the lemmas agree, else 0; ``vectors``: a text file of word vectors."""
    vectors: str = ""
    """vectors: a file with a word and its numbers on each line, as GloVe and word2vec's text form have it."""
    labels: Literal["best", "all"] = "best"
    """A region has the label of its best class (the paper), or all of them by their share."""
    words: Literal["all", "content"] = "all"
    """Which words of a phrase are compared: all (the paper), or its nouns and adjectives where it has any."""
    floor: float = 0.0
    """Added to every nearness: above 0 a phrase that is near to no label still sees differences between regions."""


def label_table(words: Sequence[str], labels: Sequence[str], config: LabelPriorConfig) -> Tensor:
    """Return the nearness of every word to every label, (V, C)."""
    if config.kind == "none":
        return torch.ones(len(words), len(labels))
    if config.kind == "lemma":
        return lemma_table(words, labels)
    if config.kind == "minilm":
        return _minilm_table(tuple(words), tuple(labels)).clone()
    return cosine_table(words, labels, read_vectors(Path(config.vectors)))


@lru_cache(maxsize=2)
def _minilm_table(words: tuple[str, ...], labels: tuple[str, ...]) -> Tensor:
    """Compare by MiniLM, which takes seconds: runs that follow each other in one process share the table."""
    return cosine_table(words, labels, minilm_vectors)


def lemma_table(words: Sequence[str], labels: Sequence[str]) -> Tensor:
    """Return 1 where a word's lemma is that of the label or of its last word (``dining table`` is a table), (V, C)."""
    names = [{lemmatise_noun(label), lemmatise_noun(label.split()[-1])} for label in labels]
    lemmas = [lemmatise_noun(word) for word in words]
    return torch.tensor([[float(lemma in name) for name in names] for lemma in lemmas]).reshape(len(words), len(labels))


def cosine_table(words: Sequence[str], labels: Sequence[str], embed: Embed) -> Tensor:
    """Return the cosine of every word with every label, (V, C) (equation 3 with unit vectors)."""
    return F.normalize(embed(words), dim=-1) @ F.normalize(embed(labels), dim=-1).T


@torch.no_grad()
def minilm_vectors(texts: Sequence[str]) -> Tensor:
    """Return the mean MiniLM feature of each text's pieces; the weights come inside a package, so it works offline."""
    model, tokenizer = load_transformer(str(minilm_folder()))
    parts = []
    for first in range(0, len(texts), 256):
        pieces = tokenizer(list(texts[first : first + 256]), padding=True, return_tensors="pt")
        states: Tensor = model.eval()(**pieces).last_hidden_state  # (n, L, W)
        seen = pieces["attention_mask"].unsqueeze(-1)
        parts.append((states * seen).sum(1) / seen.sum(1))
    return torch.cat(parts)


def read_vectors(path: Path) -> Embed:
    """Return an embedding read from a text file; a text of several words is the mean of those the file knows."""
    vectors: dict[str, Tensor] = {}
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                word, *values = line.rstrip().split(" ")
                if number == 1 and len(values) == 1:
                    continue  # word2vec's header: how many words, how wide
                vectors[word] = torch.tensor([float(value) for value in values])
    except (OSError, UnicodeDecodeError) as error:
        raise BadFileError(f"{path} cannot be read as word vectors: {error}") from None
    except ValueError:
        raise BadFileError(f"{path}, line {number}: expected a word and numbers") from None
    widths = {len(vector) for vector in vectors.values()}
    if len(widths) != 1:
        raise BadFileError(f"{path} should hold vectors of one width, got {sorted(widths)[:3] or 'none'}")
    nothing = torch.zeros(widths.pop())

    def embed(texts: Sequence[str]) -> Tensor:
        rows = []
        for text in texts:
            known = [vectors[word] for word in text.lower().split() if word in vectors]
            rows.append(torch.stack(known).mean(0) if known else nothing)
        return torch.stack(rows)

    return embed


def phrase_words(phrases: PhraseBatch, length: int, content: Tensor | None = None) -> Tensor:
    """Return which positions of its caption each phrase covers, (P, T); with ``content`` (C, T), only those
    of its words that count, where it has any."""
    place = torch.arange(length, device=phrases.first.device)
    inside = (place >= phrases.first.unsqueeze(1)) & (place < phrases.last.unsqueeze(1))
    if content is None:
        return inside
    chosen = inside & content[phrases.caption]
    return torch.where(chosen.any(1, keepdim=True), chosen, inside)


def region_labels(class_probs: Tensor | None, classes: int, how: Literal["best", "all"]) -> Tensor:
    """Return each region's share of every label, (B, N, C): its best class alone, or all by their probability."""
    if class_probs is None:
        raise DeixisError("these regions have no detector classes: set model.prior.kind to none, or extract them again")
    if how == "best":
        return F.one_hot(class_probs.argmax(-1), classes).float()
    probs = class_probs.float()
    shares: Tensor = probs / probs.sum(-1, keepdim=True).clamp(min=1e-6)
    return shares
