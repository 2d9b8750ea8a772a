"""Captions that are plausible but untrue: one noun replaced by another that a language model finds likely there.

InfoGround (Gupta et al., *Contrastive Learning for Weakly Supervised Phrase Grounding*, ECCV 2020, section 2.4). For a
noun s in context c the 30 likeliest nouns by p(s'|c), with s hidden, are candidates. A synonym or hypernym of s stays
true for the image, so the candidates are sorted by p(s'|c) / q(s'|s, c), q being what the model says with s visible,
and the last five are rejected. Beyond the paper, a noun that any caption of the photo says is never a candidate unless
``allow_said``: people have told us that it is there.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from deixis.errors import DeixisError
from deixis.text.masked_model import MaskedLanguageModel
from deixis.text.rules.lemmas import lemmatise_noun
from deixis.text.vocabulary import SPECIAL_WORDS, Vocabulary
from deixis.text.word_encoders import load_transformer

NegativeKind = Literal["none", "random", "plausible", "re-ranked"]

NOT_NOUNS = frozenset(["is", "has", "have", "had", "be"])
"""Taggers sometimes call these nouns; the released code leaves them out."""
EPSILON = 1e-6


class LanguageModel(Protocol):
    """A masked language model that words can be asked of; BERT, or ours."""

    @property
    def name(self) -> str:
        """Tells one trained model from another, for caches."""
        ...

    @property
    def words(self) -> Sequence[str]:
        """The single tokens it can guess, by number."""
        ...

    @property
    def vocabulary(self) -> Vocabulary | None:
        """What its words usually are; None for a model that does not know which of them are nouns."""
        ...

    def to(self, device: torch.device | str) -> object:
        """Move it to where it should compute."""
        ...

    def probabilities(self, captions: Sequence[Sequence[str]], places: Sequence[int], *, hide: bool) -> Tensor:
        """Return the distribution over ``words`` at a place of each caption, (C, V), the word hidden or visible."""
        ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A noun that could stand in place of the caption's own."""

    word: str
    p: float
    """p(s'|c): how likely it is with the noun hidden."""
    q: float
    """q(s'|s, c): how likely the model finds it though it sees the noun."""

    @property
    def score(self) -> float:
        """Plausible but not true: large p, small q."""
        return self.p / (self.q + EPSILON)


@dataclass(frozen=True, slots=True)
class Negatives:
    """The candidates for one noun of a caption, as in figure 3 of the paper."""

    place: int
    """Position of the noun among the caption's words."""
    kept: tuple[Candidate, ...]
    rejected: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class NegativeOptions:
    """The paper's: 30 candidates, 25 kept. Ours: nothing that is said of the photo."""

    kind: NegativeKind = "re-ranked"
    candidates: int = 30
    keep: int = 25
    allow_said: bool = False
    """Also take nouns that some caption of the photo says, or other forms of them; the paper's way."""

    def __post_init__(self) -> None:
        if not 1 <= self.keep <= self.candidates:
            raise ValueError(f"keep {self.keep} should lie between 1 and the number of candidates, {self.candidates}")


def corpus_nouns(vocabulary: Vocabulary) -> list[str]:
    """Return the nouns of a corpus, the only words that may replace a noun."""
    return [
        word for word, noun in zip(vocabulary.words, vocabulary.is_noun, strict=True) if noun and word not in NOT_NOUNS
    ]


def choose_noun(places: Sequence[int], caption: str, seed: int = 0) -> int | None:
    """Choose one of a caption's nouns by its id and a seed alone, so that it is always the same one."""
    if not places:
        return None
    rng = np.random.default_rng([seed, zlib.crc32(caption.encode())])
    return places[int(rng.integers(len(places)))]


class NegativeMaker:
    """Finds negatives with a language model among the nouns of a corpus.

    Args:
        model: Says what is likely at a place.
        nouns: What may be put there.
        options: How many, and which.
        lemma: Gives the dictionary form of a noun, so that ``men`` are said where a ``man`` is.
    """

    def __init__(
        self,
        model: LanguageModel,
        nouns: Iterable[str],
        options: NegativeOptions | None = None,
        lemma: Callable[[str], str] = lemmatise_noun,
    ) -> None:
        self.model = model
        self.options = options or NegativeOptions()
        if self.options.kind not in ("plausible", "re-ranked"):
            raise DeixisError(f"{self.options.kind} negatives need no language model")
        wanted = set(nouns)
        self.columns = [
            at for at, word in enumerate(model.words) if word in wanted and not (at < 4 and word in SPECIAL_WORDS)
        ]
        if len(self.columns) <= self.options.keep:
            raise DeixisError(
                f"the language model {model.name} knows {len(self.columns)} nouns of the corpus, which gives no "
                f"{self.options.keep} negatives: use a vocabulary with tags (`deixis text prepare`), or keep fewer"
            )

        self._forms: dict[str, list[int]] = {}
        for row, column in enumerate(self.columns):
            self._forms.setdefault(lemma(model.words[column]), []).append(row)

    def __call__(
        self,
        captions: Sequence[Sequence[str]],
        places: Sequence[int],
        said: Sequence[Collection[str]] | None = None,
    ) -> list[Negatives]:
        """Return the negatives for the noun at one place of each caption.

        The caption's own noun is never kept, whatever its score: a caption is no negative of itself. Nouns whose lemma
        is among those ``said`` of its photo are not even candidates.
        """
        for caption, place in zip(captions, places, strict=True):
            if not 0 <= place < len(caption):
                raise DeixisError(f"there is no word {place} in a caption of {len(caption)} words")
        columns = torch.tensor(self.columns)
        hidden = self.model.probabilities(captions, places, hide=True).float().cpu()[:, columns]  # (C, nouns)
        seen = self.model.probabilities(captions, places, hide=False).float().cpu()[:, columns]
        likely = hidden.clone()
        for row, lemmas in enumerate(said or ()):
            likely[row, [at for lemma in lemmas for at in self._forms.get(lemma, ())]] = -1.0
        top = torch.topk(likely, min(self.options.candidates, len(self.columns)), dim=1)
        found = []
        for row, (caption, place) in enumerate(zip(captions, places, strict=True)):
            chosen = [
                Candidate(self.model.words[self.columns[column]], p, float(seen[row, column]))
                for p, column in zip(top.values[row].tolist(), top.indices[row].tolist(), strict=True)
                if p >= 0
            ]
            found.append(self._divide(chosen, caption[place], place))
        return found

    def _divide(self, chosen: list[Candidate], own: str, place: int) -> Negatives:
        if self.options.kind == "re-ranked":
            chosen = sorted(chosen, key=lambda candidate: -candidate.score)
        others = [candidate for candidate in chosen if candidate.word != own]
        kept = others[: self.options.keep]
        rejected = [candidate for candidate in chosen if candidate not in kept]
        return Negatives(place, tuple(kept), tuple(sorted(rejected, key=lambda candidate: candidate.score)))


class TransformersModel:
    """A masked language model of transformers, such as BERT; its whole-word tokens are what it can guess."""

    vocabulary: Vocabulary | None = None

    def __init__(self, name: str = "bert-base-uncased") -> None:
        self._model, self._tokenizer = load_transformer(name, guess=True)
        self._model.eval()
        self._name = f"hf-{name}"
        tokens = self._tokenizer.convert_ids_to_tokens(range(len(self._tokenizer)))
        special = set(self._tokenizer.all_special_tokens)
        self._words = tuple("" if token in special or token.startswith("##") else token for token in tokens)

    @property
    def name(self) -> str:
        """Its name on the hub."""
        return self._name

    @property
    def words(self) -> Sequence[str]:
        """Its tokens; pieces of words are empty, so no noun is like them."""
        return self._words

    def to(self, device: torch.device | str) -> Self:
        """Move it to where it should compute."""
        self._model.to(device)
        return self

    @torch.no_grad()
    def probabilities(self, captions: Sequence[Sequence[str]], places: Sequence[int], *, hide: bool) -> Tensor:
        """Return the distribution at the first piece of a word; all its pieces are hidden, by one mask each."""
        tokenizer = self._tokenizer
        rows, at = [], []
        for caption, place in zip(captions, places, strict=True):
            pieces = [tokenizer.encode(word, add_special_tokens=False) for word in caption]
            at.append(1 + sum(map(len, pieces[:place])))
            if hide:
                pieces[place] = [tokenizer.mask_token_id] * len(pieces[place])
            flat = [number for piece in pieces for number in piece]
            rows.append([tokenizer.cls_token_id, *flat, tokenizer.sep_token_id])
        longest = max(map(len, rows))
        device = self._model.device
        numbers = torch.tensor([row + [tokenizer.pad_token_id] * (longest - len(row)) for row in rows], device=device)
        seen = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=device)
        logits = self._model(input_ids=numbers, attention_mask=seen).logits  # (C, L, V)
        here = torch.arange(len(rows), device=device), torch.tensor(at, device=device)
        return torch.softmax(logits[here].float(), -1)[:, : len(self._words)]


def load_language_model(name: str) -> LanguageModel:
    """Return a masked language model: ``lite``, the folder of a run of ``text/masked``, or ``hf:NAME``."""
    if name.startswith("hf:"):
        return TransformersModel(name.removeprefix("hf:"))
    return MaskedLanguageModel.load(name)
