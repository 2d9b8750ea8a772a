"""How long `lite` takes for boxes and features, as a multiple of YOLOX-nano in onnxruntime (boxes only).

Same photos, same threads, one photo at a time, alternating within one run, so that a busy machine slows both alike:

    python benchmarks/regions_speed.py PHOTOS TEACHERS [--threads 1] [--photos 40] [--extractor FOLDER]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
import torch

from deixis.images import load_image
from deixis.regions.lite import LiteExtractor
from deixis.regions.teachers import YoloxTeacher


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path, help="folder of photos")
    parser.add_argument("teachers", type=Path, help="folder with yolox_nano.onnx")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--extractor", type=Path, default=None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    teacher = YoloxTeacher(options.teachers, options.threads)
    extractor = LiteExtractor.load(options.extractor)
    images = [load_image(path) for path in sorted(options.photos.iterdir())[: options.count + 3]]
    pixels = [np.asarray(image) for image in images]
    seconds: dict[str, list[float]] = {"yolox": [], "lite": []}
    for at, image in enumerate(images):
        began = time.perf_counter()
        teacher.cells(image)
        middle = time.perf_counter()
        extractor.extract([pixels[at]])
        ended = time.perf_counter()
        if at >= 3:  # the first photos warm both up
            seconds["yolox"].append(middle - began)
            seconds["lite"].append(ended - middle)
    result = {name: statistics.median(values) for name, values in seconds.items()}
    result |= {"ratio": result["lite"] / result["yolox"], "threads": options.threads, "photos": options.count}
    if options.json:
        print(json.dumps(result))
    else:
        print(f"{options.count} photos, {options.threads} threads, medians:")
        print(f"YOLOX-nano (onnxruntime, boxes only)  {1000 * result['yolox']:.1f} ms")
        print(f"lite (boxes and features)             {1000 * result['lite']:.1f} ms   {result['ratio']:.2f} times")


if __name__ == "__main__":
    main()
