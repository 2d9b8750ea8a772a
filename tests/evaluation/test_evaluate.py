"""Everything at once on the example photos, which have boxes, and on photos without any."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from deixis.answering.asking import Asking
from deixis.answering.load import load
from deixis.answering.phrases import as_asked, single_phrases
from deixis.answering.work import Source
from deixis.captioning.answer import Pointing
from deixis.cli.main import app
from deixis.data.open import open_dataset
from deixis.errors import DeixisError
from deixis.evaluation import captions
from deixis.evaluation.captions import caption_examples
from deixis.evaluation.evaluate import evaluate
from deixis.evaluation.phrases import phrase_cases
from deixis.evaluation.setting import EvaluationOptions, prepare
from deixis.grounding.scan import Scan
from deixis.grounding.similarities import similarities
from deixis.text.tokens import tokenise
from deixis.types import Phrase, Sentence

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"


def test_a_bundle_on_photos_with_boxes(small_bundle: Path) -> None:
    done = CliRunner().invoke(
        app, ["evaluate", str(small_bundle), str(PHOTOS), "--json", "--replicates", "0"], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["split"] == "all"
    sections = {section["protocol"]: section["scores"] for section in report["sections"]}
    names = list(sections)
    assert {"BLEU-4", "CIDEr", "ROUGE-L"} <= set(sections["COCO caption metrics"])
    f1 = [name for name in names if name.startswith("grounding F1")]
    assert len(f1) == 2
    assert "boxes of the grounder" in f1[1]
    assert {"F1_all", "F1_loc", "F1_all_per_sent", "F1_loc_per_sent"} <= set(sections[f1[0]])
    assert any("attention_accuracy" in scores for scores in sections.values())
    phrases = [scores for scores in sections.values() if "pointing" in scores]
    assert len(phrases) == 2, "any-box and merged-box"
    assert all({"R@1", "R@5", "R@10", "bound"} <= set(scores) for scores in phrases)
    retrieval = next(scores for name, scores in sections.items() if name.startswith("image-text retrieval"))
    assert 0 <= retrieval["i2t_R@1"] <= 1
    times = next(scores for name, scores in sections.items() if name.startswith("median time"))
    assert set(times) == {"regions_ms", "caption_ms", "phrases_ms", "answer_ms"}
    assert times["answer_ms"] >= max(times["regions_ms"], times["caption_ms"]) > 0


def test_photos_without_boxes_say_what_is_left_out(small_bundle: Path, tmp_path: Path) -> None:
    lines = []
    for name, text in (("chelsea.jpg", "A cat with eyes."), ("coffee.jpg", "A cup of coffee.")):
        (tmp_path / name).symlink_to(PHOTOS / name)
        lines.append(json.dumps({"file_name": name, "text": text}))
    (tmp_path / "metadata.jsonl").write_text("\n".join(lines))
    work = evaluate(load(small_bundle), str(tmp_path), EvaluationOptions(replicates=0))
    protocols = [section.protocol for section in work.sections]
    assert protocols[0] == "COCO caption metrics"
    assert not any("F1" in protocol for protocol in protocols)
    assert any("grounding was not scored" in note for note in work.notes)
    assert any("phrases were not scored" in note for note in work.notes)


def test_on_ray_captions_are_made_by_workers_that_load_the_model_themselves(
    small_bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, sent = load(small_bundle), []

    def elsewhere(tasks: list[Any], build: Any, *, engine: str, processes: int, device: str) -> list[Any]:
        sent.append((engine, processes, device, len(tasks)))
        worker = pickle.loads(pickle.dumps(build))()
        assert worker.model is not model
        return [worker(task) for task in pickle.loads(pickle.dumps(tasks))]

    options = EvaluationOptions(replicates=0, batch=3, processes=2)
    here = caption_examples(prepare(model, str(PHOTOS), options))
    work = prepare(model, str(PHOTOS), options)
    monkeypatch.setattr(captions, "run_tasks", elsewhere)
    work.options = replace(work.options, engine="ray", source=Source(str(small_bundle)))
    assert caption_examples(work) == here
    assert sent == [("ray", 2, "cpu", -(-len(here) // 3))]
    work.options = replace(work.options, source=Source("lite"))
    with pytest.raises(DeixisError, match="every machine needs the same"):
        caption_examples(work)


def test_captions_are_those_that_people_get(small_bundle: Path) -> None:
    model = load(small_bundle)
    options = EvaluationOptions(replicates=0, asking=Asking(beam=3))
    work = evaluate(model, str(PHOTOS), options)
    for caption, example in zip(work.captions, work.examples, strict=True):
        answer = model.caption(example.source.path, beam=3)  # type: ignore[arg-type]
        assert caption.text == answer.text
        assert [word.boxes for word in caption.words] == [word.boxes for word in answer.words]
    work = evaluate(model, str(PHOTOS), replace(options, asking=Asking(beam=3, method="grounder")))
    boxes = [word.boxes for word in model.caption(work.examples[0].source.path, method="grounder").words]  # type: ignore[arg-type]
    assert [word.boxes for word in work.captions[0].words] == boxes
    assert sum(section.protocol.startswith("grounding F1") for section in work.sections) == 1


def test_options_of_pointing_are_heard(small_bundle: Path) -> None:
    """They were left unheard for bundles: the card's way of pointing took their place."""
    model = load(small_bundle)
    boxes = []
    for pointing in (Pointing("argmax"), Pointing("union", top=5, share=0.0)):
        work = evaluate(model, str(PHOTOS), EvaluationOptions(replicates=0, asking=Asking(pointing=pointing)))
        boxes.append([word.boxes for caption in work.captions for word in caption.words])
        answers = [model.caption(example.source.path, pointing=pointing) for example in work.examples]  # type: ignore[arg-type]
        assert boxes[-1] == [word.boxes for answer in answers for word in answer.words]
    assert boxes[0] != boxes[1], "five regions at once are not one"


def test_phrases_are_read_as_people_type_them(small_bundle: Path) -> None:
    """The head of "cup on the left" is the cup, whoever asks."""
    model = load(small_bundle)
    work = prepare(model, str(PHOTOS), EvaluationOptions())
    example = next(example for example in work.examples if example.captions[0].phrases)
    seen = work.seen([example.id])[0]
    cases = phrase_cases(work, example, seen)
    assert len(cases) == sum(len(caption.phrases) for caption in example.captions)
    sentence = example.captions[0]
    texts = [sentence.text[slice(*sentence.phrase_span(phrase))] for phrase in sentence.phrases]
    answers = model.ground(seen, texts, sentence=sentence.text).phrases
    assert [case.ranked for case in cases[: len(texts)]] == [answer.ranked for answer in answers]
    other = Sentence("cup on the left", tokenise("cup on the left"), (Phrase(0, 4, head=3),))
    assert as_asked(other, model.words).phrases[0].head == single_phrases([other.text], model.words)[0].phrases[0].head


def test_similarities_are_those_of_each_pair_alone(small_bundle: Path) -> None:
    model = load(small_bundle / "grounder")
    grounder = model.grounder
    assert grounder is not None
    assert isinstance(grounder.model, Scan)
    work = prepare(model, str(PHOTOS), EvaluationOptions())
    scores, owner = similarities(grounder.model, grounder.vocabulary, work.examples, work.source(grounder))
    assert scores.shape == (3, len(owner))
    captions = [(example, caption) for example in open_dataset(PHOTOS).examples() for caption in example.captions]
    for image, shown in enumerate(work.examples):
        for at, (_, caption) in enumerate(captions):
            alone = replace(shown, captions=(caption,))
            value, _ = similarities(grounder.model, grounder.vocabulary, [alone], work.source(grounder))
            assert scores[image, at] == pytest.approx(float(value[0, 0]), abs=1e-4)
    assert np.array_equal(owner, [0, 1, 2])
