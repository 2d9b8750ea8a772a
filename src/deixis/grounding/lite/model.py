"""The grounder we ship: what words look like, and how far and where their boxes extend, both learnt from captions.

Two small networks share a vocabulary. *Evidence* scores how much a region looks like a word, and is trained by contrast
between images (InfoGround's idea, in the words of a multiple-instance head). It knows what, but not how much: a face is
as good evidence for "man" as the man. *Answers* ranks regions for phrases with their modifiers, from appearance and
from facts such as objectness, size and place, weighed anew for every word. It is taught by the evidence together with
its coverage (``coverage.py``) and a prior on what a thing is; averaged over a hundred thousand phrases, the teacher's
errors mostly cancel, so that the pupil is better than the teacher. No box a person drew is ever seen.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.data.batch import Batch, PhraseBatch, RegionBatch, WordKind
from deixis.data.sizes import InputSizes
from deixis.errors import DeixisError
from deixis.grounding.base import WordGrounder, real_words
from deixis.grounding.lite.config import LiteConfig
from deixis.grounding.lite.coverage import cell_masks, coverage
from deixis.grounding.lite.labels import Labels
from deixis.grounding.lite.positions import Positions, ranks, read_positions, region_positions
from deixis.grounding.lite.region_facts import FACTS, attached, region_facts
from deixis.grounding.lite.voting import agreed_first, voted_boxes
from deixis.grounding.lite.wearers import wearer_logits
from deixis.grounding.lite.word_facts import word_facts
from deixis.grounding.lite.word_groups import WordGroup
from deixis.text.vocabulary import PAD, UNKNOWN, Vocabulary

SMALLEST_SIZE = 0.003
PHRASES_AT_ONCE = 256


class LiteGrounder(WordGrounder):
    """Evidence and answers over one vocabulary; see the top of this file."""

    knows_wearers = True

    def __init__(self, config: LiteConfig, sizes: InputSizes, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary, config.answers)
        self.config, self.sizes = config, sizes
        self.labels = Labels(config.labels, sizes.classes, vocabulary)
        words, width = len(vocabulary), config.width
        looked = sizes.features + sizes.classes
        self.evidence_words = nn.Embedding(words, width)
        self.evidence_regions = Branches(looked, width, config.dropout)
        self.evidence_bias = nn.Embedding(words, 1)
        self.head_words = nn.Embedding(words, width)
        self.modifier_words = nn.Embedding(words, width)
        self.plural_head = nn.Parameter(torch.zeros(width))
        self.answer_regions = Branches(looked + FACTS, width, config.dropout)
        self.fact_weights = nn.Linear(width, FACTS)
        self.word_fact_weights = nn.Embedding(words, FACTS)
        for table, spread in ((self.evidence_words, 0.1), (self.head_words, 0.05), (self.modifier_words, 0.02)):
            nn.init.normal_(table.weight, std=spread)
        for weights in (self.evidence_bias.weight, self.word_fact_weights.weight, self.fact_weights.weight):
            nn.init.zeros_(weights)
        self.lemma: Tensor
        self.group: Tensor
        self.plural: Tensor
        self.silent: Tensor
        self.directions: Tensor
        self.empty: Tensor
        self.ordinals: Tensor
        self.of = vocabulary.id("of") if "of" in vocabulary else -1
        for name, values in word_facts(vocabulary).items():
            self.register_buffer(name, values, persistent=False)  # the vocabulary's file says it all

    # --- evidence: what words look like

    def looks(self, regions: RegionBatch) -> Tensor:
        """Return what the networks see of regions: normalised features and detector classes, (B, N, S)."""
        seen = F.layer_norm(regions.features.float(), (self.sizes.features,))
        if not self.sizes.classes:
            return seen
        return torch.cat([seen, 4 * self._classes(regions)], -1)

    def prior(self, words: Tensor, regions: RegionBatch) -> Tensor:
        """Return the logarithm of a coarse prior: things for words that name things, else also parts, (M, B, N).

        Args:
            words: Lemma ids, (M,).
            regions: Regions of B images.
        """
        image = torch.arange(len(regions), device=words.device)
        return self._own_prior(self.group[words].unsqueeze(1), regions, image)

    def evidence(self, words: Tensor, regions: RegionBatch) -> Tensor:
        """Return how much every region of every image looks like every word, (M,) -> (M, B, N)."""
        seen = self.evidence_regions(self.looks(regions))
        return torch.einsum("md,bnd->mbn", self.evidence_words(words), seen).float()

    def presence(self, words: Tensor, regions: RegionBatch) -> Tensor:
        """Return the score that each word is in each image, the evidence expected over the prior, (M,) -> (M, B)."""
        prior = self.prior(words, regions)
        return torch.logsumexp(self.evidence(words, regions) + prior, -1) - torch.logsumexp(prior, -1)

    def match_of_words(self, words: Tensor, regions: RegionBatch) -> Tensor:
        """Return how well each word alone fits each image, as :meth:`match` counts it, (M,) -> (M, B)."""
        found = self.presence(self.lemma[words], regions)
        if not self.labels.in_use:
            return found
        nouns = torch.tensor(self.vocabulary.is_noun, device=words.device)[words]
        labels = self.labels.of_words(self.lemma[words], nouns)
        best = self._best_of_classes(regions)[:, labels.clamp(min=0)].T  # (M, B)
        return found + self.labels.doubt(labels.unsqueeze(1), best)

    # --- answers: regions of phrases

    def read(self, batch: Batch, phrases: PhraseBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Return the head lemmas (P,), the modifiers' lemmas (P, T), and whether the head is plural (P,).

        Words that say a position are no modifiers, and a head that is one names nothing.
        """
        words = self.lemma[batch.words[phrases.caption]]  # (P, T)
        inside, positions = self._inside(batch, phrases), self._positions(batch, phrases)
        place = torch.arange(words.shape[1], device=words.device)
        inside = inside & ~self.silent[words] & ~positions.says & (place != phrases.head.unsqueeze(1))
        modifiers = torch.where(inside, words, PAD)
        head = batch.words[phrases.caption, phrases.head]
        return torch.where(positions.nameless, UNKNOWN, self.lemma[head]), modifiers, self.plural[head]

    def _inside(self, batch: Batch, phrases: PhraseBatch) -> Tensor:
        """Return which words of their sentences belong to phrases, (P, T)."""
        place = torch.arange(batch.words.shape[1], device=batch.words.device)
        return (place >= phrases.first.unsqueeze(1)) & (place < phrases.last.unsqueeze(1))

    def _positions(self, batch: Batch, phrases: PhraseBatch) -> Positions:
        """Return what phrases say about where their thing is."""
        words, inside = batch.words[phrases.caption], self._inside(batch, phrases)
        return read_positions(words, inside, phrases.head, self.directions, self.empty, self.of)

    def queries(self, heads: Tensor, modifiers: Tensor, plural: Tensor) -> Tensor:
        """Return the vectors of phrases, (P, D)."""
        said = self.modifier_words(modifiers) * (modifiers != PAD).unsqueeze(-1)  # (P, T, D)
        query: Tensor = self.head_words(heads) + said.sum(1) + plural.unsqueeze(1) * self.plural_head
        return query

    def pupil(self, batch: Batch, phrases: PhraseBatch) -> Tensor:
        """Return the learnt logits of every region for every phrase, (P, N), -inf for padding."""
        heads, modifiers, plural = self.read(batch, phrases)
        query = self.queries(heads, modifiers, plural)  # (P, D)
        facts = region_facts(batch.regions)  # (B, N, FACTS)
        seen = self.answer_regions(torch.cat([self.looks(batch.regions), facts], -1))  # (B, N, D)
        image = batch.image_of[phrases.caption]
        weights = self.fact_weights(query) + self.word_fact_weights(heads)  # (P, FACTS)
        logits = torch.einsum("pd,pnd->pn", query, seen[image].to(query.dtype)).float()
        logits = logits + torch.einsum("pf,pnf->pn", weights.float(), facts[image])
        return logits.masked_fill(~batch.regions.mask[image], -torch.inf)

    @torch.no_grad()
    def teacher(self, batch: Batch, phrases: PhraseBatch) -> Tensor:
        """Return what evidence, coverage and the prior say together, as logits, (P, N), -inf for padding."""
        heads, modifiers, _ = self.read(batch, phrases)
        regions, image = batch.regions, batch.image_of[phrases.caption]
        mask = regions.mask[image]  # (P, N)
        seen = self.evidence_regions(self.looks(regions)).float()[image]  # (P, N, D)
        table = self.evidence_words.weight.float()
        looks = torch.einsum("pd,pnd->pn", table[heads], seen) * (heads != UNKNOWN).unsqueeze(1)
        told = (modifiers != PAD) & (modifiers != UNKNOWN)
        mean = (table[modifiers] * told.unsqueeze(-1)).sum(1) / told.sum(1, keepdim=True).clamp(min=1)
        modified = torch.einsum("pd,pnd->pn", mean, seen)
        cells = cell_masks(regions.boxes_normalised, regions.mask, self.config.grid)  # (B, N, G)
        size = (cells.mean(-1)).clamp(min=SMALLEST_SIZE).log()[image]
        part = attached(regions).clamp(min=0.03).log()[image]
        nameless = self._positions(batch, phrases).nameless
        group = torch.where(nameless, WordGroup.THING, self.group[heads])  # "the left one" is some thing
        weights = self.config.teacher.table().to(looks)[group].unsqueeze(-1)  # (P, fields, 1)
        middle, sharpness = weights[:, -2], weights[:, -1]
        terms = [
            looks,
            modified,
            self._own_prior(group, regions, image),
            coverage(looks, cells[image], mask, middle, sharpness),
            size,
            part,
        ]
        return (weights[:, :-2] * torch.stack(terms, 1)).sum(1).masked_fill(~mask, -torch.inf)

    def phrase_logits(self, batch: Batch) -> Tensor:
        """Return the answer's log-probabilities of every region for every phrase, (P, N)."""
        if batch.phrases is None:
            raise DeixisError("this batch has no phrases to ground")
        return self.answer(batch, batch.phrases)

    def answer(self, batch: Batch, phrases: PhraseBatch) -> Tensor:
        """Return the log-probabilities of the pupil, with the teacher's where ``mix`` says so, (P, N).

        What the detector's classes, positions and ordinals say is added.
        """
        logits = torch.log_softmax(self.pupil(batch, phrases), -1)
        if self.config.mix:
            logits = logits + self.config.mix * torch.log_softmax(self.teacher(batch, phrases), -1)
        if self.labels.in_use:
            classes = self._classes(batch.regions)[batch.image_of[phrases.caption]]
            logits = logits + self.labels.leaning(self._labels(batch, phrases), classes)
        if self.answers.things:
            logits = torch.where(self._names_a_part(batch, phrases), self._of_wearers(batch, phrases, logits), logits)
        if self.config.position:
            logits = logits + self.config.position * self._in_position(batch, phrases, logits)
        return logits

    def _names_a_part(self, batch: Batch, phrases: PhraseBatch) -> Tensor:
        """Return which phrases name what is worn or a part of a body, (P, 1)."""
        group = self.group[batch.words[phrases.caption, phrases.head]]
        return ((group == WordGroup.WORN) | (group == WordGroup.BODY)).unsqueeze(1)

    def _of_wearers(self, batch: Batch, phrases: PhraseBatch, logits: Tensor) -> Tensor:
        image = batch.image_of[phrases.caption]
        return wearer_logits(logits, batch.regions.boxes[image], batch.regions.objectness[image])

    def _labels(self, batch: Batch, phrases: PhraseBatch) -> Tensor:
        """Return which of the detector's classes each phrase names, (P,)."""
        heads, modifiers, _ = self.read(batch, phrases)
        return self.labels.of_phrases(heads, modifiers)

    def _classes(self, regions: RegionBatch) -> Tensor:
        """Return the detector's classes, (B, N, C)."""
        if regions.class_probs is None:
            raise DeixisError("this grounder was trained on regions with detector classes, and these have none")
        return regions.class_probs.float()

    def _in_position(self, batch: Batch, phrases: PhraseBatch, logits: Tensor) -> Tensor:
        """Return how well every region lies where the phrase's position words point, (P, N).

        A left hand is its owner's left, which may be our right: parts of bodies are looked for everywhere.
        """
        positions, words = self._positions(batch, phrases), batch.words[phrases.caption]
        body = self.group[batch.words[phrases.caption, phrases.head]] == WordGroup.BODY
        placing = positions.says & (~body | positions.nameless).unsqueeze(1)
        asked = (self.directions[words] * placing.unsqueeze(-1)).sum(1)  # (P, AXES)
        image = batch.image_of[phrases.caption]
        where = region_positions(batch.regions)[image]  # (P, N, AXES)
        towards = torch.einsum("pa,pna->pn", asked, where)
        before = (self.ordinals[words] * self._inside(batch, phrases)).amax(1) * (asked[:, 0] != 0)  # (P,)
        if not torch.onnx.is_in_onnx_export() and not before.any():  # a traced network cannot look
            return towards
        count = ranks(logits, batch.regions.boxes[image].float(), -asked[:, :1] * where[..., 0])
        return torch.where(before.unsqueeze(1) > 0, -(count - before.unsqueeze(1)).abs(), towards)

    def ranked_boxes(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the score of every region for every phrase, (P, N), and its box after the vote, (P, N, 4)."""
        logits, boxes = super().ranked_boxes(batch)
        starts = range(0, len(logits), PHRASES_AT_ONCE)
        parts = [self._voted(logits[at : at + PHRASES_AT_ONCE], boxes[at : at + PHRASES_AT_ONCE]) for at in starts]
        if not parts:
            return logits, boxes
        ordered, moved = zip(*parts, strict=True)
        return torch.cat(ordered), torch.cat(moved)

    def _voted(self, logits: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
        moved = voted_boxes(logits, boxes, self.config.voting) if self.config.voting else boxes
        if self.config.agreement:
            return agreed_first(logits, moved, boxes, self.config.agreement)
        return logits, moved

    # --- the interface of grounders

    def word_scores(self, batch: Batch) -> Tensor:
        """Return logits of each word over regions, (C, T, N): its phrase's where it is a head, else the word's own."""
        captions, length = batch.words.shape
        row = torch.arange(captions, device=batch.words.device).repeat_interleave(length)
        place = torch.arange(length, device=batch.words.device).repeat(captions)
        first, last = place.clone(), place + 1
        if batch.phrases is not None:
            at = batch.phrases.caption * length + batch.phrases.head
            first[at], last[at] = batch.phrases.first, batch.phrases.last
        scores = self.answer(batch, PhraseBatch(row, first, last, place))
        return scores.reshape(captions, length, -1)

    def match(self, batch: Batch) -> Tensor:
        """Return the mean presence of a caption's nouns and adjectives in its image, (C,)."""
        chosen = content(batch)
        chosen = chosen | (real_words(batch) & ~chosen.any(1, keepdim=True))
        caption, place = chosen.nonzero(as_tuple=True)
        words, image = self.lemma[batch.words[caption, place]], batch.image_of[caption]
        scores = self.own_presence(words, batch.regions, image)
        if self.labels.in_use:
            labels = self.labels.of_captions(self.lemma[batch.words], batch.tags == WordKind.NOUN)
            scores = scores + self._doubt(labels[caption, place], batch.regions, image)
        total = torch.zeros_like(chosen[:, 0], dtype=scores.dtype).index_add(0, caption, scores)
        return total / chosen.sum(1).clamp(min=1)

    def phrase_presence(self, batch: Batch) -> Tensor:
        """Return the presence of each phrase's head in its image, 0 for a word it does not know, (P,)."""
        if batch.phrases is None:
            raise DeixisError("this batch has no phrases to ground")
        heads, _, _ = self.read(batch, batch.phrases)
        image = batch.image_of[batch.phrases.caption]
        scores = self.own_presence(heads, batch.regions, image)
        if self.labels.in_use:
            labels = self._labels(batch, batch.phrases)
            scores = scores + self._doubt(labels, batch.regions, image) + self.labels.levelling(labels)
        return torch.where(heads == UNKNOWN, 0.0, scores)

    def own_presence(self, words: Tensor, regions: RegionBatch, image: Tensor) -> Tensor:
        """Return the score that a word is in one image each, (M,) and (M,) -> (M,)."""
        seen = self.evidence_regions(self.looks(regions))[image]  # (M, N, D)
        prior = self._own_prior(self.group[words], regions, image)
        looks = torch.einsum("md,mnd->mn", self.evidence_words(words), seen.to(self.evidence_words.weight.dtype))
        return torch.logsumexp(looks.float() + prior, -1) - torch.logsumexp(prior, -1)

    def _doubt(self, labels: Tensor, regions: RegionBatch, image: Tensor) -> Tensor:
        """Return what the detector takes from the presence of the classes named, one in one image each, (M,)."""
        return self.labels.doubt(labels, self._best_of_classes(regions)[image, labels.clamp(min=0)])

    def _best_of_classes(self, regions: RegionBatch) -> Tensor:
        """Return the highest probability that any region of an image has of each class, (B, C)."""
        return (self._classes(regions) * regions.mask.unsqueeze(-1)).amax(1)

    def _own_prior(self, group: Tensor, regions: RegionBatch, image: Tensor) -> Tensor:
        """Return the prior of a group of words over the regions of one image each, (M, N)."""
        thing = regions.objectness.float().clamp(min=1e-4).sqrt()
        part = thing if regions.regionness is None else torch.maximum(regions.regionness.float(), thing / 2)
        both = torch.stack([part.clamp(min=0.02), thing]).log().masked_fill(~regions.mask, -torch.inf)  # (2, B, N)
        return both[(group == WordGroup.THING).long(), image]


class Branches(nn.Module):
    """A linear map plus a small network beside it, (..., S) -> (..., D)."""

    def __init__(self, inputs: int, width: int, dropout: float) -> None:
        super().__init__()
        self.straight = nn.Linear(inputs, width)
        self.hidden = nn.Linear(inputs, width)
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, seen: Tensor) -> Tensor:
        """Return the vectors."""
        added: Tensor = self.straight(seen) + self.out(self.dropout(F.gelu(self.hidden(seen))))
        return added


def content(batch: Batch) -> Tensor:
    """Return which words are known nouns or adjectives, (C, T)."""
    kinds = (batch.tags == WordKind.NOUN) | (batch.tags == WordKind.ADJECTIVE)
    return real_words(batch) & kinds & (batch.words != UNKNOWN)
