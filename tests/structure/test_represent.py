"""The door of step 1: certificates, batches, dictionaries, paths, executors, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from streamlabel.errors import ConvergenceWarning, DataError
from streamlabel.executors import JoblibExecutor, SerialExecutor
from streamlabel.stats.label_gram import centred_cross, signed_label_gram
from streamlabel.structure.lasso import duality_gap, kkt_violation, solve_active_set
from streamlabel.structure.represent import SOLVERS, lasso_path, represent

N_PAST, N_NEW = 20, 5


@pytest.fixture
def labels(rng):
    return sparse.csr_array((rng.random((300, N_PAST + N_NEW)) < 0.2).astype(np.int8))


@pytest.fixture
def problem(labels):
    past, new = labels[:, :N_PAST], labels[:, N_PAST:]
    return centred_cross(past, past), centred_cross(past, new), np.diag(centred_cross(new, new))


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_code_carries_a_certificate_that_is_true(problem, solver):
    gram, correlations, energies = problem
    found = represent(gram, correlations, energies, 1.0, solver=solver)
    assert found.codes.shape == (N_PAST, N_NEW)
    assert found.codes.has_sorted_indices
    assert found.codes.nnz > 0
    for j, report in enumerate(found.reports):
        code = found.codes[:, [j]].toarray().ravel()
        true = duality_gap(code, gram @ code - correlations[:, j], correlations[:, j], energies[j], 1.0)
        assert report.violation == pytest.approx(true, abs=1e-12)
        assert report.solver == solver
        assert report.converged
        assert report.violation <= report.tolerance == 1e-6


def test_solvers_agree(problem):
    codes = [represent(*problem, 0.5, solver=solver, tol=1e-9).codes.toarray() for solver in SOLVERS]
    for other in codes[1:]:
        np.testing.assert_allclose(other, codes[0], atol=1e-5)


def test_a_tighter_gap_is_reached_by_coordinate_descent(problem):
    """The door translates the gap into the solver's own tolerance."""
    for tol in (1e-3, 1e-6, 1e-9):
        found = represent(*problem, 0.2, solver="coordinate_descent", tol=tol)
        assert all(report.violation <= tol for report in found.reports)


def test_a_code_that_stops_short_warns(problem, monkeypatch):
    gram, correlations, _ = problem

    def lazy(gram, correlation, lam, **options):
        return np.zeros_like(correlation), -correlation, 0, False

    monkeypatch.setitem(SOLVERS, "coordinate_descent", lazy)
    with pytest.warns(ConvergenceWarning, match="5 of 5 label codes stopped short") as caught:
        found = represent(gram, correlations, np.full(5, 40.0), lam=0.1, solver="coordinate_descent")
    assert not found.reports[0].converged
    assert caught[0].filename == __file__


def test_one_penalty_a_column(problem):
    gram, correlations, energies = problem
    lams = np.array([0.1, 0.5, 1.0, 2.0, 1000.0])
    together = represent(gram, correlations, energies, lams)
    for j, lam in enumerate(lams):
        alone = represent(gram, correlations[:, [j]], energies[[j]], float(lam))
        assert np.array_equal(together.codes[:, [j]].toarray(), alone.codes.toarray())
        assert together.reports[j] == alone.reports[0]
    assert not together.codes[:, [4]].nnz


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_batch_uses_all_labels_but_its_own(labels, solver):
    gram, own = centred_cross(labels, labels), np.arange(N_PAST, N_PAST + N_NEW)
    energies = gram.diagonal()[own]
    found = represent(gram, gram[:, own], energies, 0.3, own=own, solver=solver)
    codes = found.codes.toarray()
    assert codes.shape == (N_PAST + N_NEW, N_NEW)
    assert not codes[own, np.arange(N_NEW)].any()
    assert codes[N_PAST:].any()  # the others of the batch are used
    assert all(report.converged for report in found.reports)
    for j in range(N_NEW):
        others = np.delete(np.arange(N_PAST + N_NEW), own[j])
        alone = represent(gram[np.ix_(others, others)], gram[others][:, own[[j]]], energies[[j]], 0.3)
        np.testing.assert_allclose(codes[others, j], alone.codes.toarray().ravel(), atol=1e-5)


def test_without_own_a_label_would_copy_itself(labels):
    gram = centred_cross(labels, labels)
    codes = represent(gram, gram[:, [3]], gram[[3], [3]], 0.3).codes.toarray().ravel()
    assert np.flatnonzero(codes).tolist() == [3]


def test_only_the_dictionary_enters(problem):
    gram, correlations, energies = problem
    allowed = np.array([1, 4, 5, 11, 19])
    found = represent(gram, correlations, energies, 0.3, allowed=allowed)
    assert found.codes.shape == (N_PAST, N_NEW)
    assert set(found.codes.indices.tolist()) <= set(allowed.tolist())
    alone = represent(gram[np.ix_(allowed, allowed)], correlations[allowed], energies, 0.3)
    assert np.array_equal(found.codes.toarray()[allowed], alone.codes.toarray())
    assert found.reports == alone.reports
    kept = represent(gram[np.ix_(allowed, allowed)], correlations, energies, 0.3, allowed=allowed)
    assert np.array_equal(found.codes.toarray(), kept.codes.toarray())


def test_a_dictionary_in_a_batch(labels):
    gram, own = centred_cross(labels, labels), np.arange(N_PAST, N_PAST + N_NEW)
    allowed = np.array([0, 2, 7, 9, 20, 22])  # two of the new labels are in it, three are not
    found = represent(gram, gram[:, own], gram.diagonal()[own], 0.2, own=own, allowed=allowed)
    codes = found.codes.toarray()
    assert not codes[own, np.arange(N_NEW)].any()
    assert not np.delete(codes, allowed, axis=0).any()
    assert all(report.converged for report in found.reports)


def test_an_empty_dictionary_gives_empty_codes(problem):
    found = represent(*problem, 0.3, allowed=np.empty(0, dtype=int))
    assert found.codes.shape == (N_PAST, N_NEW)
    assert not found.codes.nnz
    assert all(report.converged for report in found.reports)


@pytest.mark.parametrize("form", [sparse.csc_array, sparse.csc_array.toarray])
@pytest.mark.parametrize("allowed", [None, np.arange(0, N_PAST, 2)])
def test_a_start_saves_steps_and_not_the_answer(problem, form, allowed):
    cold = represent(*problem, 0.3, allowed=allowed)
    warm = represent(*problem, 0.3, allowed=allowed, start=form(cold.codes))
    np.testing.assert_allclose(warm.codes.toarray(), cold.codes.toarray(), atol=1e-9)
    assert sum(r.n_iter for r in warm.reports) < sum(r.n_iter for r in cold.reports)


@pytest.mark.parametrize(
    "executor", [SerialExecutor(), JoblibExecutor(2, prefer="threads"), JoblibExecutor(2, prefer="processes")], ids=repr
)
def test_an_executor_does_not_change_one_bit(rng, executor):
    """400 labels make a Gram above the size from which on workers see it read-only."""
    B = sparse.csr_array((rng.random((300, 500)) < 0.1).astype(np.int8))
    gram, own = centred_cross(B, B), np.arange(400, 500)
    here = represent(gram, gram[:, own], gram.diagonal()[own], 3.0, own=own, start=np.zeros((500, 100)))
    there = represent(
        gram, gram[:, own], gram.diagonal()[own], 3.0, own=own, start=np.zeros((500, 100)), executor=executor
    )
    assert np.array_equal(here.codes.toarray(), there.codes.toarray())
    assert here.reports == there.reports


def test_a_path_is_the_codes_at_each_penalty_in_their_order(problem):
    gram, correlations, energies = problem
    lams = [0.5, 4.0, 0.1, 1.0]
    path = lasso_path(gram, correlations[:, 0], lams, energy=energies[0])
    assert path.codes.shape == (N_PAST, 4)
    for j, lam in enumerate(lams):
        code = solve_active_set(gram, np.ascontiguousarray(correlations[:, 0]), lam)[0]
        np.testing.assert_allclose(path.codes[:, [j]].toarray().ravel(), code, atol=1e-8)
        assert path.reports[j].converged


def test_a_path_without_the_energy_bounds_the_gap(problem):
    gram, correlations, energies = problem
    lams = [4.0, 1.0, 0.1]
    known = lasso_path(gram, correlations[:, 1], lams, energy=energies[1])
    bounded = lasso_path(gram, correlations[:, 1], lams)
    assert np.array_equal(known.codes.toarray(), bounded.codes.toarray())
    for gap, bound in zip(known.reports, bounded.reports, strict=True):
        assert gap.violation <= bound.violation + 1e-14
        assert bound.converged


def test_the_bound_on_the_gap_holds_for_unfinished_codes(problem):
    """relative gap <= 2 * the largest miss of a condition, in units of lam, for codes no worse than none."""
    gram, correlations, energies = problem
    lam, correlation = 0.5, np.ascontiguousarray(correlations[:, 2])
    code = solve_active_set(gram, correlation, lam)[0]
    for share in (0.1, 0.5, 0.9, 0.999):
        near = share * code
        gradient = gram @ near - correlation
        gap = duality_gap(near, gradient, correlation, energies[2], lam)
        assert 0.0 < gap <= 2.0 * kkt_violation(near, gradient, lam)


def test_a_path_may_exclude_an_entry(labels):
    gram = centred_cross(labels, labels)
    path = lasso_path(gram, gram[:, 6], [2.0, 0.3], energy=gram[6, 6], excluded=6)
    assert not path.codes.toarray()[6].any()
    assert all(report.converged for report in path.reports)


def test_a_path_of_one_number_and_wrong_shapes(problem):
    gram, correlations, _ = problem
    assert lasso_path(gram, correlations[:, 0], 0.5).codes.shape == (N_PAST, 1)
    with pytest.raises(DataError, match="the label Gram is"):
        lasso_path(gram, correlations, [0.5])
    with pytest.raises(DataError, match="above 0"):
        lasso_path(gram, correlations[:, 0], [0.5, -1.0])


def test_no_new_labels_and_constant_ones(problem):
    gram, correlations, energies = problem
    none = represent(gram, correlations[:, :0], energies[:0], 1.0)
    assert none.codes.shape == (N_PAST, 0)
    assert none.reports == ()
    constant = represent(gram, np.zeros((N_PAST, 2)), np.zeros(2), 1.0)
    assert not constant.codes.nnz
    assert all(report.converged for report in constant.reports)


def test_single_precision_and_any_memory_order_are_taken(problem):
    gram, correlations, energies = problem
    found = represent(np.asfortranarray(gram), np.asfortranarray(correlations), energies, 0.5)
    assert np.array_equal(found.codes.toarray(), represent(gram, correlations, energies, 0.5).codes.toarray())
    single = represent(gram.astype(np.float32), correlations.astype(np.float32), energies.astype(np.float32), 0.5)
    np.testing.assert_allclose(single.codes.toarray(), found.codes.toarray(), atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"solver": "guess"}, "there are active_set, coordinate_descent"),
        ({"lam": 0.0}, "above 0"),
        ({"lam": np.nan}, "above 0"),
        ({"lam": np.ones(3)}, "one a column"),
        ({"own": np.arange(4)}, "own names one entry"),
        ({"own": np.full(5, 20)}, "own names one entry"),
        ({"allowed": np.array([3, 1])}, "increasing order"),
        ({"allowed": np.array([1, 1])}, "increasing order"),
        ({"allowed": np.array([0.5])}, "increasing order"),
        ({"allowed": np.array([5, 20])}, "there are 0 to 19"),
        ({"start": np.zeros((3, 5))}, "start has shape"),
        ({"energies": np.ones(4)}, "energies have shape"),
        ({"correlations": np.full((20, 5), np.nan)}, "NaN"),
        ({"correlations": np.zeros(20)}, "expected \\(n_labels, n_new\\)"),
        ({"label_gram": np.eye(19)}, "the label Gram is"),
    ],
)
def test_bad_input_is_refused(problem, changes, message):
    arguments = dict(zip(("label_gram", "correlations", "energies"), problem, strict=True)) | {"lam": 1.0} | changes
    with pytest.raises(DataError, match=message):
        represent(**arguments)


def test_grams_without_densifying_equal_the_dense_ones(labels):
    dense = labels.toarray().astype(float)
    centred = dense - dense.mean(axis=0)
    np.testing.assert_allclose(centred_cross(labels, labels), centred.T @ centred, atol=1e-10)
    np.testing.assert_allclose(centred_cross(dense, labels), centred.T @ centred, atol=1e-10)
    signed = 2 * dense - 1
    np.testing.assert_allclose(signed_label_gram(labels), signed.T @ signed, atol=1e-10)
