"""Models from files in pieces against models from the same rows in memory: every format, killed runs, damaged files."""

from __future__ import annotations

import copy
import json
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from processes import started, wait_for
from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.data.csv_table import write_csv
from streamlabel.data.jsonl import write_jsonl
from streamlabel.data.parquet import write_parquet
from streamlabel.data.rows import matrix_of_names
from streamlabel.data.text import TextVectorizer
from streamlabel.data.xc_svmlight import write_xc_text
from streamlabel.errors import ConflictError, DataError, NotFoundError
from streamlabel.executors import JoblibExecutor, SerialExecutor
from streamlabel.scale.out_of_core import add_labels_from_files, fit_files, predict_files
from streamlabel.scale.row_files import RowFiles
from streamlabel.streaming import past
from streamlabel.streaming.kept_rows import FitMemory
from streamlabel.types import Dataset, TextDataset
from tagged_texts import tagged_texts

N, D, M = 400, 30, 6
NAMES = tuple(f"label_{j}" for j in range(M))
PIECE = 3_000  # bytes: some thirty pieces, two rounds


def planted(n_rows: int = N, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n_rows, D), density=0.2, rng=rng, format="csr")
    scores = X @ np.random.default_rng(9).standard_normal((D, M)) + 0.05 * rng.standard_normal((n_rows, M))
    scores[:, 1] = scores[:, 0] + 0.3 * scores[:, 1]  # so that there is something to code
    return Dataset(X, sparse.csr_array((scores > np.quantile(scores, 0.9, axis=0)).astype(np.int8)), NAMES)


def write(data: Dataset, form: str, folder: Path) -> Path:
    path = folder / f"rows.{form}"
    if form == "txt":
        write_xc_text(data, path)
    elif form == "jsonl":
        write_jsonl(data, path)
    elif form == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs the extra arrow")
        write_parquet(data, path)
    else:
        path = folder / "npz"
        path.mkdir()
        for letter, matrix in (("X", data.X), ("Y", data.Y)):
            sparse.save_npz(path / f"{letter}_train.npz", matrix, compressed=False)
        (path / "labels.txt").write_text("\n".join(data.label_names) + "\n")
    return path


def assert_same(found: StreamingLabelClassifier, known: StreamingLabelClassifier) -> None:
    order = [known.label_names_.index(name) for name in found.label_names_]
    np.testing.assert_allclose(found.coef_, known.coef_[order], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.intercept_, known.intercept_[order], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("form", ["txt", "parquet", "npz", "jsonl"])
def test_the_model_is_the_one_of_the_rows(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thresholds and probabilities too, where `fit` judges by a sample and no label has more than fifty yes."""
    data = planted()
    monkeypatch.setattr(past, "judges_all", lambda X, n_labels: False)
    known = StreamingLabelClassifier(random_state=3).fit(data.X, data.Y, NAMES)
    source = RowFiles(write(data, form, tmp_path), piece_bytes=PIECE)
    found = fit_files(source, random_state=3)
    assert len(source.pieces) > 3 or form == "parquet"
    assert found.beta_ == pytest.approx(known.beta_, rel=1e-9)
    assert_same(found, known)
    order = [NAMES.index(name) for name in found.label_names_]
    np.testing.assert_allclose(found.thresholds_, known.thresholds_[order], rtol=1e-8)
    np.testing.assert_allclose(found.predict_proba(data.X), known.predict_proba(data.X)[:, order], rtol=1e-6)
    assert [report.n_yes for report in found.reports_] == [known.reports_[j].n_yes for j in order]


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_dense_rows_and_no_intercept(fit_intercept: bool, tmp_path: Path, rng: np.random.Generator) -> None:
    X, Y = rng.standard_normal((300, 12)).astype(np.float32), (rng.random((300, 3)) < 0.3).astype(np.int8)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Y.npy", Y)
    source = RowFiles(tmp_path / "X.npy", labels_file=tmp_path / "Y.npy", piece_bytes=1000)
    found = fit_files(source, fit_intercept=fit_intercept)
    assert_same(found, StreamingLabelClassifier(fit_intercept=fit_intercept).fit(X, Y))


@pytest.mark.parametrize("form", ["txt", "parquet"])
def test_a_folder_is_one_set(form: str, tmp_path: Path) -> None:
    whole, parts = planted(), tmp_path / "parts"
    parts.mkdir()
    for number, rows in enumerate((slice(0, 130), slice(130, 131), slice(131, N))):
        write(Dataset(whole.X[rows], whole.Y[rows], NAMES), form, tmp_path).rename(parts / f"{number}.{form}")
    known = StreamingLabelClassifier(beta=1.0).fit(whole.X, whole.Y, NAMES)
    assert_same(fit_files(RowFiles(parts), beta=1.0), known)
    assert_same(fit_files(RowFiles(sorted(parts.iterdir())), beta=1.0), known)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("answered", [True, False])
def test_labels_are_added_as_from_the_rows(answered: bool, fit_intercept: bool, tmp_path: Path) -> None:
    """By the answers of the known labels where the files have them, else by the scores of the model."""
    settings = {"lam": 0.003, "metric": None, "loss": "squared", "fit_intercept": fit_intercept}
    first, data = planted(), planted() if answered else planted(700, seed=1)
    model = StreamingLabelClassifier(**settings).fit(first.X, first.Y[:, :4], NAMES[:4])
    expected = StreamingLabelClassifier(**settings).fit(first.X, first.Y[:, :4], NAMES[:4])
    expected.add_labels(data.X, data.Y[:, 4:], NAMES[4:])
    if not answered:
        data = Dataset(data.X, data.Y[:, 4:], NAMES[4:])
    path = write(data, "npz", tmp_path)
    found = add_labels_from_files(model, RowFiles(path, piece_bytes=PIECE))
    assert expected.structure_.nnz
    np.testing.assert_allclose(found.structure_.toarray(), expected.structure_.toarray(), atol=1e-7)
    assert_same(found, expected)
    np.testing.assert_array_equal(found.decision_function(data.X)[:, :4], model.decision_function(data.X))


@pytest.mark.parametrize("executor", [JoblibExecutor(2, "threads"), JoblibExecutor(2, "processes")])
@pytest.mark.parametrize("form", ["jsonl", "npy"])
def test_every_executor_gives_the_same_bits(form: str, executor: JoblibExecutor, tmp_path: Path) -> None:
    data, options = planted(), {"piece_bytes": PIECE}
    if form == "npy":
        np.save(tmp_path / "X.npy", data.X.toarray() + 0.1)
        np.save(tmp_path / "Y.npy", data.Y.toarray())
        path, options = tmp_path / "X.npy", {"piece_bytes": PIECE, "labels_file": tmp_path / "Y.npy"}
    else:
        path = write(data, form, tmp_path)
    here = fit_files(RowFiles(path, **options))
    there = fit_files(RowFiles(path, **options), executor=executor)
    np.testing.assert_array_equal(there.coef_, here.coef_)
    np.testing.assert_array_equal(there.thresholds_, here.thresholds_)


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_texts_by_a_fixed_vocabulary(form: str, tmp_path: Path) -> None:
    data = tagged_texts(300, 100)
    texts = [f'{text} "quoted\nin two lines"' if i % 7 == 0 else text for i, text in enumerate(data.texts)]
    Y, names = matrix_of_names(data.tags, "text")
    set_ = TextDataset(texts, Y, names)
    path = tmp_path / f"texts.{form}"
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs the extra arrow")
    {"jsonl": write_jsonl, "csv": write_csv, "parquet": write_parquet}[form](set_, path)
    vectorizer = TextVectorizer(dtype="float64").fit(texts)
    source = RowFiles(path, vectorizer=vectorizer, piece_bytes=5_000)
    found = fit_files(source, beta=1.0)
    assert len(source.pieces) > 5 or form == "parquet"
    assert_same(found, StreamingLabelClassifier(beta=1.0).fit(vectorizer.transform(texts), Y, names))
    assert source.texts(most=40)[0] == texts[0]


def test_labels_in_any_order_are_their_own(tmp_path: Path) -> None:
    """As many labels as the files have, in another order: every name has its own column."""
    data = planted()
    model = StreamingLabelClassifier(beta=1.0).fit(data.X, data.Y[:, :1], ["past"])
    path = write(data, "txt", tmp_path)
    one, other = (add_labels_from_files(model, RowFiles(path), names, 1.0) for names in (NAMES, NAMES[::-1]))
    assert other.label_names_ == ("past", *NAMES[::-1])
    assert_same(other, one)


def parquet(path: Path, *groups: Dataset | TextDataset) -> Path:
    """A Parquet file with these row groups, which may be empty."""
    arrow = pytest.importorskip("pyarrow.parquet", reason="Parquet needs the extra arrow")
    for number, group in enumerate(groups):
        write_parquet(group, path.with_suffix(f".{number}"))
    tables = [arrow.read_table(path.with_suffix(f".{number}")) for number in range(len(groups))]
    with arrow.ParquetWriter(path, tables[0].schema) as file:
        for number, table in enumerate(tables):
            file.write_table(table)
            path.with_suffix(f".{number}").unlink()
    return path


def some(data: Dataset, rows: slice) -> Dataset:
    return Dataset(data.X[rows], data.Y[rows], NAMES)


def test_empty_row_groups_and_files_hold_nothing(tmp_path: Path) -> None:
    data = planted()
    none, head, tail = (some(data, rows) for rows in (slice(0, 0), slice(0, 150), slice(150, N)))
    parts = tmp_path / "parts"
    parts.mkdir()
    parquet(parts / "0.parquet", none)
    parquet(parts / "1.parquet", none, head, none, tail, none)
    parquet(parts / "2.parquet", none)
    known = StreamingLabelClassifier(beta=1.0).fit(data.X, data.Y, NAMES)
    assert_same(fit_files(RowFiles(parts), beta=1.0), known)
    assert predict_files(known, RowFiles(parts), tmp_path / "out") == N
    added = add_labels_from_files(StreamingLabelClassifier().fit(data.X, data.Y[:, :2], NAMES[:2]), RowFiles(parts))
    assert added.label_names_ == NAMES
    with pytest.raises(DataError, match="holds no rows"):
        RowFiles(parts / "0.parquet")


@pytest.mark.parametrize("kind", ["numbers", "texts", "csv"])
def test_blank_lines_and_empty_files_hold_nothing(kind: str, tmp_path: Path) -> None:
    folder, vectorizer = tmp_path / "parts", None
    folder.mkdir()
    if kind == "numbers":
        write_jsonl(planted(), folder / "all.jsonl")
    else:
        data = tagged_texts(300, 100)
        Y, names = matrix_of_names(data.tags, "text")
        vectorizer = TextVectorizer(dtype="float64").fit(data.texts)
        {"texts": write_jsonl, "csv": write_csv}[kind](TextDataset(data.texts, Y, names), folder / f"all.{kind}")
    (path,) = folder.iterdir()
    known = fit_files(RowFiles(path, "csv" if kind == "csv" else "jsonl", vectorizer=vectorizer), beta=1.0)
    ending = "csv" if kind == "csv" else "jsonl"
    lines = path.rename(tmp_path / "all").read_text().splitlines(keepends=True)
    header = lines.pop(0) if kind == "csv" else ""
    for number, content in enumerate(
        [
            header,
            header + "\n" * 9000,
            header + "\n" + "".join(lines[:200]),
            header + "".join(lines[200:]) + "\n" * 9000,
        ]
    ):
        (folder / f"{number}.{ending}").write_text(content)
    source = RowFiles(folder, vectorizer=vectorizer, piece_bytes=PIECE)
    found = fit_files(source, beta=1.0)
    assert all(piece.n_rows for piece in source.pieces)
    assert_same(found, known)
    assert predict_files(known, RowFiles(folder, vectorizer=vectorizer, piece_bytes=PIECE), tmp_path / "o") == len(
        lines
    )
    for number in (2, 3):
        (folder / f"{number}.{ending}").unlink()
    with pytest.raises(DataError, match="holds no rows"):
        RowFiles(folder)


def test_files_of_another_kind_or_width_are_named(tmp_path: Path) -> None:
    data, texts = planted(), TextDataset(["some words"] * 9, planted(9).Y, NAMES)
    folder, vectorizer = tmp_path / "parts", TextVectorizer(min_df=1).fit(["some words"])
    folder.mkdir()
    parquet(folder / "a.parquet", data)
    parquet(folder / "b.parquet", texts)
    with pytest.raises(DataError, match=r"b.parquet: texts, and other rows have 30 features"):
        fit_files(RowFiles(folder, vectorizer=vectorizer))
    (folder / "b.parquet").rename(folder / "0.parquet")
    source = RowFiles(folder, vectorizer=vectorizer)
    with pytest.raises(DataError, match=r"a.parquet: 30 features, and other rows have texts"):
        fit_files(source)
    with pytest.raises(DataError, match=r"a.parquet: 30 features, and other rows have texts"):
        source.texts()
    narrow = tmp_path / "narrow.jsonl"
    narrow.write_text('{"features": [1, 2], "labels": ["x"]}\n' * 99 + '{"features": [1], "labels": ["x"]}\n' * 99)
    with pytest.raises(DataError, match=r"narrow.jsonl: 1 features, and other rows have 2 features"):
        fit_files(RowFiles(narrow, piece_bytes=99 * 38))


class Stopped(Exception):
    pass


def stop_in_the_middle(done: int, total: int | None) -> None:
    if done > (total or 0) / 2:
        raise Stopped


def interrupted(source: RowFiles, path: Path) -> Path:
    with pytest.raises(Stopped):
        fit_files(source.scan(), checkpoint=path, seconds=0.0, progress=stop_in_the_middle)
    assert path.exists()
    return path


def test_a_fit_does_not_go_on_with_other_columns_names_or_words(tmp_path: Path) -> None:
    """What is read from the same files by other settings are other rows."""
    data = tagged_texts(500, 100)
    path = tmp_path / "texts.jsonl"
    records = [
        {"text": text, "title": text[::-1], "tags": tags} for text, tags in zip(data.texts, data.tags, strict=True)
    ]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    words = TextVectorizer().fit(data.texts)
    others = [
        {"text": "title", "vectorizer": words},
        {"text": "text", "vectorizer": TextVectorizer(sublinear_tf=False).fit(data.texts)},
    ]

    def source(**options: object) -> RowFiles:
        return RowFiles(path, **{"text": "text", "vectorizer": words, "piece_bytes": 800, **options})  # type: ignore[arg-type]

    kept = interrupted(source(), tmp_path / "kept.npz")
    for options in others:
        with pytest.raises(ConflictError, match="other settings"):
            fit_files(source(**options), checkpoint=kept)
    assert fit_files(source(vectorizer=TextVectorizer().fit(data.texts)), checkpoint=kept).label_names_
    folder = write(planted(1500), "npz", tmp_path)
    kept = interrupted(RowFiles(folder, piece_bytes=PIECE), tmp_path / "kept.npz")
    (folder / "labels.txt").write_text("\n".join(NAMES[::-1]) + "\n")
    with pytest.raises(ConflictError, match="other settings"):
        fit_files(RowFiles(folder, piece_bytes=PIECE), checkpoint=kept)


def test_a_prediction_does_not_go_on_with_another_model_or_output(tmp_path: Path) -> None:
    data = planted(1500)
    path, out = write(data, "txt", tmp_path), tmp_path / "labels.jsonl"
    first = StreamingLabelClassifier(beta=1.0, fit_intercept=False).fit(data.X, data.Y, NAMES)
    heavier = StreamingLabelClassifier(beta=9.0, fit_intercept=False).fit(data.X, data.Y, NAMES)
    decisions = first.state_.decisions
    moved = [replace(decisions, **{name: getattr(decisions, name) + 1.0}) for name in ("thresholds", "slope", "offset")]
    renamed = StreamingLabelClassifier(beta=1.0, fit_intercept=False).fit(data.X, data.Y, [f"x{j}" for j in range(M)])
    changed = [copy.copy(first) for _ in moved]
    for model, one in zip(changed, moved, strict=True):
        model.state_ = replace(first.state_, decisions=one)

    def run(model: StreamingLabelClassifier, **options: object) -> int:
        return predict_files(model, RowFiles(path, piece_bytes=PIECE), out, None, **options)  # type: ignore[arg-type]

    with pytest.raises(Stopped):
        run(first, settings="plain", progress=stop_in_the_middle)
    for model in (heavier, renamed, *changed):
        with pytest.raises(ConflictError, match="other settings"):
            run(model, settings="plain")
    with pytest.raises(ConflictError, match="other settings"):
        run(first, settings="with probabilities")
    assert run(first, settings="plain") == 1500


def test_waves_of_predictions_are_as_large_as_the_executor(tmp_path: Path) -> None:
    data, sizes = planted(1500), list[int]()

    class Counting(SerialExecutor):
        n_workers = 5

        def map(self, function, items):  # type: ignore[no-untyped-def]
            items = list(items)
            sizes.append(len(items))
            return super().map(function, items)

    model = StreamingLabelClassifier(beta=1.0).fit(data.X, data.Y, NAMES)
    source = RowFiles(write(data, "txt", tmp_path), piece_bytes=PIECE)
    assert predict_files(model, source, tmp_path / "out", executor=Counting()) == 1500
    assert sizes[0] == 10
    assert sum(sizes) == len(source.pieces)
    assert JoblibExecutor(3).n_workers == 3


KILLED = """
import sys, time
from streamlabel.scale import out_of_core
from streamlabel.scale.row_files import RowFiles

def slow(done, total):
    time.sleep(0.5)

source = RowFiles(sys.argv[1], piece_bytes=3000)
if sys.argv[2] == "fit":
    out_of_core.fit_files(source, checkpoint=sys.argv[3], seconds=0.0, progress=slow)
else:
    from streamlabel import ModelStore
    out_of_core.predict_files(ModelStore.open(sys.argv[2]).model(), source, sys.argv[3], progress=slow)
"""


def test_a_killed_fit_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    path, kept = write(planted(1500), "txt", tmp_path), tmp_path / "model.unfinished.npz"
    with started([sys.executable, "-c", KILLED, str(path), "fit", str(kept)]) as process:
        wait_for(kept.exists)
        process.send_signal(signal.SIGKILL)
        process.wait()
    read: list[int] = []
    source = RowFiles(path, piece_bytes=PIECE)
    other = shutil.copy(path, tmp_path / "other.txt")
    with pytest.raises(ConflictError, match="other files, or with other settings; remove it"):
        fit_files(RowFiles(other, piece_bytes=PIECE), checkpoint=kept)
    with pytest.raises(ConflictError, match="other settings"):
        fit_files(RowFiles(path, piece_bytes=PIECE + 1), checkpoint=kept)
    found = fit_files(source, checkpoint=kept, progress=lambda done, total: read.append(done))
    whole = fit_files(RowFiles(path, piece_bytes=PIECE))
    assert read[0] > sum(piece.n_bytes for piece in source.pieces[:16])  # the first round was not read again
    np.testing.assert_array_equal(found.coef_, whole.coef_)
    np.testing.assert_array_equal(found.intercept_, whole.intercept_)
    np.testing.assert_array_equal(found.thresholds_, whole.thresholds_)
    assert not kept.exists()


def test_a_killed_prediction_goes_on(tmp_path: Path) -> None:
    data = planted(1500)
    path, out = write(data, "txt", tmp_path), tmp_path / "labels.jsonl"
    model = StreamingLabelClassifier().fit(data.X, data.Y, NAMES)
    ModelStore.create(tmp_path / "model", model).close()
    mark = Path(f"{out}.unfinished.json")
    with started([sys.executable, "-c", KILLED, str(path), str(tmp_path / "model"), str(out)]) as process:
        wait_for(mark.exists)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not out.exists()
    stored = ModelStore.open(tmp_path / "model").model()
    with pytest.raises(ConflictError, match="remove it to begin anew"):
        predict_files(stored, RowFiles(path, piece_bytes=PIECE), out, 3)
    assert predict_files(stored, RowFiles(path, piece_bytes=PIECE), out) == 1500
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    best, scores = stored.predict_top_k(data.X, 5)
    assert [line["row"] for line in lines] == list(range(1500))
    assert [line["labels"] for line in lines] == [[NAMES[label] for label in row] for row in best.tolist()]
    np.testing.assert_allclose([line["scores"] for line in lines], scores, rtol=1e-12)
    assert sorted(tmp_path.glob("labels*")) == [out]


def test_damage_is_named_with_file_and_line(tmp_path: Path) -> None:
    path = write(planted(), "txt", tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:250], b"1,2 3:four\n", *lines[251:]]))
    with pytest.raises(DataError, match=r"rows.txt, line 251: value 'four'"):
        fit_files(RowFiles(path, piece_bytes=PIECE))
    path.write_bytes(b"".join(lines[:300]))
    with pytest.raises(
        DataError, match=r"rows.txt, line 300: the header says 400 rows, the file has 299; it may be cut"
    ):
        RowFiles(path, piece_bytes=PIECE)
    path.write_bytes(b"".join([*lines, b"\n\n"]))
    assert fit_files(RowFiles(path, piece_bytes=PIECE)).reports_[0].n_rows == N
    path.write_bytes(b"".join([*lines, b"\n0 1:1\n"]))
    with pytest.raises(DataError, match=r"line 403: the header says 400 rows, and here is another one"):
        fit_files(RowFiles(path, piece_bytes=PIECE))
    records = tmp_path / "texts.jsonl"
    records.write_text('{"text": "a", "labels": ["x"]}\n' * 300 + "{\n")
    with pytest.raises(DataError, match=r"texts.jsonl, line 301: not JSON"):
        fit_files(RowFiles(records, piece_bytes=PIECE))


def test_a_damaged_row_group_is_named(tmp_path: Path) -> None:
    path = write(planted(), "parquet", tmp_path)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"rows.parquet: not a whole Parquet file"):
        fit_files(RowFiles(path))


def test_what_cannot_be_read_in_pieces_is_refused(tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "X.npz", planted().X)
    with pytest.raises(DataError, match=r"is compressed.*compressed=False"):
        RowFiles(tmp_path / "X.npz")
    (tmp_path / "rows.txt.gz").write_bytes(b"")
    with pytest.raises(DataError, match="unpack it first"):
        RowFiles(tmp_path / "rows.txt.gz")
    (tmp_path / "rows.svm").write_text("0 1:1\n")
    with pytest.raises(DataError, match="svmlight is not read in blocks; XC text"):
        RowFiles(tmp_path / "rows.svm")
    for empty, content in (("none.jsonl", ""), ("none.csv", "text,tags\n"), ("head.txt", "0 5 2\n")):
        (tmp_path / empty).write_text(content)
        with pytest.raises(DataError, match="holds no rows"):
            RowFiles(tmp_path / empty)
    (tmp_path / "folder").mkdir()
    with pytest.raises(NotFoundError, match="there are no files"):
        RowFiles(tmp_path / "folder")
    with pytest.raises(NotFoundError, match="no such file"):
        RowFiles(tmp_path / "none.txt")
    (tmp_path / "wide.txt").write_text("2 20000 2\n0 1:1\n1 2:1\n")
    with pytest.raises(DataError, match="20000 features; X'X is kept for at most 16384"):
        fit_files(RowFiles(tmp_path / "wide.txt"))
    with pytest.raises(DataError, match="loss='logistic' needs the rows"):
        fit_files(RowFiles(tmp_path / "wide.txt"), loss="logistic")
    (tmp_path / "texts.jsonl").write_text('{"text": "a", "labels": ["x"]}\n' * 9)
    with pytest.raises(DataError, match="holds texts; give a fitted vectorizer"):
        fit_files(RowFiles(tmp_path / "texts.jsonl"))


def test_a_sample_of_very_many_rows_takes_no_shuffle() -> None:
    drawn = FitMemory.sample(10**12, 0)
    assert len(np.unique(drawn)) == 1000
    assert 0.45 < drawn.mean() / 10**12 < 0.55


LIMITED = """
import json, resource, sys, time
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
from streamlabel.scale.out_of_core import fit_files
from streamlabel.scale.row_files import RowFiles
begin = time.process_time()
source = RowFiles(sys.argv[1])
model = fit_files(source, 50.0, checkpoint=sys.argv[2])
peak = int(Path("/proc/self/status").read_text().partition("VmPeak:")[2].split()[0])
print(json.dumps({
    "rows": source.n_rows, "peak": peak * 1024, "speed": source.n_bytes / 1e6 / (time.process_time() - begin),
    "coef": model.coef_.tolist(), "intercept": model.intercept_.tolist(),
}))
"""


def learned_from(gigabytes: float, folder: Path) -> tuple[float, int]:
    """Copies of one block of rows: ridge on c copies is ridge on one with a c-th of the strength.

    Returns MB a second of CPU time, and the peak of the address space.
    """
    resource = pytest.importorskip("resource", reason="limits of the address space are for Unix")
    assert resource.RLIM_INFINITY
    needed = 1.25 * gigabytes * 1e9
    if shutil.disk_usage(folder).free < needed:
        pytest.skip(f"{needed / 1e9:.0f} GB of free disk are needed")
    data = planted(20_000)
    data.X.data[:] = data.X.data.round(10)
    write_xc_text(data, folder / "block.txt")
    block = (folder / "block.txt").read_bytes().partition(b"\n")[2]
    copies = int(gigabytes * 1e9) // len(block) + 1
    path = folder / "rows.txt"
    with open(path, "wb") as file:
        file.write(f"{20_000 * copies} {D} {M}\n".encode())
        for _ in range(copies):
            file.write(block)
    try:
        with started([sys.executable, "-c", LIMITED, str(path), str(folder / "sums.npz")]) as process:
            said, complaint = process.communicate()
        assert process.returncode == 0, complaint.decode()
    finally:
        path.unlink()
    found = json.loads(said)
    assert found["rows"] == 20_000 * copies
    assert found["peak"] < 2**31
    ridge = Ridge(alpha=50.0 / copies).fit(data.X.toarray(), data.Y.toarray())
    np.testing.assert_allclose(found["coef"], ridge.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found["intercept"], ridge.intercept_, rtol=1e-8, atol=1e-10)
    return found["speed"], found["peak"]


def test_a_gigabyte_within_two_of_address_space(tmp_path: Path) -> None:
    learned_from(1.0, tmp_path)


@pytest.mark.slow
def test_twenty_gigabytes_within_two_of_address_space(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], record_property: Callable[[str, object], None]
) -> None:
    speed, peak = learned_from(20.0, tmp_path)
    record_property("megabytes a second of CPU time", round(speed))
    with capsys.disabled():
        sys.stdout.write(f" 20 GB of XC text: {speed:.0f} MB/s of CPU time, {peak / 2**20:.0f} MiB of address space ")
