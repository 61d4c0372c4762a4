"""The readers against the libraries people would use instead: ratios within one run, the best of several.

XC text of the size of EURLEX57K (45,000 rows, 5.4 million non-zeros) against scikit-learn's svmlight reader on the same
lines, and ARFF against liac-arff. Where STREAMLABEL_DATA has the real sets, they are measured too.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import arff as liac_arff
import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from streamlabel.data.arff import read_arff, write_arff
from streamlabel.data.npz import read_npz
from streamlabel.data.xc_svmlight import read_xc_text, write_xc_text
from streamlabel.types import Dataset


def made_set(n_rows: int, n_features: int, n_labels: int, seed: int = 0) -> Dataset:
    """Random rows with about 120 features of six digits and 5 labels each."""
    rng = np.random.default_rng(seed)

    def pattern(n_columns: int, per_row: int) -> sparse.csr_array:
        columns = np.sort(rng.integers(0, n_columns, (n_rows, per_row)), axis=1)
        rows = np.repeat(np.arange(n_rows), per_row)
        ones = np.ones(rows.size)
        matrix = sparse.csr_array(sparse.coo_array((ones, (rows, columns.ravel())), shape=(n_rows, n_columns)))
        matrix.data[:] = 1
        return matrix

    X, Y = pattern(n_features, 121), pattern(n_labels, 5)
    X.data = np.round(rng.uniform(1e-4, 1, X.nnz), 6)
    return Dataset(X, Y.astype(np.int8), tuple(f"label_{j}" for j in range(n_labels)))


def best_of(n_runs: int, ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[tuple[float, float], ...]:
    """(wall, CPU) seconds of each, the best of ``n_runs``, the two taking turns."""
    seconds: list[list[tuple[float, float]]] = [[], []]
    for _ in range(n_runs):
        for record, work in zip(seconds, (ours, theirs), strict=True):
            wall, cpu = time.perf_counter(), time.process_time()
            work()
            record.append((time.perf_counter() - wall, time.process_time() - cpu))
    return tuple((min(wall for wall, _ in record), min(cpu for _, cpu in record)) for record in seconds)


def report(name: str, other: str, times: tuple[tuple[float, float], ...]) -> tuple[float, float]:
    (wall, cpu), (their_wall, their_cpu) = times
    ratios = their_wall / wall, their_cpu / cpu
    mine = f"{name:<26}{wall:>9.3f}{cpu:>9.3f}"
    print(f"{mine}   {other:<26}{their_wall:>9.3f}{their_cpu:>9.3f}{ratios[0]:>8.1f}x{ratios[1]:>7.1f}x")
    return ratios


def bench_xc(name: str, dataset: Dataset, folder: Path, n_runs: int) -> tuple[float, float]:
    path, body = folder / "set.txt", folder / "body.txt"
    write_xc_text(dataset, path)
    body.write_bytes(path.read_bytes().split(b"\n", 1)[1])
    times = best_of(
        n_runs,
        lambda: read_xc_text(path),
        lambda: load_svmlight_file(str(body), n_features=dataset.n_features, multilabel=True, zero_based=True),
    )
    return report(f"XC text, {name}", "sklearn load_svmlight_file", times)


def bench_arff(name: str, path: Path, xml: Path, n_runs: int) -> tuple[float, float]:
    def theirs() -> None:
        with path.open(encoding="utf-8") as file:
            liac_arff.load(file, return_type=liac_arff.LOD)

    return report(f"ARFF, {name}", "liac-arff", best_of(n_runs, lambda: read_arff(path, xml), theirs))


def main(argv: list[str] | None = None) -> int:
    """Print the table; 1 when a reader is slower than it promises (XC text: as fast, ARFF: three times as fast)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each, of which the best counts")
    parser.add_argument("--rows", type=int, default=45_000, help="rows of the made XC set")
    options = parser.parse_args(argv)
    root = Path(os.environ.get("STREAMLABEL_DATA") or ".")
    seconds = f"{'wall s':>9}{'CPU s':>9}"
    print(f"{'streamlabel':<26}{seconds}   {'the other':<26}{seconds}{'wall':>9}{'CPU':>8}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        xc = [bench_xc("made", made_set(options.rows, 5000, 4271), folder, options.runs)]
        if (root / "eurlex57k").is_dir():
            xc.append(bench_xc("eurlex57k", read_npz(root / "eurlex57k"), folder, options.runs))
        small = made_set(2000, 1000, 100)
        write_arff(small, folder / "set.arff", folder / "set.xml")
        arff = [bench_arff("made", folder / "set.arff", folder / "set.xml", options.runs)]
        for name in ("bibtex", "delicious"):
            if (root / name).is_dir():
                paths = root / name / f"{name}-train.arff", root / name / f"{name}.xml"
                arff.append(bench_arff(name, *paths, options.runs))
    kept = min(map(min, xc)) >= 1 and min(map(min, arff)) >= 3
    print("promised: XC text at least 1x, ARFF at least 3x:", "kept" if kept else "NOT KEPT")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
