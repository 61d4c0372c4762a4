"""The time of a logistic classifier a label beside liblinear's, on the same rows and labels, in the same run.

Rows are the training rows of EURLEX57K where that set is on the machine, else random ones of its density. The labels
are drawn at random, so most of them are rare. Ours is solved to the relative gradient of past labels (1e-3) and of new
ones (1e-9); liblinear to scikit-learn's default, with its intercept penalised like a weight (the default), and scaled
by a hundred, which is hardly at all. How far each comes is printed in our measure, in which the intercept is free.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from streamlabel.classifier.losses import get_loss
from streamlabel.classifier.objective import AnchoredObjective
from streamlabel.classifier.penalty import make_penalty
from streamlabel.classifier.solve import solve
from streamlabel.data.catalogue import load_catalogue_set
from streamlabel.errors import NotFoundError
from streamlabel.streaming.other_losses import row_unit
from streamlabel.types import FloatArray

STRENGTH = 0.3  # beta in units of the mean squared length of a centred row


def training_rows(n_rows: int) -> tuple[sparse.csr_array, sparse.csr_array, str]:
    try:
        data = load_catalogue_set("eurlex57k", "train")
    except NotFoundError:
        rng = np.random.default_rng(0)
        X = sparse.random_array((n_rows, 5000), density=0.0237, rng=rng, format="csr")
        Y = sparse.random_array((n_rows, 4000), density=0.0006, rng=rng, format="csr")
        Y.data[:] = 1.0
        return X, Y, "random rows"
    return data.X[:n_rows], data.Y[:n_rows], "EURLEX57K training rows"


def violation(X: sparse.csr_array, Y: FloatArray, beta: float, weights: FloatArray, intercept: FloatArray) -> float:
    """The largest gradient, relative to that of the best constant."""
    loss = get_loss("logistic")
    objective = AnchoredObjective(X, loss.encode(Y), loss, make_penalty(np.zeros_like(weights), None, beta))
    slope, slope_b = objective.gradient(weights, intercept)
    return float((np.hypot(np.linalg.norm(slope, axis=0), slope_b) / objective.gradient_scale()).max())


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=45_000, help="how many rows (default: 45000)")
    parser.add_argument("--labels", type=int, default=64, help="how many labels (default: 64)")
    options = parser.parse_args(argv)
    X, Y, what = training_rows(options.rows)
    counts = np.asarray(Y.sum(axis=0)).ravel()
    able = np.flatnonzero((counts > 0) & (counts < X.shape[0]))
    labels = np.sort(np.random.default_rng(0).permutation(able)[: options.labels])
    answers = Y[:, labels].toarray().astype(np.float64)
    beta = STRENGTH * row_unit(X, True)
    yes = counts[labels].astype(int)
    print(f"{what}, {X.shape[0]} x {X.shape[1]}, {X.nnz} entries")
    print(f"{len(labels)} labels with {yes.min()} to {yes.max()} yes answers, {np.median(yes):g} in the median")
    print("                               CPU s a label   gradient")
    fastest = np.inf
    for scaling in (1.0, 100.0):
        start = time.process_time()
        one = LogisticRegression(C=1.0 / beta, solver="liblinear", intercept_scaling=scaling)
        found = [clone(one).fit(X, y) for y in answers.T]
        taken = (time.process_time() - start) / len(labels)
        fastest = min(taken, fastest)
        weights, intercept = np.hstack([m.coef_.T for m in found]), np.concatenate([m.intercept_ for m in found])
        reached = violation(X, answers, beta, weights, intercept)
        print(f"liblinear, intercept x {scaling:<7g} {taken:13.3f}    {reached:.1e}")
    for tolerance in (1e-3, 1e-9):
        start = time.process_time()
        _, _, report = solve(X, answers, beta=beta, loss="logistic", tolerance=tolerance)
        taken = (time.process_time() - start) / len(labels)
        times = f"{fastest / taken:.1f} times as fast"
        print(f"ours to {tolerance:<22g} {taken:13.3f}    {report.violation:.1e}   {times}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
