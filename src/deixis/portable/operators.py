"""Operators that the trace of a network needs a word about: ONNX has suppression as one operator, torch does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.onnx import utils

from deixis.geometry import nms

OPSET = 18
INT64, BOOL = 7, 9  # how ONNX numbers its kinds of values


class _Suppress(torch.autograd.Function):
    """:func:`deixis.geometry.nms` in torch, and ``NonMaxSuppression`` in ONNX, which keeps and orders boxes alike."""

    @staticmethod
    def forward(ctx: Any, boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
        return nms(boxes, scores, threshold)

    @staticmethod
    def symbolic(g: Any, boxes: Any, scores: Any, threshold: float) -> Any:
        def constant(value: Any) -> Any:
            return g.op("Constant", value_t=torch.tensor(value))

        chosen = g.op(
            "NonMaxSuppression",
            g.op("Unsqueeze", boxes, constant([0])),  # (1, N, 4): which corner comes first does not matter
            g.op("Unsqueeze", scores, constant([0, 1])),  # (1, 1, N)
            constant([2**31 - 1]),
            constant([threshold]),
        )  # (M, 3): image, class, box
        return g.op("Gather", chosen, constant(2), axis_i=1)


def suppress(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Return the rows of boxes (N, 4) that stay, best score (N,) first."""
    kept: Tensor = _Suppress.apply(boxes, scores, threshold)  # type: ignore[no-untyped-call]
    return kept


def _sorted_places(g: Any, values: Any, *how: Any) -> Any:
    """``argsort``, also the stable one, which torch's exporter does not know: equal values keep their order in ONNX."""
    from torch.onnx import symbolic_helper

    dim, descending = (symbolic_helper._get_const(value, "i", "order") for value in how[-2:])  # type: ignore[no-untyped-call]
    length = g.op("Gather", g.op("Shape", values), g.op("Constant", value_t=torch.tensor([dim])), axis_i=0)
    _, places = g.op("TopK", values, length, axis_i=dim, largest_i=int(descending), outputs=2)
    return places


def _is_in(g: Any, elements: Any, among: Any, *_: Any) -> Any:
    """``isin``: whether each element equals any of a list, (...) and (m,) -> (...)."""
    last = g.op("Constant", value_t=torch.tensor([-1]))
    equal = g.op("Equal", g.op("Unsqueeze", elements, last), among)  # (..., m)
    count = g.op("ReduceSum", g.op("Cast", equal, to_i=INT64), last, keepdims_i=0)
    return g.op("Cast", count, to_i=BOOL)


def _add_at(g: Any, into: Any, dim: Any, index: Any, added: Any, *_: Any) -> Any:
    """``index_add`` of numbers (M,): torch's exporter would let the last of those that meet win."""
    from torch.onnx import symbolic_helper

    axis = int(symbolic_helper._get_const(dim, "i", "dim"))  # type: ignore[no-untyped-call]
    if symbolic_helper._get_tensor_rank(index) != symbolic_helper._get_tensor_rank(added):
        raise ValueError("only single numbers are added at places")
    return g.op("ScatterElements", into, index, added, axis_i=axis, reduction_s="add")


_LACKING: dict[str, Callable[..., Any]] = {
    "aten::argsort": _sorted_places,
    "aten::isin": _is_in,
    "aten::index_add": _add_at,
}


@contextmanager
def known_operators() -> Iterator[None]:
    """Teach torch's exporter what it lacks, and let it forget that afterwards."""
    for name, translate in _LACKING.items():
        utils.register_custom_op_symbolic(name, translate, OPSET)
    try:
        yield
    finally:
        for name in _LACKING:
            utils.unregister_custom_op_symbolic(name, OPSET)
