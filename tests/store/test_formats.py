"""Models of every format that was ever released can be read, scored and grown."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from streamlabel import ModelStore
from streamlabel.store.format import FORMAT

FORMATS = sorted(Path(__file__).with_name("formats").iterdir())


def test_the_current_format_is_among_them():
    assert [folder.name for folder in FORMATS] == [str(number) for number in range(1, FORMAT + 1)]


@pytest.mark.parametrize("folder", FORMATS, ids=lambda folder: f"format {folder.name}")
def test_an_old_model_is_what_it_was(folder, tmp_path):
    path = tmp_path / "model"
    shutil.copytree(folder, path)
    X, expected = np.loadtxt(path / "rows.csv", delimiter=","), np.loadtxt(path / "expected.csv", delimiter=",")
    store = ModelStore.open(path)
    assert store.label_names == ("café", "β", "late", "few")
    np.testing.assert_allclose(store.scores(X), expected, rtol=1e-13, atol=1e-13)
    assert store.get_part("notes").content == {"text": "ü"}
    assert store.get_part("notes").arrays["numbers"].tolist() == [0, 1, 2, 3, 4]
    assert [revision.action for revision in store.history()][::-1][:4] == ["create", "add", "add", "rename"]
    assert ModelStore.open(path, revision=2).label_names == ("café", "b", "late")
    assert [record.n_unasked for record in store.labels()] == [0, 0, 0, 20]
    assert store.metrics("late")[0].value == 0.5
    assert ModelStore.doctor(path) == []
    with ModelStore.open(path, "a") as store:
        store.add_labels(None, (X[:, 0] > 0).astype(int), ["new"])
        np.testing.assert_allclose(store.scores(X)[:, :4], expected, rtol=1e-13, atol=1e-13)


def test_an_upgrade_that_fails_leaves_the_old_format(tmp_path, monkeypatch):
    path = tmp_path / "model"
    shutil.copytree(FORMATS[0], path)
    X = np.loadtxt(path / "rows.csv", delimiter=",")
    before = ModelStore.open(path).scores(X)
    with monkeypatch.context() as patched:
        patched.setattr("streamlabel.store.upgrade_1.part_checksum", _no_memory)
        with pytest.raises(MemoryError):
            ModelStore.open(path, "a")
    assert _format_of(path) == 1
    assert np.array_equal(ModelStore.open(path).scores(X), before)
    assert _format_of(path) == 1  # reading changes nothing
    ModelStore.open(path, "a").close()
    assert _format_of(path) == FORMAT
    assert np.array_equal(ModelStore.open(path).scores(X), before)
    assert ModelStore.doctor(path) == []


def _no_memory(*_):
    raise MemoryError


def _format_of(path):
    return int.from_bytes((path / "catalogue.db").read_bytes()[60:64], "big")
