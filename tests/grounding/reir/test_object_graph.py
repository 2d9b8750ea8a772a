from __future__ import annotations

import math

import pytest
import torch

from deixis.data.batch import RelationBatch
from deixis.grounding.reir.object_graph import ObjectGraph, neighbours

JOINED = {0: [1, 2], 1: [0], 2: [0], 3: []}
EDGES = torch.tensor([[0, 0, 1, 2], [1, 2, 0, 0]])


def graph(edges: str = "attention", form: str = "paper") -> ObjectGraph:
    torch.manual_seed(0)
    return ObjectGraph(3, edges, form, gate_width=4)  # type: ignore[arg-type]


def test_a_relation_joins_both_of_its_phrases_once() -> None:
    relations = RelationBatch(torch.tensor([0, 0, 0, 3]), torch.tensor([1, 2, 0, 1]), torch.tensor([1, 1, 2, 3]))
    assert torch.equal(neighbours(relations), EDGES)  # a phrase is no neighbour of itself
    assert neighbours(None).shape == (2, 0)


@pytest.mark.parametrize("edges", ["attention", "uniform"])
def test_equations_5_to_8_written_out(edges: str) -> None:
    model = graph(edges)
    objects, weights = torch.randn(4, 2, 3), torch.rand(4, 2)
    with torch.no_grad():
        result = model(objects, weights, EDGES)
        nodes = [sum(weights[i, k] * objects[i, k] for k in range(2)) for i in range(4)]  # equation 5
        message = [model.message(node) for node in nodes]
        for i in range(4):
            near = JOINED[i]
            grown = [math.exp(float(message[i] @ message[j])) for j in near]
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


@pytest.mark.parametrize("edges", ["attention", "uniform"])
def test_the_released_graph_written_out(edges: str) -> None:
    model = graph(edges, "code")
    assert model.gate is not None
    torch.nn.init.zeros_(model.gate.bias)
    objects, weights = torch.randn(4, 2, 3), torch.rand(1, 2).expand(4, 2)
    objects[1], objects[2] = 0.5 * objects[0], -objects[0]  # 0 and 1 agree, 0 and 2 do not
    with torch.no_grad():
        result = model(objects, weights, EDGES)
        nodes = [sum(weights[i, k] * objects[i, k] for k in range(2)) for i in range(4)]
        gates = [model.gate(node) for node in nodes]
        closed = 0
        for i in range(4):
            agreed = {j: float(gates[i] @ gates[j]) / math.sqrt(4) for j in JOINED[i]}
            if edges == "uniform":
                agreed = dict.fromkeys(agreed, 1.0)
            closed += sum(product <= 0 for product in agreed.values())
            heard = {j: math.exp(product) for j, product in agreed.items() if product > 0}
            told = torch.zeros(3)
            if heard:
                told = model.message(sum(w / sum(heard.values()) * nodes[j] for j, w in heard.items()))
            for k in range(2):
                torch.testing.assert_close(result[i, k], objects[i, k] + weights[i, k] * told)
        assert closed == (2 if edges == "attention" else 0)  # both kinds of neighbour are in this case


def test_the_released_graph_gives_finite_gradients_where_nobody_agrees() -> None:
    model = graph(form="code")
    assert model.gate is not None
    torch.nn.init.zeros_(model.gate.weight)
    torch.nn.init.zeros_(model.gate.bias)
    seen = torch.randn(4, 3, requires_grad=True)
    told = model.passed(seen, EDGES)
    assert not told.any()
    (gradient,) = torch.autograd.grad(told.sum(), seen)
    assert torch.isfinite(gradient).all()
