"""Speed of the captioner, as ratios measured in one run.

    python -m benchmarks.captioner_speed [--images 64] [--rounds 3] [--threads 2] [--json FILE]

Model: 512 wide, 36 regions and the whole image with 1,280 features each, five captions per image of 6 to 16 words out
of 4,000.

- training step against the textbook version of the same model (``deixis.captioning.model.textbook``), and both
  against the matrix-multiply peak of this machine, measured in the same run;
- greedy decoding of 64 photos at once against one by one;
- steps of cyclical training, of distributed attention with 4 branches and of self-critical training (rewards included)
  against a cross-entropy step of the same batch.

All sides run in turn in each round; the quickest round of each counts. On a busy machine the numbers mean little: the
script refuses when more than a quarter of the processors is taken, unless ``--busy`` is given; then it measures
processor time of one thread in place of the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import torch
from torch import nn

from deixis.captioning import AttentionConfig, Captioner, CaptionerConfig, InputSizes, Strategy
from deixis.captioning.model.encoder import locations
from deixis.captioning.model.textbook import TextbookCaptioner
from deixis.data.batch import Batch, RegionBatch
from deixis.objectives import Context, CrossEntropy, Cyclical, Objective, SelfCritical, SelfCriticalOptions
from deixis.objectives.rewards import CaptionRewards
from deixis.text.vocabulary import END, Entry, Vocabulary

WIDTH, REGIONS, FEATURES, WORDS, EACH, LONGEST = 512, 36, 1280, 4000, 5, 16
SIZES = InputSizes(words=WORDS, features=FEATURES)
TARGETS = {"textbook": 2.0, "one_by_one": 3.0, "self_critical": 3.0, "cyclical": 2.3, "distributed": 3.0}


def main() -> None:
    options = parse()
    if not options.busy and (busy := psutil.cpu_percent(1.0)) > 25:
        raise SystemExit(f"the machine is busy ({busy:.0f} % of its processors): wait, or pass --busy")
    torch.set_num_threads(1 if options.busy else options.threads)
    clock = time.process_time if options.busy else time.perf_counter
    torch.manual_seed(0)
    batch = make_batch(options.images)
    model = Captioner(CaptionerConfig(WIDTH), SIZES).train()
    spread = Captioner(CaptionerConfig(WIDTH, attention=AttentionConfig(kind="distributed", branches=4)), SIZES).train()
    textbook = TextbookCaptioner(FEATURES, WORDS, WIDTH).train()
    entropy, cyclical = CrossEntropy(), Cyclical(model)
    critical = self_critical(batch)
    vary(model)
    sides: dict[str, Callable[[], None]] = {
        "cross_entropy": lambda: step(model, batch, entropy),
        "textbook": lambda: textbook_step(textbook, batch),
        "cyclical": lambda: step(model, batch, entropy, cyclical),
        "distributed": lambda: step(spread, batch, entropy),
        "self_critical": lambda: step(model, batch, critical),
        "together": lambda: decode(model, batch.regions, options.images),
        "one_by_one": lambda: decode(model, batch.regions, 1),
        "matmul": matmul,
    }
    seconds = dict.fromkeys(sides, float("inf"))
    for _ in range(options.rounds):
        for name, run in sides.items():
            start = clock()
            run()
            seconds[name] = min(seconds[name], clock() - start)
    report(seconds, model, batch, options)


def make_batch(images: int) -> Batch:
    """Random regions and captions of 6 to 16 words, five per image."""
    count, captions = REGIONS + 1, images * EACH
    corner = torch.rand(images, count, 2) * 200
    regions = RegionBatch(
        ids=tuple(map(str, range(images))),
        features=torch.randn(images, count, FEATURES),
        boxes=torch.cat([corner, corner + 50], -1),
        mask=torch.ones(images, count, dtype=torch.bool),
        sizes=torch.full((images, 2), 320.0),
        objectness=torch.rand(images, count),
        frame=torch.zeros(images, count, dtype=torch.long),
    )
    at, end = torch.arange(LONGEST + 1), torch.randint(6, LONGEST + 1, (captions, 1))
    words = torch.where(at < end, torch.randint(4, WORDS, (captions, LONGEST + 1)), torch.where(at == end, END, 0))
    return Batch(regions, words, torch.arange(images).repeat_interleave(EACH), torch.zeros_like(words))


def vary(model: Captioner) -> None:
    """Make captions of an untrained model end after some ten words, as those of a trained one do."""
    with torch.no_grad():
        model.decoder.output.bias[END] = torch.tensor(WORDS / 10).log()


def self_critical(batch: Batch) -> SelfCritical:
    references: dict[str, list[list[int]]] = {name: [] for name in batch.regions.ids}
    for row, image in zip(batch.words, batch.image_of.tolist(), strict=True):
        references[batch.regions.ids[image]].append(row[row != 0].tolist())
    vocabulary = Vocabulary([Entry(f"w{at}", 5, "NN", f"w{at}") for at in range(WORDS - 4)])
    options = SelfCriticalOptions(samples=EACH, max_length=LONGEST)
    return SelfCritical(vocabulary, options=options, rewards=CaptionRewards(references, vocabulary))


def step(model: Captioner, batch: Batch, *objectives: Objective) -> None:
    """Losses and gradients; the optimizer is the same for all sides and left out."""
    context = Context(model, batch)
    losses = [value for one in objectives for name, value in one(context).items() if not name.startswith("_")]
    torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
    clear(model, *objectives)


def textbook_step(model: TextbookCaptioner, batch: Batch) -> None:
    rows, regions = batch.image_of, batch.regions
    loss = model.loss(regions.features[rows], locations(regions)[rows], regions.mask[rows], batch.words)
    loss.backward()  # type: ignore[no-untyped-call]
    clear(model)


def clear(*modules: nn.Module) -> None:
    for module in modules:
        module.zero_grad()


def decode(model: Captioner, regions: RegionBatch, at_once: int) -> None:
    strategy = Strategy(max_length=LONGEST)
    for first in range(0, len(regions), at_once):
        rows = slice(first, first + at_once)
        part = RegionBatch(
            regions.ids[rows], regions.features[rows], regions.boxes[rows], regions.mask[rows], regions.sizes[rows],
            regions.objectness[rows], regions.frame[rows],
        )  # fmt: skip
        model.generate(part, strategy)


SIDE = 2048


def matmul() -> None:
    a = torch.ones(SIDE, SIDE)
    for _ in range(5):
        a @ a


def products(model: Captioner, batch: Batch) -> float:
    """Floating-point operations of the matrix products of one training step, as this implementation does them."""
    images, count, said = len(batch.regions), REGIONS + 1, int((batch.words != 0).sum())
    w, place = WIDTH, model.config.encoder.location_width
    regions = images * count * (FEATURES * w + 5 * place + (w + place) * w + w * w + 4 * w * w)
    each_step = said * (4 * w * w + (w + 8 * w) * w + 8 * w * w + 4 * w * count + w * count)
    output = said * w * WORDS
    return 2.0 * 3.0 * (regions + each_step + output)  # backward costs twice forward


def report(seconds: dict[str, float], model: Captioner, batch: Batch, options: argparse.Namespace) -> None:
    base = seconds["cross_entropy"]
    peak = 5 * 2.0 * SIDE**3 / seconds["matmul"]
    achieved = products(model, batch) / base
    ratios = {
        "textbook": seconds["textbook"] / base,
        "one_by_one": seconds["one_by_one"] / seconds["together"],
        "self_critical": seconds["self_critical"] / base,
        "cyclical": seconds["cyclical"] / base,
        "distributed": seconds["distributed"] / base,
    }
    print(f"training step            {base:8.3f} s   {len(batch) / base:7.0f} captions/s")
    print(f"matrix-multiply peak     {peak / 1e9:8.1f} GFLOP/s, of which a training step uses {achieved / peak:.0%}")
    print(f"textbook step            {ratios['textbook']:8.2f} times ours        (at least {TARGETS['textbook']})")
    print(f"decoding one by one      {ratios['one_by_one']:8.2f} times together    (at least {TARGETS['one_by_one']})")
    for name in ("self_critical", "cyclical", "distributed"):
        label = name.replace("_", "-") + (" K=4" if name == "distributed" else "") + " step"
        print(f"{label:24} {ratios[name]:8.2f} times cross entropy (at most {TARGETS[name]})")
    if options.json:
        result = {"seconds": seconds, "ratios": ratios, "peak_flops": peak, "fraction_of_peak": achieved / peak}
        temporary = options.json.with_name(f".{options.json.name}.{os.getpid()}.part")
        temporary.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        temporary.replace(options.json)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--busy", action="store_true", help="measure processor time of one thread on a busy machine")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
