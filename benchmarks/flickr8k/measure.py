"""Measure a trained row: a grounder on annotated phrases; a captioner on captions, their grounding and attention."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.flickr8k.facts import class_frequency, f1_by_bin, iou_curve, regions_of
from benchmarks.flickr8k.results import Result, fingerprint
from benchmarks.flickr8k.tables import CAPTIONS, CLASSES, PRIOR, Row, Table
from benchmarks.flickr8k.work import Worker, model_name, recipe_of, trained_for, validations
from deixis.answering.load import Deixis
from deixis.captioning.model.captioner import Captioner
from deixis.data.locations import find
from deixis.data.open import open_dataset
from deixis.errors import DeixisError
from deixis.evaluation.attention import attention_on_references
from deixis.evaluation.captions import caption_examples, caption_items
from deixis.evaluation.setting import Evaluation, EvaluationOptions
from deixis.grounding.base import AnswerOptions, WordGrounder
from deixis.grounding.baselines import build_baseline
from deixis.grounding.phrase_cases import phrase_cases
from deixis.grounding.scan import Scan
from deixis.metrics.bootstrap import MeanSample
from deixis.metrics.captions.scores import score_captions
from deixis.metrics.grounding.attention_accuracy import score_attention
from deixis.metrics.grounding.dataset_words import words_of_examples
from deixis.metrics.grounding.error_types import classify_errors, right_boxes
from deixis.metrics.grounding.f1 import score_grounding
from deixis.metrics.grounding.phrases import ANY_BOX, PROTOCOLS, score_phrases
from deixis.metrics.sections import RIGHT_BOX, attention_section, caption_section
from deixis.models.names import load
from deixis.models.reference_attention import look_at_references
from deixis.text.vocabulary import Vocabulary
from deixis.training.phrase_validation import METRICS
from deixis.training.recipe import Recipe
from deixis.training.run import Run


def measure(worker: Worker, table: Table, row: Row, seed: int, path: Path) -> Result:
    """Measure a trained row as its table asks."""
    if table.kind == "captions":
        return measure_captions(worker, row, seed, path, table.split)
    return measure_phrases(worker, row, seed, path, table.split, table.on)


def measure_phrases(worker: Worker, row: Row, seed: int, path: Path, split: str, on: str | None = None) -> Result:
    """Score a grounder on every annotated phrase of a split, bare and with the prior, under both protocols."""
    if row.baseline is not None:
        examples, source = worker.photos(recipe_of(row, seed), split, on)
        vocabulary = Vocabulary.build((caption for example in examples for caption in example.captions), 1)
        model: object = build_baseline(row.baseline, vocabulary, source.stores[0].class_names)
        steps, facts = 0, {}
    else:
        loaded = load(model_name(row, seed))
        model, vocabulary, steps = loaded.model, loaded.vocabulary, loaded.config.step
        examples, source = worker.photos(Recipe.from_plain(loaded.config.recipe), split, on)
        run = Run(path)
        facts = {"validations": validations(run), **last_losses(run)} if run.exists else {}
    if not isinstance(model, WordGrounder):
        raise DeixisError(f"{path} holds a model that grounds no words: it cannot be a row of this table")
    answer_as(model, row)
    parts = [part for part in model.modules() if isinstance(part, WordGrounder)]  # itself, or an ensemble's members too
    samples: dict[str, dict[str, Any]] = {}
    by_type: dict[str, dict[str, dict[str, float]]] = {}
    counts: list[int] = []
    curves: dict[str, list[float]] = {}
    photos = ""
    accuracy: dict[str, float] = {}  # POS-SCAN table 1: the teacher as its pupil is measured
    words = None if on is not None else words_of_examples(examples, class_list=find(CLASSES, "data"))
    for variant, exponent in (("bare", 0.0), ("prior", PRIOR)):
        for part in parts:
            part.answers = replace(part.answers, objectness=exponent, regionness=0.0)
        cases = phrase_cases(model, vocabulary, examples, source, batch=16)
        if words is not None:
            looked = look_at_references(model, vocabulary, examples, words, source)
            accuracy[variant] = round(score_attention(looked).accuracy, 5)
        samples[variant] = {}
        curves[variant] = iou_curve(cases)
        for protocol in PROTOCOLS.values():
            scores = score_phrases(cases, protocol)
            for metric in METRICS:
                sample = scores.samples[metric]
                assert isinstance(sample, MeanSample)
                samples[variant][f"{protocol.name} {metric}"] = [int(hits) for hits in sample.total]
                counts = [int(count) for count in sample.count]
            photos = fingerprint(scores.groups)
            if protocol is ANY_BOX:
                by_type[variant] = {
                    group.name: {"count": group.count, **{m: round(group.scores[m], 4) for m in ("R@1", "pointing")}}
                    for group in scores.breakdowns["class"]
                }
    curves["best region"] = iou_curve(cases, regions_of([example.id for example in examples], source))
    return Result(
        row=row.name,
        seed=seed,
        recipe=row.recipe,
        overrides=row.overrides,
        split=split,
        photos=photos,
        regions=source.fingerprint,
        steps=steps,
        seconds=trained_for(path),
        counts=counts,
        samples=samples,
        by_type=by_type,
        facts={**facts, "IoU": curves, **({"attention accuracy": accuracy} if accuracy else {})},
    )


def answer_as(model: WordGrounder, row: Row) -> None:
    """Let a model answer as the row says."""
    known = AnswerOptions.__dataclass_fields__
    how: dict[str, Any] = {k: v for k, v in row.answer.items() if k in known}
    model.answers = replace(model.answers, **how)
    own: dict[str, Any] = {k: v for k, v in row.answer.items() if k not in known}
    if own:
        if not isinstance(model, Scan):
            raise DeixisError(f"row {row.name} asks for {', '.join(own)}, which only SCAN knows")
        if "words" in own:
            own["words"] = (own["words"],)
        model.config = replace(model.config, **own)


def measure_captions(worker: Worker, row: Row, seed: int, path: Path, split: str) -> Result:
    """Score a captioner on a split: captions, grounding F1 over the 480 classes, attention on the references."""
    model = Deixis.from_pretrained(path, extractor=False)
    loaded = model.part
    recipe = Recipe.from_plain(loaded.config.recipe)
    if not isinstance(loaded.model, Captioner):
        raise DeixisError(f"{path} holds a {loaded.kind}, which captions nothing: it cannot be a row of this table")
    examples, source = worker.photos(recipe, split)
    options = EvaluationOptions(split=split, replicates=0)
    data = open_dataset(find(recipe.data.dataset, "data"), recipe.data.reader)
    done = Evaluation(model, data, tuple(examples), source.stores[0], options)
    captions = caption_examples(done)
    texts = {caption.image: caption.text for caption in captions}
    references = {example.id: [caption.text for caption in example.captions] for example in examples}
    scores = score_captions(texts, references, ("bleu", "cider"))
    class_list = find(CLASSES, "data")
    words = words_of_examples(examples, class_list=class_list)
    items = caption_items(captions, examples, words)
    grounding = score_grounding(items, photos=True)
    looked = score_attention(attention_on_references(done, loaded, words))
    found = {**caption_section(scores, replicates=0, seed=0).samples, **grounding.samples}
    found[RIGHT_BOX] = right_boxes(items, grounding.groups)
    found |= attention_section(looked, photos=True, replicates=0, seed=0).samples
    samples = {name: found[name].to_json() for name in CAPTIONS}
    frequency = class_frequency(data.path, recipe.data.reader, class_list)
    facts = {
        "BLEU-4": round(scores.corpus["BLEU-4"], 5),
        "classes generated": round(grounding.generated_share, 5),
        "errors": {name: round(share, 5) for name, share in classify_errors(items, photos=True).five_shares.items()},
        "by frequency": f1_by_bin(grounding.classes, frequency),
    }
    return Result(
        row=row.name,
        seed=seed,
        recipe=row.recipe,
        overrides=row.overrides,
        split=split,
        photos=fingerprint([example.id for example in done.examples]),
        regions=done.store.fingerprint,
        steps=loaded.config.step,
        seconds=trained_for(path),
        counts=(),
        samples={"bare": samples},
        facts=facts,
    )


def last_losses(run: Run) -> dict[str, float]:
    """Return the mean of each loss over the last fifty logged steps, to see whether a part took part at all."""
    entries = [entry for entry in run.entries() if "loss" in entry][-50:]
    skipped = {"step", "epoch", "stage", "lr", "captions_per_second", "wait", "gradient_norm"}
    names = sorted({name for entry in entries for name in entry} - skipped)
    return {name: round(float(np.mean([entry[name] for entry in entries if name in entry])), 5) for name in names}
