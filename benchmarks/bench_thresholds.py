"""Thresholds of labels of `fit`, each by itself and with what the others say (`calibration.shared_thresholds`).

Macro and micro F1 on test rows, of the 300 most frequent labels; laws are of 2012 and later.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from streamlabel import StreamingLabelClassifier
from streamlabel.experiments.found_labels import part_set
from streamlabel.streaming.calibration import best_f1_thresholds

SETS = ("bibtex", "eurlex57k", "citeulike-t-min5")


def main(argv: list[str]) -> int:
    print(f"{'':18} {'macro F1 alone':>15} {'shared':>8} {'micro F1 alone':>15} {'shared':>8}")
    for name in SETS:
        data = part_set(name)
        answers = data.Y.tocsr()
        counts = np.asarray(answers[data.fit].sum(axis=0)).ravel()
        chosen = np.argsort(-counts, kind="stable")[: min(300, int((counts >= 5).sum()))]
        model = StreamingLabelClassifier().fit(data.X[data.fit], sparse.csr_array(answers[data.fit][:, chosen]))
        memory, truth = model.state_.memory, answers[data.test][:, chosen].toarray() > 0
        assert memory is not None
        alone = best_f1_thresholds(memory.leave_one_out, memory.labels[memory.judged_rows].toarray().astype(float))
        alone = np.where(np.isnan(alone), np.nanmedian(alone), alone)
        scores = model.decision_function(data.X[data.test])
        (macro, micro), (macro_shared, micro_shared) = (f1(truth, scores > one) for one in (alone, model.thresholds_))
        print(f"{name:18} {macro:15.1f} {macro_shared:8.1f} {micro:15.1f} {micro_shared:8.1f}", flush=True)
    return 0


def f1(truth: np.ndarray, said: np.ndarray) -> tuple[float, float]:
    hits, sizes = (truth & said).sum(axis=0), said.sum(axis=0) + truth.sum(axis=0)
    occurs = truth.any(axis=0)
    return 100.0 * float((2.0 * hits / np.maximum(sizes, 1))[occurs].mean()), 200.0 * float(hits.sum() / sizes.sum())


if __name__ == "__main__":
    raise SystemExit(main([]))
