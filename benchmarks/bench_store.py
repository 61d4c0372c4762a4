"""Times of the store: durable appends, opening a large model, and the floor that the disk sets in the same run."""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import time
from pathlib import Path

import numpy as np

from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.store.sqlite import journal_mode


def adopted(n_labels: int, n_features: int) -> StreamingLabelClassifier:
    """A model of random classifiers: the store does not care what they say."""
    rng = np.random.default_rng(0)
    coef = rng.standard_normal((n_labels, n_features), dtype=np.float32)
    return StreamingLabelClassifier.from_coef(coef, np.zeros(n_labels))


def flush_floor(folder: Path, size: int, repeats: int) -> list[float]:
    """Seconds, each time, to write so many bytes into a file that has room for them, and to flush it to the disk."""
    taken = []
    descriptor = os.open(folder / "floor", os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(descriptor, 0, size * repeats)
    os.fsync(descriptor)
    for position in range(repeats):
        start = time.perf_counter()
        os.pwrite(descriptor, bytes(size), position * size)
        os.fdatasync(descriptor)
        taken.append(time.perf_counter() - start)
    os.close(descriptor)
    return taken


def grow(model: StreamingLabelClassifier, n_new: int, number: int) -> StreamingLabelClassifier:
    """The model with new labels, without learning: an append of what was learned is what is timed."""
    rng = np.random.default_rng(number)
    rows = rng.standard_normal((4, model.n_features_in_))
    answers = np.tile([[1], [0], [1], [0]], (1, n_new))
    return model.add_labels(rows, answers, [f"new {number} {j}" for j in range(n_new)])


def append_times(folder: Path, n_features: int, n_new: int, repeats: int) -> tuple[list[float], list[float]]:
    """Seconds, and seconds of the processor, of each append of ``n_new`` labels."""
    model = adopted(20, n_features)
    taken, busy = [], []
    with ModelStore.create(folder / f"append-{n_features}-{n_new}", model, keep_rows=False) as store:
        for number in range(repeats):
            grow(model, n_new, number)
            start, worked = time.perf_counter(), time.process_time()
            store.append(model)
            taken.append(time.perf_counter() - start)
            busy.append(time.process_time() - worked)
    return taken, busy


def show(what: str, seconds: list[float], share: int = 1, busy: list[float] | None = None) -> None:
    middle, least, most = (1e3 * value / share for value in (np.median(seconds), min(seconds), max(seconds)))
    worked = "" if busy is None else f"; processor {1e3 * np.median(busy) / share:.2f}"
    print(f"{what:<44}{middle:8.2f} ms (fastest {least:.2f}, slowest {most:.2f}{worked})")


def time_open(
    folder: Path, n_labels: int, n_features: int, repeats: int
) -> tuple[float, list[float], list[float], float]:
    """Seconds to create; to open, and of the processor; to score ten rows for the first time."""
    path = folder / "large"
    model = adopted(n_labels, n_features)
    start = time.perf_counter()
    ModelStore.create(path, model, keep_rows=False).close()
    created = time.perf_counter() - start
    del model
    opened, busy = [], []
    for _ in range(repeats):
        start, worked = time.perf_counter(), time.process_time()
        store = ModelStore.open(path)
        opened.append(time.perf_counter() - start)
        busy.append(time.process_time() - worked)
    X = np.random.default_rng(1).standard_normal((10, n_features))
    start = time.perf_counter()
    store.scores(X)
    return created, opened, busy, time.perf_counter() - start


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small model only")
    parser.add_argument("--folder", type=Path, help="where to write (default: the system's temporary folder)")
    options = parser.parse_args(argv)
    n_labels, repeats = (5_000, 10) if options.quick else (100_000, 50)
    print(f"SQLite {sqlite3.sqlite_version}, journal {journal_mode(sqlite3.sqlite_version_info)}")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        show("floor: 40 kB written and flushed", flush_floor(folder, 40_000, repeats))
        for n_new, times in ((1, repeats), (50, max(repeats // 5, 3))):
            seconds, busy = append_times(folder, 10_000, n_new, times)
            show(f"append {n_new} of 10,000 features, a label", seconds, n_new, busy)
        created, opened, busy, scored = time_open(folder, n_labels, 1_000, 5)
        what = f"{n_labels:,} labels x 1,000 features"
        print(f"{'create ' + what:<44}{created:8.2f} s")
        show(f"open   {what}", opened, busy=busy)
        print(f"{'first scores of 10 rows, every row checked':<44}{scored:8.2f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
