"""A writer that is meant to be killed: for every line on standard input, a fork opens the store and appends.

It says ``pid N`` when it begins, ``ack N`` when N labels are stored, and ``dead`` when it has been killed. Forks of one
process, because that has everything imported. Label k has the weights of `weights_of(k)`.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import traceback
from pathlib import Path

import numpy as np

N_FEATURES = 400
A_LIFE = 10  # appends of one writer; then it waits to be killed, however late that comes
MOST = 300 * A_LIFE * 2 + 100  # labels


def weights_of(label: int) -> np.ndarray:
    return np.random.default_rng(label).standard_normal(N_FEATURES)


def write_until_killed(folder: Path, everything: np.ndarray) -> None:
    from streamlabel import ModelStore, StreamingLabelClassifier

    store = ModelStore.open(folder, "a")
    n_labels = len(store.label_names)
    for _ in range(A_LIFE):
        n_labels += 1 + n_labels % 3
        store.append(StreamingLabelClassifier.from_coef(everything[:n_labels], np.arange(float(n_labels))))
        os.write(1, f"ack {n_labels}\n".encode())
    while True:
        signal.pause()


def main() -> int:
    from streamlabel import ModelStore, StreamingLabelClassifier  # noqa: F401  (loaded before the first fork)

    if "STREAMLABEL_TEST_WAL" in os.environ:
        sqlite3.sqlite_version_info = (3, 53, 0)
    everything = np.array([weights_of(label) for label in range(MOST)])
    os.write(1, b"ready\n")
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            os.write(1, f"pid {os.getpid()}\n".encode())  # by the child itself: before it acknowledges anything
            try:
                write_until_killed(Path(sys.argv[1]), everything)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(child, 0)
        os.write(1, b"dead\n" if os.WIFSIGNALED(status) else b"failed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
