"""Every objective says where it comes from and shows three lines that use it; those of captioners are run."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from deixis.captioning import Captioner, CaptionerGrounder
from deixis.data.batch import Batch
from deixis.objectives import AttentionConsistency, CrossEntropy, Cyclical, Distillation, Supervision
from deixis.objectives.base import Context, Objective
from deixis.registry import REGISTRY, find_class
from deixis.text.vocabulary import Vocabulary


def example_of(kind: type[Objective]) -> str:
    lines = [line.strip() for line in (inspect.getdoc(kind) or "").splitlines()]
    return "\n".join(line.removeprefix(">>> ") for line in lines if line.startswith(">>> "))


@pytest.mark.parametrize("name", REGISTRY["objective"])
def test_an_objective_has_a_source_and_an_example(name: str) -> None:
    kind = find_class("objective", name, "test")
    text = inspect.getdoc(kind) or ""
    assert re.search(r"\*[^*]+\*, [A-Za-z ]*(19|20)\d\d|Ours", text), "paper, venue and year, or that it is ours"
    example = example_of(kind)
    assert len(ast.parse(example).body) == 3
    (loss,) = re.findall(r'\["(\w+)"\]\.backward\(\)', example)
    assert f"``{loss}``" in (inspect.getdoc(kind.forward) or "")


@pytest.mark.parametrize("kind", [CrossEntropy, Cyclical, AttentionConsistency, Distillation, Supervision])
def test_the_example_trains(
    kind: type[Objective],
    make_captioner: Callable[..., Captioner],
    batch: Batch,
    with_boxes: Callable[[Batch], Batch],
    vocabulary: Vocabulary,
) -> None:
    torch.manual_seed(0)
    captioner = make_captioner()
    names: dict[str, Any] = {
        kind.__name__: kind,
        "Context": Context,
        "captioner": captioner,
        "batch": with_boxes(batch),
        "cyclical": Cyclical(captioner),
        "grounder": CaptionerGrounder(make_captioner(), vocabulary),
    }
    exec(example_of(kind), names)
    assert any(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in captioner.parameters())
