"""How far a captioner's pointing on clips is from guessing: the same words, the same regions, the same rules.

    python benchmarks/clip_chance.py MODEL CLIPS [--store STORE] [--split val] [--draws 20] [--json]

MODEL is a captioner, CLIPS a dataset in ActivityNet-Entities form (``deixis data clips`` makes one), STORE its regions.
The model captions every segment, its words pointing at the region they look at most (as GVD is measured), at the box
around the best few, or at the region that all weights agree on (``Pointing`` in deixis.captioning.answer). Then the
boxes of its words are replaced, frame by frame, by a region drawn at random (mean of the draws), by the box around
three regions drawn at random, by the best-scored region, by the whole frame, and by the region that fits the truth
best, which is the bound of these regions. Grounding F1 over frames is that of ``deixis score`` for clips; attention
accuracy is measured on the reference sentences in the same way. All in per cent.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Literal

import torch
from torch import Tensor

from deixis.answering.asking import Asking
from deixis.answering.load import Deixis
from deixis.captioning import Captioner
from deixis.captioning.answer import Pointing
from deixis.data.collate import CaptionEncoder, collate, encode_example
from deixis.errors import DeixisError
from deixis.evaluation.attention import attention_on_references
from deixis.evaluation.captions import caption_examples, caption_items
from deixis.evaluation.evaluate import evaluate
from deixis.evaluation.setting import Evaluation, EvaluationOptions
from deixis.geometry import iou, union_box
from deixis.metrics.grounding.attention_accuracy import score_attention
from deixis.metrics.grounding.dataset_words import DatasetWords, words_of_examples
from deixis.metrics.grounding.f1 import score_grounding
from deixis.metrics.grounding.object_words import AnnotatedAttention, GroundedItem, PredictedWord
from deixis.types import Box

Rule = Literal["argmax", "union", "soft_vote"]
Choose = Callable[[Tensor, Sequence[Box]], Tensor]
"""From the regions of a frame, best-scored first and the whole frame last, and the true boxes there, to one box."""
RULES: dict[str, Rule] = {"best region": "argmax", "around the best": "union", "soft vote": "soft_vote"}
FIGURES = ("F1_all", "F1_loc", "F1_all_per_sent", "F1_loc_per_sent")


def best_fit(regions: Tensor, truth: Sequence[Box]) -> Tensor:
    """Choose the region with the largest overlap with any true box."""
    return regions[iou(regions, torch.tensor(truth)).amax(1).argmax() if truth else -1]


def drawn(count: int, rng: random.Random) -> Choose:
    """Choose the box around so many regions drawn at random."""

    def choose(regions: Tensor, truth: Sequence[Box]) -> Tensor:
        return union_box(regions[rng.sample(range(len(regions)), min(count, len(regions)))])

    return choose


def guessed(
    word: PredictedWord, truth: Mapping[int, Sequence[Box]], frames: Sequence[Tensor], choose: Choose
) -> PredictedWord:
    """Return a word that points at the chosen region of every frame."""
    boxes: list[Box] = []
    for at, regions in enumerate(frames):
        x1, y1, x2, y2 = choose(regions, truth.get(at, ())).tolist()
        boxes.append((x1, y1, x2, y2))
    return replace(word, boxes=tuple(boxes), frames=tuple(range(len(frames))))


def truth_of(boxes: Sequence[Box], frames: Sequence[int]) -> dict[int, list[Box]]:
    """Return the boxes of each frame."""
    found: dict[int, list[Box]] = {}
    for box, frame in zip(boxes, frames, strict=True):
        found.setdefault(frame, []).append(box)
    return found


def figures(items: Sequence[GroundedItem], looked: Sequence[AnnotatedAttention]) -> dict[str, float]:
    """Return grounding F1 of generated sentences and attention accuracy on the references, in per cent."""
    scores = score_grounding(items, photos=False).scores
    found = {name: 100 * scores[name] for name in FIGURES}
    return {**found, "attention accuracy": 100 * score_attention(looked).accuracy}


def with_guesses(
    items: Sequence[GroundedItem],
    looked: Sequence[AnnotatedAttention],
    frames_of: Mapping[str, Sequence[Tensor]],
    choose: Choose,
) -> dict[str, float]:
    """Score the same words with other boxes."""
    changed: list[GroundedItem] = []
    for item in items:
        first = item.references[0].first if item.references else {}
        words = []
        for word in item.predicted or ():
            known = first.get(word.label)
            truth = truth_of(known.boxes, known.frames) if known is not None else {}
            words.append(guessed(word, truth, frames_of[item.id], choose))
        changed.append(replace(item, predicted=tuple(words)))
    guesses: list[AnnotatedAttention] = []
    for sentence in looked:
        own = {
            word.index: guessed(
                PredictedWord(word.label, word.label, ()), truth_of(word.boxes, word.frames),
                frames_of[sentence.group], choose,
            )
            for word in sentence.reference.words
        }  # fmt: skip
        guesses.append(replace(sentence, predicted=own))
    return figures(changed, guesses)


@torch.no_grad()
def reference_loss(work: Evaluation) -> float:
    """Return the cross entropy of the reference sentences, per word."""
    loaded = work.model.captioner
    model, encoder = loaded.model, CaptionEncoder(loaded.vocabulary, loaded.config.inputs.length)
    source = work.source(loaded)
    assert isinstance(model, Captioner)
    total, words = 0.0, 0
    for example in work.examples:
        batch = collate([encode_example(example, encoder)], source.regions([example.id]))
        decoded = model.decode(model.encode(batch.regions), batch.words, batch.image_of)
        total -= float(decoded.word_log_probs(batch.words).sum())
        words += int(decoded.mask.sum())
    return total / words


def frames_of(work: Evaluation) -> dict[str, list[Tensor]]:
    """Return the boxes of every frame's regions, as many as the model sees."""
    found: dict[str, list[Tensor]] = {}
    for example in work.examples:
        regions = work.source(work.model.captioner).regions([example.id])
        boxes, frame = regions.boxes[0].float(), regions.frame[0].masked_fill(~regions.mask[0], -1)
        found[example.id] = [boxes[frame == at] for at in range(int(frame.max()) + 1)]
    return found


def compare(work: Evaluation, words: DatasetWords, draws: int, seed: int) -> dict[str, dict[str, float]]:
    """Return the figures of the model and of every way to guess."""
    asked = work.options
    found: dict[str, dict[str, float]] = {}
    for name, rule in RULES.items():
        work.options = replace(asked, asking=Asking(beam=1, fluent=False, pointing=Pointing(rule)))
        items = caption_items(caption_examples(work), work.examples, words)
        looked = attention_on_references(work, work.model.captioner, words)
        found[f"the captioner, {name}"] = figures(items, looked)
    work.options = asked
    regions, rng = frames_of(work), random.Random(seed)
    for name, count in (("a region at random", 1), ("around three at random", 3)):
        several = [with_guesses(items, looked, regions, drawn(count, rng)) for _ in range(draws)]
        found[name] = {figure: fmean(one[figure] for one in several) for figure in several[0]}
    return found | {
        "the best-scored region": with_guesses(items, looked, regions, lambda rows, _: rows[0]),
        "the whole frame": with_guesses(items, looked, regions, lambda rows, _: rows[-1]),
        "the best of the regions (bound)": with_guesses(items, looked, regions, best_fit),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="A captioner's pointing on clips beside guesses.")
    parser.add_argument("model")
    parser.add_argument("clips")
    parser.add_argument("--store")
    parser.add_argument("--split", default="val")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        chosen = EvaluationOptions(split=options.split, store=options.store, replicates=0)
        work = evaluate(Deixis.from_pretrained(options.model, extractor=False), options.clips, chosen)
        found = compare(work, words_of_examples(work.examples), options.draws, options.seed)
    except DeixisError as error:
        raise SystemExit(f"clip_chance: {error}") from error
    captions, loss = dict(work.sections[0].scores), reference_loss(work)
    if options.json:
        facts = {"segments": len(work.examples), "loss": loss, "captions": captions, "pointing": found}
        print(json.dumps(facts, indent=2))
        return
    cider = captions.get("CIDEr", float("nan"))
    print(f"{len(work.examples)} segments; CIDEr {cider:.3f}; cross entropy of the references {loss:.3f} a word")
    print(f"{'':34}" + "".join(f"{name:>20}" for name in (*FIGURES, "attention accuracy")))
    for name, row in found.items():
        print(f"{name:34}" + "".join(f"{row[key]:20.1f}" for key in (*FIGURES, "attention accuracy")))


if __name__ == "__main__":
    main()
