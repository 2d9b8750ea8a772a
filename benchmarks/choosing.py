"""How much a grounder helps to choose among the captions of a beam search, by the weight of its matching score.

    python -m benchmarks.choosing CAPTIONER GROUNDER … --data flickr8k-entities --split val --store flickr8k

Prints a Markdown table: CIDEr and BLEU-4 for each width of the beam and each weight. Weight 0 is the captioner alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from deixis.answering.choosing import Chooser
from deixis.answering.load import Deixis
from deixis.captioning.model.captioner import Captioner
from deixis.captioning.search.fluent import fluent_search
from deixis.captioning.search.strategy import Generated
from deixis.data.batch import RegionBatch
from deixis.evaluation.setting import EvaluationOptions, prepare
from deixis.metrics.captions.scores import score_captions
from deixis.models.names import load
from deixis.text.vocabulary import Vocabulary

WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
BATCH = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captioner")
    parser.add_argument("grounders", nargs="+")
    parser.add_argument("--data", default="flickr8k-entities")
    parser.add_argument("--split", default="val")
    parser.add_argument("--store", default="flickr8k")
    parser.add_argument("--beams", nargs="+", type=int, default=[3, 5, 8])
    parser.add_argument("--weights", nargs="+", type=float, default=list(WEIGHTS))
    options = parser.parse_args()
    asked = Deixis.from_pretrained(options.captioner, extractor=False)
    loaded = asked.captioner
    model, words = loaded.model, loaded.vocabulary
    assert isinstance(model, Captioner)
    work = prepare(asked, options.data, EvaluationOptions(split=options.split, store=options.store))
    references = {example.id: [caption.text for caption in example.captions] for example in work.examples}
    own = work.source(loaded)
    parts = [list(references)[at : at + BATCH] for at in range(0, len(references), BATCH)]
    print("| grounder | beam | weight | CIDEr | BLEU-4 |\n|---|---|---|---|---|")
    for beam in options.beams:
        alone, chosen = (
            [model.generate(own.regions(part), fluent_search(words, beam, chosen=by)) for part in parts]
            for by in (False, True)
        )
        for name in options.grounders:
            judge = load(name, part="grounder")
            chooser = Chooser(judge.grounder(), judge.vocabulary, words, 0.0)
            source = work.source(judge)
            seen = [source.regions(part) for part in parts]
            for weight in options.weights:
                chooser.weight = weight
                texts = _texts(chosen if weight else alone, seen, chooser, words)
                scores = score_captions(texts, references, ("bleu", "cider")).corpus
                shown = f"{scores['CIDEr']:.3f} | {scores['BLEU-4']:.3f}"
                print(f"| {Path(name).name} | {beam} | {weight:g} | {shown} |", flush=True)


def _texts(found: list[Generated], seen: list[RegionBatch], chooser: Chooser, vocabulary: Vocabulary) -> dict[str, str]:
    """Return the best caption of each image."""
    return {
        image: " ".join(vocabulary.decode(words))
        for generated, regions in zip(found, seen, strict=True)
        for image, words in zip(regions.ids, chooser(generated, regions).words[:, 0].tolist(), strict=True)
    }


if __name__ == "__main__":
    main()
