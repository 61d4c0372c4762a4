"""The labels as CSV: one row a label, with how it was learned and what decides.

Cells that are texts and begin with ``= + - @``, a tab or a line end get an apostrophe in front, as in `write_csv`, so
that no spreadsheet runs them; numbers stay numbers.
"""

from __future__ import annotations

import codecs
import csv
import os
from typing import Any

import numpy as np

from streamlabel.data._bytes import replacing
from streamlabel.data.csv_cells import guarded
from streamlabel.exchange.linear import LinearModel, linear_model

__all__ = ["export_csv", "label_figures"]


def export_csv(model: Any, path: str | os.PathLike[str]) -> None:
    """Write the labels and their figures."""
    with replacing(path) as handle:
        writer = csv.writer(codecs.getwriter("utf-8")(handle), lineterminator="\r\n")
        for number, figures in enumerate(label_figures(linear_model(model))):
            if number == 0:
                writer.writerow(figures)
            writer.writerow([_cell(value) for value in figures.values()])


def label_figures(model: LinearModel) -> list[dict[str, Any]]:
    """For each label: name, answers, recipe, threshold, size of its weights, the label it resembles most."""
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
