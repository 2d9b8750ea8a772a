"""The captioner as a grounder: feed it a sentence and watch where it looks at each word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from deixis.captioning.answer import Pointing, point, priors
from deixis.captioning.model.captioner import Captioner, answering
from deixis.data.batch import Batch, PhraseBatch, WordKind
from deixis.data.collate import CaptionEncoder, EncodedExample, collate
from deixis.data.pad import pad_regions
from deixis.errors import DeixisError
from deixis.interfaces import Grounder
from deixis.text.vocabulary import Vocabulary
from deixis.types import GroundedPhrase, GroundedPhrases, Regions, Sentence

LONGEST_SENTENCE = 60


class CaptionerGrounder(Grounder):
    """A :class:`deixis.interfaces.Grounder` made of a captioner run with teacher forcing.

    ``match`` is the mean log-probability of the words. A phrase points where its nouns do (all its words, if it has
    none): the mean of their attention. The attention of a word is that of the step that says it.
    """

    def __init__(self, captioner: Captioner, vocabulary: Vocabulary, pointing: Pointing | None = None) -> None:
        self.captioner, self.vocabulary = captioner, vocabulary
        self.pointing = pointing or Pointing()

    @torch.no_grad()
    def attention(self, batch: Batch) -> Tensor:
        """Return each word's attention, branches averaged, (C, T, N)."""
        with answering(self.captioner):
            encoded = self.captioner.encode(batch.regions)
            return self.captioner.decode(encoded, batch.words, batch.image_of).mean_attention

    @torch.no_grad()
    def match(self, batch: Batch) -> Tensor:
        """Return the mean log-probability of each caption's words, (C,)."""
        with answering(self.captioner):
            decoded = self.captioner.decode(self.captioner.encode(batch.regions), batch.words, batch.image_of)
            return decoded.word_log_probs(batch.words).sum(1) / decoded.mask.sum(1).clamp(min=1)

    def phrase_attention(self, batch: Batch) -> Tensor:
        """Return the attention of every phrase of the batch, (P, N)."""
        phrases = batch.phrases
        if phrases is None:
            raise DeixisError("this batch has no phrases to ground")
        weights = self.attention(batch)[phrases.caption]  # (P, T, N)
        return (_words_of(phrases, batch).unsqueeze(1) @ weights).squeeze(1)

    def ground(self, regions: Regions, sentence: Sentence, phrases: Sequence[int] | None = None) -> GroundedPhrases:
        """Find the boxes of a sentence's phrases, all or those at the given indices."""
        wanted = range(len(sentence.phrases)) if phrases is None else phrases
        for at in wanted:
            if not 0 <= at < len(sentence.phrases):
                raise DeixisError(f"phrase {at} does not exist: the sentence has {len(sentence.phrases)}")
        encoder = CaptionEncoder(self.vocabulary, LONGEST_SENTENCE)
        padded = pad_regions([regions])
        answers: list[GroundedPhrase] = []
        for at in wanted:
            start, end = sentence.phrase_span(sentence.phrases[at])
            text = sentence.text[start:end]
            caption = encoder(replace(sentence, phrases=(sentence.phrases[at],), relations=()))
            if not caption.phrases:  # no word of it is known: the whole image is the best guess
                box = (0.0, 0.0, float(regions.size[0]), float(regions.size[1]))
                answers.append(GroundedPhrase(text, (box,), (0,), 0.0, False, start, end))
                continue
            batch = collate([EncodedExample("", (caption,), (sentence.text,))], padded)
            weights = self.phrase_attention(batch) * priors(padded, self.pointing)  # (1, N)
            where = point(
                weights, torch.ones(1).bool(), padded.boxes[0], padded.mask[0], padded.frame[0], self.pointing,
                branches=False,
            )  # fmt: skip
            answers.append(GroundedPhrase(text, where.boxes, where.frames, where.score, True, start, end))
        return GroundedPhrases("", regions.size, tuple(answers), sentence.text)


def _words_of(phrases: PhraseBatch, batch: Batch) -> Tensor:
    """How much each word counts for each phrase, (P, T): its nouns alike, or all its words where it has no noun."""
    at = torch.arange(batch.words.shape[1], device=batch.words.device)
    inside = (at >= phrases.first.unsqueeze(1)) & (at < phrases.last.unsqueeze(1))
    nouns = inside & (batch.tags[phrases.caption] == WordKind.NOUN)
    counted = torch.where(nouns.any(1, keepdim=True), nouns, inside).float()
    return counted / counted.sum(1, keepdim=True).clamp(min=1)
