"""A small masked transformer over a vocabulary of captions: it guesses hidden words, and its states describe words.

It takes the place of BERT (Devlin et al., NAACL 2019) where BERT cannot be downloaded: as word features of InfoGround,
and for the p(s'|c) and q(s'|s, c) of its negative captions (Gupta et al., ECCV 2020, section 2.4). It is trained by the
shared loop, ``deixis train text/masked``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from deixis.errors import BadFileError
from deixis.home import cache_home
from deixis.interfaces import Model
from deixis.reading.plain import read_json_object
from deixis.reading.tensors import check_sizes
from deixis.text.vocabulary import END, PAD, UNKNOWN, Vocabulary

LONGEST = 64
"""Positions that are told apart; later words share the last one."""


@dataclass(frozen=True, slots=True)
class MaskedModelConfig:
    """Its size. The defaults have two and a half million weights beside the embeddings."""

    width: int = 256
    layers: int = 3
    heads: int = 4
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if min(self.width, self.layers, self.heads) < 1 or self.width % self.heads:
            raise ValueError(f"width {self.width} should be a multiple of heads {self.heads}, both at least 1")


class WordTransformer(nn.Module):
    """Contextual states of words. The row after the vocabulary's last word stands for a hidden word."""

    def __init__(self, config: MaskedModelConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.hidden_word = len(vocabulary)
        self.embed = nn.Embedding(len(vocabulary) + 1, config.width, padding_idx=PAD)
        self.place = nn.Embedding(LONGEST, config.width)
        self.enter = nn.LayerNorm(config.width)
        self.drop = nn.Dropout(config.dropout)
        layer = nn.TransformerEncoderLayer(
            config.width, config.heads, 4 * config.width, config.dropout, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(
            layer, config.layers, nn.LayerNorm(config.width), enable_nested_tensor=False
        )
        for table in (self.embed, self.place):
            nn.init.normal_(table.weight, std=0.02)
        nn.init.zeros_(self.embed.weight[PAD])

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """Return the states of words, (C, T) -> (C, T, D); ``mask`` (C, T) is True for the caption's words.

        The end of the caption is put after the last word, so that the model knows it, and no caption is without a word.
        """
        words = F.pad(torch.where(mask, words, PAD), (0, 1))  # (C, T + 1)
        words = words.scatter(1, mask.sum(1, keepdim=True), END)
        seen = F.pad(mask, (1, 0), value=True)
        places = torch.arange(words.shape[1], device=words.device).clamp(max=LONGEST - 1)
        states = self.drop(self.enter(self.embed(words) + self.place(places)))
        states = self.layers(states, src_key_padding_mask=~seen)
        return states[:, :-1]  # type: ignore[no-any-return]

    @torch.no_grad()
    def copy_from(self, other: WordTransformer, mine: Vocabulary, others: Vocabulary) -> None:
        """Take the weights of a model with other words: rows go by spelling, a word it lacks is its unknown word."""
        if _size(self.config) != _size(other.config):
            raise BadFileError(
                f"the pre-trained word encoder is {_size(other.config)}, the recipe asks for {_size(self.config)}: "
                "set the encoder's width, layers and heads to its own"
            )
        weights = other.state_dict()
        rows = [others.id(word) for word in mine.words]
        rows[: UNKNOWN + 1] = range(UNKNOWN + 1)  # special words have the same numbers everywhere
        weights["embed.weight"] = weights["embed.weight"][[*rows, other.hidden_word]]
        self.load_state_dict(weights)


class MaskedLanguageModel(Model):
    """Guesses words from their context; the output shares the embedding (tied weights)."""

    def __init__(self, config: MaskedModelConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.body = WordTransformer(config, vocabulary)
        self.head = nn.Sequential(nn.Linear(config.width, config.width), nn.GELU(), nn.LayerNorm(config.width))
        self.bias = nn.Parameter(torch.zeros(len(vocabulary)))
        self.name = "untrained"
        """Tells one trained model from another, for caches."""

    @property
    def words(self) -> tuple[str, ...]:
        """What it can guess; the special words come first and are never guessed."""
        return self.vocabulary.words

    def guess(self, states: Tensor) -> Tensor:
        """Return the logits of words from states, (M, D) -> (M, V)."""
        logits = self.head(states) @ self.body.embed.weight[:-1].T + self.bias
        logits[..., : UNKNOWN + 1] = -torch.inf
        return logits  # type: ignore[no-any-return]

    @torch.no_grad()
    def probabilities(self, captions: Sequence[Sequence[str]], places: Sequence[int], *, hide: bool) -> Tensor:
        """Return the distribution over :attr:`words` at one place of each caption, (C, V), with the word there hidden
        (p of section 2.4) or visible (q)."""
        rows = [self.vocabulary.encode(list(caption)) for caption in captions]
        device = self.bias.device
        longest = max(map(len, rows))
        words = torch.tensor([row + [PAD] * (longest - len(row)) for row in rows], device=device)
        at = torch.arange(len(rows), device=device), torch.tensor(places, device=device)
        mask = words != PAD
        if hide:
            words[at] = self.body.hidden_word
        training = self.training
        self.eval()
        states = self.body(words, mask)[at]  # (C, D)
        self.train(training)
        return torch.softmax(self.guess(states), -1)

    @classmethod
    def load(cls, name: str) -> Self:
        """Read a trained model: a run or model folder, a run under ``$DEIXIS_HOME/runs``, or ``lite``, which ships."""
        folder = find_language_model(name)
        try:
            facts = read_json_object(folder / "config.json")
            component = dict(facts["recipe"]["model"])
            weights_file = folder / "model.safetensors"
            digest = hashlib.sha256(weights_file.read_bytes()).hexdigest()
            whole = facts["files"]["model.safetensors"]["sha256"] == digest
            weights = {key: value.float() for key, value in load_file(weights_file).items()}
        except (OSError, ValueError, LookupError, TypeError, SafetensorError) as error:
            raise BadFileError(f"{folder} cannot be read as a masked language model: {error!r}") from error
        if component.get("kind") != "masked_language_model":
            raise BadFileError(f"{folder} holds a {component.get('kind')!r}, not a masked language model")
        if not whole:
            raise BadFileError(f"{weights_file} is damaged: its checksum is not the one in config.json")
        known = {item.name for item in fields(MaskedModelConfig)}
        options: dict[str, Any] = {key: value for key, value in component.items() if key in known}
        check_sizes(options, {key: tuple(value.shape) for key, value in weights.items()}, str(folder))
        vocabulary = Vocabulary.load(folder / "vocabulary.json")
        try:
            model = cls(MaskedModelConfig(**options), vocabulary)
            model.load_state_dict(weights)
        except (RuntimeError, ArithmeticError, TypeError, ValueError, AssertionError) as error:
            raise BadFileError(f"the weights of {folder} do not fit: {' '.join(str(error).split())}") from error
        model.name = f"masked-{digest[:16]}"
        return model.eval()


def find_language_model(name: str) -> Path:
    """Return the folder of a trained masked language model."""
    given = Path(name).expanduser()
    places = [given, cache_home() / "runs" / given]
    if name == "lite":
        places = [Path(__file__).resolve().parents[1] / "weights" / "words", cache_home() / "runs" / "masked-cpu"]
    for place in places:
        pointers = place / "checkpoints.json"
        if pointers.is_file():
            try:
                named = read_json_object(pointers)
                place = place / "checkpoints" / Path(str(named.get("best") or named["last"])).name
            except (ValueError, KeyError) as error:
                raise BadFileError(f"{pointers} is damaged: {error!r}") from error
        if (place / "config.json").is_file():
            return place
    raise BadFileError(
        f"found no masked language model {name!r} (looked in {', '.join(map(str, places))}): "
        "train one with `deixis train text/masked size=cpu`, or name its folder"
    )


def _size(config: MaskedModelConfig) -> str:
    return f"{config.width} wide with {config.layers} layers and {config.heads} heads"
