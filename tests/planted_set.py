"""A small set whose new labels are mixtures of past ones, as training and test part."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from streamlabel.data.synthetic import make_planted_labels
from streamlabel.types import Dataset


def planted_sets(n_empty: int = 0) -> tuple[Dataset, Dataset]:
    """300 + 200 rows, 40 features, 34 labels, and ``n_empty`` further labels that occur in the test rows only."""
    planted = make_planted_labels(500, 40, 24, 10, noise=0.1, feature_noise=0.3, random_state=0)
    rare = np.zeros((500, n_empty), dtype=np.int8)
    rare[350:352] = 1
    Y = sparse.csr_array(sparse.hstack((planted.Y_past, planted.Y_new, sparse.csr_array(rare)), format="csr"))
    whole = Dataset(X=sparse.csr_array(planted.X), Y=Y, label_names=tuple(map(str, range(Y.shape[1]))))
    return whole.take_rows(np.arange(300)), whole.take_rows(np.arange(300, 500))
