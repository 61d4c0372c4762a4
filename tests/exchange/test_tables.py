"""The labels as tables: read back by the csv and json modules."""

from __future__ import annotations

import csv
import json

import numpy as np

from streamlabel.exchange.export import export


def test_csv_has_every_label_and_its_figures(classifier, tmp_path):
    with open(export(classifier, tmp_path / "labels.csv"), encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert [row["label"].removeprefix("'") for row in rows] == list(classifier.label_names_)
    np.testing.assert_array_equal([float(row["threshold"]) for row in rows], classifier.thresholds_)
    np.testing.assert_array_equal([float(row["intercept"]) for row in rows], classifier.intercept_)
    np.testing.assert_allclose([float(row["weight_norm"]) for row in rows], np.linalg.norm(classifier.coef_, axis=1))
    assert [int(row["n_yes"]) for row in rows] == [report.n_yes for report in classifier.reports_]
    assert rows[-1]["nearest_label"].removeprefix("'") == classifier.neighbours(rows[-1]["label"], 1)[0][0]
    assert rows[0]["nearest_label"] == ""


def test_no_cell_is_a_formula(classifier, tmp_path):
    """A cell that a spreadsheet would run begins with one of these, unless it is a number."""
    with open(export(classifier, tmp_path / "labels.csv"), encoding="utf-8", newline="") as handle:
        cells = [cell for row in csv.reader(handle) for cell in row if cell]
    begins = [cell for cell in cells if cell[0] in "=+-@\t\r\n"]
    assert all(np.isfinite(float(cell)) for cell in begins)
    assert sum(cell.startswith("'") for cell in cells) >= 4


def test_jsonl_has_the_neighbours(classifier, tmp_path):
    lines = export(classifier, tmp_path / "labels.jsonl").read_text(encoding="utf-8").splitlines()
    labels = [json.loads(line) for line in lines]
    assert [label["label"] for label in labels] == list(classifier.label_names_)
    for label in labels:
        pairs = [(other["label"], other["weight"]) for other in label["neighbours"]]
        assert pairs == classifier.neighbours(label["label"], 100)
        assert len(pairs) == label["code_size"]
    assert labels[-1]["neighbours"]
