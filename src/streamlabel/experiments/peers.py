"""What a practitioner would use instead, each behind ``fit(X, Y)`` and ``decision_function(X)``.

The only door to napkinXC, omikuji and river, none of which the package needs: `missing` says which is not installed.
Strengths (``C``, learning rates) are given for rows of mean squared distance 1 from their mean, and divided by what it
is, so that one grid serves sparse and dense rows. napkinXC and omikuji stop after 100 and 20 passes over the rows by
default, far too early on dense rows: they get `_MOST_PASSES`, and end before where they have converged.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from streamlabel.data.xc_svmlight import write_xc_text
from streamlabel.errors import DataError, MissingExtraError
from streamlabel.streaming.other_losses import row_unit
from streamlabel.types import CSR, Dataset, FloatArray
from streamlabel.validation import default_label_names

RIVER_CELLS = 1_000_000  # answers (rows times labels) that river is shown: it takes one label of one row at a time


_MOST_PASSES = 500
_PROBE = 1 << 20  # bytes; more than what a full disk has left for the smallest file


def missing(package: str) -> bool:
    """Whether an optional package is not installed."""
    return find_spec(package) is None


def _door(module: str) -> Any:
    package = module.partition(".")[0]
    if missing(package):
        raise MissingExtraError(package, None, f"the comparison with {package}")
    return importlib.import_module(module)


class OneVsRest:
    """One scikit-learn classifier a label: logistic regression (liblinear), or a linear support vector machine."""

    threshold = 0.0  # what a score must exceed to be a yes

    def __init__(self, kind: str, C: float, seed: int) -> None:
        self.kind, self.C, self.seed = kind, C, seed

    def fit(self, X: CSR, Y: CSR) -> OneVsRest:
        C = _for_rows(self.C, X)
        if self.kind == "logistic":
            one: Any = LogisticRegression(C=C, solver="liblinear", random_state=self.seed)
        else:
            one = LinearSVC(C=C, dual=False, random_state=self.seed)  # the other solver ends early where C is large
        answers = _matrix(Y).astype(np.int32)  # int8 would permute more than 127 labels
        self._model = OneVsRestClassifier(one).fit(_matrix(X), answers if Y.shape[1] > 1 else answers.toarray().ravel())
        self._n_labels = Y.shape[1]
        return self

    def decision_function(self, X: CSR) -> FloatArray:
        scores: FloatArray = self._model.decision_function(_matrix(X))
        return scores.reshape(X.shape[0], self._n_labels)


class NapkinXC:
    """napkinXC: binary relevance ("BR"), or a probabilistic label tree ("PLT"), one thread.

    Its seed is for the tree alone; its solver draws from the C library, which is seeded here.
    """

    threshold = 0.5  # scores are probabilities

    def __init__(self, kind: str, liblinear_c: float, seed: int) -> None:
        self.kind, self.liblinear_c, self.seed = kind, liblinear_c, seed

    def fit(self, X: CSR, Y: CSR) -> NapkinXC:
        models = _door("napkinxc.models")
        with _temporary_files():
            folder = tempfile.mkdtemp(prefix="streamlabel-")  # it reads its weights from there when it is first asked
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        extra = {"seed": self.seed} if self.kind == "PLT" else {}
        kind = getattr(models, self.kind)
        C = _for_rows(self.liblinear_c, X)
        self._model = kind(folder, liblinear_c=C, liblinear_max_iter=_MOST_PASSES, threads=1, **extra)
        labels = Y.sorted_indices()  # it takes the first and the last of a row for the lowest and the highest
        ctypes.CDLL(None).srand(self.seed)
        self._model.fit(_matrix(X), [row.tolist() for row in np.split(labels.indices, labels.indptr[1:-1])])
        _check_space(folder)
        self._n_labels = Y.shape[1]
        return self

    def decision_function(self, X: CSR) -> FloatArray:
        return _dense(self._model.predict_proba(_matrix(X), top_k=self._n_labels), self._n_labels)


class Omikuji:
    """omikuji: a forest of three balanced label trees, one thread; every label of a row is scored."""

    def __init__(self, linear_c: float) -> None:
        self.linear_c = linear_c

    def fit(self, X: CSR, Y: CSR) -> Omikuji:
        omikuji = _door("omikuji")
        setting = omikuji.Model.default_hyper_param()
        setting.linear_c = _for_rows(self.linear_c, X)
        setting.linear_max_iter = _MOST_PASSES
        with _temporary_files(), tempfile.TemporaryDirectory(prefix="streamlabel-") as folder, _silence():
            path = Path(folder) / "train.txt"
            write_xc_text(Dataset(X, Y, default_label_names(Y.shape[1])), path)
            self._model = omikuji.Model.train_on_data(str(path), setting, n_threads=1)
            self._model.init_prediction_thread_pool(1)
        self._n_labels = Y.shape[1]
        return self

    def decision_function(self, X: CSR) -> FloatArray:
        n = self._n_labels
        rows = [
            self._model.predict(list(zip(indices.tolist(), values.tolist(), strict=True)), beam_size=n, top_k=n)
            for indices, values in _rows(X)
        ]
        return _dense(rows, n)


class River:
    """river: logistic regression by stochastic gradient, one classifier an output, one pass over the rows.

    As many rows as make `RIVER_CELLS` answers, drawn at random; the learning rate is that of the gradient.
    """

    threshold = 0.0

    def __init__(self, rate: float, seed: int) -> None:
        self.rate, self.seed = rate, seed

    def fit(self, X: CSR, Y: CSR) -> River:
        multioutput, linear, optim = (_door(f"river.{part}") for part in ("multioutput", "linear_model", "optim"))
        step = optim.SGD(_for_rows(self.rate, X))
        self._model = multioutput.PerOutputClassifier(linear.LogisticRegression(step))
        n_rows, self._n_labels = Y.shape
        order = np.random.default_rng(self.seed).permutation(n_rows)[: max(1, RIVER_CELLS // self._n_labels)]
        for row, (indices, values) in zip(order, _rows(X[order]), strict=True):
            answers = dict.fromkeys(range(self._n_labels), False)
            answers.update(dict.fromkeys(Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist(), True))
            self._model.learn_one(dict(zip(indices.tolist(), values.tolist(), strict=True)), answers)
        return self

    def decision_function(self, X: CSR) -> FloatArray:
        """log-odds: the classifiers are linear, so their weights do what one row at a time would do."""
        weights = sparse.lil_array((X.shape[1], self._n_labels))
        offsets = np.zeros(self._n_labels)
        for label, one in self._model.items():
            offsets[label] = one.intercept
            for feature, weight in one.weights.items():
                weights[feature, label] = weight
        return np.asarray((X @ weights.tocsr()).toarray()) + offsets


def _for_rows(strength: float, X: CSR) -> float:
    """Six digits of it: the last ones of a sum would decide after how many steps some solvers stop."""
    return float(f"{strength / row_unit(X, fit_intercept=True):.6g}")


def _matrix(array: CSR) -> sparse.csr_matrix:
    """What libraries from before sparse arrays read."""
    return sparse.csr_matrix(array)


def _rows(X: CSR) -> Iterator[tuple[Any, Any]]:
    return zip(np.split(X.indices, X.indptr[1:-1]), np.split(X.data, X.indptr[1:-1]), strict=True)


def _dense(rows: list[list[tuple[int, float]]], n_labels: int) -> FloatArray:
    """Scores (n, n_labels) from pairs of label and score; a label that a row did not get scores 0."""
    scores = np.zeros((len(rows), n_labels))
    for i, row in enumerate(rows):
        if row:
            labels, values = zip(*row, strict=True)
            scores[i, list(labels)] = values
    return scores


@contextmanager
def _temporary_files(folder: str | None = None) -> Iterator[None]:
    """An error of the operating system in the block, raw or as a DataError, says what the file is for."""
    try:
        yield
    except (OSError, DataError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):
            raise
        told = f"{cause.strerror or cause} (a temporary file; TMPDIR names the folder for them)"
        raise OSError(cause.errno, told, cause.filename or getattr(error, "source", folder)) from error


def _check_space(folder: str) -> None:
    """napkinXC does not say that its weights did not fit on the disk: it scores with those that did, or crashes."""
    probe = Path(folder) / "probe"
    try:
        with _temporary_files(folder):
            probe.write_bytes(bytes(_PROBE))
            probe.unlink()
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)  # a worker that is ended would leave it
        raise


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing reaches the terminal, also from compiled code: data on standard output is the command line's."""
    saved = [os.dup(stream) for stream in (1, 2)]
    with open(os.devnull, "wb") as nowhere:
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)
    try:
        yield
    finally:
        for stream, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, stream)
            os.close(copy)
