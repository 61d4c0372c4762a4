"""Times of the measures beside scikit-learn's, on the same arrays in the same run.

The shapes are those of the test parts of delicious (3,185 x 983) and of a set with the labels of EURLEX57K
(6,000 x 4,271); scores and truth are random.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import metrics as sk

from streamlabel.metrics import auc, decisions, ranking
from streamlabel.metrics.evaluate import evaluate

SHAPES = ((3185, 983, 19.0), (6000, 4271, 5.0))


def make_problem(n_rows: int, n_labels: int, labels_a_row: float) -> tuple[sparse.csr_array, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = sparse.random_array((n_rows, n_labels), density=labels_a_row / n_labels, rng=rng, format="csr")
    truth.data[:] = 1
    return truth, rng.standard_normal((n_rows, n_labels)) + truth.toarray()


def seconds(call: Callable[[], Any], repeats: int) -> float:
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def cases(truth: sparse.csr_array, scores: np.ndarray) -> list[tuple[str, Callable[[], Any], Callable[[], Any] | None]]:
    """Name, our call, scikit-learn's call where it has the measure. Only labels with both classes."""
    full = truth.toarray().astype(np.int8)
    predicted = (scores > 2).astype(np.int8)
    return [
        ("P@1/3/5", lambda: evaluate(truth, scores, metrics=["P@k"]), None),
        ("nDCG@5", lambda: ranking.ndcg_at_k(truth, scores, 5), lambda: sk.ndcg_score(full, scores, k=5)),
        ("ranking loss", lambda: ranking.ranking_loss(truth, scores), lambda: sk.label_ranking_loss(full, scores)),
        ("coverage", lambda: ranking.coverage(truth, scores), lambda: sk.coverage_error(full, scores)),
        (
            "label ranking AP",
            lambda: ranking.label_ranking_average_precision(truth, scores),
            lambda: sk.label_ranking_average_precision_score(full, scores),
        ),
        ("macro AUC", lambda: auc.macro_auc(truth, scores), lambda: sk.roc_auc_score(full, scores)),
        ("micro AUC", lambda: auc.micro_auc(truth, scores), lambda: sk.roc_auc_score(full, scores, average="micro")),
        (
            "macro AP",
            lambda: auc.macro_average_precision(truth, scores),
            lambda: sk.average_precision_score(full, scores),
        ),
        ("Hamming loss", lambda: decisions.hamming_loss(truth, predicted), lambda: sk.hamming_loss(full, predicted)),
        (
            "macro F1",
            lambda: decisions.macro_f1(truth, predicted),
            lambda: sk.f1_score(full, predicted, average="macro", zero_division=0),
        ),
        ("all of evaluate", lambda: evaluate(truth, scores), None),
    ]


def two_class(truth: sparse.csr_array, scores: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
    """Without the labels that scikit-learn's AUC cannot take."""
    count = np.bincount(truth.indices, minlength=truth.shape[1])
    kept = np.flatnonzero((count > 0) & (count < truth.shape[0]))
    return truth[:, kept], np.ascontiguousarray(scores[:, kept])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the small shape only, once")
    parser.add_argument("--full", action="store_true", help="scikit-learn on the large shape too (a minute or more)")
    options = parser.parse_args(argv)
    for shape in SHAPES[:1] if options.quick else SHAPES:
        truth, scores = two_class(*make_problem(*shape))
        print(f"\n{truth.shape[0]} rows x {truth.shape[1]} labels, float64, {truth.nnz} true cells")
        print(f"{'measure':<18}{'streamlabel':>14}{'scikit-learn':>14}{'ratio':>8}")
        for name, ours, theirs in cases(truth, scores):
            mine = seconds(ours, 1 if options.quick else 3)
            line = f"{name:<18}{1e3 * mine:>11.1f} ms"
            if theirs is not None and (options.full or shape == SHAPES[0]):
                other = seconds(theirs, 1)
                line += f"{1e3 * other:>11.1f} ms{other / mine:>8.1f}"
            print(line)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
