"""What grounders that score words against regions have in common: attention, phrases, answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from deixis.data.batch import Batch, RegionBatch, WordKind
from deixis.data.collate import CaptionEncoder, EncodedExample, collate
from deixis.data.pad import pad_regions
from deixis.errors import DeixisError
from deixis.grounding.answer import grounded, ranked_phrase, unknown_phrase
from deixis.grounding.calibration import Calibration
from deixis.grounding.pooling import PhrasePooling, phrase_scores
from deixis.interfaces import Model, device_of
from deixis.text.relations import RelationVocabulary
from deixis.text.vocabulary import END, PAD, Vocabulary
from deixis.types import GroundedPhrase, GroundedPhrases, Regions, Sentence

LONGEST_SENTENCE = 60
"""Words of a sentence that are read when answering; captions are rarely longer than 30."""
SENTENCES_AT_ONCE = 64
"""Sentences that share a pass: ten thousand phrases then cost time, not memory."""


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """How scores of words become boxes of phrases. None of it needs training."""

    pooling: PhrasePooling = "max"
    content_words: bool = True
    """Pool over a phrase's nouns and adjectives only, where it has any."""
    objectness: float = 0.0
    """Exponent of the prior that a region is one whole thing: bare attention likes parts."""
    regionness: float = 0.0
    ranked: int = 10
    """How many candidate boxes an answer lists."""
    things: bool = False
    """Answer with whole things where a part is named: "blue shirt" is who wears it. The ``lite`` grounder can."""


class WordGrounder(Model):
    """A grounder that scores each word against each region of its image. A subclass gives the scores and the match."""

    reads_relations = False
    """Whether relations between phrases change its answers, so that sentences should be parsed first."""
    knows_wearers = False
    """Whether it can answer with whole things where a part is named."""

    def __init__(self, vocabulary: Vocabulary, answers: AnswerOptions) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.answers = answers
        self.calibration: Calibration | None = None
        """What its scores mean, where that was fitted: read from beside the weights when a model is loaded."""

    @property
    def tells_presence(self) -> bool:
        """Whether its answers say how probably a phrase is in the image: where that was fitted."""
        return self.calibration is not None

    def word_scores(self, batch: Batch) -> Tensor:
        """Return the logits of each word's attention over its image's regions, (C, T, N), -inf for padded regions."""
        raise TypeError(f"{type(self).__name__} does not say how it scores words")

    def match(self, batch: Batch) -> Tensor:
        """Return how well each caption fits its image, (C,)."""
        raise TypeError(f"{type(self).__name__} does not say how it matches captions")

    def as_grounder(self, vocabulary: Vocabulary) -> Self:
        """Return the model itself: it is a grounder already."""
        return self

    def attention(self, batch: Batch) -> Tensor:
        """Return each word's distribution over regions, prior included, (C, T, N). Padded regions have exactly 0.

        It is what the model answers with, so that a captioner is taught what its teacher would say.
        """
        scores = self.word_scores(batch)
        prior = self.region_prior(batch.regions)
        return torch.softmax(scores if prior is None else scores + prior[batch.image_of].unsqueeze(1), -1)

    def region_prior(self, regions: RegionBatch) -> Tensor | None:
        """Return what ``answers`` adds to the logits of each region, (B, N), or None for nothing."""
        parts = []
        if self.answers.objectness:
            parts.append(self.answers.objectness * regions.objectness.float().clamp(min=1e-6).log())
        if self.answers.regionness and regions.regionness is not None:
            parts.append(self.answers.regionness * regions.regionness.float().clamp(min=1e-6).log())
        return sum(parts[1:], parts[0]) if parts else None

    def phrase_logits(self, batch: Batch) -> Tensor:
        """Return the score of every region for every phrase of the batch, prior included, (P, N)."""
        phrases = batch.phrases
        if phrases is None:
            raise DeixisError("this batch has no phrases to ground")
        content = (batch.tags == WordKind.NOUN) | (batch.tags == WordKind.ADJECTIVE)  # (C, T)
        scores = torch.log_softmax(self.word_scores(batch), -1)
        pooled = phrase_scores(scores, phrases, self.answers.pooling, content if self.answers.content_words else None)
        image = batch.image_of[phrases.caption]  # (P,)
        prior = self.region_prior(batch.regions)
        pooled = pooled if prior is None else pooled + prior[image]
        return pooled.masked_fill(~batch.regions.mask[image], -torch.inf)

    def phrase_presence(self, batch: Batch) -> Tensor:
        """Return a score that grows with how surely each phrase is about its image, (P,): here its best region's."""
        if batch.phrases is None:
            raise DeixisError("this batch has no phrases to ground")
        return phrase_scores(self.word_scores(batch), batch.phrases, self.answers.pooling).amax(-1)

    def ranked_boxes(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the score of every region for every phrase, (P, N), and its box, (P, N, 4); subclasses may move it."""
        logits = self.phrase_logits(batch)
        assert batch.phrases is not None
        return logits, batch.regions.boxes[batch.image_of[batch.phrases.caption]]

    def ground(self, regions: Regions, sentence: Sentence, phrases: Sequence[int] | None = None) -> GroundedPhrases:
        """Find the boxes of a sentence's phrases, all or those at the given indices.

        The sentence is read once with all its phrases and relations, also those that are not asked for.
        """
        wanted = range(len(sentence.phrases)) if phrases is None else phrases
        for at in wanted:
            if not 0 <= at < len(sentence.phrases):
                raise DeixisError(f"phrase {at} does not exist: the sentence has {len(sentence.phrases)}")
        answer = self.ground_all(regions, [sentence])[0]
        return replace(answer, phrases=tuple(answer.phrases[at] for at in wanted))

    @torch.no_grad()
    def ground_all(self, regions: Regions, sentences: Sequence[Sentence]) -> list[GroundedPhrases]:
        """Find the boxes of all phrases of several sentences about one image, in few passes."""
        padded = pad_regions([regions])
        answers: list[GroundedPhrases] = []
        for first in range(0, len(sentences), SENTENCES_AT_ONCE):
            answers += self._ground_some(regions, padded, sentences[first : first + SENTENCES_AT_ONCE])
        return answers

    def _ground_some(
        self, regions: Regions, padded: RegionBatch, sentences: Sequence[Sentence]
    ) -> list[GroundedPhrases]:
        numbers = {id(phrase): at for sentence in sentences for at, phrase in enumerate(sentence.phrases)}
        encoder = CaptionEncoder(
            self.vocabulary,
            LONGEST_SENTENCE,
            RelationVocabulary(()),  # which predicate does not matter here, only who is joined
            supervision=True,
            label=lambda _, phrase: numbers[id(phrase)],  # the encoder drops some: each says which it is
        )
        captions = tuple(encoder(sentence) for sentence in sentences)
        scored: Iterator[tuple[Tensor, Tensor]] = iter(())
        beliefs: Iterator[tuple[float, float]] = iter(())
        if any(caption.phrases for caption in captions):
            texts = tuple(sentence.text for sentence in sentences)
            batch = collate([EncodedExample("", captions, texts)], padded).to(device_of(self))
            logits, boxes = self.ranked_boxes(batch)
            scored = zip(logits[:, : len(regions)].cpu(), boxes[:, : len(regions)].to(regions.boxes), strict=True)
            if self.calibration is not None:
                right, present = self.calibration.judge(logits, boxes, self.phrase_presence(batch))
                beliefs = zip(right.tolist(), present.tolist(), strict=True)
        answers: list[GroundedPhrases] = []
        for sentence, caption in zip(sentences, captions, strict=True):
            found: dict[int, GroundedPhrase] = {}
            for encoded in caption.phrases:
                own_logits, own_boxes = next(scored)
                phrase = sentence.phrases[encoded.label]
                moved = replace(regions, boxes=own_boxes)
                answer = ranked_phrase(moved, sentence, phrase, own_logits, self.answers.ranked)
                if self.calibration is not None:
                    right_box, there = next(beliefs)
                    sure = there >= self.calibration.threshold
                    answer = replace(answer, score=right_box, presence=there, found=sure)
                found[encoded.label] = answer
            every = enumerate(sentence.phrases)
            phrases = tuple(found.get(at) or unknown_phrase(regions, sentence, phrase) for at, phrase in every)
            answers.append(grounded(sentence, regions, phrases))
        return answers


def real_words(batch: Batch) -> Tensor:
    """Return which positions hold words of the caption: neither padding nor the end token, (C, T)."""
    return (batch.words != PAD) & (batch.words != END)
