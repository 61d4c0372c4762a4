"""The catalogue: every file form gives the same set, published numbers are enforced, the real sets agree."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from streamlabel.data import catalogue
from streamlabel.data.catalogue import (
    ENTRIES,
    Counts,
    cache_folder,
    count,
    data_roots,
    differences,
    find_entry,
    load_catalogue_set,
    load_catalogue_splits,
    locate,
    read_split_rows,
    total,
)
from streamlabel.data.download import file_sha256
from streamlabel.errors import DataError, NotFoundError
from tiny_set import FORMS, TINY, expected, write_form

PRESENT = ("bibtex", "delicious", "mediamill_reduced", "eurlex57k", "citeulike-t", "citeulike-t-min5")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "ENTRIES", (*ENTRIES, TINY))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.usefixtures("tiny")
def test_every_form_gives_the_same_set(form: str, split: str, tmp_path: Path) -> None:
    write_form(form, tmp_path / "Tiny-3")
    column = 1 if form == "xc single" else 0
    data = load_catalogue_set("tiny", split, roots=[tmp_path], column=column)
    X, Y = expected(split)
    np.testing.assert_array_equal(data.X.toarray(), X)
    np.testing.assert_array_equal(data.Y.toarray(), Y)
    found = locate(TINY, [tmp_path])
    assert found is not None
    assert found.form.name == FORMS[form]


@pytest.mark.usefixtures("tiny")
def test_single_file_columns_are_different_splits(tmp_path: Path) -> None:
    write_form("xc single", tmp_path / "tiny")
    X, _ = expected("train")
    first = load_catalogue_set("tiny", roots=[tmp_path], column=0).X.toarray()
    np.testing.assert_array_equal(first, X[[1, 0, 2, 3, 4]])
    with pytest.raises(NotFoundError, match=r"line 1: no split 2; there are 2"):
        load_catalogue_set("tiny", roots=[tmp_path], column=2)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1\n0\n", r"line 2: row '0'; rows are counted from 1 to 8"),
        ("1\n9\n", r"line 2: row '9'"),
        ("1\n-1\n", r"line 2: row '-1'"),
        ("1\n" + "9" * 40, r"line 2: row '9+'"),
        ("1\nx\n", r"line 2: row 'x'"),
        ("1\n2\n1\n", r"names a row twice"),
        ("1\n\xb2\n", r"not a text file"),
    ],
)
def test_bad_split_files(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "trSplit.txt"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(DataError, match=problem):
        read_split_rows(path, 8)


@pytest.mark.usefixtures("tiny")
def test_first_root_wins_and_incomplete_folders_are_passed_over(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write_form("xc", second / "tiny")
    write_form("xc", first / "tiny")
    roots = [tmp_path / "not there", first, second]
    assert locate(TINY, roots).folder == first / "tiny"  # type: ignore[union-attr]
    (first / "tiny" / "test.txt").unlink()
    assert locate(TINY, roots).folder == second / "tiny"  # type: ignore[union-attr]


@pytest.mark.usefixtures("tiny")
def test_absent_set_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(
        NotFoundError, match=r"tiny-3 is not on this machine \(looked for .*\); put its files there by hand"
    ):
        load_catalogue_set("tiny", roots=[tmp_path])


@pytest.mark.usefixtures("tiny")
def test_unknown_split(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no split 'dev'; it has train, test"):
        load_catalogue_set("tiny", "dev", roots=[tmp_path])


@pytest.mark.parametrize(
    ("name", "hint"),
    [("bibtx", "did you mean bibtex"), ("wiki", "did you mean wiki10-31k"), ("zzz", "there are bibtex")],
)
def test_unknown_name_offers_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(NotFoundError, match=hint):
        find_entry(name)


@pytest.mark.parametrize("name", ["EURLex-4K", " eurlex ", "eurlex-4k"])
def test_names_are_found_in_any_capitals_and_by_alias(name: str) -> None:
    assert find_entry(name).name == "eurlex-4k"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"n_rows": {"train": 6, "test": 3}}, "train: examples: 5 here, 6 published"),
        ({"n_features": 5}, "train: features: 4 here, 5 published"),
        ({"n_labels": 4}, "train: labels: 3 here, 4 published"),
        ({"split_averages": {"train": "1.21"}}, r"train: labels per example: 1\.2000 here, 1\.21 published"),
        (
            {"averages_over": ("train",), "examples_per_label": "2.00"},
            r"labels per example over train: 1\.2000 here, 1\.25 published",
        ),
    ],
)
def test_a_number_that_differs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object], problem: str
) -> None:
    monkeypatch.setattr(catalogue, "ENTRIES", (replace(TINY, **change),))  # type: ignore[arg-type]
    write_form("xc", tmp_path / "tiny")
    with pytest.raises(DataError, match=problem) as raised:
        load_catalogue_set("tiny", roots=[tmp_path])
    assert raised.value.source == str(tmp_path / "tiny")


def test_averages_may_differ_by_the_rounding_of_the_publication_only() -> None:
    # 10 assignments, 8 rows, 3 labels: 1.25 and 3.3333...
    counts = {"train": Counts(5, 4, 3, 6, 8), "test": Counts(3, 4, 3, 4, 4)}
    assert total(counts) == Counts(8, 4, 3, 10, 12)
    assert differences(TINY, counts) == []
    for printed, agrees in [("1.2", True), ("1.3", True), ("1.25", True), ("1.24", False), ("1", True), ("2", False)]:
        wrong = differences(replace(TINY, labels_per_example=printed), counts)
        assert (wrong == []) is agrees, printed
    assert differences(replace(TINY, examples_per_label="3.34"), counts) == [
        "examples per label over train + test: 3.3333 here, 3.34 published"
    ]
    assert differences(replace(TINY, examples_per_label="9.99"), {"train": counts["train"]}) == []


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder({"STREAMLABEL_CACHE": "/x", "XDG_CACHE_HOME": "/y"}, "linux") == Path("/x")
    assert cache_folder({"XDG_CACHE_HOME": "/y"}, "linux") == Path("/y/streamlabel")
    assert cache_folder({"XDG_CACHE_HOME": "not/absolute"}, "linux") == tmp_path / ".cache" / "streamlabel"
    assert cache_folder({}, "linux") == tmp_path / ".cache" / "streamlabel"
    assert cache_folder({}, "darwin") == tmp_path / "Library" / "Caches" / "streamlabel"
    assert cache_folder({"LOCALAPPDATA": "/local"}, "win32") == Path("/local/streamlabel/Cache")
    assert data_roots(environ={"STREAMLABEL_DATA": "/d", "STREAMLABEL_CACHE": "/x"}) == [
        Path("/d"),
        Path("/x/datasets"),
    ]
    assert data_roots(tmp_path, environ={}) == [tmp_path / "datasets"]


def test_the_entries_are_consistent() -> None:
    names = [name.lower() for entry in ENTRIES for name in entry.names]
    assert len(names) == len(set(names))
    assert {"bibtex", "delicious", "mediamill", "eurlex-4k", "wiki10-31k"} <= set(names)
    for entry in ENTRIES:
        # Published averages belong together: rows x labels per row = labels x rows per label, within their rounding.
        if entry.name in ("eurlex-4k", "wiki10-31k"):  # we have not seen what was published
            assert entry.labels_per_example is entry.examples_per_label is None
        else:
            assert entry.labels_per_example is not None
            assert entry.examples_per_label is not None
            rows = sum(entry.n_rows[split] for split in entry.averages_over)
            implied = rows * float(entry.labels_per_example) / entry.n_labels
            assert float(entry.examples_per_label) == pytest.approx(implied, rel=3e-3, abs=0.006), entry.name
        for file in entry.files:
            assert file.url.startswith("https://")
            assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)


def test_published_checksums_are_those_of_the_files(data_root: Path) -> None:
    checked = 0
    for entry in ENTRIES:
        for file in entry.files:
            path = data_root / entry.name / file.name
            if file.sha256 is not None and path.exists():
                assert (path.stat().st_size, file_sha256(path)) == (file.size, file.sha256)
                checked += 1
    assert checked == 6


@pytest.mark.parametrize("name", PRESENT)
def test_real_sets_agree_with_what_was_published(name: str, data_root: Path) -> None:
    found = locate(find_entry(name), [data_root])
    assert found is not None
    splits = load_catalogue_splits(found)
    counts = {split: count(data) for split, data in splits.items()}
    assert differences(found.entry, counts) == []
    notes = (data_root / name / "SOURCE.md").read_text(encoding="utf-8")  # counted by whoever exported the set
    for split in ("train", "test"):
        exported = re.search(rf"- {split}: +n=(\d+) d=(\d+) L=(\d+) nnz\(X\)/n=([\d.]+) labels/example=([\d.]+)", notes)
        assert exported is not None
        measured = counts[split]
        shape = (measured.n_rows, measured.n_features, measured.n_labels)
        assert shape == tuple(int(number) for number in exported.groups()[:3])
        assert f"{measured.values_per_example:.2f}" == exported[4]
        assert f"{measured.labels_per_example:.4f}" == exported[5]


def test_label_names_of_the_paper_s_sets(data_root: Path) -> None:
    data = load_catalogue_set("bibtex", "test", roots=[data_root])
    assert data.label_names[:2] == ("TAG_2005", "TAG_2006")
    assert len(set(data.label_names)) == 159


def test_dates_of_eurlex57k(data_root: Path) -> None:
    data = load_catalogue_set("eurlex57k", "dev", roots=[data_root])
    assert data.row_dates is not None
    assert data.row_dates.shape == (6000,)


def test_list_looks_at_names_only(data_root: Path) -> None:
    start = time.process_time()
    found = [locate(entry, [data_root]) for entry in ENTRIES]
    assert sum(place is not None for place in found) == len(PRESENT)
    assert time.process_time() - start < 1.0


def test_an_absent_set_with_an_address_names_the_download(tmp_path):
    with pytest.raises(NotFoundError, match=r"; run 'streamlabel datasets get bibtex', or put its files there by hand"):
        catalogue.require(find_entry("bibtex"), [tmp_path])
