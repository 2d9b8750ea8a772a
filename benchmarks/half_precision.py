"""What half precision changes: captions of a bundle in single precision beside those of the same one in half.

    deixis bundle CAPTIONER GROUNDER -o full --full …; deixis bundle CAPTIONER GROUNDER -o half …
    python -m benchmarks.half_precision full half --data flickr8k-entities --split val --store flickr8k

Prints how many captions are the same, word for word, and CIDEr of both.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import deixis
from deixis.evaluation.setting import EvaluationOptions, prepare
from deixis.metrics.captions.scores import score_captions

BATCH = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs=2, metavar="MODEL")
    parser.add_argument("--data", default="flickr8k-entities")
    parser.add_argument("--split", default="val")
    parser.add_argument("--store", default="flickr8k")
    options = parser.parse_args()
    said: list[dict[str, str]] = []
    for name in options.models:
        model = deixis.load(name)
        work = prepare(model, options.data, EvaluationOptions(split=options.split, store=options.store))
        store, images = work.store, [example.id for example in work.examples]
        texts: dict[str, str] = {}
        for at in range(0, len(images), BATCH):
            part = images[at : at + BATCH]
            answers = model.captions([store.get(image) for image in part], names=part)
            texts |= {image: answer.text for image, answer in zip(part, answers, strict=True)}
        said.append(texts)
        references = {example.id: [caption.text for caption in example.captions] for example in work.examples}
        cider = score_captions(texts, references, ("cider",)).corpus["CIDEr"]
        print(f"{Path(name).name}: CIDEr {cider:.4f} over {len(texts)} photos")
    same = sum(said[0][image] == said[1][image] for image in said[0])
    print(f"the same captions: {same} of {len(said[0])}")


if __name__ == "__main__":
    main()
