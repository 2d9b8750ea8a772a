"""How long grounding F1, its interval, the error types and phrase accuracy take on 5,000 items of published size.

python benchmarks/grounding_metrics.py
"""

from __future__ import annotations

import time

import numpy as np

from deixis.metrics.bootstrap import draw_weights, interval
from deixis.metrics.grounding.error_types import classify_errors
from deixis.metrics.grounding.f1 import score_grounding
from deixis.metrics.grounding.object_words import GroundedItem, PredictedWord, ReferenceSentence
from deixis.metrics.grounding.phrases import ANY_BOX, PhraseCase, score_phrases
from deixis.types import Box


def random_box(rng: np.random.Generator) -> Box:
    x, y, width, height = (float(value) for value in rng.integers(1, 200, 4))
    return x, y, x + width, y + height


def photos(count: int, seed: int = 0) -> list[GroundedItem]:
    """Photos with five references of three object words and one caption of four, over 480 classes."""
    rng = np.random.default_rng(seed)
    labels = [f"class{at}" for at in range(480)]
    share = 1 / np.arange(1, 481)
    pick = rng.choice(480, size=(count, 19), p=share / share.sum())
    items = []
    for at in range(count):
        references = tuple(
            ReferenceSentence.of(
                [(word, labels[pick[at, 3 * number + word]], random_box(rng), 0) for word in range(3)], ("a", "run")
            )
            for number in range(5)
        )
        words = tuple(PredictedWord(labels[name], labels[name], (random_box(rng),)) for name in pick[at, 15:])
        items.append(GroundedItem(str(at), references, words))
    return items


def clips(count: int, seed: int = 0) -> list[GroundedItem]:
    """Segments with one reference of four object words and a caption of four with a box on each of ten frames."""
    rng = np.random.default_rng(seed)
    labels = [f"class{at}" for at in range(431)]
    share = 1 / np.arange(1, 432)
    pick = rng.choice(431, size=(count, 8), p=share / share.sum())
    items = []
    for at in range(count):
        reference = ReferenceSentence.of(
            [(word, labels[pick[at, word]], random_box(rng), int(rng.integers(10))) for word in range(4)], ("a", "run")
        )
        words = tuple(
            PredictedWord(labels[name], labels[name], tuple(random_box(rng) for _ in range(10)), tuple(range(10)))
            for name in pick[at, 4:]
        )
        items.append(GroundedItem(f"{at // 4}/{at % 4}", (reference,), words, group=str(at // 4)))
    return items


def seconds(what: str, work: object) -> None:
    assert callable(work)
    start, processor = time.perf_counter(), time.process_time()
    work()
    print(f"{time.perf_counter() - start:6.2f} s ({time.process_time() - processor:.2f} s of processor time)  {what}")


def main() -> None:
    photo_items, clip_items = photos(5000), clips(5000)
    seconds("grounding F1, 5,000 photos x 5 references", lambda: score_grounding(photo_items))
    seconds("grounding F1, 5,000 clip segments x 10 frames", lambda: score_grounding(clip_items))
    seconds("error types, 5,000 photos", lambda: classify_errors(photo_items))
    result = score_grounding(photo_items)
    weights = draw_weights(len(result.groups))
    seconds("interval of F1_all, 1,000 replicates", lambda: interval(result.samples["F1_all"], weights))
    rng = np.random.default_rng(0)
    cases = [
        PhraseCase(str(at // 15), "a thing", (random_box(rng),), tuple(random_box(rng) for _ in range(10)), ("people",))
        for at in range(15000)
    ]
    seconds("15,000 phrases, any-box", lambda: score_phrases(cases, ANY_BOX))


if __name__ == "__main__":
    main()
