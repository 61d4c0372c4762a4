"""The time of ``streamlabel predict`` beside the bare product and partition on the same arrays, in the same run.

Rows are the test rows of EURLEX57K where that set is on the machine, else random ones of its shape; the classifiers are
random, for a product takes as long whatever they say. The bare computation is ``X @ W`` and ``argpartition``: once in
float64, as our scores are computed, and once in float32, as the classifiers are stored.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.cli.scoring import Predicted, write_predictions
from streamlabel.data.catalogue import load_catalogue_set
from streamlabel.errors import NotFoundError
from streamlabel.store.predict import predict_rows
from streamlabel.streaming.calibration import Decisions

N_LABELS, K = 4271, 5
DECISIONS = Decisions(np.zeros(N_LABELS), np.ones(N_LABELS), np.zeros(N_LABELS))


def test_rows() -> tuple[sparse.csr_array, str]:
    try:
        data = load_catalogue_set("eurlex57k", "test")
    except NotFoundError:
        rng = np.random.default_rng(0)
        return sparse.random_array((6000, 5000), density=0.0237, rng=rng, format="csr"), "random rows"
    return data.X, "EURLEX57K test rows"


def seconds(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Seconds of the processor of each call, the fastest of so many rounds; the calls take turns."""
    taken = dict.fromkeys(calls, np.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.process_time()
            call()
            taken[name] = min(taken[name], time.process_time() - start)
    return taken


def bare(X: sparse.csr_array, W: np.ndarray) -> np.ndarray:
    scores = X @ W
    return np.argpartition(scores, scores.shape[1] - K, axis=1)[:, -K:]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=6000, help="how many rows (default: 6000)")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(argv)
    X, what = test_rows()
    X = X[: options.rows]
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((X.shape[1], N_LABELS), dtype=np.float32)
    exact, single = X.astype(np.float64), X.astype(np.float32)
    double = weights.astype(np.float64)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "model"
        model = StreamingLabelClassifier.from_coef(weights.T, np.zeros(N_LABELS))
        ModelStore.create(path, model, keep_rows=False).close()
        del model
        store = ModelStore.open(path)
        opened, names = store.model(learning=False), store.label_names
        found = [row.labels for row in predict_rows(opened, exact, k=K)]
        assert np.array_equal(np.sort(found, axis=1), np.sort(bare(exact, double), axis=1)), "the best labels differ"

        def written() -> None:
            rows = (Predicted(None, row) for row in predict_rows(opened, exact, k=K))
            write_predictions(rows, names, DECISIONS, io.StringIO(), "jsonl")

        taken = seconds(
            {
                "bare, float64": lambda: bare(exact, double),
                "bare, float32": lambda: bare(single, weights),
                "predict": lambda: list(predict_rows(opened, exact, k=K)),
                "predict, 500 rows at a time": lambda: list(predict_rows(opened, exact, k=K, rows_per_block=500)),
                "predict, with JSONL": written,
                "predict, model opened and checked first": lambda: list(
                    predict_rows(ModelStore.open(path).model(learning=False), exact, k=K)
                ),
            },
            options.repeats,
        )
    print(f"{X.shape[0]:,} {what} x {N_LABELS:,} labels, {X.nnz:,} values, top {K}; seconds of the processor")
    for name, time_taken in taken.items():
        ratios = [time_taken / taken[f"bare, {kind}"] for kind in ("float64", "float32")]
        print(f"{name:<42}{time_taken:7.2f} s   {ratios[0]:5.2f} x bare float64   {ratios[1]:5.2f} x bare float32")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
