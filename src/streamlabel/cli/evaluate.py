"""``streamlabel evaluate``: how well a model does on a labelled file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy import sparse

from streamlabel.cli._files import FileOptions, file_options, read_set, say_guess
from streamlabel.cli._model import has_texts, model_argument, open_store, plural
from streamlabel.cli._output import format_table, json_option, note, write
from streamlabel.exceptions import DataError
from streamlabel.metrics.auc import label_auc, label_average_precision
from streamlabel.metrics.blocks import RowBlocks
from streamlabel.metrics.decisions import DecisionAccumulator
from streamlabel.metrics.summary import evaluate as measure
from streamlabel.models.inputs import canonical_rows
from streamlabel.models.streaming import StreamingLabelClassifier
from streamlabel.models.vectorizers import VectorizerState, restore_vectorizer
from streamlabel.results import CSR, Dataset, FloatArray, TextDataset
from streamlabel.store.model_store import ModelStore
from streamlabel.store.tagger_store import VECTORIZER

__all__ = ["evaluate"]

MEASURES = ("P@k", "nDCG@k", "macro_auc", "micro_auc")
CELLS = 1 << 25


@click.command()
@model_argument
@click.argument("file")
@file_options(split="test")
@click.option("-k", type=click.IntRange(min=1), multiple=True, default=(1, 3, 5), show_default=True, help="For P@k.")
@click.option("--per-label", is_flag=True, help="Also one line a label.")
@json_option
def evaluate(model: Path, file: str, k: tuple[int, ...], per_label: bool, as_json: bool, **arguments: Any) -> None:
    """Measure MODEL on the labelled rows of FILE (- for standard input), which it should not have learned from.

    P@k and nDCG@k rank the labels of a row, AUC the rows of a label; F1 and Hamming loss use the labels' thresholds.
    Every label of the model is taken as answered on every row; tags that the model does not know are left out and
    counted. Macro AUC is over the labels with rows of both kinds, macro F1 over those with a yes, true or said.
    """
    with open_store(model) as store:
        data, columns = read_set(file, FileOptions.of(arguments), n_features=store.n_features)
        say_guess(file, columns)
        X = _rows(store, data, file)
        truth, unknown = _truth(store, data)
        note(f"scoring {plural(data.n_rows, 'row')} and {plural(len(store.label_names), 'label')} ...")
        found = _measured(store.model(learning=False), X, truth, k, per_label, store.label_names)
    found = {"n_rows": data.n_rows, "n_labels": truth.shape[1], "unknown_tags": unknown} | found
    write(found, as_json=as_json, text=lambda: _text(found))


def _rows(store: ModelStore, data: Dataset | TextDataset, file: str) -> CSR:
    if isinstance(data, TextDataset) != has_texts(store):
        kinds = ("texts", "rows of numbers") if has_texts(store) else ("rows of numbers", "texts")
        raise DataError(f"the model takes {kinds[0]}, and the file holds {kinds[1]}", source=file)
    if isinstance(data, TextDataset):
        part = store.get_part(VECTORIZER)
        return canonical_rows(restore_vectorizer(VectorizerState(part.content, part.arrays)).transform(data.texts))
    if data.n_features != store.n_features:
        raise DataError(f"has {data.n_features} features; the model has {store.n_features}", source=file)
    return canonical_rows(data.X.astype(np.float64))


def _truth(store: ModelStore, data: Dataset | TextDataset) -> tuple[CSR, int]:
    """Y (n, m) for the labels of the model, and how many labels of the file it does not know."""
    numbers = {name: number for number, name in enumerate(store.label_names)}
    known = [(j, numbers[name]) for j, name in enumerate(data.label_names) if name in numbers]
    if not known:
        raise DataError("no tag of it is a label of the model; there is nothing to measure", source=data.source)
    chosen, columns = np.array(known).T
    cells = data.Y[:, chosen].tocoo()
    truth = sparse.csr_array(
        (np.ones(cells.nnz, dtype=np.int8), (cells.row, columns[cells.col])), shape=(data.n_rows, len(numbers))
    )
    return truth, data.n_labels - len(known)


def _measured(
    model: StreamingLabelClassifier, X: CSR, truth: CSR, k: tuple[int, ...], per_label: bool, names: tuple[str, ...]
) -> dict[str, Any]:
    """The measures; scores are kept where there are not many, else made anew for each reading."""
    score = model._classifiers.scores
    scores: Any = score(X) if truth.shape[0] * truth.shape[1] <= CELLS else RowBlocks(lambda a, b: score(X[a:b]))
    found: dict[str, Any] = measure(truth, scores, tuple(sorted(set(k))), MEASURES)
    decisions = DecisionAccumulator(truth.shape[1])
    step = max(1, CELLS // truth.shape[1])
    for start in range(0, truth.shape[0], step):
        rows = slice(start, start + step)
        block = scores[rows] if isinstance(scores, np.ndarray) else score(X[rows])
        decisions.update_checked(truth[rows], sparse.csr_array((block > model._decisions.thresholds).astype(np.int8)))
    found |= decisions.result()
    f1, met = decisions.label_f1(), decisions.n_true + decisions.n_predicted > 0
    found["macro_f1"] = float(f1[met].mean()) if met.any() else math.nan
    found = {name: _number(value) for name, value in found.items()}
    found["n_labels_left_out"] = int(found.get("n_labels_left_out") or 0)
    found["n_labels_not_in_f1"] = int((~met).sum())
    if per_label:
        found["labels"] = _each(truth, scores, decisions, np.where(met, f1, math.nan), names)
    return found


def _each(
    truth: CSR, scores: Any, decisions: DecisionAccumulator, f1: FloatArray, names: tuple[str, ...]
) -> list[dict[str, Any]]:
    auc, precision = label_auc(truth, scores), label_average_precision(truth, scores)
    return [
        {
            "label": name,
            "n_true": int(decisions.n_true[j]),
            "n_predicted": int(decisions.n_predicted[j]),
            "auc": _number(auc[j]),
            "average_precision": _number(precision[j]),
            "f1": _number(f1[j]),
        }
        for j, name in enumerate(names)
    ]


def _number(value: float | np.floating) -> float | None:
    return None if math.isnan(value) else round(float(value), 6)


def _text(found: dict[str, Any]) -> str:
    lines = [f"{plural(found['n_rows'], 'row')}, {plural(found['n_labels'], 'label')}; in percent"]
    if found["unknown_tags"]:
        lines.append(f"{plural(found['unknown_tags'], 'tag')} of the file left out: the model does not know them")
    skipped = {"n_rows", "n_labels", "unknown_tags", "n_labels_left_out", "n_labels_not_in_f1", "labels"}
    rows = [[name, _percent(value)] for name, value in found.items() if name not in skipped]
    lines.append(format_table(["measure", ""], rows, right=(1,)))
    if found["n_labels_left_out"]:
        lines.append(f"{plural(found['n_labels_left_out'], 'label')} with one kind of row only: not in macro AUC")
    if found["n_labels_not_in_f1"]:
        lines.append(f"{plural(found['n_labels_not_in_f1'], 'label')} with no yes, true or said: not in macro F1")
    if "labels" in found:
        figures = ("auc", "average_precision", "f1")
        cells = [
            [one["label"], str(one["n_true"]), str(one["n_predicted"]), *(_percent(one[name]) for name in figures)]
            for one in found["labels"]
        ]
        lines += ["", format_table(["label", "true", "said yes", "AUC", "AP", "F1"], cells, right=range(1, 6))]
    return "\n".join(lines)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
