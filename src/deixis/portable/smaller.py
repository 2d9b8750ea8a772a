"""Small weights in ONNX files: halves or eight bits where that changes no number, eight where somebody asks for them.

Either way the networks count in single precision: weights are widened when a file is loaded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALLEST = 1024
"""Weights with fewer numbers are left alone: a node costs as much."""


def in_half(data: bytes) -> bytes:
    """Return an ONNX file with its weights in half precision wherever that changes none of them.

    Those that were kept in eight bits before (:mod:`deixis.regions.network.packing`) are again.
    """
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
        last = weight.name in outputs
        stored, nodes = _eight_bits(weight, last=last) if eight else ([], [])
        if not nodes:
            stored, nodes = _half(weight)
        if not nodes:
            stored, nodes = _eight_bits_exactly(weight, last=last)
        kept += stored or [weight]
        widening += nodes
    for field, values in ((graph.initializer, kept), (graph.node, [*widening, *graph.node])):
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


def _half(weight: Any) -> tuple[list[Any], list[Any]]:
    """Return a weight in half precision and the node that widens it, or nothing where that would change it."""
    from onnx import TensorProto, helper, numpy_helper

    if weight.data_type != TensorProto.FLOAT:
        return [], []
    values = numpy_helper.to_array(weight)
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    if values.size < SMALLEST or not np.array_equal(half.astype(np.float32), values):
        return [], []
    cast = helper.make_node("Cast", [f"{weight.name}_half"], [weight.name], to=TensorProto.FLOAT)
    return [numpy_helper.from_array(half, f"{weight.name}_half")], [cast]


def _eight_bits(weight: Any, *, last: bool) -> tuple[list[Any], list[Any]]:
    """Return a table of weights as whole numbers with their scales, and the node that widens it.

    Args:
        weight: What the file holds.
        last: Outputs are the columns, as in a product with the weights on its right; else they are the rows.
    """
    from onnx import helper, numpy_helper

    if not _is_table(weight):
        return [], []
    values = numpy_helper.to_array(weight)
    axis = values.ndim - 1 if last else 0
    whole, scales = quantised(values, axis)
    names = [f"{weight.name}_int8", f"{weight.name}_scale", f"{weight.name}_zero"]
    arrays: list[NDArray[Any]] = [whole, scales, np.zeros(len(scales), np.int8)]
    stored = [numpy_helper.from_array(array, name) for array, name in zip(arrays, names, strict=True)]
    return stored, [helper.make_node("DequantizeLinear", names, [weight.name], axis=axis)]


def _eight_bits_exactly(weight: Any, *, last: bool) -> tuple[list[Any], list[Any]]:
    """Return the same for a table that was kept in eight bits before, or nothing where they would change it.

    A cast and a product, not `DequantizeLinear`: onnxruntime joins that with a product of matrices, and rounds more.
    """
    from onnx import TensorProto, helper, numpy_helper

    if not _is_table(weight):
        return [], []
    values = numpy_helper.to_array(weight)
    axis = values.ndim - 1 if last else 0
    whole, scales = quantised(values, axis)
    scales = spread(exact_scales(values, whole, scales, axis), values.ndim, axis)
    if not np.array_equal(whole * scales, values):
        return [], []
    names = [f"{weight.name}_int8", f"{weight.name}_scale"]
    stored = [numpy_helper.from_array(whole, names[0]), numpy_helper.from_array(scales, names[1])]
    wide = f"{weight.name}_wide"
    cast = helper.make_node("Cast", names[:1], [wide], to=TensorProto.FLOAT)
    return stored, [cast, helper.make_node("Mul", [wide, names[1]], [weight.name])]


def _is_table(weight: Any) -> bool:
    """Whether it is worth fewer bits: numbers in rows, and many."""
    from onnx import TensorProto

    many = int(np.prod(weight.dims)) >= SMALLEST
    return bool(weight.data_type == TensorProto.FLOAT) and len(weight.dims) >= 2 and many


def quantised(values: NDArray[np.float32], axis: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return whole numbers from -127 to 127 and, along an axis, the scales (n,) by which they are to be multiplied."""
    others = tuple(at for at in range(values.ndim) if at != axis)
    largest = np.abs(values).max(axis=others)
    scales = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    whole = np.clip(np.rint(values / spread(scales, values.ndim, axis)), -127, 127).astype(np.int8)
    return whole, scales


def spread(scales: NDArray[np.float32], dimensions: int, axis: int) -> NDArray[np.float32]:
    """Return scales (n,) in a shape that multiplies tables whose rows lie along an axis."""
    return scales.reshape([-1 if at == axis else 1 for at in range(dimensions)])


def exact_scales(
    values: NDArray[np.float32], whole: NDArray[np.int8], scales: NDArray[np.float32], axis: int
) -> NDArray[np.float32]:
    """Return the scales or, for rows that one of its neighbours among floats gives exactly, that neighbour."""
    others = tuple(at for at in range(values.ndim) if at != axis)
    for towards in (np.float32(0), np.float32(np.inf)):
        wrong = (whole * spread(scales, values.ndim, axis) != values).any(axis=others)
        near = np.nextafter(scales, towards)
        right = (whole * spread(near, values.ndim, axis) == values).all(axis=others)
        scales = np.where(wrong & right, near, scales)
    return scales
