"""Caption metrics against pycocoevalcap in one run: the same text, tokenisation included, and the rewards of a batch.

    python benchmarks/caption_metrics.py [--images 5000] [--rounds 3] [--captions FILE.json.gz] [--json FILE]

Every image has its five COCO captions as references. The caption to score is the first half of one and the second half
of another, so that it shares words and pairs with the references as a generated caption would. Both sides run in turn,
each round; the quickest round of each counts. Needs the ``java`` extra.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from deixis.metrics.captions.cider import CiderD
from deixis.metrics.captions.java import find_java
from deixis.metrics.captions.scores import CaptionScores, score_captions
from deixis.text.tokens import scoring_words

T = TypeVar("T")
Captions = dict[str, list[str]]
BATCH_IMAGES, SAMPLES = 64, 5  # 320 sampled captions


def main() -> None:
    options = parse()
    references = read(options.captions, options.images)
    candidates = {name: mixed(texts) for name, texts in references.items()}
    os.environ["PATH"] = f"{find_java().parent}{os.pathsep}{os.environ.get('PATH', '')}"  # pycocoevalcap calls "java"
    ours, theirs = [], []
    for _ in range(options.rounds):
        theirs.append(timed(lambda: pycocoevalcap_scores(candidates, references)))
        ours.append(timed(lambda: score_captions(candidates, references)))
    seconds, their_seconds = min(t for t, _ in ours), min(t for t, _ in theirs)
    result: dict[str, Any] = {
        "images": len(references),
        "references": sum(map(len, references.values())),
        "pycocoevalcap_seconds": their_seconds,
        "deixis_seconds": seconds,
        "times_faster": their_seconds / seconds,
        "corpus": ours[0][1].corpus,
        "largest_relative_difference": difference(ours[0][1], *theirs[0][1]),
        **rewards(references, options.rewards),
    }
    report(result)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def parse() -> argparse.Namespace:
    shared = Path(os.environ.get("DEIXIS_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captions", type=Path, default=shared / "data" / "coco" / "captions_val2014.json.gz")
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rewards", type=int, default=50, help="batches of rewards to time, at least 2")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def read(path: Path, images: int) -> Captions:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        annotations = json.load(file)["annotations"]
    captions: Captions = defaultdict(list)
    for item in annotations:
        captions[str(item["image_id"])].append(item["caption"])
    full = [name for name, texts in captions.items() if len(texts) >= 5]
    return {name: captions[name][:5] for name in full[:images]}


def mixed(texts: list[str]) -> str:
    """First half of the first caption, second half of the second."""
    one, two = texts[0].split(), texts[1].split()
    return " ".join(one[: len(one) // 2] + two[len(two) // 2 :])


def timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def pycocoevalcap_scores(candidates: dict[str, str], references: Captions) -> tuple[dict[str, float], dict[str, Any]]:
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    with contextlib.redirect_stdout(io.StringIO()):
        gts = PTBTokenizer().tokenize({k: [{"caption": t} for t in v] for k, v in references.items()})
        res = PTBTokenizer().tokenize({k: [{"caption": t}] for k, t in candidates.items()})
        bleu, bleus = Bleu(4).compute_score(gts, res, verbose=0)
        rouge, rouges = Rouge().compute_score(gts, res)
        cider, ciders = Cider().compute_score(gts, res)
    corpus = {f"BLEU-{n + 1}": bleu[n] for n in range(4)} | {"ROUGE-L": rouge, "CIDEr": cider}
    return corpus, {f"BLEU-{n + 1}": bleus[n] for n in range(4)} | {"ROUGE-L": rouges, "CIDEr": ciders}


def difference(ours: CaptionScores, corpus: dict[str, float], each: dict[str, Any]) -> dict[str, float]:
    """Largest relative difference over all metrics, of the corpus scores and of the captions' scores."""
    of_corpus = max(abs(ours.corpus[name] / value - 1) for name, value in corpus.items())
    of_each = 0.0
    for name, values in each.items():
        theirs = np.asarray(values)
        apart = np.abs(ours.per_caption[name] - theirs) / np.maximum(np.abs(theirs), 1e-9)
        of_each = max(of_each, float(apart.max()))
    return {"corpus": float(of_corpus), "per_caption": of_each}


def rewards(references: Captions, batches: int) -> dict[str, float]:
    """Prepare CIDEr-D once, then reward batches of 320 captions, five for each of 64 images."""
    words = {name: [scoring_words(text) for text in texts] for name, texts in references.items()}
    preparing, scorer = timed(lambda: CiderD.from_references(words, end="<end>"))
    rng, names = np.random.default_rng(0), list(words)
    times, processor = [], []
    for _ in range(batches):
        images = [names[at] for at in rng.integers(len(names), size=BATCH_IMAGES) for _ in range(SAMPLES)]
        captions = []
        for at, image in enumerate(images):
            other = words[names[int(rng.integers(len(names)))]][0]
            captions.append([*words[image][at % 5][:6], *other[4:], "<end>"])
        start, used = time.perf_counter(), time.process_time()
        scorer.rewards(captions, images)
        times.append(time.perf_counter() - start)
        processor.append(time.process_time() - used)
    warm = sorted(times[1:])
    return {
        "reward_captions": BATCH_IMAGES * SAMPLES,
        "reward_preparation_seconds": preparing,
        "reward_milliseconds_median": 1000 * warm[len(warm) // 2],
        "reward_milliseconds_slowest": 1000 * warm[-1],
        "reward_processor_milliseconds_median": 1000 * sorted(processor[1:])[len(warm) // 2],
    }


def report(result: dict[str, Any]) -> None:
    print(f"{result['images']} captions, {result['references']} references; tokenisation, BLEU 1-4, ROUGE-L, CIDEr")
    print(f"  pycocoevalcap {result['pycocoevalcap_seconds']:8.2f} s")
    print(f"  deixis        {result['deixis_seconds']:8.2f} s   {result['times_faster']:.1f} times faster")
    apart = result["largest_relative_difference"]
    print(f"  largest relative difference: corpus {apart['corpus']:.1e}, single captions {apart['per_caption']:.1e}")
    print(f"CIDEr-D rewards for {result['reward_captions']} sampled captions, warm")
    middle, slowest = result["reward_milliseconds_median"], result["reward_milliseconds_slowest"]
    print(f"  median {middle:.1f} ms, slowest {slowest:.1f} ms")
    print(
        f"  median processor time {result['reward_processor_milliseconds_median']:.1f} ms (what a busy machine hides)"
    )
    print(f"  (references prepared once in {result['reward_preparation_seconds']:.1f} s)")


if __name__ == "__main__":
    main()
