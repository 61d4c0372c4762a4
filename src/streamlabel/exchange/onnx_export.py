"""Export as an ONNX graph: features or texts in, scores and the names of the best labels out. Extra ``onnx``.

For texts, further nodes make the tf-idf features of a `TextVectorizer`. ONNX can lower the case of ASCII letters and
cut words, but it cannot fold accents or the case of other letters. So the graph does what the vectoriser does for texts
that are folded already: plain English, or any text after

    unicodedata.normalize("NFKD", text.lower()), without the combining characters.

Cutting words is an operator of onnxruntime (``com.microsoft``), which its usual builds have.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from streamlabel._version import __version__
from streamlabel.data.files import replacing
from streamlabel.data.text import TextVectorizer
from streamlabel.errors import DataError, MissingExtraError
from streamlabel.exchange.linear import LinearModel, linear_model
from streamlabel.tagging.tagger import Tagger

CONTRIB = "com.microsoft"
WORD = r"[\p{L}\p{N}_]{2,}"  # what scikit-learn takes for a word
NO_WORD = "#"  # fills short rows; no word contains it


def text_nodes(onnx: Any, vectorizer: Any) -> tuple[list[Any], list[Any]]:
    """Make nodes and constants from ``texts`` (n,) to ``features`` (n, d); DataError if ONNX cannot say it."""
    _check(vectorizer)
    node, constant = onnx.helper.make_node, onnx.numpy_helper.from_array
    case = "LOWER" if vectorizer.lowercase else "NONE"
    nodes = [
        node("StringNormalizer", ["texts"], ["folded"], case_change_action=case, is_case_sensitive=1, locale="C"),
        node(
            "Tokenizer", ["folded"], ["words"], domain=CONTRIB, mark=0, mincharnum=2, pad_value=NO_WORD, tokenexp=WORD
        ),
        _counts(node, vectorizer),
    ]
    if vectorizer.sublinear_tf:
        nodes += [
            node("Max", ["counts", "one"], ["at_least_one"]),
            node("Log", ["at_least_one"], ["logarithm"]),
            node("Add", ["logarithm", "one"], ["damped"]),
            node("Min", ["counts", "one"], ["present"]),
            node("Mul", ["damped", "present"], ["frequency"]),
        ]
    nodes += [
        node("Mul", ["frequency" if vectorizer.sublinear_tf else "counts", "idf"], ["weighted"]),
        node("ReduceL2", ["weighted"], ["length"], axes=[1], keepdims=1),
        node("Max", ["length", "tiny"], ["positive_length"]),
        node("Div", ["weighted", "positive_length"], ["features"]),
    ]
    one = [constant(np.array(1, dtype=np.float32), "one")] if vectorizer.sublinear_tf else []
    constants = [
        *one,
        constant(np.array(1e-12, dtype=np.float32), "tiny"),
        constant(np.asarray(vectorizer.idf_, dtype=np.float32), "idf"),
    ]
    return nodes, constants


def _counts(node: Any, vectorizer: TextVectorizer) -> Any:
    """How often each term occurs. The pool has the terms by their number of words, all terms of one word first."""
    split = [tuple(term.split(" ")) for term in vectorizer.terms_]
    shortest, longest = vectorizer.ngram_range
    pool: list[str] = []
    columns: list[int] = []
    starts = []
    for n_words in range(1, longest + 1):
        starts.append(len(pool))
        for column, words in enumerate(split):
            if len(words) == n_words:
                pool.extend(words)
                columns.append(column)
    return node(
        "TfIdfVectorizer",
        ["words"],
        ["counts"],
        mode="TF",
        min_gram_length=int(shortest),
        max_gram_length=int(longest),
        max_skip_count=0,
        pool_strings=pool,
        ngram_counts=starts,
        ngram_indexes=columns,
    )


def _check(vectorizer: Any) -> None:
    problem = ""
    if not isinstance(vectorizer, TextVectorizer):
        problem = f"a vectoriser of type {type(vectorizer).__name__} has no form in ONNX"
    elif vectorizer.analyzer != "word":
        problem = f"ONNX cuts words, not {vectorizer.analyzer!r}"
    elif vectorizer.stop_words is not None and vectorizer.ngram_range[1] > 1:
        problem = "ONNX cannot leave stop words out of terms of several words"
    elif not vectorizer.numbers and vectorizer.ngram_range[1] > 1:
        problem = "ONNX cannot leave numbers out of terms of several words (numbers=True keeps them)"
    if problem:
        raise DataError(f"{problem}; export the tagger's classifier_, and make the features where the graph runs")


OPSET = 17
IR_VERSION = 8
# A file of the format holds at most 2 GiB; weights beyond this go into a file beside it.
MOST_INSIDE = 2**30


def export_onnx(model: Any, path: str | os.PathLike[str], *, k: int = 5) -> None:
    """Write a model as an ONNX graph.

    Input ``features`` (n, d) float32; of a tagger ``texts`` (n,), with the limits told in `exchange.onnx_export`.
    Outputs: ``label_names`` and ``label_scores`` (n, k), the k best labels, best first, ties to the older one;
    ``scores`` (n, m) float32; ``decisions`` (n, m) bool, True above the threshold. Weights are rounded to
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
    takes_texts = isinstance(model, Tagger)
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
