"""stats make, merge, show and fit: parts of a file give the model of the file, and nothing is overwritten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from sklearn.linear_model import Ridge

from local_cluster import local_cluster
from streamlabel import ModelStore
from streamlabel.cli import stats as stats_commands
from streamlabel.errors import ClusterError
from streamlabel.store.sums_file import read_stats

Call = Callable[..., Result]
Ask = Callable[..., Any]


def xc_text(X: np.ndarray, Y: np.ndarray) -> str:
    lines = [f"{len(X)} {X.shape[1]} {Y.shape[1]}"]
    for row, answers in zip(X, Y, strict=True):
        values = " ".join(f"{j}:{float(value)!r}" for j, value in enumerate(row))
        lines.append(f"{','.join(map(str, np.flatnonzero(answers)))} {values}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 5))
    return X, (X[:, :3] + 0.5 * rng.standard_normal((90, 3)) > 0.4).astype(int)


@pytest.fixture
def parts(rows: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> list[Path]:
    X, Y = rows
    paths = [tmp_path / f"{name}.txt" for name in "abc"]
    for path, part in zip(paths, (slice(0, 20), slice(20, 50), slice(50, 90)), strict=True):
        path.write_text(xc_text(X[part], Y[part]))
    return paths


@pytest.fixture
def sums(parts: list[Path], call: Call) -> list[Path]:
    for path in parts:
        call("stats", "make", path, "-o", path.with_suffix(".npz"))
    return [path.with_suffix(".npz") for path in parts]


def test_parts_give_the_model_of_the_whole(
    rows: tuple[np.ndarray, np.ndarray], sums: list[Path], tmp_path: Path, call: Call, ask: Ask
) -> None:
    X, Y = rows
    found = ask("stats", "merge", *sums, "-o", tmp_path / "all.npz")
    assert (found["n_rows"], found["n_features"], found["n_labels"]) == (90, 5, 3)
    np.testing.assert_allclose(read_stats(tmp_path / "all.npz").feature_gram, X.T @ X, atol=1e-12)
    shown = ask("stats", "show", tmp_path / "all.npz", "-k", 2)
    counts = Y.sum(axis=0)
    best = np.argsort(-counts, kind="stable")[:2]
    assert shown["labels"] == [{"label": f"label_{j}", "n_yes": int(counts[j]), "n_asked": 90} for j in best]
    fitted = ask("stats", "fit", tmp_path / "model", tmp_path / "all.npz", "--beta", 2.0)
    assert (fitted["beta"], fitted["revision"]) == (2.0, 1)
    scores = ModelStore.open(tmp_path / "model").scores(X)
    np.testing.assert_allclose(scores, Ridge(alpha=2.0).fit(X, Y).predict(X), atol=1e-5)  # stored as float32
    record = ModelStore.open(tmp_path / "model").labels()[0]
    assert (record.n_yes, record.n_yes + record.n_no) == (counts[0], 90)
    assert "learned 3 labels" in call("stats", "fit", tmp_path / "again", tmp_path / "all.npz").stdout
    call("predict", tmp_path / "again", tmp_path / "a.txt")


def test_a_dry_run_writes_nothing(sums: list[Path], parts: list[Path], tmp_path: Path, call: Call, ask: Ask) -> None:
    before = sorted(tmp_path.iterdir())
    assert "would write" in call("stats", "merge", *sums, "-o", tmp_path / "all.npz", "--dry-run").stdout
    assert ask("stats", "make", parts[0], "-o", tmp_path / "d.npz", "--dry-run")["n_rows"] == 20
    assert "would learn" in call("stats", "fit", tmp_path / "model", sums[0], "--dry-run").stdout
    assert sorted(tmp_path.iterdir()) == before


def test_nothing_is_overwritten(sums: list[Path], parts: list[Path], tmp_path: Path, call: Call) -> None:
    before = sums[1].read_bytes()
    for command in (("merge", sums[0]), ("make", parts[0])):
        assert "is there already" in call("stats", *command, "-o", sums[1], code=4).stderr
    assert sums[1].read_bytes() == before
    (tmp_path / "model").mkdir()
    call("stats", "fit", tmp_path / "model", sums[0], code=4)


def test_what_is_not_there_or_not_right(sums: list[Path], parts: list[Path], tmp_path: Path, call: Call) -> None:
    out, none = tmp_path / "all.npz", tmp_path / "none.npz"
    assert "no such file" in call("stats", "merge", sums[0], none, "-o", out, code=3).stderr
    call("stats", "show", none, code=3)
    call("stats", "fit", tmp_path / "model", none, code=3)
    call("stats", "make", none, "-o", out, code=3)
    call("stats", "merge", sums[0], "-o", tmp_path / "no" / "all.npz", code=3)
    assert "a.txt: not a readable .npz file" in call("stats", "merge", sums[1], parts[0], "-o", out, code=1).stderr
    assert "given twice" in call("stats", "merge", sums[0], sums[1], sums[0], "-o", out, code=2).stderr
    assert "ends in .npz" in call("stats", "merge", sums[0], "-o", tmp_path / "all.gz", code=2).stderr
    call("stats", "merge", "-o", out, code=2)
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"text": "hens", "labels": ["farming"]}\n{"text": "ducks", "labels": []}\n')
    assert "rows of numbers" in call("stats", "make", texts, "-o", out, code=1).stderr
    (tmp_path / "wide.txt").write_text("1 6 3\n0 5:1\n")
    call("stats", "make", tmp_path / "wide.txt", "-o", tmp_path / "wide.npz")
    told = call("stats", "merge", sums[0], tmp_path / "wide.npz", "-o", out, code=1).stderr
    assert "wide.npz" in told
    assert "over 5 and over 6 features" in told
    assert not out.exists()


def test_parts_name_the_labels_that_were_asked(tmp_path: Path, call: Call, ask: Ask) -> None:
    """svmlight says neither how many features there are nor which labels do not occur."""
    (tmp_path / "a.svm").write_text("0 1:1 2:2\n1 1:3\n")
    (tmp_path / "b.svm").write_text("0,2 3:1\n 1:1\n")
    (tmp_path / "names.txt").write_text("label_2\nlabel_0\nlabel_1\n")
    call("stats", "make", tmp_path / "a.svm", "-o", tmp_path / "a0.npz", "--n-features", 3)
    call("stats", "make", tmp_path / "b.svm", "-o", tmp_path / "b0.npz")
    told = call("stats", "merge", tmp_path / "a0.npz", tmp_path / "b0.npz", "-o", tmp_path / "all.npz", code=1).stderr
    assert "'label_1' and 1 more on one side only" in told
    options = ("--n-features", 3, "--label-names", tmp_path / "names.txt")
    for name in "ab":
        call("stats", "make", tmp_path / f"{name}.svm", "-o", tmp_path / f"{name}.npz", *options)
    ask("stats", "merge", tmp_path / "a.npz", tmp_path / "b.npz", "-o", tmp_path / "all.npz")
    merged = read_stats(tmp_path / "all.npz")
    assert merged.label_names == ("label_2", "label_0", "label_1")
    assert merged.label_gram.toarray().tolist() == [[1, 1, 0], [1, 2, 0], [0, 0, 1]]
    assert merged.cross.tolist() == [[0.0, 1.0, 3.0], [0.0, 2.0, 0.0], [1.0, 1.0, 0.0]]
    (tmp_path / "few.txt").write_text("label_0\n")
    few = ("--label-names", tmp_path / "few.txt")
    told = call("stats", "make", tmp_path / "a.svm", "-o", tmp_path / "c.npz", *few, code=1).stderr
    assert "no line 'label_1'" in told
    assert "labels that the file only numbers are called so" in told


def test_numbers_that_no_row_has_are_no_labels(tmp_path: Path, call: Call, ask: Ask) -> None:
    """svmlight with labels from 1 on, one of which is missing; a file that says how many there are keeps all."""
    rng = np.random.default_rng(0)
    rows = "".join(
        f"{(1, 2, 4)[i % 3]} " + " ".join(f"{j + 1}:{v:.6f}" for j, v in enumerate(rng.standard_normal(4))) + "\n"
        for i in range(30)
    )
    (tmp_path / "rows.svm").write_text(rows)
    made = call("stats", "make", tmp_path / "rows.svm", "-o", tmp_path / "rows.npz")
    assert "no row has label_0, label_3; 2 numbers left out" in made.stderr
    assert read_stats(tmp_path / "rows.npz").label_names == ("label_1", "label_2", "label_4")
    assert read_stats(tmp_path / "rows.npz").label_counts.tolist() == [10, 10, 10]
    assert "no row has label_0, label_3" in call("fit", tmp_path / "model", tmp_path / "rows.svm").stderr
    assert ModelStore.open(tmp_path / "model").label_names == ("label_1", "label_2", "label_4")
    found = ask("evaluate", tmp_path / "model", tmp_path / "rows.svm")
    assert (found["n_labels"], found["unknown_tags"]) == (3, 0)
    (tmp_path / "stated.svm").write_text("# streamlabel n_rows=30 n_features=4 n_labels=5\n" + rows)
    call("stats", "make", tmp_path / "stated.svm", "-o", tmp_path / "stated.npz")
    assert read_stats(tmp_path / "stated.npz").n_labels == 5


def test_several_files_are_summed_and_those_done_are_kept(
    sums: list[Path], parts: list[Path], tmp_path: Path, call: Call, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "all.npz"
    call("stats", "merge", *sums, "-o", tmp_path / "merged.npz")
    summed: list[str] = []
    real = stats_commands._file_sums

    def lost(*arguments: Any) -> Any:
        summed.append(Path(arguments[-1]).name)
        if summed == ["a.txt", "b.txt"]:
            raise ClusterError("tcp://there: the connection to the scheduler was lost")
        return real(*arguments)

    monkeypatch.setattr(stats_commands, "_file_sums", lost)
    told = call("stats", "make", *parts, "-o", out, code=1).stderr
    assert "1 of 3 files are summed and kept in" in told
    assert not out.exists()
    assert ask("stats", "make", *parts, "-o", out)["n_rows"] == 90
    assert summed == ["a.txt", "b.txt", "b.txt", "c.txt"]
    assert out.read_bytes() == (tmp_path / "merged.npz").read_bytes()
    assert not (tmp_path / "all.parts").exists()
    assert "given twice" in call("stats", "make", parts[0], parts[0], "-o", tmp_path / "d.npz", code=2).stderr
    call("stats", "make", parts[0], tmp_path / "none.txt", "-o", tmp_path / "d.npz", code=3)


def test_on_a_cluster_the_file_is_the_same(
    sums: list[Path], parts: list[Path], rows: tuple[np.ndarray, np.ndarray], tmp_path: Path, call: Call
) -> None:
    address = local_cluster().address
    call("stats", "merge", *sums, "-o", tmp_path / "merged.npz")
    call("stats", "make", *parts, "-o", tmp_path / "all.npz", "--dask", address)
    assert (tmp_path / "all.npz").read_bytes() == (tmp_path / "merged.npz").read_bytes()
    call("stats", "fit", tmp_path / "model", tmp_path / "all.npz")
    for options in (("-k", 2), ("--thresholds",)):
        here = call("predict", tmp_path / "model", parts[2], *options).stdout
        assert len(here.splitlines()) == 40
        assert (
            call("predict", tmp_path / "model", parts[2], *options, "--rows-per-block", 15, "--dask", address).stdout
            == here
        )


def test_parts_that_were_asked_other_labels(tmp_path: Path, call: Call, ask: Ask) -> None:
    (tmp_path / "a.svm").write_text("0 1:1 2:2\n1 1:3\n 2:1\n")
    (tmp_path / "b.svm").write_text("0,2 2:1\n 1:1\n")
    for name in "ab":
        call("stats", "make", tmp_path / f"{name}.svm", "-o", tmp_path / f"{name}.npz", "--n-features", 2)
    merged = tmp_path / "all.npz"
    call("stats", "merge", tmp_path / "a.npz", tmp_path / "b.npz", "-o", merged, code=1)
    call("stats", "merge", tmp_path / "a.npz", tmp_path / "b.npz", "-o", merged, "--unknown")
    labels = ask("stats", "show", merged)["labels"]
    assert {one["label"]: (one["n_yes"], one["n_asked"]) for one in labels} == {
        "label_0": (2, 5), "label_1": (1, 3), "label_2": (1, 2)
    }  # fmt: skip
    call("stats", "fit", tmp_path / "model", merged, "--beta", 1)
    record = {one.name: one for one in ModelStore.open(tmp_path / "model").labels()}["label_1"]
    assert (record.n_yes, record.n_no) == (1, 2)
