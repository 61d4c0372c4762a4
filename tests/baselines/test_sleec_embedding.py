"""Singular value projection: it descends, projects as eigh does, and finds what was planted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from streamlabel.baselines import sleec_embedding
from streamlabel.baselines.sleec_embedding import embed, observed_products


def observed(gram: np.ndarray, share: float, rng: np.random.Generator) -> sparse.csr_array:
    """A symmetric random part of a Gram matrix; zeros that are observed are stored."""
    upper = np.triu(rng.random(gram.shape) < share)
    rows, columns = np.nonzero(upper | upper.T | np.eye(len(gram), dtype=bool))
    return sparse.csr_array((gram[rows, columns], (rows, columns)), shape=gram.shape)


@pytest.mark.parametrize(("n_rows", "n_iterations"), [(60, 1), (450, 20)])  # dense; sparse plus low rank, not exact
def test_everything_observed_is_the_truncated_eigendecomposition(rng, n_rows, n_iterations):
    vectors = np.linalg.qr(rng.standard_normal((n_rows, 9)))[0]
    gram = (vectors * [9.0, 7.0, 5.0, 3.0, 0.3, 0.2, 0.1, -4.0, -8.0]) @ vectors.T
    gram = 0.5 * (gram + gram.T)
    Z = embed(observed(gram, 1.0, rng), 4, n_iterations, tolerance=1e-15).Z
    values, found = np.linalg.eigh(gram)
    best = (found[:, -4:] * values[-4:]) @ found[:, -4:].T
    np.testing.assert_allclose(Z @ Z.T, best, atol=1e-6)


def test_negative_eigenvalues_are_cut(rng):
    vectors = np.linalg.qr(rng.standard_normal((40, 2)))[0]
    gram = (vectors * [2.0, -5.0]) @ vectors.T
    Z = embed(observed(0.5 * (gram + gram.T), 1.0, rng), 2, 1).Z
    np.testing.assert_allclose(Z @ Z.T, 2.0 * np.outer(vectors[:, 0], vectors[:, 0]), atol=1e-9)


@pytest.mark.parametrize("n_rows", [120, 450])
def test_a_planted_gram_is_found_from_a_third_of_it(rng, n_rows):
    planted = rng.standard_normal((n_rows, 4))
    gram = planted @ planted.T
    found = embed(observed(gram, 1 / 3, rng), 4, 300, tolerance=1e-12).Z
    assert np.linalg.norm(found @ found.T - gram) < 1e-3 * np.linalg.norm(gram)


@pytest.mark.parametrize("n_rows", [100, 450])
def test_the_objective_is_what_it_says_and_falls_in_every_step(rng, n_rows):
    labels = (rng.random((n_rows, 30)) < 0.15).astype(float)
    part = observed(labels @ labels.T, 0.1, rng)
    steps = [embed(part, 8, n, tolerance=0.0) for n in range(1, 9)]
    falling = np.array(steps[-1].objective)
    assert (np.diff(falling) < 0.0).all()
    seen = (part.toarray() != 0.0) | (sparse.csr_array((np.ones(part.nnz), part.indices, part.indptr)).toarray() > 0.0)
    for step in steps:
        residual = np.where(seen, part.toarray() - step.Z @ step.Z.T, 0.0)
        assert step.objective[-1] == pytest.approx(0.5 * np.square(residual).sum(), rel=1e-9)
    np.testing.assert_allclose([step.objective[-1] for step in steps], falling[1:], rtol=1e-9)


def test_it_stops_when_little_is_gained(rng):
    labels = (rng.random((80, 20)) < 0.2).astype(float)
    part = observed(labels @ labels.T, 0.5, rng)
    objective = embed(part, 5, 500, tolerance=1e-3).objective
    gains = -np.diff(objective) / objective[:-1]
    assert len(gains) < 500
    assert gains[-1] <= 1e-3 < gains[:-1].min()


@pytest.mark.parametrize("gather", [1, 10**9])
def test_observed_products(rng, monkeypatch, gather):
    monkeypatch.setattr(sleec_embedding, "_GATHER", gather)
    monkeypatch.setattr(sleec_embedding, "_BLOCK_CELLS", 100)
    Z = rng.standard_normal((50, 3))
    pattern = observed(np.ones((50, 50)), 0.2, rng)
    rows, columns = pattern.nonzero()
    np.testing.assert_allclose(observed_products(pattern, Z), (Z @ Z.T)[rows, columns], atol=1e-12)


def test_more_dimensions_than_rows_and_nothing_to_embed(rng):
    gram = rng.standard_normal((5, 5))
    gram = gram @ gram.T
    Z = embed(observed(gram, 1.0, rng), 20, 3).Z
    assert Z.shape == (5, 5)
    np.testing.assert_allclose(Z @ Z.T, gram, atol=1e-9)
    assert not embed(observed(np.zeros((450, 450)), 0.1, rng), 3, 5).Z.any()
