"""What a prototype measured before this package was written, beside what the learner gains here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamlabel.experiments.budget_rows import BudgetRow
from streamlabel.experiments.tables import markdown_table

__all__ = ["PROTOTYPE", "PROTOTYPE_NOTE", "prototype_table"]

# Measured with a prototype before this package was written: P@1, P@5, AUC of own ridge, then of the learner, by
# annotated rows. Official splits, half of the labels past, 3 draws; label orders and draws differ from ours.
PROTOTYPE = {
    "bibtex": {
        50: ((15.0, 6.0, 60.5), (16.6, 6.4, 61.6)),
        100: ((18.5, 7.7, 66.8), (20.4, 8.3, 67.8)),
        200: ((21.3, 9.0, 73.8), (23.0, 9.5, 75.1)),
        500: ((26.8, 10.9, 80.9), (27.4, 11.4, 83.9)),
        1000: ((29.4, 12.2, 86.4), (30.8, 12.6, 87.5)),
        2000: ((33.8, 13.5, 89.4), (34.2, 13.8, 89.8)),
    },
    "delicious": {
        50: ((37.3, 22.1, 54.8), (38.1, 24.0, 55.9)),
        100: ((45.9, 29.6, 57.8), (48.7, 32.8, 60.8)),
        200: ((48.8, 32.1, 60.6), (51.6, 35.5, 65.6)),
        500: ((50.4, 34.1, 65.5), (54.1, 38.1, 71.9)),
        1000: ((52.0, 36.7, 68.2), (54.7, 39.8, 75.9)),
        2000: ((54.4, 38.6, 71.3), (55.7, 40.7, 77.4)),
    },
}
_PROTOTYPE_MEASURES = ("p1", "p5", "auc")
PROTOTYPE_NOTE = (
    "P@1 / P@5 / AUC, beside what an earlier prototype reached before this package was written. It chose "
    "by leave-one-out, over 3 draws; label orders and draws differ from ours, so compare gains rather than figures."
)


def prototype_table(rows: Sequence[BudgetRow]) -> str:
    columns = ("own ridge", "with the past", "gain")
    header = ["annotated rows", *(f"{column}, {who}" for column in columns for who in ("prototype", "here"))]
    body = []
    for row in rows:
        own, past = (np.array(values) for values in PROTOTYPE[row.dataset][row.n_rows])
        gains = [row.measures[name] for name in _PROTOTYPE_MEASURES]
        own_here, past_here = np.array([g.own_ridge for g in gains]), np.array([g.method for g in gains])
        figures = [" / ".join(f"{v:.1f}" for v in values) for values in (own, own_here, past, past_here)]
        figures += [" / ".join(f"{v:+z.1f}" for v in values) for values in (past - own, past_here - own_here)]
        body.append([str(row.n_rows), *figures])
    return markdown_table(header, body)
