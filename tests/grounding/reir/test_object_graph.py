from __future__ import annotations

import math

import pytest
import torch

from deixis.data.batch import RelationBatch
from deixis.grounding.reir.object_graph import ObjectGraph, gate_scale, neighbours

JOINED = {0: [1, 2], 1: [0], 2: [0], 3: []}
EDGES = torch.tensor([[0, 0, 1, 2], [1, 2, 0, 0]])


def graph(edges: str = "attention", scale: float = 1.0) -> ObjectGraph:
    torch.manual_seed(0)
    return ObjectGraph(3, edges, scale)  # type: ignore[arg-type]


def test_a_relation_joins_both_of_its_phrases_once() -> None:
    relations = RelationBatch(torch.tensor([0, 0, 0, 3]), torch.tensor([1, 2, 0, 1]), torch.tensor([1, 1, 2, 3]))
    assert torch.equal(neighbours(relations), EDGES)  # a phrase is no neighbour of itself
    assert neighbours(None).shape == (2, 0)


@pytest.mark.parametrize("edges", ["attention", "uniform"])
@pytest.mark.parametrize("scale", [1.0, math.sqrt(512)])
def test_equations_5_to_8_written_out(edges: str, scale: float) -> None:
    model = graph(edges, scale)
    objects, weights = torch.randn(4, 2, 3), torch.rand(4, 2)
    with torch.no_grad():
        result = model(objects, weights, EDGES)
        nodes = [sum(weights[i, k] * objects[i, k] for k in range(2)) for i in range(4)]  # equation 5
        message = [model.message(node) for node in nodes]
        for i in range(4):
            near = JOINED[i]
            grown = [math.exp(float(message[i] @ message[j]) / scale) for j in near]
            omega = [g / sum(grown) if edges == "attention" else 1 / len(near) for g in grown]  # equation 7
            told = nodes[i] + sum((w * message[j] for w, j in zip(omega, near, strict=True)), torch.zeros(3))
            for k in range(2):
                torch.testing.assert_close(result[i, k], objects[i, k] + weights[i, k] * told)  # equations 6 and 8


def test_a_phrase_without_neighbours_sees_only_itself_and_gives_finite_gradients() -> None:
    model = graph()
    seen = torch.randn(4, 3, requires_grad=True)
    passed = model.passed(seen, neighbours(None))
    torch.testing.assert_close(passed, seen)
    (gradient,) = torch.autograd.grad(passed.sum(), seen)
    assert torch.isfinite(gradient).all()


def test_large_products_do_not_overflow() -> None:
    weights = graph().edge_weights(torch.tensor([[500.0], [1.0], [2.0], [0.0]]), EDGES)
    torch.testing.assert_close(weights, torch.tensor([0.0, 1.0, 1.0, 1.0]))


def test_the_released_gate_is_scaled() -> None:
    assert gate_scale("paper") == 1
    assert gate_scale("code") == pytest.approx(22.627417)
