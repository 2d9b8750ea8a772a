"""The perfect detector of Cyclical section 4.4: ground-truth boxes as regions, known by their object class alone.

It estimates what captioning and grounding could reach if regions were found and named without fault. It looks at human
boxes, so only recipes that say so may use it. A captioner for such regions has ``encoder.feature: class``, which learns
an embedding per class. The other detector of that section, biased towards the annotated classes, is
``encoder.detector_width``, trained by ``region_classification`` in a stage of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from deixis.errors import DeixisError
from deixis.types import Example, Phrase, Regions, Sentence

FINGERPRINT = "perfect-detector-1"
"""Of the regions below; their store adds a digest of the classes."""


def perfect_regions(
    example: Example, label: Callable[[Sentence, Phrase], int], classes: Sequence[str], *, frames: int = 1
) -> Regions:
    """Return the annotated boxes of an example's phrases as regions, the whole frame last in each frame.

    ``label`` gives a phrase's class, -1 for none. A box that several phrases share appears once, with all their
    classes sharing its probability; phrases without a class give no region. The whole frame has no class.
    """
    if example.size is None:
        raise DeixisError(f"image {example.id!r} has no known size, so its whole frame cannot be a region")
    found: dict[tuple[int, tuple[float, ...]], set[int]] = {}
    for sentence in example.captions:
        for phrase in sentence.phrases:
            kind = label(sentence, phrase)
            if kind < 0:
                continue
            for at, box in enumerate(phrase.boxes):
                frame = phrase.frames[at] if phrase.frames else 0
                found.setdefault((frame, tuple(float(side) for side in box)), set()).add(kind)
    width, height = example.size
    boxes: list[tuple[float, ...]] = []
    frame_of: list[int] = []
    kinds: list[set[int]] = []
    for frame in range(frames):
        here = sorted((box, seen) for (at, box), seen in found.items() if at == frame)
        boxes += [box for box, _ in here] + [(0.0, 0.0, float(width), float(height))]
        kinds += [seen for _, seen in here] + [set()]
        frame_of += [frame] * (len(here) + 1)
    probabilities = torch.zeros(len(boxes), len(classes))
    for row, seen in enumerate(kinds):
        for kind in seen:
            probabilities[row, kind] = 1 / len(seen)
    return Regions(
        boxes=torch.tensor(boxes),
        features=probabilities.clone(),
        objectness=torch.tensor([1.0 if seen else 0.5 for seen in kinds]),
        size=example.size,
        fingerprint=FINGERPRINT,
        class_probs=probabilities,
        class_names=tuple(classes),
        frame=torch.tensor(frame_of),
        global_features=torch.stack(
            [probabilities[torch.tensor(frame_of) == frame].sum(0).clamp(max=1) for frame in range(frames)]
        ),
    )
