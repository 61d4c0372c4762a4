"""Storage of what a model needs to go on learning: the rows of `fit` with their answers, and answers of later labels.

The rows are a part called ``learning``; values that float32 holds exactly are stored as such. Answers that a later
label got on every row are a list of its positive rows in the catalogue. Without them a stored model still scores, and
still learns labels from rows of their own.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.classifier.ridge import HatSpectrum
from streamlabel.errors import DataError, Hint
from streamlabel.store.format import CATALOGUE
from streamlabel.store.parts import Part
from streamlabel.store.reader import Snapshot
from streamlabel.streaming.found_trials import FoundRecipe
from streamlabel.streaming.judgement import Calibration
from streamlabel.streaming.kept_rows import FitMemory, LaterRows
from streamlabel.streaming.trials import RECIPES, Trial
from streamlabel.types import CSR, FloatArray, IntArray

LEARNING, LATER, TRIALS, FOUND = "learning", "later", "trials", "found"


def encode_rows(rows: FitMemory, atoms: IntArray, labels: IntArray) -> Part:
    """Encode the rows of `fit` as a part; ``labels`` are the ids of its labels, as columns; ``atoms`` some of these."""
    hat = rows.hat
    arrays: dict[str, NDArray[Any]] = {
        "answers.indptr": rows.labels.indptr,
        "answers.indices": rows.labels.indices,
        "atoms": atoms,
        "judged_rows": rows.judged_rows,
        "labels": labels,
        "leave_one_out": rows.leave_one_out.astype(np.float32),
        "leverages": rows.leverages,
    }
    if rows.few is not None:
        arrays["few"] = rows.few
    if hat is not None and hat.spread is not None:
        arrays["hat"] = hat.spread
    if isinstance(rows.X, np.ndarray):
        arrays["rows"] = _narrow(rows.X)
    else:
        arrays |= {"rows": _narrow(rows.X.data), "rows.indices": rows.X.indices, "rows.indptr": rows.X.indptr}
    said = None if hat is None else [hat.trace, hat.spread_sum]
    return Part({"n_rows": int(rows.X.shape[0]), "sparse": not isinstance(rows.X, np.ndarray), "hat": said}, arrays)


def decode_rows(part: Part, snapshot: Snapshot, **facts: Any) -> tuple[FitMemory, IntArray] | None:
    """Decode what `encode_rows` wrote, rows and atoms, for the labels of `fit` that are still there; None if none is.

    ``facts`` : seed, beta and centre of the `FitMemory`
    """
    try:
        arrays, n_rows = part.arrays, int(part.content["n_rows"])
        ids, judged = arrays["labels"], arrays["judged_rows"]
        X = _rows(arrays, n_rows, snapshot.n_features) if part.content["sparse"] else arrays["rows"].astype(np.float64)
        answers = _matrix(None, arrays["answers.indices"], arrays["answers.indptr"], (n_rows, len(ids)))
        said = part.content["hat"]
        hat = None if said is None else HatSpectrum(float(said[0]), float(said[1]), arrays.get("hat"))
        atoms, leverages, unseen = arrays["atoms"], arrays["leverages"], arrays["leave_one_out"]
        few = arrays.get("few")
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(snapshot, str(error)) from error
    n_judged = len(ids) if few is None else len(few)
    shapes = [X.shape == (n_rows, snapshot.n_features), unseen.shape == (len(judged), n_judged),
              few is None or _inside(few, len(ids)),
              leverages.shape == judged.shape, _inside(judged, n_rows), _inside(atoms, len(ids))]  # fmt: skip
    if not all(shapes) or not all(np.isfinite(values).all() for values in (leverages, unseen, _values(X))):
        raise _damaged(snapshot, "its arrays do not fit together")
    kept = np.flatnonzero(np.isin(ids, snapshot.labels))
    if not kept.size:
        return None
    if kept.size < len(ids):
        answers = answers[:, kept]
        unseen = unseen[:, kept] if few is None else unseen[:, np.isin(few, kept)]
        few = None if few is None else np.searchsorted(kept, few[np.isin(few, kept)])
        atoms = np.flatnonzero(np.isin(kept, atoms))
    memory = FitMemory(X, answers, unseen.astype(np.float64), judged, leverages, hat=hat, few=few, **facts)
    return memory, np.asarray(atoms)


def encode_later(memory: FitMemory, labels: IntArray) -> Part:
    """Encode the rows that came after `fit`, and what they changed; ``labels`` are the ids of its labels."""
    later = memory.later
    assert later is not None
    again = np.flatnonzero(later.known.any(axis=0))
    arrays: dict[str, NDArray[Any]] = {
        "again": again,
        "answers.indptr": later.labels.indptr,
        "answers.indices": later.labels.indices,
        "known": np.packbits(later.known, axis=1),
        "labels": labels,
        "leave_one_out": memory.leave_one_out[:, again].astype(np.float32),
    }
    if isinstance(later.X, np.ndarray):
        arrays["rows"] = _narrow(later.X)
    else:
        arrays |= {"rows": _narrow(later.X.data), "rows.indices": later.X.indices, "rows.indptr": later.X.indptr}
    return Part({"n_rows": int(later.X.shape[0])}, arrays)


def decode_later(part: Part, snapshot: Snapshot, memory: FitMemory) -> FitMemory:
    """The rows of `fit` with those that `encode_later` wrote; a label that was not there then is unknown on them."""
    try:
        arrays, n_rows = part.arrays, int(part.content["n_rows"])
        ids, again, unseen = arrays["labels"], arrays["again"], arrays["leave_one_out"]
        is_dense = isinstance(memory.X, np.ndarray)
        X = arrays["rows"].astype(np.float64) if is_dense else _rows(arrays, n_rows, snapshot.n_features)
        answers = _matrix(None, arrays["answers.indices"], arrays["answers.indptr"], (n_rows, len(ids)))
        known = np.unpackbits(arrays["known"], axis=1, count=len(ids)).astype(bool)
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(snapshot, str(error)) from error
    shapes = [X.shape == (n_rows, snapshot.n_features), unseen.shape == (len(memory.judged_rows), len(again)),
              known.shape == (n_rows, len(ids)), _inside(again, len(ids))]  # fmt: skip
    if not all(shapes) or not all(np.isfinite(values).all() for values in (unseen, _values(X))):
        raise _damaged(snapshot, "its arrays do not fit together")
    n_fitted = int(memory.labels.shape[1])
    place = {label: column for column, label in enumerate(snapshot.labels[:n_fitted].tolist())}
    here = np.array([place.get(label, -1) for label in ids.tolist()])
    kept = np.flatnonzero(here >= 0)
    spread = sparse.csr_array((np.ones(len(kept), dtype=np.int8), (kept, here[kept])), shape=(len(ids), n_fitted))
    now, scores = np.zeros((n_rows, n_fitted), dtype=bool), memory.leave_one_out.copy()
    now[:, here[kept]] = known[:, kept]
    still = here[again] >= 0
    scores[:, here[again][still]] = unseen[:, still]
    return memory.updated(scores, LaterRows(X, sparse.csr_array(answers @ spread), now))


def encode_positives(rows: IntArray) -> tuple[bytes, int]:
    """Encode row numbers as they are stored; returns the bytes and their checksum."""
    content = np.sort(rows).astype("<i4").tobytes()
    return content, zlib.crc32(content)


def later_answers(connection: sqlite3.Connection, snapshot: Snapshot, n_rows: int) -> list[tuple[int, IntArray]]:
    """The (column, positive rows) of the labels that came later with answers on every row."""
    columns = {classifier: column for column, classifier in enumerate(snapshot.classifiers.tolist())}
    found = []
    query = (
        "SELECT c.id, c.answers, a.positives, a.checksum FROM classifier c LEFT JOIN answer a ON a.classifier = c.id "
        "WHERE c.answers IS NOT NULL"
    )
    for classifier, sealed, content, expected in connection.execute(query):
        if classifier not in columns:
            continue
        whole = isinstance(content, bytes) and len(content) % 4 == 0 and expected == sealed
        if not whole or zlib.crc32(content) != expected:
            raise _damaged(snapshot, f"the answers of label {snapshot.names[columns[classifier]]!r}")
        rows = np.frombuffer(content, "<i4").astype(np.int32)
        if not _inside(rows, n_rows) or (np.diff(rows) <= 0).any():
            raise _damaged(snapshot, f"the answers of label {snapshot.names[columns[classifier]]!r}")
        found.append((columns[classifier], rows))
    return sorted(found, key=lambda pair: pair[0])


_TRIAL = ("strengths", "measures", "lines", "missed")
TRIED = "tried"  # another name when `measure` changes: "recipes" until P@k was that of pairs


def encode_trials(trials: Mapping[int, list[Trial]], n_labels: int) -> Part:
    """Encode the trials of how far the past can be trusted, from so many labels of `fit`, so that none is run again."""
    arrays: dict[str, NDArray[Any]] = {}
    for budget, runs in trials.items():
        for field in _TRIAL:
            arrays[f"{field}.{budget}"] = np.array([getattr(run, field) for run in runs], dtype=np.float64)
    return Part({"budgets": sorted(trials), "labels": n_labels, TRIED: [list(way) for way in RECIPES]}, arrays)


def decode_trials(part: Part, snapshot: Snapshot, n_labels: int) -> dict[int, list[Trial]]:
    """Decode what `encode_trials` wrote; nothing if labels of `fit` have been retired since, or of other recipes."""
    try:
        if part.content["labels"] != n_labels or part.content.get(TRIED) != [list(way) for way in RECIPES]:
            return {}
        return {
            int(budget): [
                Trial(*one) for one in zip(*(part.arrays[f"{field}.{budget}"] for field in _TRIAL), strict=True)
            ]
            for budget in part.content["budgets"]
        }
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(snapshot, str(error)) from error


def _narrow(values: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        small = values.astype(np.float32)
    return small if np.array_equal(small, values) else values


def _rows(arrays: Mapping[str, NDArray[Any]], n_rows: int, n_features: int) -> CSR:
    data = arrays["rows"].astype(np.float64, copy=False)
    return _matrix(data, arrays["rows.indices"], arrays["rows.indptr"], (n_rows, n_features))


def _matrix(data: FloatArray | None, indices: IntArray, indptr: IntArray, shape: tuple[int, int]) -> CSR:
    """A matrix whose indices were checked: compiled code that reads them does not look."""
    if (
        indptr.ndim != 1
        or indices.ndim != 1
        or len(indptr) != shape[0] + 1
        or (data is not None and data.shape != indices.shape)
    ):
        raise ValueError("a matrix whose parts do not fit together")
    if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any() or not _inside(indices, shape[1]):
        raise ValueError("a matrix with indices out of range")
    values = np.ones(len(indices), dtype=np.int8) if data is None else data
    return sparse.csr_array((values, indices, indptr), shape=shape)


def _inside(numbers: IntArray, end: int) -> bool:
    return numbers.dtype.kind in "iu" and (not numbers.size or (numbers.min() >= 0 and numbers.max() < end))


def _values(X: Any) -> FloatArray:
    return X if isinstance(X, np.ndarray) else X.data


def _damaged(snapshot: Snapshot, what: str) -> DataError:
    problem = f"what it keeps to go on learning is damaged ({what})"
    return DataError(problem, source=snapshot.folder, hint=Hint.WITHOUT_LEARNING)


def encode_found(found: Mapping[tuple[int, str], FoundRecipe]) -> Part:
    """The recipes for found examples, as a part."""
    return Part([{"reader": reader, **asdict(recipe)} for (_, reader), recipe in sorted(found.items())])


def decode_found(part: Part, snapshot: Snapshot) -> dict[tuple[int, str], FoundRecipe]:
    """Read what `encode_found` wrote; everything is checked."""
    found = {}
    try:
        for one in part.content:
            facts = dict(one)
            reader, given = str(facts.pop("reader")), facts.pop("calibration")
            a, b, c, d = (float(value) for value in given["coefficients"])
            facts["weights"] = tuple(float(value) for value in facts["weights"])
            mean, missed = map(float, given.get("lower", (0.0, 0.0)))
            calibration = Calibration((a, b, c, d), float(given["deviation"]), (mean, missed))
            recipe = FoundRecipe(**facts, calibration=calibration)
            numbers = (recipe.share, recipe.strength, *recipe.weights, a, b, c, d, calibration.deviation, mean, missed)
            if not np.isfinite(numbers).all() or recipe.strength <= 0 or recipe.calibration.deviation <= 0:
                raise ValueError("a number of a recipe is out of range")
            found[int(recipe.n_yes), reader] = recipe
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"the recipes for found examples are damaged: {error}"
        raise DataError(problem, source=snapshot.folder / CATALOGUE, hint=Hint.DOCTOR) from error
    return found
