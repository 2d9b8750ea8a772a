"""Phrases found in a clip: in each segment a box on every sampled frame that shows the thing, none on the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from deixis.answering.clips import FRAMES, ClipOptions, candidates_of
from deixis.answering.segments import Segment, choose_segments
from deixis.answering.shots import find_cuts
from deixis.answering.tracks import follow
from deixis.errors import DeixisError
from deixis.types import GroundedPhrase, GroundedPhrases, Regions
from deixis.video import read_clip, sample_frames

if TYPE_CHECKING:
    from deixis.answering.load import Deixis


def ground_clip(
    model: Deixis,
    clip: str | Path,
    phrases: Sequence[str],
    *,
    segments: Sequence[Segment] | None = None,
    every: float | None = None,
    name: str | None = None,
    frames: int = FRAMES,
    threshold: float | None = None,
) -> list[GroundedPhrases]:
    """Find phrases in a clip, one answer for each segment in order of time.

    Every sampled frame is asked as a photo is; the box is then followed from frame to frame, as those of a caption's
    words are. A phrase is found where at least one frame has it.

    Args:
        model: Finds the phrases.
        clip: A file that PyAV can decode.
        phrases: What to look for.
        segments: Starts and ends in seconds; by default the segments that captions would have.
        every: Cut the clip every so many seconds instead.
        name: What the answers call the clip; its path by default.
        frames: Frames looked at in a segment.
        threshold: Probability of being there below which a phrase counts as not found on a frame.

    Raises:
        BadFileError: The clip cannot be read.
        DeixisError: A segment lies outside the clip, an option cannot be, or there is no phrase.
    """
    ClipOptions(frames=frames)  # refuses what cannot be
    if not phrases:
        raise DeixisError("nothing to look for in the clip: name a phrase")
    model.require_threshold(threshold)
    facts = read_clip(clip)
    cuts = find_cuts(clip) if segments is None else []
    answers = []
    for start, end in choose_segments(facts.duration, segments, every, cuts=cuts, clip=str(clip)):
        pictures, times = sample_frames(facts.path, start, end, frames)
        different = {id(picture): picture for picture in pictures}  # a slow clip shows one frame at several times
        seen = dict(zip(different, model.regions(list(different.values())), strict=True))
        found = ground_frames(model, [seen[id(picture)] for picture in pictures], phrases, threshold)
        called = name or str(clip)
        answers.append(GroundedPhrases(called, facts.size, found, None, model.name, (start, end), times))
    return answers


def ground_frames(
    model: Deixis, frames: Sequence[Regions], phrases: Sequence[str], threshold: float | None = None
) -> tuple[GroundedPhrase, ...]:
    """Find phrases in a segment whose frames' regions are known."""
    answers = [model.ground(one, phrases, name="", threshold=threshold).phrases for one in frames]
    return tuple(_followed([answer[at] for answer in answers]) for at in range(len(answers[0])))


def _followed(frames: Sequence[GroundedPhrase]) -> GroundedPhrase:
    """Join the answers of all frames about one phrase; one that no frame shows has no box."""
    places = [candidates_of(one) if one.found else None for one in frames]
    steps = [(at, step) for at, step in enumerate(follow(places)) if step is not None]
    asked = [one for one in frames if one.found] or frames
    presence = [one.presence for one in frames if one.presence is not None]
    return GroundedPhrase(
        text=frames[0].text,
        boxes=tuple(box for _, (box, _) in steps),
        frames=tuple(at for at, _ in steps),
        score=fmean(one.score for one in asked),
        found=bool(steps),
        presence=max(presence, default=None),
    )
