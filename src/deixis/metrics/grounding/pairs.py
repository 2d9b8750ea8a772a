"""A grounding submission laid beside its reference, and generated sentences written as a submission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deixis.errors import BadFileError
from deixis.metrics.files.grounding import FRAMES, GroundingReference, GroundingSubmission, Mode
from deixis.metrics.files.json_lines import JsonFile, show
from deixis.metrics.grounding.object_words import AnnotatedAttention, GroundedItem, PredictedWord


@dataclass(frozen=True, slots=True, eq=False)
class GroundingTask:
    """A submission laid beside its reference: items for generated sentences, or sentences for ground-truth ones."""

    mode: Mode
    items: tuple[GroundedItem, ...] = ()
    sentences: tuple[AnnotatedAttention, ...] = ()
    notes: tuple[str, ...] = ()


def pair(
    submission: GroundingSubmission, reference: GroundingReference, file: JsonFile, mode: Mode | None = None
) -> GroundingTask:
    """Lay a submission beside its reference by id; an id the reference does not know is an error."""
    if submission.kind != reference.kind:
        raise BadFileError(
            f"{file.path} is a submission for {submission.kind}, the reference is one of {reference.kind}"
        )
    for item in submission.words:
        if item not in reference.sentences and item not in reference.outside:
            name = " segment ".join(show(part) for part in item)
            raise file.error(["results", *item], f"is an unknown id: the reference has no {name}")
    outside = [item for item in submission.words if item in reference.outside]
    notes = []
    if outside:
        notes.append(
            f"{len(outside)} submitted items are not in the split (first: {'/'.join(outside[0])}): they earn nothing, "
            "and the per-sentence averages divide by them too"
        )
    left_out = [item for item in reference.sentences if item not in submission.words]
    if left_out:
        notes.append(
            f"partial: {len(left_out)} of {len(reference.sentences)} items of the split are not in the submission "
            f"(first: {'/'.join(left_out[0])}); their words count as not found"
        )
    strange = sorted({w.label for s in submission.words.values() for ws in s for w in ws} - reference.vocabulary)
    if reference.vocabulary and strange:
        notes.append(f"{len(strange)} submitted classes are not in the reference's vocabulary (first: {strange[0]!r})")
    mode = mode or submission.mode or _guess_mode(submission, reference)
    if mode == "GT":
        return GroundingTask("GT", sentences=_attention(submission, reference, file), notes=tuple(notes))
    for item, sentences in submission.words.items():
        if len(sentences) != 1:
            raise file.error(
                ["results", *item], f"has {len(sentences)} sentences: a generated caption is one (five: --protocol GT)"
            )
    items = [
        GroundedItem("/".join(item), sentences, submission.words.get(item, (None,))[0], group=item[0])
        for item, sentences in reference.sentences.items()
    ]
    items += [GroundedItem("/".join(item), (), submission.words[item][0], group=item[0]) for item in outside]
    return GroundingTask("gen", items=tuple(items), notes=tuple(notes))


def _guess_mode(submission: GroundingSubmission, reference: GroundingReference) -> Mode:
    """Photos of GVD do not say: five sentences for an image with five captions are its references."""
    if submission.kind == "clips":
        return "gen"
    several = all(
        len(sentences) > 1 and len(sentences) == len(reference.sentences.get(item, sentences))
        for item, sentences in submission.words.items()
    )
    return "GT" if several else "gen"


def _attention(
    submission: GroundingSubmission, reference: GroundingReference, file: JsonFile
) -> tuple[AnnotatedAttention, ...]:
    found = []
    for item, sentences in reference.sentences.items():
        answers: Sequence[tuple[PredictedWord, ...]] = submission.words.get(item, ((),) * len(sentences))
        if submission.kind == "photos" and len(answers) != len(sentences):
            raise file.error(
                ["results", *item], f"has {len(answers)} sentences, the reference has {len(sentences)}: one for each"
            )
        for number, sentence in enumerate(sentences):
            predicted: dict[int, PredictedWord] = {}
            for word in answers[number]:
                predicted.setdefault(word.index, word)
            found.append(AnnotatedAttention(f"{'/'.join(item)}#{number}", sentence, predicted, item[0]))
    return tuple(found)


def submission_json(
    items: Sequence[GroundedItem], *, clips: bool, regions: str = "", external_data: bool = True
) -> dict[str, Any]:
    """Return generated sentences as a submission file: of ActivityNet-Entities for clips, of GVD for photos.

    An item's id is ``video/segment`` for clips. Frames without a box are written as [0, 0, 0, 0], which never hits.
    """
    results: dict[str, Any] = {}
    for item in items:
        if item.predicted is None:
            continue
        sentence: dict[str, Any] = {
            "clss": [word.label for word in item.predicted],
            "idx_in_sent": [word.index for word in item.predicted],
        }
        if clips:
            video, _, segment = item.id.rpartition("/")
            sentence["bbox_for_all_frames"] = [_all_frames(word) for word in item.predicted]
            results.setdefault(video, {})[segment] = sentence
        else:
            sentence["bbox"] = [list(word.boxes[0]) if word.boxes else [0.0] * 4 for word in item.predicted]
            results[item.id] = [sentence]
    return {"results": results, "eval_mode": "gen", "external_data": {"used": external_data, "details": regions}}


def _all_frames(word: PredictedWord) -> list[list[float]]:
    boxes = [[0.0] * 4 for _ in range(FRAMES)]
    for box, frame in zip(word.boxes, word.frames, strict=True):
        boxes[frame] = list(box)
    return boxes
