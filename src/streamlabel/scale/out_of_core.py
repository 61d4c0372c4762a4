"""Learning and predicting from files that do not fit into memory: step 1 from label data, step 2 from feature data.

Rows are summed piece by piece (`scale.row_files`), in rounds of a fixed number of pieces; the sums take
``d^2 + d m`` numbers, however many rows there are. What was summed can be kept beside the result, so that a run that
was killed goes on where it was, to the same bits.
"""

from __future__ import annotations

import json
import operator
import os
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.data.files import available_memory, replacing
from streamlabel.errors import ConflictError, DataError
from streamlabel.executors import Executor, SerialExecutor
from streamlabel.scale.row_files import ROUND, Piece, Progress, RowFiles
from streamlabel.stats.sums import Stats, check_size
from streamlabel.stats.threads import one_thread
from streamlabel.store.predict import RowLabels, predict_rows
from streamlabel.store.sums_file import read_stats_beside, write_stats
from streamlabel.streaming.arrival import allowed_labels
from streamlabel.streaming.blocks import BLOCK
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.from_stats import (
    add_labels_from_stats,
    checked_for_sums,
    classifier_from_stats,
    code_counts,
    code_scores,
    placed_codes,
)
from streamlabel.streaming.inputs import canonical_rows, checked_parameters
from streamlabel.streaming.kept_rows import FitMemory
from streamlabel.streaming.past import fixed_lam
from streamlabel.types import CSC, CSR, IntArray

SECONDS = 30.0  # between two checkpoints, at least
_BESIDE = ("fingerprint", "pieces_done", "sampled_rows", "sampled_labels")
_PARTS = ("data", "indices", "indptr", "shape")
_WAVE = 2  # pieces a worker whose predictions are in memory at once
_RESERVE = 1 << 28  # bytes for what is read


@dataclass(frozen=True, eq=False)
class _Summed:
    """Sums over some rows, and those of these rows that were drawn: features (e, d) and labels (e, m)."""

    stats: Stats
    X: CSR
    Y: CSR

    def __add__(self, other: _Summed) -> _Summed:
        X, Y = (sparse.csr_array(sparse.vstack(pair, format="csr")) for pair in ((self.X, other.X), (self.Y, other.Y)))
        return _Summed(self.stats + other.stats, X, Y)


def _sum_piece(source: RowFiles, labels: IntArray, drawn: IntArray, piece: Piece) -> _Summed:
    """The sums over a piece, here or in another process; labels : (k,), the columns wanted;   drawn : (e,), rows."""
    found, row = None, piece.first_row
    names = [(source.label_names or ())[label] for label in labels.tolist()]
    for X, Y in source.blocks(piece):
        assert Y is not None
        Y = Y if np.array_equal(labels, np.arange(Y.shape[1])) else Y[:, labels]
        mine = drawn[(drawn >= row) & (drawn < row + Y.shape[0])] - row
        with one_thread():  # the same bits everywhere
            stats = Stats.from_batch(X, Y, names)
        part = _Summed(stats, sparse.csr_array(X[mine], dtype=np.float64), sparse.csr_array(Y[mine]))
        found, row = part if found is None else found + part, row + int(Y.shape[0])
    if found is None:
        raise DataError("holds no rows; is it the right file, and whole?", source=piece.path)
    return found


def _count_piece(source: RowFiles, piece: Piece) -> CSR:
    """How often the labels of a piece occur together, (m, m): no feature is read."""
    answers = (Y.astype(np.int64) for _, Y in source.blocks(piece, features=False) if Y is not None)
    return reduce(operator.add, (Y.T @ Y for Y in answers))


def _predict_piece(model: StreamingLabelClassifier, source: RowFiles, k: int | None, piece: Piece) -> list[RowLabels]:
    blocks = source.blocks(piece, labels=False)
    rows = (canonical_rows(sparse.csr_array(X, dtype=np.float64)) for X, _ in blocks)
    return [found for X in rows for found in predict_rows(model, X, k=k)]


def fit_files(
    source: RowFiles, beta: float | str = "auto", *, checkpoint: str | os.PathLike[str] | None = None,
    executor: Executor | None = None, progress: Progress | None = None, seconds: float = SECONDS, keep: bool = False,
    **parameters: Any,
) -> StreamingLabelClassifier:  # fmt: skip
    """Learn the labels of files: what ``StreamingLabelClassifier(beta=beta, **parameters).fit`` learns from the rows.

    Parameters
    ----------
    source : the files; every label counts as answered on every row
    checkpoint : a file ``*.npz`` for what has been summed so far, written every so many ``seconds``. If it is there
        already, and of these files and settings, the run goes on from it; it is removed at the end unless told to
        ``keep`` it, as one does until the model is stored.
    executor : sums pieces elsewhere; the result is the same to the last bit
    progress : called with the bytes that have been read and those in all
    parameters : of the classifier; the squared loss and the independent start only

    Coefficients, intercepts and the strength are those of `fit` up to rounding, as long as it has a spectrum of all
    rows (up to 3,000 features), rows are at least twice as many, and `scoring` is "balanced". Thresholds and
    probabilities come from the rows that `fit` would judge by in a large set, under classifiers learned without them.
    Rows are not kept: labels are added with rows of their own.
    """
    checked_for_sums(StreamingLabelClassifier(beta=beta, **parameters))
    source.scan(executor, progress)
    labels = np.arange(len(source.label_names or ()))
    check_sums(source.n_features, len(labels))
    drawn = FitMemory.sample(source.n_rows, int(parameters.get("random_state", 0)), len(labels))
    kept = _Checkpoint(checkpoint, source.fingerprint("fit", drawn.tobytes()), seconds)
    summed = _sum(source, labels, drawn, kept, executor or SerialExecutor(), progress)
    model = classifier_from_stats(summed.stats, beta, (summed.X, summed.Y), **parameters)
    kept.remove(unless=keep)
    return model


def add_labels_from_files(
    model: StreamingLabelClassifier, source: RowFiles, label_names: Iterable[str] | None = None,
    beta: float | str = "auto", *, checkpoint: str | os.PathLike[str] | None = None, executor: Executor | None = None,
    progress: Progress | None = None, seconds: float = SECONDS, keep: bool = False,
) -> StreamingLabelClassifier:  # fmt: skip
    """Learn new labels of files, as a copy of the model that knows them too.

    Step 1 reads the label data, and writes the new labels as combinations of the known ones that the files have (by
    name); if they have none, the model's scores stand for them, which the sums of step 2 say. Step 2 reads the feature
    data, once. The others are as in `fit_files`.

    label_names : which labels of the files to learn; default: all that the model does not know

    The classifiers are those of `add_labels` with ``metric=None``, the squared loss, a fixed ``beta`` and a fixed
    ``lam`` (that of the model, or 0.003 if it is "auto"), up to rounding.
    """
    executor, state, lam = executor or SerialExecutor(), model.state_, fixed_lam(model.lam)
    if state.loss != "squared" or state.classes is not None:
        raise DataError(
            f"the model has loss={state.loss!r}, or classes; labels of files are added with the squared loss"
        )
    source.scan(executor, progress)
    names, wanted = list(source.label_names or ()), labels_to_add(state.names, source, label_names)
    _check_features(model, source)
    check_sums(source.n_features, len(wanted))
    labels = np.array([names.index(name) for name in wanted], dtype=np.intp)
    codes: CSC | None = None if lam is not None else sparse.csc_array((len(state.names), len(wanted)))
    if lam is not None and (past := _answered(model, names)).size:
        pieces = _told(source, progress)
        counts = executor.map_reduce(partial(_count_piece, source), pieces, operator.add).astype(np.float64)
        gram, correlations = counts[past][:, past].toarray(), counts[past][:, labels].toarray()
        found = code_counts(
            source.n_rows, gram, correlations, counts.diagonal()[labels], lam, fit_intercept=model.fit_intercept
        )
        numbers = np.array([state.names.number(names[place]) for place in past.tolist()])
        codes = placed_codes(found, numbers, len(state.names))
    drawn = FitMemory.sample(source.n_rows, model.random_state)
    kept = _Checkpoint(checkpoint, source.fingerprint("add", drawn.tobytes(), wanted), seconds)
    summed = _sum(source, labels, drawn, kept, executor, progress)
    if codes is None and lam is not None:
        codes = code_scores(model, summed.stats, lam)
    assert codes is not None
    grown = add_labels_from_stats(model, summed.stats, codes, beta, (summed.X, summed.Y))
    kept.remove(unless=keep)
    return grown


def labels_to_add(known: Container[str], source: RowFiles, label_names: Iterable[str] | None = None) -> list[str]:
    """The labels of scanned files that are to be learned beside the known ones: these, or all that are new."""
    names = source.label_names or ()
    wanted = [name for name in names if name not in known] if label_names is None else list(label_names)
    missing = next((f"no label {name!r}" for name in wanted if name not in names), "")
    if missing or not wanted:
        raise DataError(f"has {missing or 'no label that the model does not know'}", source=source.files[0])
    for name in wanted:
        if name in known:
            raise ConflictError(f"label name {name!r} is taken; choose another name")
    return wanted


def _answered(model: StreamingLabelClassifier, names: Sequence[str]) -> IntArray:
    """The places of the labels of the files that the model knows, and that may enter a code."""
    names_of, allowed = model.state_.names, set(allowed_labels(checked_parameters(model), model.state_).tolist())
    known = [place for place, name in enumerate(names) if name in names_of and names_of.number(name) in allowed]
    return np.array(known, dtype=np.intp)


def _told(source: RowFiles, progress: Progress | None) -> Iterator[Piece]:
    """The pieces, as they are drawn."""
    done = 0
    for piece in source.pieces:
        yield piece
        done += piece.n_bytes
        if progress is not None:
            progress(done, source.n_bytes)


def _check_features(model: StreamingLabelClassifier, source: RowFiles) -> None:
    if model.features is not None:
        raise DataError("the model maps its rows (features=...); files are read as they are, map them before")
    if source.n_features != model.n_features_in_:
        problem = f"{source.n_features} features; the model has {model.n_features_in_}"
        raise DataError(problem, source=source.files[0])


def check_sums(n_features: int, n_labels: int) -> None:
    """Raise DataError unless there is room for the sums, and for what is made of them."""
    check_size(n_features, n_labels)
    needed = 8 * (4 * n_features**2 + 4 * n_features * n_labels) + _RESERVE
    if needed > (free := available_memory()):
        raise DataError(
            f"the sums over {n_features:,} features and {n_labels:,} labels, and what is made of them, would take "
            f"{needed / 2**30:.2g} GiB of memory, and {free / 2**30:.2g} GiB is free; use fewer features or labels"
        )


def _sum(
    source: RowFiles, labels: IntArray, drawn: IntArray, kept: _Checkpoint, executor: Executor,
    progress: Progress | None,
) -> _Summed:  # fmt: skip
    """The sums over all pieces: every round by itself, then added to those before it."""
    pieces, function = source.pieces, partial(_sum_piece, source, labels, drawn)
    total, done = kept.read()
    n_bytes = sum(piece.n_bytes for piece in pieces[:done])
    while done < len(pieces):
        now = pieces[done : done + ROUND]
        found = executor.map_reduce(function, now, operator.add)
        total = found if total is None else total + found
        done, n_bytes = done + len(now), n_bytes + sum(piece.n_bytes for piece in now)
        if done < len(pieces):
            kept.write(total, done)
        if progress is not None:
            progress(n_bytes, source.n_bytes)
    assert total is not None
    return total


class _Checkpoint:
    """A file with the sums of the first pieces, from which a run that was killed goes on."""

    def __init__(self, path: str | os.PathLike[str] | None, fingerprint: bytes, seconds: float) -> None:
        self._path = None if path is None else Path(path)
        self._fingerprint = np.frombuffer(fingerprint, dtype=np.uint8)
        self._seconds, self._written = seconds, time.monotonic()

    def read(self) -> tuple[_Summed | None, int]:
        """The sums, and of how many pieces they are."""
        if self._path is None or not self._path.exists():
            return None, 0
        names = [*_BESIDE[:2], *(f"{name}_{part}" for name in _BESIDE[2:] for part in _PARTS)]
        stats, beside = read_stats_beside(self._path, names)
        if not np.array_equal(beside["fingerprint"], self._fingerprint):
            raise ConflictError(
                f"{self._path} was begun from other files, or with other settings; remove it to begin anew"
            )
        X, Y = (
            sparse.csr_array(
                tuple(beside[f"{name}_{part}"] for part in _PARTS[:3]), shape=tuple(beside[f"{name}_shape"])
            )
            for name in _BESIDE[2:]
        )
        return _Summed(stats, X, Y), int(beside["pieces_done"])

    def write(self, total: _Summed, done: int) -> None:
        """Keep the sums, if it is time; writing takes at most a twentieth of it."""
        begin = time.monotonic()
        if self._path is None or begin - self._written < self._seconds:
            return
        beside: dict[str, Any] = {"fingerprint": self._fingerprint, "pieces_done": np.int64(done)}
        for name, matrix in zip(_BESIDE[2:], (total.X, total.Y), strict=True):
            beside |= {f"{name}_{part}": np.asarray(getattr(matrix, part)) for part in _PARTS}
        write_stats(total.stats, self._path, beside)
        self._written = time.monotonic()
        self._seconds = max(self._seconds, 20.0 * (self._written - begin)) if self._seconds else 0.0

    def remove(self, *, unless: bool) -> None:
        if self._path is not None and not unless:
            self._path.unlink(missing_ok=True)


Write = Callable[[Sequence[RowLabels], int], str]


def predict_files(
    model: StreamingLabelClassifier, source: RowFiles, out: str | os.PathLike[str], k: int | None = 5, *,
    write: Write | None = None, settings: object = None, executor: Executor | None = None,
    progress: Progress | None = None,
) -> int:  # fmt: skip
    """Write the k best labels of every row to a file, piece by piece; how many rows there were.

    k : None for the labels whose score exceeds their threshold
    write : makes text of the labels of some rows, and the number of the first; default: one JSON object a row
    settings : what ``write`` was told; a run that goes on must have been told the same
    executor : scores pieces elsewhere, two for each of its workers at a time

    What has been written lies in ``out.unfinished`` until all is; a run that was killed goes on from there.
    """
    _check_features(model, source)
    write, executor = write or partial(_json_lines, model.label_names_), executor or SerialExecutor()
    part, mark = Path(f"{os.fspath(out)}.unfinished"), Path(f"{os.fspath(out)}.unfinished.json")
    begun = {"fingerprint": source.fingerprint("predict", k, settings, _digest(model)).hex()}
    done, n_rows, size, wave = 0, 0, 0, _WAVE * getattr(executor, "n_workers", 1)
    if part.exists() and mark.exists():
        said = json.loads(mark.read_text(encoding="utf-8"))
        if said.get("fingerprint") != begun["fingerprint"]:
            raise ConflictError(f"{mark} was begun from other files, or with other settings; remove it to begin anew")
        done, n_rows, size = said["pieces"], said["rows"], said["bytes"]
    function = partial(_predict_piece, model, source, k)
    with open(part, "r+b" if size else "wb") as handle:
        handle.truncate(size)
        handle.seek(size)
        while done < len(source.pieces):
            now = source.pieces[done : done + wave]
            for found in executor.map(function, now):
                handle.write(write(found, n_rows).encode())
                n_rows += len(found)
            handle.flush()
            os.fsync(handle.fileno())
            done += len(now)
            with replacing(mark) as note:
                note.write(json.dumps(begun | {"pieces": done, "rows": n_rows, "bytes": handle.tell()}).encode())
            if progress is not None:
                progress(sum(piece.n_bytes for piece in source.pieces[:done]), source.n_bytes)
    os.replace(part, out)
    mark.unlink()
    return n_rows


def _digest(model: StreamingLabelClassifier) -> bytes:
    """A digest of all of a model that its predictions depend on."""
    classifiers, decisions = model.state_.classifiers, model.state_.decisions
    found = sha256(repr(model.label_names_).encode())
    parts: list[Any] = [classifiers.intercept, decisions.thresholds, decisions.slope, decisions.offset]
    for start in range(0, classifiers.n_labels, BLOCK):
        block = classifiers.columns(np.arange(start, min(start + BLOCK, classifiers.n_labels)))
        parts += [block] if isinstance(block, np.ndarray) else [block.data, block.indices, block.indptr]
        while parts:
            found.update(np.ascontiguousarray(parts.pop()).tobytes())
    return found.digest()


def _json_lines(names: Sequence[str], rows: Sequence[RowLabels], first: int) -> str:
    lines = [
        {"row": row, "labels": [names[label] for label in found.labels.tolist()], "scores": found.scores.tolist()}
        for row, found in enumerate(rows, start=first)
    ]
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
