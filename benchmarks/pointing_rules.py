"""Ways of turning attention into boxes that need no training, measured on the same captions.

    python -m benchmarks.pointing_rules RUN … --data flickr8k-entities --store flickr8k --classes CLASSES

Prints a Markdown table: for each run and rule, grounding F1 of greedy captions and attention accuracy on references.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from deixis.answering.asking import Asking
from deixis.answering.load import Deixis
from deixis.captioning.answer import Pointing
from deixis.evaluation.attention import attention_on_references
from deixis.evaluation.captions import caption_examples, caption_items
from deixis.evaluation.setting import EvaluationOptions, prepare
from deixis.metrics.grounding.attention_accuracy import score_attention
from deixis.metrics.grounding.dataset_words import words_of_examples
from deixis.metrics.grounding.f1 import score_grounding

RULES = {
    "most attended region": Pointing("argmax"),
    "union of the best three": Pointing("union"),
    "soft vote": Pointing("soft_vote"),
    "objectness to the power .5": Pointing("argmax", objectness=0.5),
    "objectness": Pointing("argmax", objectness=1.0),
    "soft vote and objectness": Pointing("soft_vote", objectness=1.0),
}
SHOWN = ("F1_all", "F1_loc", "F1_all_per_sent", "F1_loc_per_sent")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="captioners")
    parser.add_argument("--data", default="flickr8k-entities")
    parser.add_argument("--split", default="val")
    parser.add_argument("--store", default="flickr8k")
    parser.add_argument("--classes", type=Path)
    options = parser.parse_args()
    print(f"| run | boxes | {' | '.join(SHOWN)} | attention accuracy |")
    print("|---" * (len(SHOWN) + 3) + "|")
    for name in options.runs:
        model = Deixis.from_pretrained(name, extractor=False)
        asked = EvaluationOptions(split=options.split, store=options.store, classes=options.classes)
        work = prepare(model, options.data, asked)
        words = words_of_examples(work.examples, class_list=options.classes)
        for title, pointing in RULES.items():
            work.options = replace(asked, asking=Asking(beam=1, fluent=False, pointing=pointing))
            items = caption_items(caption_examples(work), work.examples, words)
            scores = score_grounding(items, photos=True).scores
            looked = score_attention(attention_on_references(work, work.model.captioner, words))
            values = [*(scores[key] for key in SHOWN), looked.accuracy]
            print(
                f"| {Path(name).name} | {title} | {' | '.join(f'{100 * value:.2f}' for value in values)} |", flush=True
            )


if __name__ == "__main__":
    main()
