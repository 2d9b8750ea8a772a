"""InfoGround's two losses: an image among images for each word, a word among words for each image.

Gupta et al., *Contrastive Learning for Weakly Supervised Phrase Grounding*, ECCV 2020, equations 8 and 9.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from deixis.data.batch import Batch, WordKind
from deixis.data.collate import EncodedExample
from deixis.grounding.base import real_words
from deixis.grounding.infoground import InfoGround
from deixis.interfaces import device_of
from deixis.objectives.base import Context, Objective
from deixis.objectives.matching import widened
from deixis.processes import gather_rows, masked_mean, processes
from deixis.text.negative_table import CorpusCaption, NegativeTable, said_lemmas
from deixis.text.negatives import NegativeKind, NegativeOptions, choose_noun, load_language_model
from deixis.text.vocabulary import PAD, Vocabulary


@dataclass(frozen=True, slots=True)
class ImageContrastOptions:
    """Nouns and adjectives, at most six of a caption."""

    words: int = 6


class ImageContrast(Objective):
    """For each word, its image against all other images of the batch (equation 8), averaged per caption.

    Images of all processes are negatives, so the loss does not depend on how a batch is divided. Captions of one image
    share its row, so none of them is a negative of another.

    Gupta et al., *Contrastive Learning for Weakly Supervised Phrase Grounding*, ECCV 2020, section 2.3, equation 8. Use
    together with ``language_contrast``.

    >>> objective = ImageContrast()
    >>> losses = objective(Context(grounder, batch))
    >>> losses["image_contrast"].backward()
    """

    trains = InfoGround
    needs = frozenset({"tags"})

    def __init__(self, options: ImageContrastOptions | None = None) -> None:
        super().__init__()
        self.options = options or ImageContrastOptions()

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``image_contrast`` and the ``bound`` on the mutual information, log k - L per word (equation 2)."""
        model = context.trained(InfoGround)
        chosen = at_most(model.content_words(context.batch), self.options.words, context.generator)
        losses, images = image_losses(model, context.batch, chosen, context.shared)
        everything = torch.ones_like(losses, dtype=torch.bool)
        bound = math.log(images) - masked_mean(losses.detach(), everything)
        return {"image_contrast": per_caption(losses, chosen), "_bound": bound}


@dataclass(frozen=True, slots=True)
class LanguageContrastOptions:
    """Defaults are the paper's best: 25 of 30 candidates after re-ranking."""

    negatives: NegativeKind = "re-ranked"
    """none; random words of other images' captions; plausible ones; plausible but untrue ones (table 2)."""
    candidates: int = 30
    keep: int = 25
    language_model: str = "lite"
    """``lite``, the folder of a run of ``text/masked``, or ``hf:bert-base-uncased``."""
    seed: int = 0
    """Chooses the noun of each caption."""
    allow_said: bool = False
    """Let nouns that some caption of the photo says, or other forms of them, be negatives; the paper does."""


class LanguageContrast(Objective):
    """For one noun of each caption, the noun against others in its place (equation 9).

    Gupta et al., *Contrastive Learning for Weakly Supervised Phrase Grounding*, ECCV 2020, section 2.4, equation 9. Use
    together with ``image_contrast``.

    >>> objective = LanguageContrast(options, data, vocabulary)
    >>> losses = objective(Context(grounder, batch))
    >>> losses["language_contrast"].backward()

    Args:
        options: Where the other nouns come from.
        data: What the run trains on; ``data.train.examples`` are the captions that get negatives.
        vocabulary: The grounder's words.
        model: Says where to compute; the CPU without it.
        tell: Is told how many captions have their negatives, while they are found.
    """

    trains = InfoGround
    needs = frozenset({"tags"})

    def __init__(
        self,
        options: LanguageContrastOptions,
        data: Any,
        vocabulary: Vocabulary,
        model: InfoGround | None = None,
        tell: Callable[[str, int, int], None] | None = None,
    ) -> None:
        super().__init__()
        self.options, self.vocabulary = options, vocabulary
        self.table: NegativeTable | None = None
        self._said: dict[str, Tensor] = {}
        captions = corpus_captions(data.train.examples) if options.negatives != "none" else []
        if options.negatives in ("plausible", "re-ranked"):
            self.table = self._negatives(captions, torch.device("cpu") if model is None else device_of(model), tell)
            self._row = {caption: row for row, caption in enumerate(self.table.ids)}
        elif options.negatives == "random" and not options.allow_said:
            forms = [vocabulary.lemma(word) for word in vocabulary.words]
            lemmas = {lemma: number for number, lemma in enumerate(dict.fromkeys(forms))}
            self._lemma = torch.tensor([lemmas[lemma] for lemma in forms])  # (V,)
            for image, said in said_lemmas(captions, vocabulary).items():
                self._said[image] = torch.tensor([lemmas[lemma] for lemma in said], dtype=torch.long)

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``language_contrast``, and how often the caption's own noun scores highest."""
        model, batch = context.trained(InfoGround), context.batch
        if self.options.negatives == "none":
            return {}
        words, mask, of = self._from_table(model, batch) if self.table is not None else self._random(model, context)
        key, value = _regions(model, batch, context.shared)
        image = batch.image_of[of]
        phi = model.own_compatibility(
            model.describe_words(words, mask), (key[image], value[image]), batch.regions.mask[image]
        )  # (R, 1 + K)
        losses = language_losses(phi, mask)
        counts = mask[:, 1:].any(1)
        right = (phi.masked_fill(~mask, -torch.inf).argmax(1) == 0).float()
        return {"language_contrast": masked_mean(losses, counts), "_own_noun_first": masked_mean(right, counts)}

    def _from_table(self, model: InfoGround, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Return features (R, 1 + K, W), their mask, and the caption of each row; the true noun comes first."""
        assert self.table is not None
        pairs = [(at, self._row[name]) for at, name in enumerate(batch.caption_ids) if name in self._row]
        device = batch.words.device
        of = torch.tensor([at for at, _ in pairs], dtype=torch.long, device=device)
        rows = torch.tensor([row for _, row in pairs], dtype=torch.long)
        place, others = self.table.place[rows].to(device), self.table.words[rows].to(device)
        mask = F.pad(others != PAD, (1, 0), value=True)
        return model.encoder.replaced(batch.words[of], real_words(batch)[of], place, others), mask, of

    def _random(self, model: InfoGround, context: Context) -> tuple[Tensor, Tensor, Tensor]:
        """Return the same for nouns drawn from captions of other images of the batch, each in its own caption."""
        batch = context.batch
        nouns = model.nouns(batch)  # (C, T)
        places = [
            choose_noun([at for at, noun in enumerate(row) if noun], name, self.options.seed)
            for row, name in zip(nouns.tolist(), batch.caption_ids, strict=True)
        ]
        device = batch.words.device
        of = torch.tensor([at for at, place in enumerate(places) if place is not None], dtype=torch.long, device=device)
        place = torch.tensor([place for place in places if place is not None], dtype=torch.long, device=device)
        features = _words(model, batch, context.shared)
        pool, pool_image = features[nouns], batch.image_of.unsqueeze(1).expand_as(nouns)[nouns]  # (M, W), (M,)
        other = pool_image.unsqueeze(0) != batch.image_of[of].unsqueeze(1)  # (R, M)
        if self._said:
            other &= ~self._is_said(batch, batch.words[nouns], batch.image_of[of])
        draw = torch.rand(other.shape, generator=context.generator).to(device).masked_fill(~other, 2.0)
        drawn = torch.topk(draw, min(self.options.keep, len(pool)), dim=1, largest=False)
        words = torch.cat([features[of, place].unsqueeze(1), pool[drawn.indices]], 1)  # (R, 1 + K, W)
        return words, F.pad(drawn.values < 2, (1, 0), value=True), of

    def _is_said(self, batch: Batch, pool: Tensor, image: Tensor) -> Tensor:
        """Return which nouns (M,) some caption of each of the images (R,) says, in any form, (R, M)."""
        lemmas = self._lemma[pool.cpu()]
        rows = [torch.isin(lemmas, self._said[batch.regions.ids[at]]) for at in image.tolist()]
        return torch.stack(rows).to(pool.device) if rows else torch.zeros(0, len(pool), dtype=torch.bool)

    def _negatives(
        self,
        captions: Sequence[CorpusCaption],
        device: torch.device,
        tell: Callable[[str, int, int], None] | None,
    ) -> NegativeTable:
        options = self.options
        wanted = NegativeOptions(options.negatives, options.candidates, options.keep, options.allow_said)
        if processes() > 1 and dist.get_rank() > 0:
            dist.barrier()  # the first process makes the table, the others read it
        language_model = load_language_model(options.language_model)
        language_model.to(device)
        table = NegativeTable.cached(
            captions,
            self.vocabulary,
            language_model,
            wanted,
            seed=options.seed,
            on_progress=None if tell is None else partial(tell, f"finding {options.negatives} negatives"),
        )
        if processes() > 1 and dist.get_rank() == 0:
            dist.barrier()
        return table


def corpus_captions(examples: Sequence[EncodedExample]) -> list[CorpusCaption]:
    """Return the captions of a corpus as the table of negatives needs them."""
    return [
        CorpusCaption(
            f"{example.id}#{number}",
            caption.words[:-1],
            tuple(at for at, tag in enumerate(caption.tags) if tag == WordKind.NOUN),
        )
        for example in examples
        for number, caption in enumerate(example.captions)
    ]


def image_losses(
    model: InfoGround, batch: Batch, chosen: Tensor, shared: dict[str, Tensor] | None = None, *, gather: bool = True
) -> tuple[Tensor, int]:
    """Return the loss of each chosen word (equation 8), (M,), and k, the number of images, of all processes."""
    shared = {} if shared is None else shared
    query, word_value = model.describe_words(_words(model, batch, shared), chosen)
    key, value = _regions(model, batch, shared)
    region_mask, image = batch.regions.mask, batch.image_of
    if gather and processes() > 1:
        before = gather_rows(torch.tensor([len(batch.regions)], device=image.device))[: dist.get_rank()].sum()
        key, value, region_mask = (gather_rows(widened(rows)) for rows in (key, value, region_mask))
        image = image + before
    phi = model.compatibility((query[chosen], word_value[chosen]), (key, value), region_mask)  # (M, B)
    own = image.unsqueeze(1).expand_as(chosen)[chosen]  # (M,)
    return F.cross_entropy(phi, own, reduction="none"), len(key)


def language_losses(phi: Tensor, mask: Tensor) -> Tensor:
    """Return -log of the share of column 0, the true word, among the columns of the mask, (R, 1 + K) -> (R,)."""
    return -torch.log_softmax(phi.masked_fill(~mask, -torch.inf), 1)[:, 0]


def per_caption(losses: Tensor, chosen: Tensor) -> Tensor:
    """Return the mean over captions of the mean over their chosen words, (M,) and (C, T); captions without are out."""
    spread = losses.new_zeros(chosen.shape).masked_scatter(chosen, losses)  # (C, T)
    return masked_mean(spread.sum(1) / chosen.sum(1).clamp(min=1), chosen.any(1))


def at_most(chosen: Tensor, count: int, generator: torch.Generator | None = None) -> Tensor:
    """Keep ``count`` of the chosen words of each caption at random, (C, T)."""
    draw = torch.rand(chosen.shape, generator=generator).to(chosen.device).masked_fill(~chosen, 2.0)
    return chosen & (draw.argsort(1).argsort(1) < count)


def _words(model: InfoGround, batch: Batch, shared: dict[str, Tensor]) -> Tensor:
    """Return the word features of the batch, computed once per step, (C, T, W)."""
    if "infoground.words" not in shared:
        shared["infoground.words"] = model.encoder(batch.words, real_words(batch))
    return shared["infoground.words"]


def _regions(model: InfoGround, batch: Batch, shared: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Return keys and values of the regions, computed once per step, (B, N, D) each."""
    if "infoground.key" not in shared:
        shared["infoground.key"], shared["infoground.value"] = model.describe_regions(batch.regions)
    return shared["infoground.key"], shared["infoground.value"]
