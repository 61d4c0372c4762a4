"""The label dictionary: how many, from which clusters, which ones, and that it serves the codes."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from streamlabel.errors import DataError
from streamlabel.stats.label_gram import centred_cross
from streamlabel.structure.dictionary import _equal, _proportional, choose_dictionary, cluster_labels
from streamlabel.structure.represent import represent


def clustered(rng, sizes=(40, 20, 10, 5), n_rows=400, keep=0.7):
    """Labels in clusters: each cluster has rows of its own, a label has most of its cluster's rows."""
    owner = rng.integers(len(sizes), size=n_rows)
    of_label = np.repeat(np.arange(len(sizes)), sizes)
    B = (owner[:, None] == of_label) & (rng.random((n_rows, len(of_label))) < keep)
    return sparse.csr_array(B.astype(np.int8)), of_label


@pytest.mark.parametrize("n_atoms", [1, 4, 15, 74, 75])
@pytest.mark.parametrize("per_cluster", ["proportional", "equal"])
def test_sizes_are_exact(rng, n_atoms, per_cluster):
    B, _ = clustered(rng)
    atoms = choose_dictionary(B, n_atoms, per_cluster=per_cluster)
    assert atoms.shape == (n_atoms,)
    assert (np.diff(atoms) > 0).all()
    assert atoms.min() >= 0
    assert atoms.max() < 75


@pytest.mark.parametrize("seed", range(5))
def test_planted_clusters_get_one_atom_each(rng, seed):
    B, of_label = clustered(rng, sizes=(30, 30, 20, 10, 5, 5))
    assert sorted(of_label[choose_dictionary(B, 6, random_state=seed)]) == [0, 1, 2, 3, 4, 5]


def test_atoms_are_in_proportion_to_the_clusters(rng):
    B, of_label = clustered(rng, sizes=(40, 20, 10, 5))
    atoms = choose_dictionary(B, 15, n_clusters=4)
    assert np.bincount(of_label[atoms]).tolist() == [8, 4, 2, 1]
    equal = choose_dictionary(B, 12, n_clusters=4, per_cluster="equal")
    assert np.bincount(of_label[equal]).tolist() == [3, 3, 3, 3]


def test_clusters_are_found_up_to_their_names(rng):
    B, of_label = clustered(rng)
    found = cluster_labels(B, 4).members
    pairs = set(zip(found.tolist(), of_label.tolist(), strict=True))
    assert len(pairs) == 4


def test_cosines_of_a_small_set_are_those_of_the_vectors():
    """Up to 64 labels nothing is lost in the projection: one cluster's centre is the mean direction."""
    B = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1], [0, 0, 1], [0, 0, 1]])
    unit = B / np.sqrt(B.sum(axis=0))
    centre = unit.sum(axis=1) / np.linalg.norm(unit.sum(axis=1))
    np.testing.assert_allclose(cluster_labels(sparse.csr_array(B), 1).cosines, unit.T @ centre, atol=1e-12)


def test_the_same_seed_gives_the_same_dictionary_in_any_form(rng):
    B = sparse.csr_array((rng.random((150, 200)) < 0.1).astype(np.int8))
    first = choose_dictionary(B, 30, random_state=3)
    assert np.array_equal(first, choose_dictionary(B, 30, random_state=3))
    assert np.array_equal(first, choose_dictionary(B.toarray(), 30, random_state=3))
    assert not np.array_equal(first, choose_dictionary(B, 30, random_state=4))
    one = choose_dictionary(B, 30, random_state=np.random.default_rng(5))
    assert np.array_equal(one, choose_dictionary(B, 30, random_state=np.random.default_rng(5)))


def test_empty_and_full_labels_never_enter(rng):
    B, _ = clustered(rng)
    B = sparse.hstack([np.zeros((400, 2)), B, np.ones((400, 1))], format="csr")
    for n_atoms in (10, 1000):
        atoms = choose_dictionary(B, n_atoms)
        assert not set(atoms.tolist()) & {0, 1, 77}


def test_of_labels_on_the_same_rows_the_first_can_enter(rng):
    B, _ = clustered(rng)
    doubled = sparse.hstack([B, B, B], format="csr")
    assert choose_dictionary(doubled, 1000).tolist() == list(range(75))
    assert np.array_equal(choose_dictionary(doubled, 20), choose_dictionary(B, 20))


def test_fewer_labels_than_atoms_are_all_taken(rng):
    B, _ = clustered(rng)
    assert choose_dictionary(B, 76).tolist() == list(range(75))


def test_a_matrix_without_usable_labels_gives_none():
    assert choose_dictionary(np.zeros((5, 3)), 4).shape == (0,)
    assert choose_dictionary(np.zeros((5, 0)), 4).shape == (0,)


def test_frequent_and_central_labels_are_preferred(rng):
    B, of_label = clustered(rng, sizes=(20, 20))
    counts = B.sum(axis=0)
    frequent = choose_dictionary(B, 10, n_clusters=2, prefer="frequent")
    for cluster in (0, 1):
        mine = frequent[of_label[frequent] == cluster]
        rest = np.setdiff1d(np.flatnonzero(of_label == cluster), mine)
        assert counts[mine].min() >= counts[rest].max()
    found = cluster_labels(B, 2)
    central = choose_dictionary(B, 10, n_clusters=2, prefer="central")
    for cluster in (0, 1):
        mine = central[found.members[central] == cluster]
        rest = np.setdiff1d(np.flatnonzero(found.members == cluster), mine)
        assert found.cosines[mine].min() >= found.cosines[rest].max()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_atoms": 0}, "1 label at least"),
        ({"n_atoms": 5, "n_clusters": 6}, "expected 1 to n_atoms"),
        ({"n_atoms": 5, "n_clusters": 0}, "expected 1 to n_atoms"),
        ({"n_atoms": 5, "per_cluster": "all"}, "proportional and equal"),
        ({"n_atoms": 5, "prefer": "rare"}, "projection, frequent, central"),
    ],
)
def test_bad_options_are_refused(rng, options, message):
    with pytest.raises(DataError, match=message):
        choose_dictionary(clustered(rng)[0], **options)


def test_a_matrix_that_is_not_of_labels_is_refused():
    with pytest.raises(DataError, match="0 and 1 only"):
        choose_dictionary(np.full((3, 3), 2.0), 2)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12).filter(any), st.data())
def test_proportional_quotas(sizes, data):
    n_clusters, total = sum(size > 0 for size in sizes), sum(sizes)
    n_atoms = data.draw(st.integers(n_clusters, total))
    quotas = _proportional(np.array(sizes), n_atoms)
    assert quotas.sum() == n_atoms
    assert all(min(size, 1) <= quota <= size for quota, size in zip(quotas, sizes, strict=True))
    if all(size == 0 or Fraction(n_atoms * size, total) >= 1 for size in sizes):  # nobody had to be lifted to one
        for quota, size in zip(quotas, sizes, strict=True):
            share = Fraction(n_atoms * size, total)
            assert math.floor(share) <= quota <= math.ceil(share)


def test_largest_remainders_by_hand():
    # shares of 10: 4.7, 1.6, 1.6, 1.1, 1.0 -> floors 4 1 1 1 1, two missing: to .7, then to the first of the two .6
    assert _proportional(np.array([47, 16, 16, 11, 10]), 10).tolist() == [5, 2, 1, 1, 1]
    # shares of 4: 3.6, .2, .2 -> the small ones get one each, the large one what is left
    assert _proportional(np.array([18, 1, 1]), 4).tolist() == [2, 1, 1]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12).filter(any), st.data())
def test_equal_quotas(sizes, data):
    n_atoms = data.draw(st.integers(sum(size > 0 for size in sizes), sum(sizes)))
    quotas = _equal(np.array(sizes), n_atoms)
    assert quotas.sum() == n_atoms
    assert all(min(size, 1) <= quota <= size for quota, size in zip(quotas, sizes, strict=True))
    below = [quota for quota, size in zip(quotas, sizes, strict=True) if quota < size]
    assert not below or quotas.max() - min(below) <= 1


def test_codes_on_the_dictionary_are_better_than_on_random_labels(rng):
    """What it is for: with the same number of labels, more of the new labels is explained."""
    B, _ = clustered(rng, sizes=(18,) * 8, keep=0.5)
    new, past = B[:, ::7], B[:, np.flatnonzero(np.arange(B.shape[1]) % 7)]
    gram, correlations = centred_cross(past, past), centred_cross(past, new)
    energies = np.diag(centred_cross(new, new))

    def explained(atoms):
        codes = represent(gram, correlations, energies, 0.02 * energies, allowed=atoms).codes.toarray()
        residual = energies - 2 * (codes * correlations).sum(axis=0) + (codes * (gram @ codes)).sum(axis=0)
        return float(np.mean(1.0 - residual / energies))

    by_chance = [explained(np.sort(rng.choice(past.shape[1], 8, replace=False))) for _ in range(20)]
    assert explained(choose_dictionary(past, 8)) > max(by_chance)


@pytest.mark.slow
@pytest.mark.data
def test_fifty_thousand_labels_take_less_than_a_minute(data_root):
    path = data_root / "citeulike-t" / "Y_train.npz"
    if not path.is_file():
        pytest.skip("citeulike-t is not there")
    B = sparse.csr_array(sparse.load_npz(path))
    began = time.process_time()
    atoms = choose_dictionary(B, 3000)
    assert time.process_time() - began < 60.0
    assert atoms.shape == (3000,)
