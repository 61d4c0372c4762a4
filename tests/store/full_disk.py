"""Append to a store until the disk is full; run by `test_faults` on a file system, or under a limit, of its own.

Arguments: the folder, and "disk" or "limit" for what makes it full.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.errors import DataError

N_FEATURES, STEP = 2000, 7


def model_of(n_labels: int) -> StreamingLabelClassifier:
    rng = np.random.default_rng(0)
    return StreamingLabelClassifier.from_coef(rng.standard_normal((n_labels, N_FEATURES)), np.arange(float(n_labels)))


def fill(store: ModelStore) -> int:
    """Labels that were stored before the disk was full."""
    n_labels = len(store.label_names)
    while True:
        try:
            store.append(model_of(n_labels + STEP))
        except DataError as error:
            if "nothing was changed" not in str(error):
                raise
            return n_labels
        n_labels += STEP


def main() -> int:
    folder, how = Path(sys.argv[1]), sys.argv[2]
    path = folder / "model"
    ballast = folder / "ballast"
    if how == "limit":
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    else:
        ballast.write_bytes(bytes(1 << 20))
    store = ModelStore.create(path, model_of(3))
    n_labels = fill(store)
    assert n_labels > 3
    before = store.scores(np.eye(N_FEATURES))
    assert before.shape[1] == n_labels
    np.testing.assert_array_equal(before, ModelStore.open(path).scores(np.eye(N_FEATURES)))
    np.testing.assert_array_equal(before.T - np.arange(n_labels)[:, None] != 0, model_of(n_labels).coef_ != 0)
    assert fill(store) == n_labels
    if how == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    else:
        ballast.unlink()
    store.append(model_of(n_labels + STEP))
    np.testing.assert_array_equal(store.scores(np.eye(N_FEATURES))[:, :n_labels], before)
    assert ModelStore.open(path).verify() == []
    store.close()
    assert ModelStore.doctor(path) == []
    sys.stdout.write(f"{n_labels}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
