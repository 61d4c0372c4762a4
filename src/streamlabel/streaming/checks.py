"""Named checks of what every model promises to which labels can be added.

Each check takes a function that makes a fresh, unfitted model and raises AssertionError if the promise is broken.
A model needs ``fit(X, Y, label_names)``, ``add_labels(X, Y_new, label_names, annotated=...)``, ``decision_function``
and ``label_names_``. Run them all with `check_label_arrival`, or one by one by name.
"""

from __future__ import annotations

import copy
import gc
import signal
import threading
import time
import tracemalloc
from collections.abc import Callable
from typing import Any
from unittest import SkipTest

import numpy as np
from scipy import sparse

from streamlabel.errors import StreamlabelError
from streamlabel.types import FloatArray

Make = Callable[[], Any]
N_PAST = 12


def _data(
    seed: int = 0, n_rows: int = 160, n_features: int = 15, n_labels: int = 18
) -> tuple[FloatArray, Any, FloatArray]:
    """Rows, labels that depend on them and on each other, and rows to judge by."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    latent = X @ rng.standard_normal((n_features, n_labels)) + rng.standard_normal((n_rows, n_labels))
    latent[:, N_PAST:] += latent[:, : n_labels - N_PAST]
    return X, (latent > 1.0).astype(int), rng.standard_normal((40, n_features))


def _names(first: int, count: int) -> list[str]:
    return [f"name {j}" for j in range(first, first + count)]


def _fitted(make: Make, X: Any, Y: Any) -> Any:
    return make().fit(X, Y[:, :N_PAST], label_names=_names(0, N_PAST))


def check_label_arrival_old_scores_bit_identical(make: Make) -> None:
    """Check that scores of old labels stay the same bits, whatever arrives, in whatever form."""
    X, Y, X_test = _data()
    for form in (np.asarray, sparse.csr_array):
        model = _fitted(make, form(X), Y)
        asked: tuple[Any, ...] = (None, np.arange(0, 160, 2), np.arange(160) % 3 > 0)
        for step, annotated in enumerate(asked):
            before = model.decision_function(form(X_test))
            first = N_PAST + 2 * step
            model.add_labels(form(X), Y[:, first : first + 2], _names(first, 2), annotated=annotated)
            after = model.decision_function(form(X_test))
            assert np.array_equal(before, after[:, :first]), "the scores of old labels changed"
            assert after.shape[1] == first + 2


def check_label_arrival_order_in_batch_irrelevant(make: Make) -> None:
    """Check that the labels of one batch may come in any order."""
    X, Y, X_test = _data()
    order = np.array([3, 0, 5, 1, 4, 2])
    one = _fitted(make, X, Y).add_labels(X, Y[:, N_PAST:], _names(N_PAST, 6))
    two = _fitted(make, X, Y).add_labels(X, Y[:, N_PAST + order], [_names(N_PAST, 6)[j] for j in order])
    np.testing.assert_allclose(
        one.decision_function(X_test)[:, N_PAST + order], two.decision_function(X_test)[:, N_PAST:], rtol=0, atol=1e-8
    )


def check_label_arrival_batch_of_one_equals_single(make: Make) -> None:
    """Check that a vector of answers is a batch of one."""
    X, Y, X_test = _data()
    one = _fitted(make, X, Y).add_labels(X, Y[:, N_PAST], _names(N_PAST, 1))
    two = _fitted(make, X, Y).add_labels(X, Y[:, [N_PAST]], _names(N_PAST, 1))
    assert np.array_equal(one.decision_function(X_test), two.decision_function(X_test))


def check_label_arrival_one_by_one_equals_batch(make: Make) -> None:
    """Check that labels that may not lean on each other are the same one by one and together (``dictionary="fit"``)."""
    X, Y, X_test = _data()
    for annotated in (None, np.arange(0, 160, 2)):
        together = _fitted(lambda: _without_new_atoms(make()), X, Y)
        apart = copy.copy(together)
        together.add_labels(X, Y[:, N_PAST:], _names(N_PAST, 6), annotated=annotated)
        for j in range(N_PAST, 18):
            apart.add_labels(X, Y[:, j], _names(j, 1), annotated=annotated)
        np.testing.assert_allclose(
            together.decision_function(X_test), apart.decision_function(X_test), rtol=0, atol=1e-8
        )


def _without_new_atoms(model: Any) -> Any:
    """The model, with ``dictionary="fit"`` if it has a dictionary."""
    return model.set_params(dictionary="fit") if "dictionary" in model.get_params() else model


def check_label_arrival_unknown_is_not_negative(make: Make) -> None:
    """Check that cells nobody was asked about do not matter, and that asking rows or the same cells is the same."""
    X, Y, X_test = _data()
    rows = np.arange(0, 160, 3)
    mask = np.zeros(160, dtype=bool)
    mask[rows] = True
    flipped = np.where(mask[:, None], Y[:, N_PAST:], 1 - Y[:, N_PAST:])
    cells = np.repeat(mask[:, None], 6, axis=1)
    scores = [
        _fitted(make, X, Y).add_labels(X, answers, _names(N_PAST, 6), annotated=asked).decision_function(X_test)
        for answers, asked in (
            (Y[:, N_PAST:], rows),
            (flipped, mask),
            (flipped, cells),
            (flipped, sparse.csr_array(cells)),
        )
    ]
    for other in scores[1:]:
        assert np.array_equal(scores[0], other)
    everything = _fitted(make, X, Y).add_labels(X, np.where(mask[:, None], Y[:, N_PAST:], 0), _names(N_PAST, 6))
    assert not np.allclose(scores[0][:, N_PAST:], everything.decision_function(X_test)[:, N_PAST:])


def check_label_arrival_feature_permutation_irrelevant(make: Make) -> None:
    """Check that the order of features does not matter."""
    X, Y, X_test = _data()
    order = np.random.default_rng(1).permutation(X.shape[1])
    one = _fitted(make, X, Y).add_labels(X, Y[:, N_PAST:], _names(N_PAST, 6), annotated=np.arange(80))
    two = _fitted(make, X[:, order], Y).add_labels(
        X[:, order], Y[:, N_PAST:], _names(N_PAST, 6), annotated=np.arange(80)
    )
    np.testing.assert_allclose(
        one.decision_function(X_test), two.decision_function(X_test[:, order]), rtol=0, atol=1e-7
    )


def check_label_arrival_inputs_not_mutated(make: Make) -> None:
    """Check that nothing that is passed in is written to."""
    X, Y, X_test = _data()
    sparse_X, sparse_Y, mask = sparse.csr_array(X), sparse.csr_array(Y), np.arange(160) % 2 == 0
    copies = X.copy(), Y.copy(), sparse_X.copy(), sparse_Y.copy(), mask.copy()
    _fitted(make, X, Y).add_labels(X, Y[:, N_PAST:], _names(N_PAST, 6), annotated=mask).decision_function(X_test)
    _fitted(make, sparse_X, Y).add_labels(sparse_X, sparse_Y[:, N_PAST:], _names(N_PAST, 6))
    assert np.array_equal(X, copies[0])
    assert np.array_equal(Y, copies[1])
    assert np.array_equal(mask, copies[4])
    for now, then in ((sparse_X, copies[2]), (sparse_Y, copies[3])):
        for part in ("data", "indices", "indptr"):
            assert np.array_equal(getattr(now, part), getattr(then, part))


def check_label_arrival_failure_changes_nothing(make: Make) -> None:
    """Check that a refused arrival says why and leaves the model exactly as it was."""
    X, Y, X_test = _data()
    model = _fitted(make, X, Y)
    before = model.decision_function(X_test)
    good, name = Y[:, N_PAST].astype(float), _names(N_PAST, 1)
    no_number = np.where(np.arange(160) == 7, np.nan, good)
    bad: list[tuple[Any, Any, Any, dict[str, Any]]] = [
        (X, good[:50], name, {}),
        (X[:, :4], good, name, {}),
        (X, good, _names(3, 1), {}),
        (X, np.column_stack((good, good)), ["twice", "twice"], {}),
        (X, no_number, name, {}),
        (X * np.nan, good, name, {}),
        (X, good * 0, name, {}),
        (X, good * 0 + 1, name, {}),
        (X, good, name, {"annotated": np.flatnonzero(good)}),
        (X, good, name, {"annotated": [1000]}),
        (X, good, name, {"annotated": np.ones((3, 3), dtype=bool)}),
    ]
    for features, answers, names, options in bad:
        message = _refusal(lambda: model.add_labels(features, answers, names, **options))  # noqa: B023
        assert message is not None, f"this arrival should have been refused: {names}, {options}"
        assert len(message) > 10, "an error must say what is wrong"
        assert model.label_names_ == tuple(_names(0, N_PAST))
        assert np.array_equal(before, model.decision_function(X_test))
    model.add_labels(X, good, name)
    assert np.array_equal(before, model.decision_function(X_test)[:, :N_PAST])


def _refusal(arrive: Callable[[], Any]) -> str | None:
    try:
        arrive()
    except (StreamlabelError, ValueError) as error:
        return str(error)
    return None


def check_label_arrival_interruption_leaves_old_or_new(make: Make) -> None:
    """Check that an arrival interrupted at any moment leaves the old model or the whole new one."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        raise SkipTest("an interruption can be tried in the main thread of a system with timers only")
    X, Y, X_test = _data()
    model = _fitted(make, X, Y)
    start = time.perf_counter()
    copy.copy(model).add_labels(X, Y[:, N_PAST:], _names(N_PAST, 6), annotated=np.arange(100))
    usual = time.perf_counter() - start
    before = model.decision_function(X_test)
    old, collects = signal.signal(signal.SIGALRM, signal.default_int_handler), gc.isenabled()
    gc.disable()  # an interruption inside a callback of the collector would be swallowed there
    try:
        for share in np.linspace(0.02, 1.0, 25):
            trial = copy.copy(model)
            try:
                signal.setitimer(signal.ITIMER_REAL, max(share * usual, 1e-5))
                trial.add_labels(X, Y[:, N_PAST:], _names(N_PAST, 6), annotated=np.arange(100))
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            scores = trial.decision_function(X_test)
            assert scores.shape[1] == len(trial.label_names_)
            assert len(trial.label_names_) in (N_PAST, N_PAST + 6)
            assert np.array_equal(before, scores[:, :N_PAST])
    finally:
        signal.signal(signal.SIGALRM, old)
        if collects:
            gc.enable()


def check_label_arrival_memory_is_what_labels_need(make: Make) -> None:
    """Check that a label keeps its classifier, its answers and a little; not a copy of the model or the rows."""
    X, Y, _ = _data(n_features=400)
    needed, n_added = 8 * X.shape[1], 64
    model = _fitted(make, X, Y)
    model.add_labels(X, Y[:, N_PAST], ["warm"], annotated=np.arange(80))
    tracemalloc.start()
    try:
        for number in range(n_added):
            model.add_labels(X, Y[:, N_PAST + number % 6], [f"more {number}"], annotated=np.arange(80))
        gc.collect()
        grown, arrays = tracemalloc.get_traced_memory()[0], tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
        traces = tracemalloc.take_snapshot().filter_traces([arrays]).traces  # other threads hold memory, but no arrays
        del model
        gc.collect()
        kept = grown - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept / n_added < 2 * needed + 4000, f"{kept / n_added:.0f} bytes a label; its weights take {needed}"
    held = sum(trace.size for trace in traces) / n_added
    assert held < 2 * needed + 4000, f"{held:.0f} bytes a label in arrays, also outside of the model"


LABEL_ARRIVAL_CHECKS = tuple(
    value for name, value in sorted(globals().items()) if name.startswith("check_label_arrival_")
)


def check_label_arrival(make: Make) -> None:
    """Run every check of this module on fresh models."""
    for check in LABEL_ARRIVAL_CHECKS:
        check(make)
