"""Fitting and measuring the calibration of a grounder on annotated phrases.

Positives are the phrases of a photo's own captions. Negatives are phrases of another photo's captions whose head word
no caption of this photo says. Such a thing may still be in the picture, unsaid; so the figures are, if anything, too
modest. Captions without annotated phrases are cut into noun phrases. They tell whether a thing is there, not whether a
box is right: that curve is then taken over from the model the grounder started from. A dataset that boxes every thing
of its categories (COCO) adds those: "a dog" where one is, and where surely none is (:mod:`.categories`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from deixis.answering.phrases import as_asked
from deixis.data.collate import CaptionEncoder, EncodedCaption, EncodedExample, RegionSource, collate, encode_example
from deixis.data.sampler import split
from deixis.errors import DeixisError
from deixis.evaluation.categories import known_things
from deixis.evaluation.setting import Evaluation
from deixis.geometry import iou
from deixis.grounding.base import LONGEST_SENTENCE, WordGrounder
from deixis.grounding.calibration import (
    Calibration,
    Flags,
    Logistic,
    Numbers,
    area_under_curve,
    calibration_error,
    cross_fitted,
    keep_threshold,
    reliability,
    signals,
)
from deixis.metrics.plots import curve
from deixis.metrics.report import Breakdown, Section
from deixis.models.names import LoadedModel
from deixis.text.relations import RelationVocabulary
from deixis.text.rules.chunker import chunk
from deixis.text.vocabulary import Vocabulary, is_groundable
from deixis.types import Example, Sentence

KEEP = 0.95
"""The share of true phrases that must not be called absent."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Signals of phrases asked of photos, (P, 3), and what is true of them."""

    signals: Numbers
    photo: NDArray[np.int64]  # (P,)
    right: Flags  # (P,) whether the first box is right
    boxed: Flags  # (P,) whether anybody drew a box, so that ``right`` means something

    def take(self, rows: Flags) -> Judged:
        """Return some of the phrases."""
        return Judged(self.signals[rows], self.photo[rows], self.right[rows], self.boxed[rows])

    def numbered_from(self, first: int) -> Judged:
        """Return the same with the photos' numbers shifted, so that those of several datasets differ."""
        return replace(self, photo=self.photo + first)

    @classmethod
    def joined(cls, parts: Sequence[Judged]) -> Judged:
        """Return phrases of several kinds together."""
        fields = ((part.signals, part.photo, part.right, part.boxed) for part in parts)
        return cls(*(np.concatenate(values) for values in zip(*fields, strict=True)))


@torch.no_grad()
def judge_phrases(
    model: WordGrounder,
    vocabulary: Vocabulary,
    examples: Sequence[Example],
    source: RegionSource,
    *,
    swapped: bool = False,
    batch: int = 16,
    device: torch.device | str = "cpu",
) -> Judged:
    """Ask for the phrases of every photo's captions; ``swapped``, for those of the photo half the split away."""
    # relations take part as they do in answers: whom they join counts there, not which predicate they have
    encoder = CaptionEncoder(vocabulary, LONGEST_SENTENCE, RelationVocabulary(()), supervision=True)
    encoded = [encode_example(example, encoder) for example in examples]
    asked = [_of_another(encoded, at) if swapped else example for at, example in enumerate(encoded)]
    found: list[tuple[Numbers, NDArray[np.int64], Flags, Flags]] = []
    for rows in split(np.arange(len(examples)), max(1, len(examples) // batch)):
        part = [asked[row] for row in rows if asked[row].captions]
        if not part or not any(caption.phrases for example in part for caption in example.captions):
            continue
        made = collate(part, source.regions([example.id for example in part])).to(device)
        assert made.phrases is not None
        logits, boxes = model.ranked_boxes(made)
        photo = np.array([row for row in rows if asked[row].captions])[
            made.image_of[made.phrases.caption].cpu().numpy()
        ]
        phrases = [phrase for example in part for caption in example.captions for phrase in caption.phrases]
        best = boxes[torch.arange(len(logits)), logits.argmax(-1).to(boxes.device)].double().cpu()
        right = [
            bool(p.boxes) and bool((iou(box[None], torch.tensor(p.boxes).double(), plus_one=True) >= 0.5).any())
            for p, box in zip(phrases, best, strict=True)
        ]
        seen = signals(logits, boxes, model.phrase_presence(made)).cpu().numpy()
        found.append((seen, photo, np.array(right), np.array([bool(phrase.boxes) for phrase in phrases])))
    if not found:
        raise DeixisError("no phrase to calibrate with: choose a split whose captions have annotated phrases")
    return Judged(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def fit_calibration(own: Judged, other: Judged, keep: float = KEEP, before: Calibration | None = None) -> Calibration:
    """Fit both curves; the figures in ``facts`` are cross-fitted, five folds of photos.

    Where no phrase has a box, the curve of ``before`` goes on saying how probably a box is right.
    """
    boxed = own.take(own.boxed)
    if len(boxed.right):
        curve_right = Logistic.fit(boxed.signals, boxed.right)
        right = cross_fitted(boxed.signals, boxed.right, boxed.photo)
        facts: dict[str, float | str] = {
            "right_ece": calibration_error(right, boxed.right),
            "right_auc": area_under_curve(right, boxed.right),
        }
    elif before is not None:
        curve_right = before.right
        facts = {
            "right_from": " ".join(str(before.facts.get(key, "")) for key in ("data", "split")).strip() or "before"
        }
    else:
        raise DeixisError(
            "none of these phrases has a box: a calibration needs phrases with boxes, or a grounder that started from "
            "a calibrated one (start_from=lite)"
        )
    pairs, there, photo = _there(own, other)
    present = cross_fitted(pairs, there, photo)
    found = Logistic.fit(pairs, there)
    threshold = keep_threshold(found(own.signals), keep)
    return Calibration(
        right=curve_right,
        found=found,
        threshold=threshold,
        facts={
            "phrases": len(own.right),
            "boxed": len(boxed.right),
            "absent": len(other.right),
            **facts,
            "found_ece": calibration_error(present, there),
            "found_auc": area_under_curve(present, there),
            "kept": float((present[there] >= threshold).mean()),
            "refused": float((present[~there] < threshold).mean()),
        },
    )


def calibration_section(calibration: Calibration, own: Judged, other: Judged) -> Section:
    """Return how far a stored calibration is right on these photos, with its reliability diagram."""
    boxed = own.take(own.boxed)
    right = calibration.right(boxed.signals)
    pairs, there, _ = _there(own, other)
    present = calibration.found(pairs)
    rows = reliability(right, boxed.right)
    facts = calibration.facts
    return Section(
        protocol=f"calibration (fitted on {facts.get('data', 'other')} {facts.get('split', 'photos')})",
        items=len(boxed.right),
        what="phrases",
        scores={
            "right_ece": calibration_error(right, boxed.right),
            "right_auc": area_under_curve(right, boxed.right),
            "mean_confidence": float(right.mean()),
            "R@1": float(boxed.right.mean()),
            "found_auc": area_under_curve(present, there),
            "found_kept": float((present[there] >= calibration.threshold).mean()),
            "absent_refused": float((present[~there] < calibration.threshold).mean()),
        },
        breakdowns=(
            Breakdown(
                "Reliability: belief that the box is right, and how often it is",
                ("belief", "right", "phrases"),
                tuple((f"{100 * belief:.0f} %", frequency, count) for belief, frequency, count in rows),
            ),
        ),
        plots=(curve("How often a box is right, against the belief", [(b, f) for b, f, _ in rows], "belief"),),
    )


def calibrate(works: Sequence[Evaluation], keep: float = KEEP) -> Calibration:
    """Fit the calibration of a model to the photos of its evaluations, and keep it in the model's folder."""
    kinds: list[tuple[Judged, Judged]] = []
    passed = 0
    for work in works:
        grounder, *captions = judged(work)
        both = [captions, judged_categories(work, grounder)] if work.dataset.names_every_object else [captions]
        kinds += [(own.numbered_from(passed), other.numbered_from(passed)) for own, other in both]
        passed += len(work.examples)
    model = grounder.model
    assert isinstance(model, WordGrounder)
    own, other = (Judged.joined(parts) for parts in zip(*kinds, strict=True))
    made = fit_calibration(own, other, keep, model.calibration)
    facts = {
        "data": " and ".join(work.dataset.path.name for work in works),
        "split": " and ".join(dict.fromkeys(str(work.options.split) for work in works)),
    }
    made = replace(made, facts={**facts, **made.facts})
    model.calibration = made
    made.save(grounder.folder)
    return made


def judged(work: Evaluation) -> tuple[LoadedModel, Judged, Judged]:
    """Return the grounder of an evaluation, and its own and other phrases judged, read as people's are."""
    loaded = work.model.grounder
    if loaded is None or not isinstance(loaded.model, WordGrounder):
        part = work.model.part
        raise DeixisError(f"{part.name} is a {part.kind}, not a grounder: there is nothing to calibrate")
    words, examples = loaded.vocabulary, work.examples
    if any(caption.phrases for example in examples for caption in example.captions):
        examples = tuple(
            replace(one, captions=tuple(as_asked(c, words) if c.phrases else c for c in one.captions))
            for one in examples
        )
    else:
        examples = tuple(with_noun_phrases(example, words) for example in examples)
    own, other = (
        judge_phrases(loaded.model, words, examples, work.source(loaded), swapped=swapped, device=work.model.device)
        for swapped in (False, True)
    )
    return loaded, own, other


def judged_categories(work: Evaluation, grounder: LoadedModel) -> tuple[Judged, Judged]:
    """Return the categories judged that are in the photos of an evaluation, and as many that are not."""
    model, words = grounder.model, grounder.vocabulary
    assert isinstance(model, WordGrounder)
    present, absent = (
        judge_phrases(model, words, asked, work.source(grounder), device=work.model.device)
        for asked in known_things(work.examples, words)
    )
    return present, absent


def with_noun_phrases(example: Example, vocabulary: Vocabulary) -> Example:
    """Return an example whose captions have the noun phrases that name things one can point at."""
    return replace(example, captions=tuple(_naming(chunk(one, vocabulary)) for one in example.captions))


def _naming(sentence: Sentence) -> Sentence:
    heads = [sentence.tokens[phrase.head] if phrase.head is not None else None for phrase in sentence.phrases]
    named = [head is not None and is_groundable(head.tag, head.lemma or "") for head in heads]
    kept = tuple(phrase for phrase, names in zip(sentence.phrases, named, strict=True) if names)
    return replace(sentence, phrases=kept, relations=())  # relations count phrases, of which some are gone


def _there(own: Judged, other: Judged) -> tuple[Numbers, Flags, NDArray[np.int64]]:
    """Return the signals of phrases that are there and that are not, which is which, and their photos."""
    there = np.concatenate([np.ones(len(own.right), bool), np.zeros(len(other.right), bool)])
    return np.concatenate([own.signals, other.signals]), there, np.concatenate([own.photo, other.photo])


def _of_another(encoded: Sequence[EncodedExample], at: int) -> EncodedExample:
    """Return this photo with the captions of another, without the phrases whose head word its own captions say."""
    mine, theirs = encoded[at], encoded[(at + len(encoded) // 2) % len(encoded)]
    said = {word for caption in mine.captions for word in caption.words}
    kept = tuple(_unsaid(caption, said) for caption in theirs.captions)
    return EncodedExample(mine.id, kept, theirs.references) if mine is not theirs else replace(mine, captions=())


def _unsaid(caption: EncodedCaption, said: set[int]) -> EncodedCaption:
    """Return a caption with the phrases whose head word is not said, and the relations between those."""
    kept = [at for at, phrase in enumerate(caption.phrases) if caption.words[phrase.head] not in said]
    row = {at: number for number, at in enumerate(kept)}
    return replace(
        caption,
        phrases=tuple(replace(caption.phrases[at], boxes=(), frames=()) for at in kept),
        relations=tuple((row[a], predicate, row[b]) for a, predicate, b in caption.relations if {a, b} <= row.keys()),
    )
