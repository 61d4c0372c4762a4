"""Export of models: one function for every format, and tables of labels as CSV and JSON lines.

Cells of a CSV that are texts and begin with ``= + - @``, a tab or a line end get an apostrophe in front, as in
`write_csv`, so that no spreadsheet runs them; numbers stay numbers.
"""

from __future__ import annotations

import codecs
import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from streamlabel.data.csv_table import guarded
from streamlabel.data.files import replacing
from streamlabel.errors import DataError, Hint
from streamlabel.exchange.linear import LinearModel, export_npz, export_safetensors, linear_model
from streamlabel.exchange.mlflow_export import export_mlflow
from streamlabel.exchange.onnx_export import export_onnx
from streamlabel.exchange.sklearn_export import export_sklearn


def export_csv(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a CSV table of the labels, one per row, with how each was learned and what decides."""
    with replacing(path) as handle:
        writer = csv.writer(codecs.getwriter("utf-8")(handle), lineterminator="\r\n")
        for number, figures in enumerate(label_figures(linear_model(model))):
            if number == 0:
                writer.writerow(figures)
            writer.writerow([_cell(value) for value in figures.values()])


def label_figures(model: LinearModel) -> list[dict[str, Any]]:
    """The figures of each label: name, answers, recipe, threshold, size of its weights, the label it resembles most."""
    norms = np.linalg.norm(model.coef, axis=1)
    return [
        {
            "label": name,
            "n_rows": report.n_rows,
            "n_yes": report.n_yes,
            "threshold": float(model.thresholds[j]),
            "intercept": float(model.intercept[j]),
            "weight_norm": float(norms[j]),
            "loss": report.loss,
            "beta": None if np.isnan(report.beta) else float(report.beta),
            "lam": None if report.lam is None else float(report.lam),
            "metric_share": float(report.share),
            "anchored": bool(report.anchored),
            "code_size": report.code_size,
            "nearest_label": model.neighbours[j][0][0] if model.neighbours[j] else None,
        }
        for j, (name, report) in enumerate(zip(model.label_names, model.reports, strict=True))
    ]


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return int(value)
    return guarded(value) if isinstance(value, str) else value


def export_jsonl(model: Any, path: str | os.PathLike[str]) -> None:
    """Write labels as JSON lines: ``{"label", figures, "neighbours": [{"label", "weight"}, ...]}``, one per label."""
    parts = linear_model(model)
    with replacing(path) as handle:
        for figures, neighbours in zip(label_figures(parts), parts.neighbours, strict=True):
            del figures["nearest_label"]
            figures["neighbours"] = [{"label": name, "weight": weight} for name, weight in neighbours]
            handle.write((json.dumps(figures, ensure_ascii=False, allow_nan=False) + "\n").encode())


FORMATS: dict[str, Callable[..., None]] = {
    "csv": export_csv,
    "jsonl": export_jsonl,
    "mlflow": export_mlflow,
    "npz": export_npz,
    "onnx": export_onnx,
    "safetensors": export_safetensors,
    "sklearn": export_sklearn,
}
_FORMAT_OF_SUFFIX = {f".{name}": name for name in FORMATS} | {".skops": "sklearn"}


def export(model: Any, path: str | os.PathLike[str], format: str | None = None, **options: Any) -> Path:
    """Write a fitted classifier, a tagger or a stored model for another tool; returns the path that was written.

    Parameters
    ----------
    path : a file; for MLflow a directory that is not there yet
    format : one of `FORMATS`; None: by the ending (``.skops`` is "sklearn")
    options : those of the format (``k`` for ONNX, ``keep`` for scikit-learn, ``dtype`` for the arrays)

    Raises
    ------
    DataError
        The format is not known, or the model is not fitted.
    MissingExtraError
        The package of the format is not installed; the message has the line that installs it.
    """
    name = format or format_of_ending(path)
    if name not in FORMATS:
        given = f"format {name!r}" if name else f"the ending {Path(path).suffix!r}"
        raise DataError(f"{given} is not known", source=path, hint=Hint.FORMAT, hint_value=", ".join(FORMATS))
    FORMATS[name](model, path, **options)
    return Path(path)


def format_of_ending(path: str | os.PathLike[str]) -> str | None:
    """The format that the ending of a path stands for."""
    return _FORMAT_OF_SUFFIX.get(Path(path).suffix.lower())
