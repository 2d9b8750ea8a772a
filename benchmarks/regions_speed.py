"""How long `lite` takes for boxes and features, as a multiple of YOLOX-nano in onnxruntime (boxes only).

Same photos, same threads, one photo at a time, alternating within one run. On a busy machine the clock says more about
the neighbours than about us, so the processor's time is measured beside it (with one thread it is what counts):

    python benchmarks/regions_speed.py PHOTOS TEACHERS [--threads 1] [--count 40] [--precision int8]
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
from deixis.regions.lite import PRECISIONS, LiteExtractor
from deixis.regions.training.teachers import YoloxTeacher


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path, help="folder of photos")
    parser.add_argument("teachers", type=Path, help="folder with yolox_nano.onnx")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--extractor", type=Path, default=None)
    parser.add_argument("--precision", choices=PRECISIONS, default="int8", help="int8 is what answers compute in")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    teacher = YoloxTeacher(options.teachers, options.threads)
    extractor = LiteExtractor.load(options.extractor).computing_in(options.precision)
    images = [load_image(path) for path in sorted(options.photos.iterdir())[: options.count + 3]]
    pixels = [np.asarray(image) for image in images]
    clocks = {"clock": time.perf_counter, "processor": time.process_time}
    spent: dict[tuple[str, str], list[float]] = {}
    for at, image in enumerate(images):
        marks = []
        for work in (None, lambda image=image: teacher.cells(image), lambda at=at: extractor.extract([pixels[at]])):
            if work is not None:
                work()
            marks.append({name: clock() for name, clock in clocks.items()})
        if at < 3:  # the first photos warm both up
            continue
        for name in clocks:
            spent.setdefault((name, "yolox"), []).append(marks[1][name] - marks[0][name])
            spent.setdefault((name, "lite"), []).append(marks[2][name] - marks[1][name])
    result: dict[str, object] = {"threads": options.threads, "photos": options.count}
    for name in clocks:
        yolox, lite = (statistics.median(spent[name, who]) for who in ("yolox", "lite"))
        result[name] = {"yolox": yolox, "lite": lite, "ratio": lite / yolox}
        if not options.json:
            print(f"{name}: YOLOX-nano {1000 * yolox:.1f} ms, lite {1000 * lite:.1f} ms: {lite / yolox:.2f} times")
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
