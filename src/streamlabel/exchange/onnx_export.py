"""A model as an ONNX graph: features in, scores, decisions and the names of the best labels out. Extra ``onnx``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from streamlabel._version import __version__
from streamlabel.data._bytes import replacing
from streamlabel.exceptions import DataError, MissingExtraError
from streamlabel.exchange.linear import LinearModel, linear_model

__all__ = ["export_onnx"]

OPSET = 17
IR_VERSION = 8
# A file of the format holds at most 2 GiB; weights beyond this go into a file beside it.
MOST_INSIDE = 2**30


def export_onnx(model: Any, path: str | os.PathLike[str], *, k: int = 5) -> None:
    """Write the graph.

    Input ``features`` (n, d) float32. Outputs: ``label_names`` and ``label_scores`` (n, k), the k best labels, best
    first, ties to the older one; ``scores`` (n, m) float32; ``decisions`` (n, m) bool, where a score exceeds its
    threshold. Weights are rounded to float32.
    """
    try:
        import onnx
    except ImportError:
        raise MissingExtraError("onnx", "onnx", "an ONNX graph") from None
    parts = linear_model(model)
    n_labels = len(parts.label_names)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise DataError(f"k is {k!r}; it must be a whole number from 1 on")
    graph = onnx.helper.make_graph(
        *_nodes_and_ends(onnx, parts, min(int(k), n_labels)), initializer=_constants(onnx, parts, min(int(k), n_labels))
    )
    made = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="streamlabel",
        producer_version=__version__,
    )
    _write(onnx, made, Path(path), 4 * parts.coef.size)


def _nodes_and_ends(onnx: Any, parts: LinearModel, k: int) -> tuple[list[Any], str, list[Any], list[Any]]:
    """(nodes, name, inputs, outputs)."""
    node, info, kinds = onnx.helper.make_node, onnx.helper.make_tensor_value_info, onnx.TensorProto
    n_labels, n_features = parts.coef.shape
    nodes = [
        node("Gemm", ["features", "coef", "intercept"], ["scores"], transB=1),
        node("Greater", ["scores", "thresholds"], ["decisions"]),
        node("TopK", ["scores", "k"], ["label_scores", "label_numbers"], axis=1, largest=1, sorted=1),
        node("Gather", ["names", "label_numbers"], ["label_names"], axis=0),
    ]
    outputs = [
        info("label_names", kinds.STRING, ["n", k]),
        info("label_scores", kinds.FLOAT, ["n", k]),
        info("scores", kinds.FLOAT, ["n", n_labels]),
        info("decisions", kinds.BOOL, ["n", n_labels]),
    ]
    return nodes, "streamlabel", [info("features", kinds.FLOAT, ["n", n_features])], outputs


def _constants(onnx: Any, parts: LinearModel, k: int) -> list[Any]:
    numbers = {"coef": parts.coef, "intercept": parts.intercept, "thresholds": parts.thresholds}
    tensors = [onnx.numpy_helper.from_array(np.asarray(v, dtype=np.float32), name) for name, v in numbers.items()]
    tensors.append(onnx.numpy_helper.from_array(np.array([k], dtype=np.int64), "k"))
    names = [name.encode() for name in parts.label_names]
    tensors.append(onnx.helper.make_tensor("names", onnx.TensorProto.STRING, [len(names)], names))
    return tensors


def _write(onnx: Any, made: Any, path: Path, n_bytes: int) -> None:
    if n_bytes <= MOST_INSIDE:
        with replacing(path) as handle:
            handle.write(made.SerializeToString())
        return
    beside = f"{path.name}.data"
    with replacing(path.with_name(beside)) as data:
        onnx.external_data_helper.convert_model_to_external_data(made, location=beside, size_threshold=1024)
        for tensor in made.graph.initializer:
            if onnx.external_data_helper.uses_external_data(tensor):
                begin = data.tell()
                data.write(tensor.raw_data)
                _point_to(tensor, begin, len(tensor.raw_data))
    with replacing(path) as handle:
        handle.write(made.SerializeToString())


def _point_to(tensor: Any, begin: int, length: int) -> None:
    """The tensor's numbers are in the file beside it, from ``begin`` on."""
    tensor.ClearField("raw_data")
    for key, value in (("offset", begin), ("length", length)):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(value)
