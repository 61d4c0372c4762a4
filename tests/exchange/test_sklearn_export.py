"""scikit-learn estimators: the same numbers, also in a process that never loads streamlabel."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from streamlabel import StreamingLabelClassifier
from streamlabel.errors import DataError
from streamlabel.exchange.export import export
from streamlabel.exchange.sklearn_export import to_sklearn


def test_each_form_keeps_its_numbers(classifier, rows):
    decisions, scores = to_sklearn(classifier), to_sklearn(classifier, keep="scores")
    probabilities = to_sklearn(classifier, keep="probabilities")
    assert {type(e).__module__.partition(".")[0] for e in (decisions, scores, probabilities)} == {"sklearn"}
    ours = classifier.decision_function(rows)
    np.testing.assert_array_equal(decisions.predict(rows), classifier.predict(rows))
    np.testing.assert_allclose(decisions.decision_function(rows), ours - classifier.thresholds_, atol=1e-12)
    np.testing.assert_allclose(scores.decision_function(rows), ours, atol=1e-12)
    np.testing.assert_allclose(probabilities.predict_proba(rows), classifier.predict_proba(rows), atol=1e-12)
    np.testing.assert_array_equal(probabilities.predict(rows), (classifier.predict_proba(rows) > 0.5).astype(int))
    assert decisions.label_names_ == list(classifier.label_names_)


def test_sparse_rows_and_cloning_work(classifier, rows):
    from sklearn.base import clone

    estimator = to_sklearn(classifier)
    np.testing.assert_array_equal(estimator.predict(sparse.csr_array(rows)), classifier.predict(rows))
    fresh = clone(estimator).fit(rows, classifier.predict(rows))
    assert fresh.coef_.shape == estimator.coef_.shape


def test_one_label_is_a_vector_as_in_scikit_learn(rows):
    model = StreamingLabelClassifier(beta=1.0).fit(rows, (rows[:, :1] > 0).astype(int), label_names=["a"])
    np.testing.assert_array_equal(to_sklearn(model).predict(rows), model.predict(rows)[:, 0])
    probabilities = to_sklearn(model, keep="probabilities").predict_proba(rows)
    np.testing.assert_allclose(probabilities[:, 1], model.predict_proba(rows)[:, 0], atol=1e-12)


def test_it_can_be_adopted_again(classifier, rows):
    back = StreamingLabelClassifier.from_estimator(to_sklearn(classifier, keep="scores"), classifier.label_names_)
    np.testing.assert_allclose(back.decision_function(rows), classifier.decision_function(rows), atol=1e-12)


def test_a_skops_file_needs_neither_trust_nor_streamlabel(classifier, rows, tmp_path):
    pytest.importorskip("skops", reason="the extra skops is not installed")
    for keep in ("decisions", "probabilities"):
        export(classifier, tmp_path / f"{keep}.skops", keep=keep)
    np.save(tmp_path / "rows.npy", rows)
    script = (
        "import sys, numpy as np, skops.io\n"
        "rows = np.load('rows.npy')\n"
        "for keep in ('decisions', 'probabilities'):\n"
        "    assert skops.io.get_untrusted_types(file=f'{keep}.skops') == []\n"
        "    np.save(f'{keep}.npy', skops.io.load(f'{keep}.skops').predict(rows))\n"
        "assert not any(name.startswith('streamlabel') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=600, cwd=tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "decisions.npy"), classifier.predict(rows))
    np.testing.assert_array_equal(np.load(tmp_path / "probabilities.npy"), classifier.predict_proba(rows) > 0.5)


def test_other_forms_are_refused(classifier):
    with pytest.raises(DataError, match="keep is 'all'"):
        to_sklearn(classifier, keep="all")
