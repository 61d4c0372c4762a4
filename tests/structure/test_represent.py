from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from streamlabel.exceptions import ConvergenceWarning
from streamlabel.stats.labels import centred_cross, signed_label_gram
from streamlabel.structure.columns import SOLVERS
from streamlabel.structure.represent import represent


@pytest.fixture
def labels(rng):
    return sparse.csr_array((rng.random((300, 25)) < 0.2).astype(np.int8))


def test_every_code_carries_a_certificate(labels):
    L, C = centred_cross(labels[:, :20], labels[:, :20]), centred_cross(labels[:, :20], labels[:, 20:])
    energies = np.diag(centred_cross(labels[:, 20:], labels[:, 20:]))
    found = represent(L, C, energies, lam=1.0)
    assert found.codes.shape == (20, 5)
    assert len(found.reports) == 5
    assert all(report.converged and report.violation <= 1e-6 for report in found.reports)


def test_a_code_that_stops_short_warns(labels, monkeypatch):
    L, C = centred_cross(labels[:, :20], labels[:, :20]), centred_cross(labels[:, :20], labels[:, 20:])

    def lazy(gram, correlation, lam, **options):
        return np.zeros_like(correlation), -correlation, 0, False

    monkeypatch.setitem(SOLVERS, "active_set", lazy)
    with pytest.warns(ConvergenceWarning, match="5 of 5 label codes stopped short"):
        found = represent(L, C, np.full(5, 40.0), lam=0.1)
    assert not found.reports[0].converged


def test_grams_without_densifying_equal_the_dense_ones(labels):
    dense = labels.toarray().astype(float)
    centred = dense - dense.mean(axis=0)
    np.testing.assert_allclose(centred_cross(labels, labels), centred.T @ centred, atol=1e-10)
    np.testing.assert_allclose(centred_cross(dense, labels), centred.T @ centred, atol=1e-10)
    signed = 2 * dense - 1
    np.testing.assert_allclose(signed_label_gram(labels), signed.T @ signed, atol=1e-10)
