from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from deixis.captioning import Captioner, CaptionerGrounder
from deixis.data.batch import Batch, WordKind
from deixis.errors import BadFileError
from deixis.objectives import Context, Distillation, DistillationOptions
from deixis.objectives.teacher_cache import TaughtAttention
from deixis.text.vocabulary import Vocabulary

Make = Callable[..., Captioner]


class Counting:
    """A teacher that counts how often it is asked."""

    def __init__(self, grounder: CaptionerGrounder) -> None:
        self.grounder, self.asked = grounder, 0

    def attention(self, batch: Batch) -> Tensor:
        self.asked += 1
        return self.grounder.attention(batch)

    match = ground = None


@pytest.fixture
def teacher(make_captioner: Make, vocabulary: Vocabulary) -> Counting:
    return Counting(CaptionerGrounder(make_captioner(seed=9), vocabulary))


@pytest.fixture
def named(batch: Batch) -> Batch:
    return replace(batch, caption_ids=tuple(f"{image}#{row}" for row, image in enumerate(batch.image_of.tolist())))


def nouns(batch: Batch) -> Tensor:
    return batch.tags == WordKind.NOUN


def test_a_teacher_is_asked_once_and_answers_alike(teacher: Counting, named: Batch) -> None:
    taught = TaughtAttention(teacher, nouns)  # type: ignore[arg-type]
    first, again = taught(named), taught(named)
    assert teacher.asked == 1
    assert torch.equal(first, again)
    live = teacher.attention(named)
    assert nouns(named).any()
    assert torch.allclose(first[nouns(named)], live[nouns(named)], atol=1e-3)  # half precision
    assert not first[~nouns(named)].any()


def test_captions_in_another_order_and_with_other_padding_are_recognised(teacher: Counting, named: Batch) -> None:
    taught = TaughtAttention(teacher, nouns)  # type: ignore[arg-type]
    whole = taught(named)
    rows = torch.tensor([4, 1, 3])
    regions = named.regions
    part = replace(
        named,
        words=torch.nn.functional.pad(named.words[rows], (0, 2)),
        tags=torch.nn.functional.pad(named.tags[rows], (0, 2)),
        image_of=named.image_of[rows],
        caption_ids=tuple(named.caption_ids[row] for row in rows.tolist()),
        regions=replace(regions, mask=torch.nn.functional.pad(regions.mask, (0, 3))),  # three more padded regions
    )
    found = taught(part)
    assert teacher.asked == 1
    assert torch.equal(found[:, :6, :7], whole[rows])
    assert not found[:, 6:].any()
    assert not found[:, :, 7:].any()


def test_what_was_asked_survives_on_disk(teacher: Counting, named: Batch, tmp_path: Path) -> None:
    taught = TaughtAttention(teacher, nouns)  # type: ignore[arg-type]
    said = taught(named)
    taught.save(tmp_path / "a" / "kept.safetensors")
    later = TaughtAttention(teacher, nouns)  # type: ignore[arg-type]
    later.load(tmp_path / "a" / "kept.safetensors")
    assert len(later) == len(named)
    assert torch.equal(later(named), said)
    assert teacher.asked == 1
    (tmp_path / "broken").write_bytes((tmp_path / "a" / "kept.safetensors").read_bytes()[:-5])
    with pytest.raises(BadFileError, match="delete it"):
        later.load(tmp_path / "broken")


def test_not_keeping_asks_every_time(teacher: Counting, named: Batch, make_captioner: Make) -> None:
    model = make_captioner()
    losses = []
    for keep in ("no", "memory"):
        objective = Distillation(DistillationOptions(keep=keep), teacher=teacher)  # type: ignore[arg-type]
        before = teacher.asked
        losses += [objective(Context(model, named))["distillation"] for _ in range(3)]
        assert teacher.asked - before == (3 if keep == "no" else 1)
    assert torch.allclose(losses[0], losses[3], atol=1e-3)


@pytest.mark.parametrize("keep", [False, True])
def test_the_teacher_computes_in_full_precision_inside_a_bf16_run(teacher: Counting, named: Batch, keep: bool) -> None:
    plain = TaughtAttention(teacher, nouns, keep=keep)(named)  # type: ignore[arg-type]
    with torch.autocast("cpu", torch.bfloat16):
        inside = TaughtAttention(teacher, nouns, keep=keep)(named)  # type: ignore[arg-type]
    assert torch.equal(plain, inside)
