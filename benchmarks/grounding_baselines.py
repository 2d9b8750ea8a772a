"""Score the grounders that learn nothing on the annotated phrases of a dataset: what a trained one has to beat.

python benchmarks/grounding_baselines.py flickr8k-entities flickr8k --split val
"""

from __future__ import annotations

import argparse

from deixis.data.collate import RegionSource, sizes_of
from deixis.grounding.baselines import BASELINES, build_baseline
from deixis.grounding.label_prior import LabelPriorConfig
from deixis.grounding.phrase_cases import phrase_cases
from deixis.metrics.grounding.phrases import PROTOCOLS, score_phrases
from deixis.regions.store.reader import EVERYDAY
from deixis.text.vocabulary import Vocabulary
from deixis.training.dataset import read_source
from deixis.training.phrase_validation import METRICS
from deixis.training.recipe import Source


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", help="a dataset folder, or its name under the data folder")
    parser.add_argument("store", help="a region store, or its name in the cache")
    parser.add_argument("--split", default="val")
    parser.add_argument("--regions", type=int, default=36)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--embedding", default="lemma", choices=["lemma", "minilm"], help="of the label match")
    options = parser.parse_args()
    store, examples = read_source(
        Source(options.dataset, options.store, options.split, limit=options.limit), tagged=False
    )
    vocabulary = Vocabulary.build((caption for example in examples for caption in example.captions), 1)
    fields = tuple(name for name in EVERYDAY if name in store.fields)
    source = RegionSource((store,), options.regions, fields, sizes=sizes_of(examples))
    print(f"{len(examples)} images of {options.dataset} ({options.split}), regions of {store.fingerprint}")
    print(f"{'baseline':12}" + "".join(f"{name + ' ' + m:>20}" for name in PROTOCOLS for m in METRICS))
    for name in BASELINES:
        grounder = build_baseline(name, vocabulary, store.class_names, LabelPriorConfig(options.embedding))
        cases = phrase_cases(grounder, vocabulary, examples, source)
        scores = [score_phrases(cases, protocol).scores for protocol in PROTOCOLS.values()]
        print(f"{name:12}" + "".join(f"{row[metric]:20.3f}" for row in scores for metric in METRICS), flush=True)


if __name__ == "__main__":
    main()
