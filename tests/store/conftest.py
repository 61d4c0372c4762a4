"""A small model with rows, labels that are related, and more labels to come."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from streamlabel import ModelStore, StreamingLabelClassifier


@dataclass(frozen=True)
class Problem:
    """Rows (240, 24), 12 answers each; a model is fitted on the first 6 labels."""

    X: np.ndarray
    Y: np.ndarray
    unseen: np.ndarray

    def fitted(self, **parameters: object) -> StreamingLabelClassifier:
        model = StreamingLabelClassifier(**parameters)
        return model.fit(self.X, self.Y[:, :6], [f"known {j}" for j in range(6)])


@pytest.fixture(scope="session")
def problem() -> Problem:
    rng = np.random.default_rng(11)
    X = rng.standard_normal((300, 24))
    mixing = rng.standard_normal((24, 12)) * (rng.random((24, 12)) < 0.3)
    Y = (X @ mixing + 0.3 * rng.standard_normal((300, 12)) > 0.7).astype(int)
    return Problem(X[:240], Y[:240], X[240:])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tags.streamlabel"


@pytest.fixture(scope="session")
def template(problem: Problem, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "template"
    with ModelStore.create(path, problem.fitted()) as store:
        store.add_labels(None, problem.Y[:, 6], ["first"])
        store.add_labels(problem.X, problem.Y[:, 7], ["second"], annotated=np.arange(0, 240, 3))
    return path


@pytest.fixture
def stored(template: Path, path: Path) -> Path:
    """A store of the fitted model and two more labels: revision 3."""
    shutil.copytree(template, path)
    return path
