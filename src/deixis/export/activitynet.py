"""Submissions to the grounding evaluation of ActivityNet-Entities (clips) and of GVD's Flickr30k (photos)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from deixis.errors import DeixisError
from deixis.export.things import Answer, labels_in
from deixis.metrics.files.references import clip_key
from deixis.metrics.grounding.dataset_words import words_of_caption
from deixis.metrics.grounding.object_words import GroundedItem
from deixis.metrics.grounding.pairs import submission_json
from deixis.text.classes import ObjectClasses
from deixis.types import GroundedCaption


def submission(answers: Sequence[Answer], classes: ObjectClasses | None = None) -> dict[str, Any]:
    """Return a submission of generated captions.

    Args:
        answers: Captions, all of photos or all of clips. A segment of a clip is named ``VIDEO_segment_00``; segments
            that share their clip's name are numbered in the order they come in.
        classes: The object classes of the evaluation (431 for ActivityNet-Entities); words that name none are left
            out. Without it, every word with a box is a class of its own, in the singular.
    """
    captions = [answer for answer in answers if isinstance(answer, GroundedCaption)]
    if len(captions) < len(answers):
        raise DeixisError("a submission holds captions; there are phrases among the predictions: export those as json")
    kinds = {caption.segment is not None for caption in captions}
    if len(kinds) > 1:
        raise DeixisError("there are photos and clips among the predictions: a submission holds one kind, split them")
    clips = kinds == {True}
    if classes is None:
        names = [name for name in labels_in(captions, doubtful=True) if "," not in name]
        if not names:
            raise DeixisError("no word of the predictions has a box: there is nothing to submit")
        classes = ObjectClasses(names)
    items = []
    numbers: Counter[str] = Counter()
    for caption in captions:
        name = PurePath(caption.image).stem if "/" in caption.image else caption.image
        if clips:
            key = clip_key(name)
            if len(key) == 1:
                key = (PurePath(name).stem, str(numbers[name]))
                numbers[name] += 1
            name = "/".join(key)
        items.append(GroundedItem(name, (), words_of_caption(caption, classes)))
    twice = [name for name, count in Counter(item.id for item in items).items() if count > 1]
    if twice:
        raise DeixisError(f"{twice[0]!r} has two captions: a submission has one for each photo or segment")
    return submission_json(items, clips=clips, regions=", ".join(sorted({c.model for c in captions if c.model})))
