"""Sentences about a clip: one for each segment, whose words point at a box in every sampled frame.

A captioner that learned from clips reads the regions of all frames at once. One that learned from photos, as ``lite``
did, captions every sampled frame; the sentence on which the frames agree most is kept: the one with the highest mean
log-probability over all frames. Either way each word then points in every frame: where the captioner looks when it
is made to say that sentence, or where the grounder finds the word's phrase, and not at all where it doubts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from deixis.answering.asking import Asking
from deixis.answering.segments import Segment, choose_segments, read_segments
from deixis.answering.sentences import Said, spoken_words
from deixis.answering.shots import find_cuts
from deixis.answering.there import steadily_there
from deixis.answering.tracks import Candidates, follow
from deixis.captioning.answer import point, priors, sentence_text
from deixis.captioning.model.captioner import Captioner
from deixis.captioning.search.fluent import fluent_search
from deixis.captioning.search.strategy import Strategy
from deixis.data.batch import RegionBatch
from deixis.data.pad import pad_regions
from deixis.defaults import CLIP_BEAM
from deixis.errors import DeixisError
from deixis.regions.extraction.tasks import join_frames
from deixis.text.rules.chunker import chunk
from deixis.types import GroundedCaption, GroundedPhrase, GroundedWord, Regions
from deixis.video import Clip, read_clip, sample_frames

if TYPE_CHECKING:
    from deixis.answering.load import Deixis
    from deixis.models.bundle import Method
    from deixis.models.names import LoadedModel

FRAMES = 10
"""Frames looked at in a segment, as in ActivityNet-Entities."""
MOST_FRAMES = 100
CANDIDATES = 8
"""Regions of a frame that a thing may be followed through."""

Reading = Literal["together", "apart"]
"""Whether the captioner reads the regions of all frames at once, or captions each frame as a photo."""


@dataclass(frozen=True, slots=True)
class ClipOptions:
    """How a clip is captioned; the options of ``deixis video``."""

    frames: int = FRAMES
    beam: int = CLIP_BEAM
    check: bool | None = None
    """Ask the grounder whether each thing is there; it then has no box on frames where the grounder doubts it. None:
    where the model has one."""
    method: Method | None = None
    """Where words point: ``attention`` or ``grounder``; None is what the model's card says."""
    smooth: bool = True
    """Follow one thing from frame to frame (:mod:`deixis.answering.tracks`)."""
    reading: Reading | None = None
    """None: together for a captioner that learned from clips, apart for one that learned from photos."""
    threshold: float | None = None
    """Probability of being there below which a thing is doubted; None: as was fitted."""

    def __post_init__(self) -> None:
        Asking(check=self.check, threshold=self.threshold)  # refuses what cannot be
        if not 1 <= self.frames <= MOST_FRAMES:
            raise DeixisError(f"1 to {MOST_FRAMES} frames of a segment are looked at, not {self.frames}")
        if self.beam < 1:
            raise DeixisError(f"beam should be at least 1, got {self.beam}")


def caption_clip(
    model: Deixis,
    clip: str | Path,
    *,
    segments: Sequence[Segment] | str | Path | None = None,
    every: float | None = None,
    name: str | None = None,
    options: ClipOptions | None = None,
    **changes: Any,
) -> list[GroundedCaption]:
    """Return a grounded sentence for each segment of a clip, in order of time.

    Args:
        model: Captions and points.
        clip: A file that PyAV can decode. Only what is looked at is decoded.
        segments: Starts and ends in seconds, or a file with them (:func:`deixis.answering.segments.read_segments`).
        every: Cut the clip every so many seconds instead; a segment cut by the clock ends where its shot does.
        name: What the captions call the clip; its path by default.
        options: How to caption; single options may also be given by name, such as ``beam=1``.

    Raises:
        BadFileError: The clip or the file of segments cannot be read.
        DeixisError: A segment lies outside the clip, or an option cannot be.
    """
    facts = read_clip(clip)
    if isinstance(segments, str | Path):
        segments = read_segments(segments, clip)
    cuts = find_cuts(clip) if segments is None else []
    wanted = choose_segments(facts.duration, segments, every, cuts=cuts, clip=str(clip))
    return list(caption_segments(model, facts, wanted, name=name, options=_options(options, changes)))


def caption_segments(
    model: Deixis,
    clip: Clip,
    segments: Sequence[Segment],
    *,
    name: str | None = None,
    options: ClipOptions = ClipOptions(),  # noqa: B008 - frozen
) -> Iterator[GroundedCaption]:
    """Yield the grounded sentences of segments that lie inside a clip, one by one."""
    from deixis.answering.retold import Retold

    _method(model, options)  # what cannot be is refused before anything is decoded
    for start, end in segments:
        pictures, times = sample_frames(clip.path, start, end, options.frames)
        different = {id(picture): picture for picture in pictures}  # a slow clip shows one frame at several times
        seen = dict(zip(different, model.regions(list(different.values())), strict=True))
        said = model.said_of(list(different.values()), options.beam) if isinstance(model, Retold) else None
        told = caption_frames(model, [seen[id(picture)] for picture in pictures], options, said)
        called = name or str(clip.path)
        yield replace(told, image=called, size=clip.size, model=model.name, segment=(start, end), frame_times=times)


def caption_frames(
    model: Deixis,
    frames: Sequence[Regions],
    options: ClipOptions = ClipOptions(),  # noqa: B008 - frozen
    told: Said | None = None,
) -> GroundedCaption:
    """Caption a segment whose frames' regions are known; the caption has neither name nor times yet.

    ``told`` is a sentence that somebody else has said of the segment.
    """
    method = _method(model, options)
    said, looks = (
        _said(model, frames, options) if told is None else (spoken_words(told, frames[0].size, model.words), [])
    )
    words = list(said.words)
    phrases = _phrases(model, frames, said) if method == "grounder" else {}
    checks = model.checks(options.check)
    checked = [model.checked(said, one, options.threshold) for one in frames] if checks else []
    for at, word in enumerate(words):
        if not word.groundable:
            continue
        answers = phrases.get(at)
        if answers is None and not looks:  # nobody can say where
            words[at] = replace(word, groundable=False)
            continue
        if answers is None:
            places = [_looked(one, at, model) for one in looks]
        else:
            places = [candidates_of(answer) for answer in answers]
        there = [True] * len(frames) if answers is None else [answer.found for answer in answers]
        if checked:
            sure = [one.words[at].presence for one in checked]
            there = steadily_there(
                [one.words[at].trusted for one in checked], sure, model.card.presence, options.threshold
            )
            word = replace(word, presence=max((value for value in sure if value is not None), default=None))
        words[at] = _tracked(word, places, there, smooth=options.smooth)
    return replace(said, words=tuple(words))


def _said(model: Deixis, frames: Sequence[Regions], options: ClipOptions) -> tuple[GroundedCaption, list[_Looks]]:
    """Return the captioner's sentence, still without boxes, and where it looks in each frame."""
    vocabulary = model.captioner.vocabulary
    ids, score, looks = _say(model, frames, options)
    text, spans = sentence_text(vocabulary.decode(ids))
    words = tuple(
        GroundedWord(text[start:end], start, end, groundable=vocabulary.is_groundable[number])
        for number, (start, end) in zip(ids, spans, strict=False)
    )
    return GroundedCaption("", frames[0].size, text, words, score), looks


def learned_from_clips(loaded: LoadedModel) -> bool:
    """Whether a captioner's training examples had several frames."""
    encoder = loaded.config.model.options.get("encoder", {})
    frames = loaded.config.extractor.get("frames", 1)
    return int(frames) > 1 or (isinstance(encoder, Mapping) and encoder.get("map") == "frames")


def _options(options: ClipOptions | None, changes: Mapping[str, Any]) -> ClipOptions:
    known = {name: getattr(options or ClipOptions(), name) for name in ClipOptions.__dataclass_fields__}
    for name in changes:
        if name not in known:
            raise DeixisError(f"a clip has no option {name!r}: there are {', '.join(known)}")
    return ClipOptions(**{**known, **changes})


def _method(model: Deixis, options: ClipOptions) -> Method:
    model.checks(options.check)
    usual: Method = model.card.method if model.card.method in model.methods else model.methods[0]
    method = options.method or usual
    if method not in model.methods:
        raise DeixisError(f"{model.name} cannot point by {method!r}: it has {', '.join(model.methods)}")
    return method


@dataclass(frozen=True, slots=True)
class _Looks:
    """Where a captioner looks in one frame when it says a sentence: weights with priors, and the regions' boxes."""

    weights: Tensor  # (K, T, n)
    boxes: Tensor  # (n, 4)


def _tracked(word: GroundedWord, places: Sequence[Candidates], there: Sequence[bool], *, smooth: bool) -> GroundedWord:
    """Give a word its box on every frame where its thing is; on none, all boxes stay and the word is doubted."""
    trusted = any(there)
    shown = [place if here or not trusted else None for place, here in zip(places, there, strict=True)]
    steps = [(frame, step) for frame, step in enumerate(follow(shown, smooth=smooth)) if step is not None]
    return replace(
        word,
        boxes=tuple(box for _, (box, _) in steps),
        frames=tuple(frame for frame, _ in steps),
        score=fmean(weight for _, (_, weight) in steps),
        trusted=trusted,
    )


def _say(model: Deixis, frames: Sequence[Regions], options: ClipOptions) -> tuple[list[int], float, list[_Looks]]:
    """Return the words of a segment's sentence, its score, and where the captioner looks in each frame for them."""
    loaded = model.captioner
    assert isinstance(loaded.model, Captioner)
    reading = options.reading or ("together" if learned_from_clips(loaded) else "apart")
    seen = [join_frames(frames)] if reading == "together" else list(frames)
    data = loaded.config.inputs
    batch = pad_regions(seen, max_regions=data.regions, whole=data.whole_image).to(model.device)
    with torch.inference_mode():
        words, score, attention = agreed_sentence(loaded.model, batch, fluent_search(loaded.vocabulary, options.beam))
    weights = (attention * priors(batch, model.card.pointing)[None, :, None]).cpu()  # (K, B, T, N)
    boxes, mask, frame = batch.boxes.float().cpu(), batch.mask.cpu(), batch.frame.cpu()
    looks: list[_Looks] = []
    for at in range(len(frames)):
        row = 0 if reading == "together" else at
        here = mask[row] & (frame[row] == at) if reading == "together" else mask[row]  # (N,)
        looks.append(_Looks(weights[:, row][..., here], boxes[row, here]))
    return words, score, looks


def agreed_sentence(captioner: Captioner, batch: RegionBatch, strategy: Strategy) -> tuple[list[int], float, Tensor]:
    """Return the sentence that fits all images of a batch best, its score, and where each image is looked at for it.

    Every image proposes its own best caption; each proposal is scored on every image with teacher forcing. The score
    is the mean over images of the mean log-probability of the words; attention is (K, B, T, N).
    """
    encoded = captioner.encode(batch)
    own = captioner.search(encoded, strategy).words[:, 0]  # (B, T)
    proposals = torch.tensor(list(dict.fromkeys(map(tuple, own.tolist()))), device=own.device)  # (C, T)
    images, count = len(batch), len(proposals)
    words = proposals.repeat(images, 1)  # (B * C, T), image by image
    image_of = torch.arange(images, device=words.device).repeat_interleave(count)
    decoded = captioner.decode(encoded, words, image_of)
    fits = decoded.word_log_probs(words).sum(1) / decoded.mask.sum(1).clamp(min=1)
    mean = fits.view(images, count).mean(0)  # (C,)
    best = int(mean.argmax())
    looks = decoded.attention  # (K, B * C, T, N)
    attention = looks.view(-1, images, count, *looks.shape[2:])[:, :, best].float()  # (K, B, T, N)
    return proposals[best].tolist(), float(mean[best]), attention


def _looked(looks: _Looks, word: int, model: Deixis) -> Candidates:
    """Return the regions looked at for a word: first the box that the model's way of pointing gives, then the best."""
    weights, boxes = looks.weights[:, word], looks.boxes
    everyone, here = torch.ones(len(weights), dtype=torch.bool), torch.ones(len(boxes), dtype=torch.bool)
    captioner = model.captioner.model
    branches = isinstance(captioner, Captioner) and captioner.branches
    where = point(weights, everyone, boxes, here, torch.zeros_like(here).long(), model.card.pointing, branches=branches)
    mean = weights.mean(0)  # (n,)
    order = mean.argsort(descending=True, stable=True)[:CANDIDATES]
    found = {where.boxes[0]: where.score}
    for at in order.tolist():
        x1, y1, x2, y2 = boxes[at].tolist()
        found.setdefault((x1, y1, x2, y2), float(mean[at]))
    return Candidates(tuple(found), tuple(found.values()))


def _phrases(model: Deixis, frames: Sequence[Regions], caption: GroundedCaption) -> dict[int, list[GroundedPhrase]]:
    """Ask the grounder about every groundable word on every frame; returns the answers of each word by its number.

    A word outside every noun phrase is asked about by itself.
    """
    sentence = chunk(caption.text, model.words)
    inside = [sentence.phrase_span(phrase) for phrase in sentence.phrases]
    place: dict[int, tuple[int, int]] = {}  # word -> sentence, phrase
    sentences = [sentence]
    for at, word in enumerate(caption.words):
        if not word.groundable:
            continue
        own = next((number for number, (first, last) in enumerate(inside) if first <= word.start < last), None)
        if own is not None:
            place[at] = 0, own
        elif (alone := chunk(word.text, model.words)).phrases:
            sentences.append(alone)
            place[at] = len(sentences) - 1, 0
    answers = [model.ground_sentences(one, sentences, name="") for one in frames]
    return {word: [answer[number].phrases[at] for answer in answers] for word, (number, at) in place.items()}


def candidates_of(phrase: GroundedPhrase) -> Candidates:
    """Return the regions that a phrase may mean on a frame: first its box, then the others, best first."""
    boxes, scores = phrase.ranked[:CANDIDATES], phrase.ranked_scores[:CANDIDATES]
    found = {phrase.boxes[0]: scores[0] if scores else max(phrase.score, 1e-6)}
    for box, score in zip(boxes, scores, strict=True):
        found.setdefault(box, score)
    return Candidates(tuple(found), tuple(found.values()))
