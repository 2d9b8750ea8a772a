"""Small weights in ONNX files: halves where that changes no number, eight bits where somebody asks for them.

Either way the networks count in single precision: weights are widened when a file is loaded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALLEST = 1024
"""Weights with fewer numbers are left alone: a node costs as much."""


def in_half(data: bytes) -> bytes:
    """Return an ONNX file with its weights in half precision wherever that changes none of them."""
    return _packed(data, eight=False)


def in_int8(data: bytes) -> bytes:
    """Return an ONNX file whose tables of weights have eight bits a number, and a scale for each row or output.

    Numbers change by at most half a step, 1/254 of the largest of their row; what is no table stays as it was.
    """
    return _packed(data, eight=True)


def _packed(data: bytes, *, eight: bool) -> bytes:
    import onnx

    model = onnx.load_from_string(data)
    graph = model.graph
    _constants_as_weights(graph)
    outputs = {node.input[1] for node in graph.node if node.op_type == "MatMul"}
    widening: list[Any] = []
    kept: list[Any] = []
    for weight in graph.initializer:
        stored, node = _eight_bits(weight, last=weight.name in outputs) if eight else ([], None)
        if node is None:
            stored, node = _half(weight)
        kept += stored or [weight]
        widening += [] if node is None else [node]
    nodes = [*widening, *graph.node]
    for field, values in ((graph.initializer, kept), (graph.node, nodes)):
        copies = [type(value).FromString(value.SerializeToString()) for value in values]
        del field[:]
        field.extend(copies)
    onnx.checker.check_model(model)
    small: bytes = model.SerializeToString()
    return small


def _constants_as_weights(graph: Any) -> None:
    """Make weights of large constants, which is how the trace keeps what the code joins before it multiplies."""
    from onnx import TensorProto

    outputs = {one.name for one in graph.output}
    left = []
    for node in graph.node:
        value = next((one.t for one in node.attribute if one.name == "value"), None)
        large = (
            node.op_type == "Constant" and value is not None and value.data_type == TensorProto.FLOAT
            and int(np.prod(value.dims)) >= SMALLEST and node.output[0] not in outputs
        )  # fmt: skip
        if large:
            graph.initializer.add().CopyFrom(value)
            graph.initializer[-1].name = node.output[0]
        else:
            left.append(type(node).FromString(node.SerializeToString()))
    del graph.node[:]
    graph.node.extend(left)


def _half(weight: Any) -> tuple[list[Any], Any]:
    """Return a weight in half precision and the node that widens it, or nothing where that would change it."""
    from onnx import TensorProto, helper, numpy_helper

    if weight.data_type != TensorProto.FLOAT:
        return [], None
    values = numpy_helper.to_array(weight)
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    if values.size < SMALLEST or not np.array_equal(half.astype(np.float32), values):
        return [], None
    cast = helper.make_node("Cast", [f"{weight.name}_half"], [weight.name], to=TensorProto.FLOAT)
    return [numpy_helper.from_array(half, f"{weight.name}_half")], cast


def _eight_bits(weight: Any, *, last: bool) -> tuple[list[Any], Any]:
    """Return a table of weights as whole numbers with their scales, and the node that widens it.

    Args:
        weight: What the file holds.
        last: Outputs are the columns, as in a product with the weights on its right; else they are the rows.
    """
    from onnx import TensorProto, helper, numpy_helper

    values = numpy_helper.to_array(weight)
    if weight.data_type != TensorProto.FLOAT or values.ndim < 2 or values.size < SMALLEST:
        return [], None
    axis = values.ndim - 1 if last else 0
    whole, scales = quantised(values, axis)
    names = [f"{weight.name}_int8", f"{weight.name}_scale", f"{weight.name}_zero"]
    arrays: list[NDArray[Any]] = [whole, scales, np.zeros(len(scales), np.int8)]
    stored = [numpy_helper.from_array(array, name) for array, name in zip(arrays, names, strict=True)]
    return stored, helper.make_node("DequantizeLinear", names, [weight.name], axis=axis)


def quantised(values: NDArray[np.float32], axis: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return whole numbers from -127 to 127 and, along an axis, the scales (n,) by which they are to be multiplied."""
    others = tuple(at for at in range(values.ndim) if at != axis)
    largest = np.abs(values).max(axis=others)
    scales = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    shape = [-1 if at == axis else 1 for at in range(values.ndim)]
    whole = np.clip(np.rint(values / scales.reshape(shape)), -127, 127).astype(np.int8)
    return whole, scales
