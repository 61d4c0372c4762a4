"""A small past of planted labels, as the methods of the budget experiment are given it."""

from __future__ import annotations

from scipy import sparse
from sklearn.preprocessing import normalize

from streamlabel.data.synthetic import make_planted_labels
from streamlabel.experiments.budget_methods import Past


def planted_past() -> Past:
    """120 + 40 rows, 20 features, 12 past and 6 new labels."""
    planted = make_planted_labels(160, 20, 12, 6, noise=0.1, feature_noise=0.3, random_state=0)
    X = sparse.csr_array(normalize(planted.X))
    Y_past, Y_new = (sparse.csr_array(Y)[:120] for Y in (planted.Y_past, planted.Y_new))
    return Past(X[:120], Y_past, Y_new, X[120:], seed=0)
