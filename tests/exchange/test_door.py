"""The door: formats by name and ending, what can be exported, packages that are missing."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.errors import DataError, MissingExtraError
from streamlabel.exchange.export import FORMATS, export
from streamlabel.tagging.tagger import Tagger


def test_the_format_is_told_by_name_or_ending(classifier, tmp_path):
    by_name = export(classifier, tmp_path / "labels", "jsonl").read_bytes()
    assert export(classifier, tmp_path / "labels.JSONL").read_bytes() == by_name
    with pytest.raises(DataError, match=r"the ending '\.pkl' is not known; pass format=, one of csv, jsonl"):
        export(classifier, tmp_path / "model.pkl")
    with pytest.raises(DataError, match="format 'pickle' is not known"):
        export(classifier, tmp_path / "model.csv", "pickle")


def test_a_tagger_and_a_stored_model_are_exported_like_their_classifier(classifier, tagger, tmp_path):
    export(tagger, tmp_path / "a.npz")
    export(tagger.classifier_, tmp_path / "b.npz")
    with np.load(tmp_path / "a.npz") as a, np.load(tmp_path / "b.npz") as b:
        assert all(np.array_equal(a[name], b[name]) for name in b.files)
    with ModelStore.create(tmp_path / "store", classifier) as store:
        export(store, tmp_path / "c.npz")
    with np.load(tmp_path / "c.npz") as c:
        np.testing.assert_allclose(c["coef"], classifier.coef_, rtol=1e-6)
        assert tuple(c["label_names"]) == classifier.label_names_


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_what_is_not_fitted_or_no_model_is_refused(name, tmp_path):
    for model, problem in (
        (StreamingLabelClassifier(), "not fitted"),
        (Tagger(), "knows no label"),
        (object(), "object cannot be exported"),
    ):
        with pytest.raises(DataError, match=problem):
            export(model, tmp_path / "out", name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("format", "module", "extra"),
    [
        ("onnx", "onnx", "onnx"),
        ("mlflow", "mlflow", "mlflow"),
        ("safetensors", "safetensors.numpy", "safetensors"),
        ("sklearn", "skops.io", "skops"),
    ],
)
def test_a_missing_package_says_how_to_get_it(classifier, tmp_path, monkeypatch, format, module, extra):
    for name in [name for name in sys.modules if name.partition(".")[0] == module.partition(".")[0]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError) as caught:
        export(classifier, tmp_path / "out", format)
    assert str(caught.value).endswith(f"pip install 'streamlabel[{extra}]' (in a clone: pip install -e '.[{extra}]')")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_an_error(classifier, tmp_path):
    with pytest.raises(DataError, match="cannot be written"):
        export(classifier, tmp_path / "no" / "labels.csv")
