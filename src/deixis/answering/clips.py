"""Sentences about a clip: one for each segment, whose words point at a box in every sampled frame.

A captioner that learned from clips reads the regions of all frames at once. One that learned from photos, as ``lite``
did, captions every sampled frame; the sentence on which the frames agree most is kept: the one with the highest mean
log-probability over all frames. Either way each word then points in every frame: where the captioner looks when it
is made to say that sentence, or where the grounder finds the word's phrase, and not at all where it doubts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from deixis.answering.segments import Segment, choose_segments, read_segments
from deixis.answering.tracks import Candidates, follow
from deixis.captioning.answer import bad_endings, point, priors, sentence_text
from deixis.captioning.captioner import Captioner
from deixis.captioning.distributed import DistributedAttention
from deixis.captioning.strategy import Strategy
from deixis.data.batch import RegionBatch
from deixis.data.pad import pad_regions
from deixis.errors import DeixisError
from deixis.regions.tasks import join_frames
from deixis.text.chunker import chunk
from deixis.types import Box, GroundedCaption, GroundedPhrase, GroundedWord, Regions
from deixis.video import Clip, read_clip, sample_frames

if TYPE_CHECKING:
    from deixis.answering.bundle import Method
    from deixis.answering.load import Deixis
    from deixis.training.models import LoadedModel

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
    beam: int = 3
    check: bool = False
    """Ask the grounder whether each thing is there; it then has no box on frames where the grounder doubts it."""
    method: Method | None = None
    """Where words point: ``attention`` or ``grounder``; None is what the model's card says."""
    smooth: bool = True
    """Follow one thing from frame to frame (:mod:`deixis.answering.tracks`)."""
    reading: Reading | None = None
    """None: together for a captioner that learned from clips, apart for one that learned from photos."""

    def __post_init__(self) -> None:
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
        every: Cut the clip every so many seconds instead.
        name: What the captions call the clip; its path by default.
        options: How to caption; single options may also be given by name, such as ``beam=1``.

    Raises:
        BadFileError: The clip or the file of segments cannot be read.
        DeixisError: A segment lies outside the clip, or an option cannot be.
    """
    facts = read_clip(clip)
    if isinstance(segments, str | Path):
        segments = read_segments(segments, clip)
    wanted = choose_segments(facts.duration, segments, every, clip=str(clip))
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
    method = _method(model, options)
    for start, end in segments:
        pictures, times = sample_frames(clip.path, start, end, options.frames)
        different = {id(picture): picture for picture in pictures}  # a slow clip shows one frame at several times
        seen = dict(zip(different, model.regions(list(different.values())), strict=True))
        text, score, words = _tell(model, [seen[id(picture)] for picture in pictures], method, options)
        called = name or str(clip.path)
        yield GroundedCaption(called, clip.size, text, words, score, model.name, (start, end), times)


def learned_from_clips(loaded: LoadedModel) -> bool:
    """Whether a captioner's training examples had several frames."""
    encoder = loaded.config.recipe.model.options.get("encoder", {})
    frames = loaded.config.extractor.get("frames", 1)
    return int(frames) > 1 or (isinstance(encoder, Mapping) and encoder.get("map") == "frames")


def _options(options: ClipOptions | None, changes: Mapping[str, Any]) -> ClipOptions:
    known = {name: getattr(options or ClipOptions(), name) for name in ClipOptions.__dataclass_fields__}
    for name in changes:
        if name not in known:
            raise DeixisError(f"a clip has no option {name!r}: there are {', '.join(known)}")
    return ClipOptions(**{**known, **changes})


def _method(model: Deixis, options: ClipOptions) -> Method:
    if options.check:
        model.require_grounder()
    usual: Method = model.card.method if model.card.method in model.methods else "attention"
    method = options.method or usual
    if method not in model.methods:
        raise DeixisError(f"{model.name} cannot point by {method!r}: it has {', '.join(model.methods)}")
    return method


@dataclass(frozen=True, slots=True)
class _Looks:
    """Where a captioner looks in one frame when it says a sentence: weights with priors, and the regions' boxes."""

    weights: Tensor  # (K, T, n)
    boxes: Tensor  # (n, 4)


def _tell(
    model: Deixis, frames: Sequence[Regions], method: Method, options: ClipOptions
) -> tuple[str, float, tuple[GroundedWord, ...]]:
    """Find the sentence of a segment and where its words point."""
    loaded = model.captioner
    assert isinstance(loaded.model, Captioner)
    reading = options.reading or ("together" if learned_from_clips(loaded) else "apart")
    seen = [join_frames(frames)] if reading == "together" else list(frames)
    batch = pad_regions(seen, max_regions=loaded.config.recipe.data.regions).to(model.device)
    with torch.inference_mode():
        words, score, attention = agreed_sentence(loaded.model, batch, _strategy(loaded, options.beam))
    attention = attention * priors(batch, model.card.pointing)[None, :, None]  # (K, B, T, N)
    if reading == "together":
        rows = [batch.mask[0] & (batch.frame[0] == at) for at in range(len(frames))]
        looks = [_Looks(attention[:, 0, :, here].cpu(), batch.boxes[0, here].float().cpu()) for here in rows]
    else:
        looks = [
            _Looks(attention[:, at][..., real].cpu(), batch.boxes[at, real].float().cpu())
            for at, real in enumerate(batch.mask)
        ]
    text, spans = sentence_text(loaded.vocabulary.decode(words))
    groundable = [loaded.vocabulary.is_groundable[number] for number in words[: len(spans)]]
    phrases = _phrases(model, frames, text, spans, groundable) if method == "grounder" or options.check else {}
    branches = isinstance(loaded.model.decoder.attention, DistributedAttention)
    found: list[GroundedWord] = []
    for at, (start, end) in enumerate(spans):
        if not groundable[at]:
            found.append(GroundedWord(text[start:end], start, end))
            continue
        places = [_looked(one, at, model, branches=branches) for one in looks]
        answers = phrases.get(at)
        if answers is not None and method == "grounder":
            places = [_candidates(answer) for answer in answers]
        there = [answer.found for answer in answers] if answers is not None else [True] * len(frames)
        trusted = any(there)
        # what the grounder finds on no frame keeps its boxes, marked as doubted, as on photos
        shown = [place if here or not trusted else None for place, here in zip(places, there, strict=True)]
        track = follow(shown, smooth=options.smooth)
        boxes: list[Box] = []
        numbers: list[int] = []
        weights: list[float] = []
        for frame, step in enumerate(track):
            if step is not None:
                boxes.append(step[0])
                numbers.append(frame)
                weights.append(step[1])
        presence = max(answer.score for answer in answers) if answers is not None and options.check else None
        found.append(
            GroundedWord(
                text[start:end], start, end, tuple(boxes), tuple(numbers), fmean(weights) if weights else 0.0,
                groundable=True, trusted=trusted, presence=presence,
            )
        )  # fmt: skip
    return text, score, tuple(found)


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


def _strategy(loaded: LoadedModel, beam: int) -> Strategy:
    endings = bad_endings(loaded.vocabulary)
    return Strategy("greedy" if beam == 1 else "beam", width=beam, block_trigrams=True, bad_endings=endings)


def _looked(looks: _Looks, word: int, model: Deixis, *, branches: bool) -> Candidates:
    """Return the regions looked at for a word: first the box that the model's way of pointing gives, then the best."""
    weights, boxes = looks.weights[:, word], looks.boxes
    everyone = torch.ones(len(weights), dtype=torch.bool)
    all_here = torch.ones(len(boxes), dtype=torch.bool)
    where = point(
        weights,
        everyone,
        boxes,
        all_here,
        torch.zeros(len(boxes), dtype=torch.long),
        model.card.pointing,
        branches=branches,
    )
    mean = weights.mean(0)  # (n,)
    order = mean.argsort(descending=True, stable=True)[:CANDIDATES]
    found = {where.boxes[0]: where.score}
    for at in order.tolist():
        x1, y1, x2, y2 = boxes[at].tolist()
        found.setdefault((x1, y1, x2, y2), float(mean[at]))
    return Candidates(tuple(found), tuple(found.values()))


def _phrases(
    model: Deixis,
    frames: Sequence[Regions],
    text: str,
    spans: Sequence[tuple[int, int]],
    groundable: Sequence[bool],
) -> dict[int, list[GroundedPhrase]]:
    """Ask the grounder about every groundable word on every frame; returns the answers of each word by its number.

    A word outside every noun phrase is asked about by itself.
    """
    sentence = chunk(text, model.words)
    inside = [sentence.phrase_span(phrase) for phrase in sentence.phrases]
    place: dict[int, tuple[int, int]] = {}  # word -> sentence, phrase
    sentences = [sentence]
    for word, (start, end) in enumerate(spans):
        if not groundable[word]:
            continue
        own = next((at for at, (first, last) in enumerate(inside) if first <= start < last), None)
        if own is None:
            alone = chunk(text[start:end], model.words)
            if not alone.phrases:
                continue
            sentences.append(alone)
            place[word] = len(sentences) - 1, 0
        else:
            place[word] = 0, own
    answers = [model.ground_sentences(one, sentences, name="") for one in frames]
    return {word: [answer[number].phrases[at] for answer in answers] for word, (number, at) in place.items()}


def _candidates(phrase: GroundedPhrase) -> Candidates:
    boxes, scores = phrase.ranked[:CANDIDATES], phrase.ranked_scores[:CANDIDATES]
    found = {phrase.boxes[0]: scores[0] if scores else max(phrase.score, 1e-6)}
    for box, score in zip(boxes, scores, strict=True):
        found.setdefault(box, score)
    return Candidates(tuple(found), tuple(found.values()))
