"""Names of sets, their stand-ins, and what is kept in memory."""

from __future__ import annotations

import pytest

from streamlabel.data.catalogue import ENTRIES
from streamlabel.errors import NotFoundError
from streamlabel.experiments import sets
from streamlabel.experiments.sets import NEWS_CORPUS, asked_name, load_set, quick_sets, resolve_sets, training_rows


@pytest.fixture
def here(monkeypatch):
    """Which sets are on this machine; to be filled by the test."""
    names: set[str] = set()
    monkeypatch.setattr(sets, "locate", lambda entry: entry if entry.name in names else None)
    monkeypatch.setattr(sets, "require", lambda entry: _refuse(entry.name) if entry.name not in names else entry)
    return names


def _refuse(name: str) -> None:
    raise NotFoundError(f"{name} is not here")


def test_a_set_that_is_here_is_itself(here):
    here |= {"mediamill", "mediamill_reduced", "eurlex57k", "wiki10-31k"}
    assert resolve_sets(["MediaMill", "wiki10", "mediamill"]) == ("mediamill", "wiki10-31k")


def test_stand_ins_carry_both_names(here):
    here |= {"mediamill_reduced", "eurlex57k"}
    found = resolve_sets(["mediamill", "eurlex", "wiki10", "mediamill_reduced"])
    assert found == (
        "mediamill (stand-in mediamill_reduced)",
        "eurlex-4k (stand-in eurlex57k)",
        "wiki10-31k (stand-in twin)",
        "mediamill_reduced",
    )
    assert [asked_name(name) for name in found] == ["mediamill", "eurlex-4k", "wiki10-31k", "mediamill_reduced"]
    assert [training_rows(name) for name in found] == [1500, 45000, 14146, 1500]


def test_neither_the_set_nor_its_stand_in(here):
    with pytest.raises(NotFoundError, match="mediamill is not here"):
        resolve_sets(["mediamill"])


@pytest.mark.parametrize("name", ["bibtx", "zzz", ""])
def test_a_wrong_name_gets_the_list_of_names_once(here, name):
    with pytest.raises(NotFoundError) as caught:
        resolve_sets([name])
    for entry in ENTRIES:
        assert f"{entry.name}," in str(caught.value) or str(caught.value).endswith(entry.name)
    assert str(caught.value).count("citeulike-t-min5") == 1


def test_quick_takes_what_is_here(here):
    assert quick_sets(["bibtex", "delicious"]) == (NEWS_CORPUS,)
    here |= {"delicious"}
    assert quick_sets(["bibtex", "delicious"]) == ("delicious",)


def test_the_embedded_texts_have_as_many_rows_as_said(monkeypatch):
    monkeypatch.setattr(sets, "_TEXTS", 100)
    load_set.cache_clear()
    train, test = load_set(NEWS_CORPUS)
    assert train.n_rows == training_rows(NEWS_CORPUS) == 67
    assert test.n_rows == 33
    assert load_set(NEWS_CORPUS)[0] is train
    load_set.cache_clear()


@pytest.mark.slow
def test_the_twin_has_the_shape_of_its_set():
    train, test = load_set("wiki10-31k (stand-in twin)")
    assert train.X.shape == (14146, 101938)
    assert train.Y.shape == (14146, 30938)
    assert test.n_rows == 6616
    assert (train.Y.nnz + test.Y.nnz) / (14146 + 6616) == pytest.approx(18.64, abs=1e-3)
    load_set.cache_clear()
