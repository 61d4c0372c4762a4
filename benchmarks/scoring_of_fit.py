"""What `scoring` does to the labels of `fit`: P@1, AUC and average precision on test rows, by what is maximised.

STREAMLABEL_DATA=... python benchmarks/scoring_of_fit.py [DATASET ...]        (seconds; rows of length one)
"""

from __future__ import annotations

import sys

from streamlabel import StreamingLabelClassifier
from streamlabel.experiments.budget import measured
from streamlabel.experiments.sets import load_set, unit_rows
from streamlabel.stats.threads import one_thread
from streamlabel.streaming.inputs import SCORINGS


def main() -> None:
    print(f"| | {' | '.join(SCORINGS)} |\n|---{'|---' * len(SCORINGS)}|")
    for name in sys.argv[1:] or ["bibtex", "delicious", "mediamill_reduced"]:
        train, test = load_set(name)
        X, far, cells = unit_rows(train.X), unit_rows(test.X), []
        for scoring in SCORINGS:
            with one_thread():
                scores = StreamingLabelClassifier(scoring=scoring).fit(X, train.Y).decision_function(far)
            found = measured(test.Y, scores)
            cells.append(" / ".join(f"{found[key]:.1f}" for key in ("p1", "auc", "average_precision")))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
