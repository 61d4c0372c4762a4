"""table2 and figure1 on a set of a few dozen rows, made up; worker processes import it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from unittest import mock

import numpy as np
from scipy import sparse

from streamlabel.experiments import figure1, table2
from streamlabel.experiments.experiment import Experiment, Key, Setting
from streamlabel.types import Dataset

TINY, MANY = "tiny", "tiny with many labels"  # trees of labels have one leaf, hence no draw, up to 100 labels
_N_LABELS = {TINY: 12, MANY: 204}


@lru_cache
def tiny_set(name: str) -> tuple[Dataset, Dataset]:
    """60 + 40 rows, 15 features: so noisy that another draw gives other figures."""
    draw = np.random.default_rng(3)
    X = draw.random((100, 15)) * (draw.random((100, 15)) < 0.6)
    scores = (X - X.mean(axis=0)) @ draw.standard_normal((15, _N_LABELS[name])) + draw.standard_normal((100, 1))
    Y = sparse.csr_array((scores > np.quantile(scores, 0.75, axis=0)).astype(np.int8))
    whole = Dataset(sparse.csr_array(X), Y, tuple(map(str, range(Y.shape[1]))))
    return whole.take_rows(np.arange(60)), whole.take_rows(np.arange(60, 100))


@contextmanager
def _on_the_tiny_set() -> Iterator[None]:
    with mock.patch.object(table2, "load_set", tiny_set), mock.patch.object(figure1, "load_set", tiny_set):
        yield


@dataclass(frozen=True)
class _Tasks:
    tasks: Callable[[Setting], list[Any]]

    def __call__(self, setting: Setting) -> list[Any]:
        with _on_the_tiny_set():
            return self.tasks(setting)


@dataclass(frozen=True)
class _Run:
    run: Callable[[Any, Mapping[Key, Any]], Iterator[Any]]

    def __call__(self, task: Any, done: Mapping[Key, Any]) -> Iterator[Any]:
        with _on_the_tiny_set():
            yield from self.run(task, done)


def _tiny(experiment: Experiment[Any, Any]) -> Experiment[Any, Any]:
    return replace(experiment, tasks=_Tasks(experiment.tasks), run=_Run(experiment.run))


EXPERIMENTS = {one.name: _tiny(one) for one in (table2.EXPERIMENT, figure1.EXPERIMENT)}
