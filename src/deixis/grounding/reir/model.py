"""ReIR: match phrases to proposals coarsely, keep the best few, let related phrases inform each other, match again.

Liu et al., *Relation-aware Instance Refinement for Weakly Supervised Visual Grounding*, CVPR 2021, section 3.2. Every
row of its ablation table is a setting of :class:`ReirConfig`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor, nn

from deixis.data.batch import Batch, WordKind
from deixis.data.sizes import InputSizes
from deixis.errors import DeixisError
from deixis.grounding.base import AnswerOptions, WordGrounder, real_words
from deixis.grounding.label_prior import LabelPriorConfig, label_table, phrase_words, region_labels
from deixis.grounding.reir.features import Form, PhraseFeatures, RegionFeatures, normalised
from deixis.grounding.reir.forward_pass import Level, Refined, ReirPass
from deixis.grounding.reir.object_graph import ObjectGraph, neighbours
from deixis.grounding.reir.pair_networks import Matching, Regression, attention, named_alike
from deixis.grounding.reir.refinement import move
from deixis.text.vocabulary import UNKNOWN, Vocabulary

AT_ONCE = 1024
"""Words scored together when single words are asked for."""


@dataclass(frozen=True, slots=True)
class ReirConfig:
    """Defaults are the paper's full model."""

    form: Form = "paper"
    """``code``: GRU for LSTM, BatchNorm, one linear layer for scores, ReLU on the label prior and no attention where it
    is 0, the program's graph, and at the fine level both levels' attention in what a phrase sees."""
    width: int = 1024
    word_width: int = 300
    hidden: int = 512
    """Of the networks over phrase and proposal."""
    match_width: int = 512
    """Space in which the ranking loss compares captions and images; its scores are divided by the square root."""
    two_stages: bool = True
    """False: coarse matching only, the paper's baseline."""
    own_networks: bool = False
    """True: each level has an F_cls and an F_reg of its own; equations 2, 9 and 10 share them."""
    keep: int = 5
    """K, the proposals that go on to the fine level."""
    regression: Regression = "phrase"
    start: int = 7500
    """Training steps before boxes begin to move."""
    graph: Literal["none", "uniform", "attention"] = "attention"
    prior: LabelPriorConfig = field(default_factory=LabelPriorConfig)
    product: Literal["attention", "score"] = "attention"
    """What equation 11 multiplies. Two negative scores have a positive product, so by default it is the levels'
    attention weights, which fall and rise with the scores and are never negative."""
    answers: AnswerOptions = field(default_factory=AnswerOptions)

    def __post_init__(self) -> None:
        if self.keep < 1 or self.start < 0:
            raise ValueError("keep should be at least 1 and start at least 0")
        if not self.two_stages and (self.graph != "none" or self.regression != "none"):
            raise ValueError("without two_stages, graph and regression should be none: the baseline has neither")
        if self.form == "code" and self.product == "score":
            raise ValueError("the released program multiplies attention: product score goes with form paper")


class Reir(WordGrounder):
    """Two-stage matching with moving boxes. ``detector_classes`` names the classes of the regions, for a new model."""

    reads_relations = True
    moves: Tensor
    labels: Tensor

    def __init__(
        self,
        config: ReirConfig,
        sizes: InputSizes,
        vocabulary: Vocabulary,
        detector_classes: Sequence[str] = (),
    ) -> None:
        super().__init__(vocabulary, config.answers)
        self.config, self.detector_classes = config, tuple(detector_classes)
        width = config.width
        self.see = RegionFeatures(config.form, sizes.features, width)
        self.read = PhraseFeatures(config.form, sizes.words, config.word_width, width)
        self.coarse = Matching(config.form, width, config.hidden, config.regression)
        self.graph: ObjectGraph | None = None
        self.own_fine: Matching | None = None
        if config.two_stages and config.own_networks:
            self.own_fine = Matching(config.form, width, config.hidden, config.regression)
        if config.graph != "none":
            self.graph = ObjectGraph(width, config.graph, config.form)
        self.match_phrase = nn.Linear(width, config.match_width)
        self.match_object = nn.Linear(width, config.match_width)
        self.register_buffer("moves", torch.tensor(False))
        classes = sizes.classes if config.prior.kind != "none" else 0
        self.register_buffer("labels", torch.zeros(sizes.words, classes))

    @property
    def fine(self) -> Matching | None:
        """The networks of the fine level, those of the coarse one unless it has its own; None for one stage."""
        if not self.config.two_stages:
            return None
        return self.coarse if self.own_fine is None else self.own_fine

    def start(self) -> None:
        """Compare the vocabulary with the names of the detector's classes; a loaded model carries the table along."""
        if not self.labels.shape[1]:
            if self.config.prior.kind != "none":
                raise DeixisError("these regions have no detector classes: set model.prior.kind to none")
            return
        if len(self.detector_classes) != self.labels.shape[1]:
            raise DeixisError(
                f"the regions have {self.labels.shape[1]} classes but {len(self.detector_classes)} names: "
                "extract them again with class names, or set model.prior.kind to none"
            )
        table = label_table(self.vocabulary.words, self.detector_classes, self.config.prior)
        table[: UNKNOWN + 1] = 0  # the special words name nothing
        self.labels.copy_(table)

    def forward(self, batch: Batch, step: int | None = None) -> ReirPass:
        """Run both levels for all phrases of the batch. ``step``, given in training, decides whether boxes move."""
        if batch.phrases is None:
            raise DeixisError("this batch has no phrases to ground")
        if step is not None:
            self.moves.fill_(self.config.regression != "none" and step >= self.config.start)
        caption = batch.phrases.caption
        inside = phrase_words(batch.phrases, batch.words.shape[1])
        states = self.read(batch)
        phrase = self.read.pooled(states, inside, caption)  # (P, D)
        sentence = states.sum(1) / real_words(batch).sum(1, keepdim=True).clamp(min=1)  # (C, D)
        regions, image = batch.regions, batch.image_of[caption]
        objects = self._objects(batch)
        mask = regions.mask[image]  # (P, N)
        prior = self.prior(batch, self._prior_words(batch), caption)  # (P, N)
        scores = self.coarse.score.shared(phrase, objects, image).squeeze(-1) * prior  # equations 2 and 4
        offsets = None
        if self.coarse.offset is not None:
            offsets = self.coarse.offset.shared(phrase, objects, image)  # (P, N, 4)
        weights = attention(scores, named_alike(prior, mask, self.config.form))
        seen = torch.einsum("pn,pnd->pd", weights, objects[image])
        coarse = Level(mask, regions.boxes[image].float(), scores, weights, seen, offsets)
        first = ReirPass(image, phrase, sentence, coarse)
        if self.fine is None:
            return first
        return replace(first, refined=self._refine(self.fine, batch, first, prior, objects))

    def _refine(self, fine: Matching, batch: Batch, first: ReirPass, prior: Tensor, objects: Tensor) -> Refined:
        """Move boxes, keep K proposals of each phrase, and match these again."""
        regions, image, coarse = batch.regions, first.image, first.coarse
        boxes, moves = coarse.boxes, bool(self.moves)
        if coarse.offsets is not None and moves:
            boxes = move(boxes, coarse.offsets.detach(), regions.sizes[image])
        count = min(self.config.keep, boxes.shape[1])
        alike = named_alike(prior, coarse.mask, self.config.form)
        order = coarse.scores.masked_fill(~alike, torch.finfo(coarse.scores.dtype).min)
        chosen = order.masked_fill(~coarse.mask, -torch.inf).topk(count, 1).indices  # (P, K)
        mask, kept = coarse.mask.gather(1, chosen), (image.unsqueeze(1), chosen)
        kept_boxes = boxes.gather(1, chosen.unsqueeze(-1).expand(-1, -1, 4))
        if moves:  # a moved box keeps the feature of the proposal it came from; its place is the new one
            objects = self.see(regions.features[kept], kept_boxes, regions.sizes[image].unsqueeze(1), mask)
        else:
            objects = objects[kept]  # (P, K, D)
        if self.graph is not None:
            edges = neighbours(batch.relations).to(image.device)
            objects = self.graph(objects, coarse.weights.gather(1, chosen), edges)
        scores = fine.score(first.phrase, objects).squeeze(-1) * prior.gather(1, chosen)  # equation 9
        offsets = None if fine.offset is None else fine.offset(first.phrase, objects)  # equation 10
        weights = attention(scores, mask & alike.gather(1, chosen))
        looks = weights if self.config.form == "paper" else weights * coarse.weights.gather(1, chosen)  # not 1 in all
        seen = torch.einsum("pk,pkd->pd", looks, objects)
        return Refined(Level(mask, kept_boxes, scores, weights, seen, offsets), boxes, chosen)

    def prior(self, batch: Batch, inside: Tensor, caption: Tensor) -> Tensor:
        """Return s^a of every phrase and region (equation 3), (P, T), (P,) -> (P, N): the mean nearness of the phrase's
        words to the region's label, not below 0 in the released form."""
        regions = batch.regions
        if self.config.prior.kind == "none":
            return torch.ones(len(caption), regions.mask.shape[1], device=regions.mask.device)
        weights = inside.float() / inside.sum(1, keepdim=True).clamp(min=1)
        near = torch.einsum("pt,ptc->pc", weights, self.labels[batch.words[caption]])  # (P, C)
        if self.config.form == "code":
            near = near.clamp(min=0)
        shares = region_labels(regions.class_probs, self.labels.shape[1], self.config.prior.labels)  # (B, N, C)
        nearness = torch.einsum("pc,pnc->pn", near, shares[batch.image_of[caption]])
        return nearness + self.config.prior.floor

    def ranked_boxes(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the score of every proposal for every phrase (equation 11), (P, N), and its refined box, (P, N, 4).

        The K proposals of the fine level come first. The others follow in the order of the coarse level, so that recall
        at 5 and 10 has something to count.
        """
        done: ReirPass = self(batch)
        logits, boxes, mask = self._values(done.coarse), done.coarse.boxes, done.coarse.mask
        if done.refined is not None:
            fine, chosen = done.refined.level, done.refined.chosen
            kept = fine.boxes
            if fine.offsets is not None and bool(self.moves):
                kept = move(kept, fine.offsets, batch.regions.sizes[done.image])
            boxes = done.refined.moved.scatter(1, chosen.unsqueeze(-1).expand(-1, -1, 4), kept)
            own, again = logits.gather(1, chosen), self._values(fine)
            both = own * again if self.config.product == "score" else own + again  # weights are in logarithms
            worst = both.masked_fill(~fine.mask, torch.inf).amin(1, keepdim=True)
            rest = logits.scatter(1, chosen, -torch.inf).masked_fill(~mask, -torch.inf)
            below = rest - rest.amax(1, keepdim=True).nan_to_num(neginf=0.0) + worst - 1
            logits = below.scatter(1, chosen, both)
        regions = batch.regions
        if self.answers.objectness:
            logits = logits + self.answers.objectness * regions.objectness[done.image].clamp(min=1e-6).log()
        if self.answers.regionness and regions.regionness is not None:
            logits = logits + self.answers.regionness * regions.regionness[done.image].clamp(min=1e-6).log()
        return logits.masked_fill(~mask, -torch.inf), boxes

    def phrase_logits(self, batch: Batch) -> Tensor:
        """Return the score of every proposal for every phrase, (P, N)."""
        return self.ranked_boxes(batch)[0]

    def word_scores(self, batch: Batch) -> Tensor:
        """Return coarse scores of single words, each taken as a phrase of one word, (C, T, N)."""
        return self._word_scores(batch, self.read(batch), self._objects(batch))

    def match(self, batch: Batch) -> Tensor:
        """Return how well the nouns and adjectives of each caption fit what they attend to in its image, (C,)."""
        real, states, objects = real_words(batch), self.read(batch), self._objects(batch)
        content = real & (batch.words != UNKNOWN) & self._content(batch)
        content = torch.where(content.any(1, keepdim=True), content, real)
        looks = torch.softmax(self._word_scores(batch, states, objects), -1)
        fits = self.fit(states, looks @ objects[batch.image_of])  # (C, T)
        return (fits * content).sum(1) / content.sum(1).clamp(min=1)

    def fit(self, phrase: Tensor, seen: Tensor) -> Tensor:
        """Return how well phrases fit what they see, in the space of the ranking loss, (..., D), (..., D) -> (...)."""
        products: Tensor = (self.match_phrase(phrase) * self.match_object(seen)).sum(-1)
        return products / math.sqrt(self.config.match_width)

    def _word_scores(self, batch: Batch, states: Tensor, objects: Tensor) -> Tensor:
        real = real_words(batch)
        captions, places = real.nonzero().unbind(1)
        out = objects.new_zeros(*real.shape, objects.shape[1])
        parts = []
        for caption, place in zip(torch.split(captions, AT_ONCE), torch.split(places, AT_ONCE), strict=True):
            inside = torch.arange(states.shape[1], device=place.device) == place.unsqueeze(1)  # (M, T)
            phrase = normalised(states[caption, place], self.read.norm)
            scores = self.coarse.score.shared(phrase, objects, batch.image_of[caption]).squeeze(-1)
            prior, mask = self.prior(batch, inside, caption), batch.regions.mask[batch.image_of[caption]]
            parts.append((scores * prior).masked_fill(~named_alike(prior, mask, self.config.form), -torch.inf))
        out[captions, places] = torch.cat(parts)
        return out.masked_fill(~batch.regions.mask[batch.image_of].unsqueeze(1), -torch.inf)

    def _values(self, level: Level) -> Tensor:
        """Return what equation 11 multiplies, weights in logarithms, (P, M)."""
        return level.scores if self.config.product == "score" else level.weights.clamp(min=1e-12).log()

    def _objects(self, batch: Batch) -> Tensor:
        regions = batch.regions
        objects: Tensor = self.see(regions.features, regions.boxes, regions.sizes.unsqueeze(1), regions.mask)
        return objects

    def _prior_words(self, batch: Batch) -> Tensor:
        assert batch.phrases is not None
        content = self._content(batch) if self.config.prior.words == "content" else None
        return phrase_words(batch.phrases, batch.words.shape[1], content)

    @staticmethod
    def _content(batch: Batch) -> Tensor:
        return (batch.tags == WordKind.NOUN) | (batch.tags == WordKind.ADJECTIVE)
