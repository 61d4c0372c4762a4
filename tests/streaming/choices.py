"""Writes, as JSON, what the learner chooses on five problems, on one also with many rows, for `test_same_choice`.

The one argument is how far every feature is moved, as a share of it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel import StreamingLabelClassifier
from streamlabel.data.news import make_news_corpus
from streamlabel.data.synthetic import make_planted_labels
from streamlabel.data.text import TextVectorizer


def problems() -> Iterator[tuple[str, Any, Any, str]]:
    """(name, X, Y, loss)."""
    news = make_news_corpus(600, random_state=1)
    X = TextVectorizer(max_features=400).fit_transform(news.texts)  # many terms are equally frequent
    yield "news", X, news.Y.toarray(), "squared"
    planted = make_planted_labels(300, 40, 24, 12, noise=0.1, feature_noise=0.3, random_state=0)
    Y = sparse.hstack((planted.Y_past, planted.Y_new)).toarray()
    yield "dense", np.asarray(planted.X), Y, "squared"
    twice = sparse.csr_array(np.repeat(planted.X[:150], 2, axis=0))  # every score is there twice
    yield "twice", twice, np.repeat(Y[:150], 2, axis=0), "squared"
    rng = np.random.default_rng(0)
    yield "noise", rng.normal(size=(300, 30)), (rng.random((300, 15)) < 0.2).astype(int), "squared"
    yield "other losses", np.asarray(planted.X[:200]), Y[:200, :18], "logistic"


def choices(moved: float) -> dict[str, list[Any]]:
    found = {}
    for name, X, Y, loss in problems():
        noise = np.random.default_rng(1)
        values = X if isinstance(X, np.ndarray) else X.data
        values = values.astype(np.float64) * (1.0 + moved * noise.uniform(-1, 1, values.shape))
        X = values if isinstance(X, np.ndarray) else sparse.csr_array((values, X.indices, X.indptr), shape=X.shape)
        model = StreamingLabelClassifier(loss=loss).fit(X, Y)
        model.add_labels(X, Y[:, [0]], ["new"], annotated=range(100))
        report = model.reports_[-1]
        strengths = [f"{value:.6g}" for value in (model.beta_, report.beta)]
        found[name] = [model.loss_, report.share, report.lam, report.anchored, *strengths, report.clarity.gain]
        if X.shape[0] > 500:  # these trials are in single precision
            model.add_labels(X, Y[:, [1]], ["newer"], annotated=range(400))
            report = model.reports_[-1]
            found[f"{name}, many"] = [model.loss_, report.share, report.lam, report.anchored, f"{report.beta:.6g}",
                                      report.loss, report.clarity.gain]  # fmt: skip
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(choices(float(sys.argv[1]))))
