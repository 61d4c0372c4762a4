"""The nodes that turn texts into the tf-idf features of a `TextVectorizer`.

ONNX can lower the case of ASCII letters and cut words, but it cannot fold accents or the case of other letters. So the
graph does what the vectoriser does for texts that are folded already: plain English, or any text after

    unicodedata.normalize("NFKD", text.lower()), without the combining characters.

Cutting words is an operator of onnxruntime (``com.microsoft``), which its usual builds have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamlabel.data.text import TextVectorizer
from streamlabel.exceptions import DataError

__all__ = ["CONTRIB", "text_nodes"]

CONTRIB = "com.microsoft"
WORD = r"[\p{L}\p{N}_]{2,}"  # what scikit-learn takes for a word
NO_WORD = "#"  # fills short rows; no word contains it


def text_nodes(onnx: Any, vectorizer: Any) -> tuple[list[Any], list[Any]]:
    """(nodes, constants) from ``texts`` (n,) to ``features`` (n, d); DataError where ONNX cannot say it."""
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
    if problem:
        raise DataError(f"{problem}; export the tagger's classifier_, and make the features where the graph runs")
