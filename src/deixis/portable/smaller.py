"""Weights that were kept in half precision stay so in an ONNX file, and are widened when it is loaded."""

from __future__ import annotations

import numpy as np

SMALLEST = 1024
"""Weights with fewer numbers are left alone: a node costs as much."""


def in_half(data: bytes) -> bytes:
    """Return an ONNX file with its weights in half precision wherever that changes none of them."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    model = onnx.load_from_string(data)
    graph = model.graph
    casts = []
    for at, weight in enumerate(list(graph.initializer)):
        if weight.data_type != TensorProto.FLOAT:
            continue
        values = numpy_helper.to_array(weight)
        with np.errstate(over="ignore"):
            half = values.astype(np.float16)
        if values.size < SMALLEST or not np.array_equal(half.astype(np.float32), values):
            continue
        name = weight.name
        graph.initializer[at].CopyFrom(numpy_helper.from_array(half, f"{name}_half"))
        casts.append(helper.make_node("Cast", [f"{name}_half"], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model)
    small: bytes = model.SerializeToString()
    return small
