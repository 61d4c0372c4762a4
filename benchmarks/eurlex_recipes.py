"""What the past could give to new keywords of European laws, had one known the best way to use it.

Every way to learn a new label (share of the metric, multiple of own ridge's strength, penalty of the code, share of the
anchor) is judged on the laws that follow, label by label, against own ridge. No learner chooses like this: it reads the
answers that are to be predicted. It shows what a choice could have found.

    python benchmarks/eurlex_recipes.py 1985 1995 2004      (a quarter of an hour)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from scipy import linalg

from streamlabel.data.catalogue import load_catalogue_set
from streamlabel.data.streams import first_occurrence
from streamlabel.metrics.auc import label_auc, label_average_precision
from streamlabel.stats.spectral import centred_kernel
from streamlabel.stats.threads import one_thread
from streamlabel.streaming.arrival import MOST_SCORED, run_trials
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.trials import sketch
from streamlabel.structure.represent import represent

SHARES, PULLS, LAMS, PARTS = (0.0, 0.1, 0.3), (1.0, 3.0, 10.0), (0.003, 0.001, 0.0003), (0.25, 0.5, 1.0)
YEAR = np.timedelta64(365, "D")
Recipe = tuple[float, float, float, float]  # share, pull, lam (0: no code), part of the anchor


def new_labels(cut: str) -> Iterator[dict[Recipe, tuple[float, float]]]:
    """For every label born within two years of the cut: AUC and average precision (in %) of every recipe."""
    data = load_catalogue_set("eurlex57k", "train")
    assert data.row_dates is not None
    order = np.argsort(data.row_dates, kind="stable")
    X, Y, dates = data.X[order].astype(np.float64), data.Y[order], data.row_dates[order]
    born, columns, day = first_occurrence(Y, dates), Y.tocsc(), np.datetime64(cut, "D")
    n_before = int(np.searchsorted(dates, day))
    past = np.flatnonzero(np.asarray(Y[:n_before].sum(axis=0)).ravel() >= 3)
    model = StreamingLabelClassifier(loss="squared").fit(X[:n_before], Y[:n_before][:, past])
    for label in np.flatnonzero((born >= day) & (born < day + 2 * YEAR)):
        start, end = np.searchsorted(dates, [born[label], born[label] + YEAR])
        answers = columns[:, [label]].toarray().ravel().astype(np.float64)
        if answers[start:end].sum() >= 2 and answers[end:].sum() >= 5 and not answers[start:end].all():
            yield judge(model, X[start:end], answers[start:end], X[end:], answers[end:])


def judge(model, X, y, X_later, later) -> dict[Recipe, tuple[float, float]]:
    W, mean, n_rows = model.coef_.T, np.asarray(X.mean(axis=0)), len(y)
    kernel, target = centred_kernel(X, mean), y - y.mean()
    trials = run_trials(model, model.state_, n_rows)
    strength = np.exp(np.mean([np.log(trial.strengths[0]) for trial in trials]))
    scores = np.asarray(X @ W)
    scores -= scores.mean(axis=0)
    near = np.sort(np.argsort(-np.abs(scores.T @ target))[:MOST_SCORED])
    gram, correlations = scores[:, near].T @ scores[:, near], (scores[:, near].T @ target)[:, None]
    anchors = {}
    for lam in LAMS:
        code = represent(gram, correlations, np.array([target @ target]), lam * n_rows, tol=1e-4).codes.toarray()[:, 0]
        anchors[lam] = W[:, near] @ code
    basis = sketch(W)
    seen = np.asarray(X @ basis)
    seen -= seen.mean(axis=0)
    ratio = kernel.trace() / np.square(seen).sum()
    found = {}
    for share in SHARES:
        mixed = (1.0 - share) * kernel + share * ratio * (seen @ seen.T)
        for pull in PULLS:
            factor = linalg.cho_factor(mixed + pull * strength * kernel.trace() / n_rows * np.eye(n_rows))
            for lam, part in ((0.0, 0.0), *((lam, part) for lam in LAMS for part in PARTS)):
                anchor = part * anchors[lam] if lam else np.zeros(len(W))
                pointed = np.asarray(X @ anchor)
                duals = linalg.cho_solve(factor, target - (pointed - pointed.mean()))
                weights = anchor + (1.0 - share) * (X.T @ duals - mean * duals.sum())
                weights += share * ratio * (basis @ (seen.T @ duals))
                ranked = np.asarray(X_later @ weights)[:, None]
                truth = later[:, None]
                found[share, pull, lam, part] = (
                    100.0 * float(label_auc(truth, ranked)[0]),
                    100.0 * float(label_average_precision(truth, ranked)[0]),
                )
    return found


def main(cuts: list[str]) -> None:
    found = []
    with one_thread():
        for cut in cuts:
            found += list(new_labels(cut))
            print(f"{cut}: {len(found)} labels so far", file=sys.stderr)
    values = {recipe: np.array([label[recipe] for label in found]) for recipe in found[0]}
    own = values[0.0, 1.0, 0.0, 0.0]
    print(f"{len(found)} labels; own ridge: AUC {own[:, 0].mean():.2f}, average precision {own[:, 1].mean():.2f}")
    print("share  pull     lam  part      AUC             average precision, against own ridge")
    for (share, pull, lam, part), value in values.items():
        gain, error = (value - own).mean(axis=0), (value - own).std(axis=0, ddof=1) / np.sqrt(len(own))
        columns = "   ".join(f"{g:+6.2f} ± {e:.2f}" for g, e in zip(gain, error, strict=True))
        print(f"{share:5.1f} {pull:5.0f} {lam:7.4f} {part:5.2f}   {columns}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["1985", "1995", "2004"])
