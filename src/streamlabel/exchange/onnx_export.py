"""A model as an ONNX graph: features or texts in, scores and the names of the best labels out. Extra ``onnx``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from streamlabel._version import __version__
from streamlabel.data._bytes import replacing
from streamlabel.exceptions import DataError, MissingExtraError
from streamlabel.exchange.linear import LinearModel, linear_model
from streamlabel.exchange.onnx_text import CONTRIB, text_nodes
from streamlabel.models.suggester import TextSuggester

__all__ = ["export_onnx"]

OPSET = 17
IR_VERSION = 8
# A file of the format holds at most 2 GiB; weights beyond this go into a file beside it.
MOST_INSIDE = 2**30


def export_onnx(model: Any, path: str | os.PathLike[str], *, k: int = 5) -> None:
    """Write the graph.

    Input ``features`` (n, d) float32; of a tagger ``texts`` (n,), with the limits told in `exchange.onnx_text`.
    Outputs: ``label_names`` and ``label_scores`` (n, k), the k best labels, best first, ties to the older one;
    ``scores`` (n, m) float32; ``decisions`` (n, m) bool, where a score exceeds its threshold. Weights are rounded to
    float32.
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise DataError(f"k is {k!r}; it must be a whole number from 1 on")
    parts = linear_model(model)
    try:
        import onnx
    except ImportError:
        raise MissingExtraError("onnx", "onnx", "an ONNX graph") from None
    k = min(int(k), len(parts.label_names))
    takes_texts = isinstance(model, TextSuggester)
    nodes, constants = text_nodes(onnx, model.vectorizer_) if takes_texts else ([], [])
    source = ("texts", onnx.TensorProto.STRING, ["n"]) if takes_texts else _features(onnx, parts)
    graph = onnx.helper.make_graph(
        nodes + _nodes(onnx),
        "streamlabel",
        [onnx.helper.make_tensor_value_info(*source)],
        _outputs(onnx, len(parts.label_names), k),
        initializer=constants + _constants(onnx, parts, k),
    )
    domains = [("", OPSET)] + ([(CONTRIB, 1)] if takes_texts else [])
    made = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid(*domain) for domain in domains],
        ir_version=IR_VERSION,
        producer_name="streamlabel",
        producer_version=__version__,
    )
    _write(onnx, made, Path(path), 4 * parts.coef.size)


def _features(onnx: Any, parts: LinearModel) -> tuple[str, int, list[Any]]:
    return "features", onnx.TensorProto.FLOAT, ["n", int(parts.coef.shape[1])]


def _nodes(onnx: Any) -> list[Any]:
    """From features to what comes out."""
    node = onnx.helper.make_node
    return [
        node("Gemm", ["features", "coef", "intercept"], ["scores"], transB=1),
        node("Greater", ["scores", "thresholds"], ["decisions"]),
        node("TopK", ["scores", "k"], ["label_scores", "label_numbers"], axis=1, largest=1, sorted=1),
        node("Gather", ["names", "label_numbers"], ["label_names"], axis=0),
    ]


def _outputs(onnx: Any, n_labels: int, k: int) -> list[Any]:
    info, kinds = onnx.helper.make_tensor_value_info, onnx.TensorProto
    return [
        info("label_names", kinds.STRING, ["n", k]),
        info("label_scores", kinds.FLOAT, ["n", k]),
        info("scores", kinds.FLOAT, ["n", n_labels]),
        info("decisions", kinds.BOOL, ["n", n_labels]),
    ]


def _constants(onnx: Any, parts: LinearModel, k: int) -> list[Any]:
    numbers = {"coef": parts.coef, "intercept": parts.intercept, "thresholds": parts.thresholds}
    tensors = [onnx.numpy_helper.from_array(np.asarray(v, dtype=np.float32), name) for name, v in numbers.items()]
    tensors.append(onnx.numpy_helper.from_array(np.array([k], dtype=np.int64), "k"))
    names = [name.encode() for name in parts.label_names]
    tensors.append(onnx.helper.make_tensor("names", onnx.TensorProto.STRING, [len(names)], names))
    return tensors


def _write(onnx: Any, made: Any, path: Path, n_bytes: int) -> None:
    if n_bytes > MOST_INSIDE:
        (coef,) = (tensor for tensor in made.graph.initializer if tensor.name == "coef")
        beside = path.with_name(f"{path.name}.data")
        with replacing(beside) as handle:
            handle.write(coef.raw_data)
        coef.ClearField("raw_data")
        coef.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", beside.name), ("offset", "0"), ("length", str(n_bytes))):
            coef.external_data.add(key=key, value=value)
    with replacing(path) as handle:
        handle.write(made.SerializeToString())
