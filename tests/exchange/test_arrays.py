"""npz and safetensors: the scores come back from the arrays alone."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import expit

from streamlabel.errors import DataError
from streamlabel.exchange.export import export


def test_npz(classifier, rows, tmp_path):
    with np.load(export(classifier, tmp_path / "model.npz"), allow_pickle=False) as arrays:
        found = dict(arrays)
    assert found["label_names"].tolist() == list(classifier.label_names_)
    scores = rows @ found["coef"].T + found["intercept"]
    np.testing.assert_allclose(scores, classifier.decision_function(rows), rtol=0, atol=1e-12)
    np.testing.assert_array_equal((scores > found["thresholds"]).astype(int), classifier.predict(rows))
    probabilities = expit(found["slope"] * scores + found["offset"])
    np.testing.assert_allclose(probabilities, classifier.predict_proba(rows), atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_safetensors(classifier, rows, tmp_path, dtype):
    safetensors = pytest.importorskip("safetensors", reason="the extra safetensors is not installed")
    path = export(classifier, tmp_path / "model.safetensors", dtype=dtype)
    with safetensors.safe_open(path, framework="np") as file:
        names = json.loads(file.metadata()["label_names"])
        arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    assert names == list(classifier.label_names_)
    assert {array.dtype for array in arrays.values()} == {np.dtype(dtype)}
    scores = rows @ arrays["coef"].T + arrays["intercept"]
    np.testing.assert_allclose(scores, classifier.decision_function(rows), atol=1e-12 if dtype == "float64" else 1e-5)
    np.testing.assert_allclose(arrays["thresholds"], classifier.thresholds_, rtol=1e-6)


def test_other_numbers_are_refused(classifier, tmp_path):
    with pytest.raises(DataError, match="dtype is 'int8'"):
        export(classifier, tmp_path / "model.npz", dtype="int8")
    assert not list(tmp_path.iterdir())
