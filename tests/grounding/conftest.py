"""A small ReIR and a small batch with phrases and relations, which the tests of its parts share."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from deixis.data.batch import Batch, PhraseBatch, RegionBatch, RelationBatch, WordKind
from deixis.data.sizes import InputSizes
from deixis.grounding.label_prior import LabelPriorConfig
from deixis.grounding.reir.model import Reir, ReirConfig
from deixis.text.relations import RelationVocabulary
from deixis.text.vocabulary import END, Entry, Vocabulary

WORDS = ["a", "dog", "holds", "red", "cat", "man"]
TAGS = ["DT", "NN", "VBZ", "JJ", "NN", "NN"]
VOCABULARY = Vocabulary([Entry(word, 9 - at, tag) for at, (word, tag) in enumerate(zip(WORDS, TAGS, strict=True))])
A, DOG, HOLDS, RED, CAT, MAN = range(4, 10)
KINDS = {DOG: WordKind.NOUN, CAT: WordKind.NOUN, MAN: WordKind.NOUN, RED: WordKind.ADJECTIVE}
LABELS = ("dog", "cat", "person")
SIZES = InputSizes(words=len(VOCABULARY), features=5, classes=3)


def reir(form: str = "paper", prior: str = "random", **options: Any) -> Reir:
    torch.manual_seed(0)
    kind = "none" if prior == "none" else "lemma"
    small = {"width": 6, "word_width": 4, "hidden": 7, "match_width": 5, "keep": 2, "start": 0}
    config = ReirConfig(form=form, prior=LabelPriorConfig(kind=kind), **small | options)  # type: ignore[arg-type]
    model = Reir(config, SIZES, VOCABULARY, LABELS)
    if prior == "random":
        model.labels.copy_(torch.rand(model.labels.shape) + 0.2)
    else:
        model.start()
    for matching in (model.coarse, model.fine):
        if matching is not None and matching.offset is not None and matching.offset.out is not None:
            torch.nn.init.normal_(matching.offset.out.weight, std=0.5)  # so that boxes visibly move
    model.moves.fill_(model.config.regression != "none")
    return model.eval()


def batch_of() -> Batch:
    """Two images; the first has two captions. Five phrases, the first two joined twice and the last two once."""
    rng = torch.Generator().manual_seed(1)
    rows = [[A, MAN, HOLDS, A, RED, DOG, END], [A, CAT, END, 0, 0, 0, 0], [A, DOG, HOLDS, A, CAT, END, 0]]
    corner, side = torch.rand(2, 4, 2, generator=rng) * 40, torch.rand(2, 4, 2, generator=rng) * 50 + 5
    return Batch(
        regions=RegionBatch(
            ids=("0", "1"),
            features=torch.randn(2, 4, 5, generator=rng),
            boxes=torch.cat([corner, corner + side], -1),
            mask=torch.tensor([[True] * 4, [True, True, True, False]]),
            sizes=torch.tensor([[100.0, 100.0], [96.0, 110.0]]),
            objectness=torch.rand(2, 4, generator=rng),
            frame=torch.zeros(2, 4, dtype=torch.long),
            class_probs=torch.rand(2, 4, 3, generator=rng),
        ),
        words=torch.tensor(rows),
        image_of=torch.tensor([0, 0, 1]),
        tags=torch.tensor([[KINDS.get(word, WordKind.OTHER) for word in row] for row in rows]),
        phrases=PhraseBatch(
            caption=torch.tensor([0, 0, 1, 2, 2]),
            first=torch.tensor([0, 3, 0, 0, 3]),
            last=torch.tensor([2, 6, 2, 2, 5]),
            head=torch.tensor([1, 5, 1, 1, 4]),
        ),
        relations=RelationBatch(
            subject=torch.tensor([0, 0, 3]), predicate=torch.tensor([1, 2, 1]), object=torch.tensor([1, 1, 4])
        ),
        caption_ids=("0#0", "0#1", "1#0"),
    )


def padded(batch: Batch) -> Batch:
    """The same with two more regions and words of padding, filled with what must not matter."""
    regions = batch.regions
    junk = torch.full((len(regions), 2, 5), 7.0)
    assert regions.class_probs is not None
    return replace(
        batch,
        regions=replace(
            regions,
            features=torch.cat([regions.features, junk], 1),
            boxes=torch.cat([regions.boxes, junk[..., :4]], 1),
            mask=F.pad(regions.mask, (0, 2)),
            objectness=torch.cat([regions.objectness, junk[..., 0]], 1),
            frame=F.pad(regions.frame, (0, 2)),
            class_probs=torch.cat([regions.class_probs, junk[..., :3]], 1),
        ),
        words=F.pad(batch.words, (0, 2)),
        tags=F.pad(batch.tags, (0, 2)),
    )


def data() -> Any:
    return SimpleNamespace(relations=RelationVocabulary([("holding", 400), ("beside", 100)]))


@pytest.fixture
def cases() -> Any:
    """What the tests of ReIR's parts build on."""
    return SimpleNamespace(
        reir=reir, batch=batch_of, padded=padded, data=data, labels=LABELS, sizes=SIZES, vocabulary=VOCABULARY
    )
