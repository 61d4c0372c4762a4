"""The paper's form in half of the memory: step 1 reads answers only, step 2 features only; the largest memory of each.

Every step is a process of its own and reads its files only; ``make bench ARGS=two_phase``.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from streamlabel import StreamingLabelClassifier
from streamlabel.data.synthetic import make_twin
from streamlabel.stats.sums import Stats
from streamlabel.streaming.from_stats import add_labels_from_stats, code_labels

N_ROWS, N_FEATURES, N_PAST, N_NEW, BLOCK, BETA, LAM = 100_000, 1_000, 1_000, 20, 5_000, 10.0, 0.003
VALUES_A_ROW, LABELS_A_ROW = 100.0, 100.0


def prepare(folder: Path) -> None:
    """Features in files of `BLOCK` rows, answers in one file, and past classifiers of no meaning."""
    twin = make_twin(N_ROWS, N_FEATURES, N_PAST + N_NEW, VALUES_A_ROW, LABELS_A_ROW, random_state=0)
    for start in range(0, N_ROWS, BLOCK):
        rows = slice(start, start + BLOCK)
        sparse.save_npz(folder / f"X{start}.npz", twin.X[rows], compressed=False)
        sparse.save_npz(folder / f"new{start}.npz", twin.Y[rows][:, N_PAST:], compressed=False)
    sparse.save_npz(folder / "past.npz", sparse.csr_array(twin.Y[:, :N_PAST]), compressed=False)
    np.save(folder / "W.npy", np.random.default_rng(0).standard_normal((N_PAST, N_FEATURES)) / 100.0)


def nothing(folder: Path) -> None:
    """What Python and the libraries take."""


def together(folder: Path) -> None:
    X, new, past = _blocks(folder, "X"), _blocks(folder, "new"), sparse.load_npz(folder / "past.npz")
    codes = code_labels(past, new, LAM)
    stats = sum(
        (Stats.from_batch(X[i : i + BLOCK], new[i : i + BLOCK]) for i in range(BLOCK, N_ROWS, BLOCK)),
        Stats.from_batch(X[:BLOCK], new[:BLOCK]),
    )
    np.save(folder / "together.npy", add_labels_from_stats(_model(folder), stats, codes, BETA).coef_[N_PAST:])


def step_1(folder: Path) -> None:
    codes = code_labels(sparse.load_npz(folder / "past.npz"), _blocks(folder, "new"), LAM)
    sparse.save_npz(folder / "codes.npz", codes)


def step_2(folder: Path) -> None:
    stats = None
    for start in range(0, N_ROWS, BLOCK):
        X, new = (sparse.load_npz(folder / f"{name}{start}.npz") for name in ("X", "new"))
        part = Stats.from_batch(X, new)
        stats = part if stats is None else stats + part
    codes = sparse.csc_array(sparse.load_npz(folder / "codes.npz"))
    np.save(folder / "two_phase.npy", add_labels_from_stats(_model(folder), stats, codes, BETA).coef_[N_PAST:])


STEPS = {step.__name__: step for step in (prepare, nothing, together, step_1, step_2)}


def _blocks(folder: Path, name: str) -> sparse.csr_array:
    return sparse.vstack([sparse.load_npz(folder / f"{name}{i}.npz") for i in range(0, N_ROWS, BLOCK)], format="csr")


def _model(folder: Path) -> StreamingLabelClassifier:
    return StreamingLabelClassifier.from_coef(np.load(folder / "W.npy"))


def main(argv: list[str] | None = None) -> int:
    if argv:
        STEPS[argv[0]](Path(argv[1]))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return 0
    print(f"{N_ROWS:,} rows x {N_FEATURES:,} features, {N_PAST:,} past labels, {LABELS_A_ROW:.0f} labels a row")
    with tempfile.TemporaryDirectory() as name:
        folder, empty = Path(name), 0
        for step in STEPS:
            begin = time.perf_counter()
            run = subprocess.run([sys.executable, __file__, step, name], capture_output=True, text=True, check=True)
            peak = int(run.stdout) >> 10
            empty = peak if step == "nothing" else empty
            if step != "prepare":
                print(f"{step:10} {time.perf_counter() - begin:6.1f} s; {peak:5} MiB, {peak - empty:5} above nothing")
        difference = np.abs(np.load(folder / "together.npy") - np.load(folder / "two_phase.npy")).max()
        print(f"the classifiers of both ways differ by at most {difference:.1e}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
