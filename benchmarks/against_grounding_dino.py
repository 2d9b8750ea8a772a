"""How long one warm answer takes (regions, caption, and the boxes of its phrases), against Grounding DINO tiny, which
gives boxes only.

Grounding DINO runs from transformers with random weights of the real architecture (Swin-T, BERT-base, 900 queries, 172
million parameters: the time does not depend on their values) and its own preprocessing: shorter side 800 pixels, longer
at most 1333. Same photo, same threads, one run, taking turns. The processor's time is shown beside the clock, since on
a busy machine the clock says more about the neighbours:

    python -m benchmarks.against_grounding_dino [--model lite] [--photo FILE] [--threads 2] [--rounds 5] [--json]

Needs the extra hf. The aim is at most a thirtieth of its time (better a sixtieth), and at most 0.3 s on two idle cores.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from deixis.answering.load import Deixis, load
from deixis.images import load_image

PHOTO = Path(__file__).resolve().parents[1] / "examples" / "photos" / "coffee.jpg"
# "a cup . coffee . a table ." in ids of BERT's uncased vocabulary; the model itself looks for [CLS], [SEP] and ".".
CLS, SEP, STOP = 101, 102, 1012
QUESTION = [CLS, 1037, 2452, STOP, 4157, STOP, 1037, 2795, STOP, SEP]
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
AIM, SECONDS = 30, 0.3


class GroundingDino:
    """Grounding DINO tiny with random weights, and what its processor does to a photo."""

    def __init__(self) -> None:
        from transformers import GroundingDinoConfig, GroundingDinoForObjectDetection

        torch.manual_seed(0)
        self.model = cast(Any, GroundingDinoForObjectDetection(GroundingDinoConfig()))
        self.model.eval()
        self.ids = torch.tensor([QUESTION])

    @property
    def parameters(self) -> int:
        """How many numbers it has learnt; the released tiny model has 172 million."""
        return sum(value.numel() for value in self.model.parameters())

    @staticmethod
    def pixels(photo: Image.Image) -> Tensor:
        """Return the photo as it wants it, (1, 3, H, W): shorter side 800, longer at most 1333, normalised."""
        scale = min(800 / min(photo.size), 1333 / max(photo.size))
        size = round(photo.width * scale), round(photo.height * scale)
        values = np.asarray(photo.resize(size, Image.Resampling.BILINEAR), dtype=np.float32) / 255
        normal = (values - np.array(MEAN, np.float32)) / np.array(DEVIATION, np.float32)
        return torch.from_numpy(normal).permute(2, 0, 1).unsqueeze(0).contiguous()

    @torch.inference_mode()
    def answer(self, photo: Image.Image) -> Tensor:
        """Return the 900 boxes, (900, 4)."""
        mask = torch.ones_like(self.ids)
        found = self.model(
            pixel_values=self.pixels(photo),
            input_ids=self.ids,
            token_type_ids=torch.zeros_like(self.ids),
            attention_mask=mask,
        )
        boxes: Tensor = found.pred_boxes[0]
        return boxes


def answer(model: Deixis, photo: Image.Image) -> tuple[str, int]:
    """Return our sentence and how many of its phrases have a box: regions, caption and grounding of one photo."""
    regions = model.regions([photo])[0]
    caption = model.caption(regions, name="photo")
    found = model.ground(regions, sentence=caption.text)
    return caption.text, sum(bool(phrase.boxes) for phrase in found.phrases)


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds by the clock and of the processors."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="lite")
    parser.add_argument("--grounder", default=None, help="take the grounder of another run or bundle")
    parser.add_argument("--photo", type=Path, default=PHOTO)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="answers of theirs; ours answers ten times a round")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    photo = load_image(options.photo)
    theirs = GroundingDino()
    ours = load(options.model, grounder=options.grounder)
    text, found = answer(ours, photo)
    theirs.answer(photo)  # warm, as ours is now
    spent: dict[str, list[tuple[float, float]]] = {"grounding_dino": [], "deixis": []}
    for _ in range(options.rounds):
        spent["grounding_dino"].append(timed(lambda: theirs.answer(photo)))
        spent["deixis"] += [timed(lambda: answer(ours, photo)) for _ in range(10)]
    result: dict[str, Any] = {
        "photo": f"{photo.width}x{photo.height}",
        "threads": options.threads,
        "sentence": text,
        "phrases": found,
        "parameters": theirs.parameters,
    }
    for at, kind in enumerate(("clock", "processor")):
        them, us = (statistics.median(pair[at] for pair in spent[who]) for who in ("grounding_dino", "deixis"))
        result[kind] = {"grounding_dino": them, "deixis": us, "ratio": them / us}
    if options.json:
        print(json.dumps(result))
        return
    print(f"{text} ({found} phrases) on a photo of {result['photo']}, {options.threads} threads")
    for kind in ("clock", "processor"):
        part = result[kind]
        print(
            f"{kind}: Grounding DINO tiny {part['grounding_dino']:.2f} s, deixis {1000 * part['deixis']:.0f} ms: "
            f"{part['ratio']:.0f} times"
        )
    good = result["clock"]["ratio"] >= AIM and result["clock"]["deixis"] <= SECONDS
    print(f"aim (a thirtieth, and {SECONDS} s): {'reached' if good else 'missed'}")


if __name__ == "__main__":
    main()
