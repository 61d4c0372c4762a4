"""EURLEX57K by date: average AUC and average precision of labels learned from their first year.

Run with ``STREAMLABEL_DATA=... python benchmarks/eurlex_by_date.py [YEAR ...]``; minutes, not part of ``make bench``.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
from scipy import sparse

from streamlabel.data.catalogue import load_catalogue_set
from streamlabel.experiments.timeline import BirthRecord, run_timeline
from streamlabel.results import Dataset


def joined() -> Dataset:
    parts = [load_catalogue_set("eurlex57k", split) for split in ("train", "dev", "test")]
    return Dataset(
        X=sparse.csr_array(sparse.vstack([part.X for part in parts], format="csr")),
        Y=sparse.csr_array(sparse.vstack([part.Y for part in parts], format="csr")),
        label_names=parts[0].label_names,
        row_dates=np.concatenate([part.row_dates for part in parts]),
        source="eurlex57k, all laws",
    )


def summary(title: str, records: list[BirthRecord]) -> str:
    gains = np.array([[r.auc - r.auc_alone, r.average_precision - r.average_precision_alone] for r in records])
    means = np.mean([[r.auc_alone, r.auc, r.average_precision_alone, r.average_precision] for r in records], axis=0)
    error = gains.std(axis=0, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else np.full(2, np.nan)
    return (
        f"{title}: {len(records)} labels, median {np.median([r.n_yes for r in records]):.0f} yes; "
        f"AUC {means[0]:.2f} alone, {means[1]:.2f} with the past ({gains[:, 0].mean():+.2f} +- {error[0]:.2f}); "
        f"average precision {means[2]:.2f} alone, {means[3]:.2f} with ({gains[:, 1].mean():+.2f} +- {error[1]:.2f})"
    )


def main(years: list[str]) -> int:
    cuts = [f"{year}-01-01" for year in (years or ["1985", "1995", "2004"])]
    records = run_timeline(joined(), cuts)
    for cut in cuts:
        chosen = [record for record in records if record.cut == cut]
        if chosen:
            print(summary(cut, chosen), dict(Counter((r.share, r.anchored) for r in chosen)))
    print(summary("all", records))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
