"""The rows, answers and trials that a model keeps of its fit, so that labels can arrive later."""

from __future__ import annotations

import copy
import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.classifier.coordinates import affords_coordinates
from streamlabel.classifier.iterations import IteratedRows
from streamlabel.classifier.ridge import HatSpectrum, PreparedRidge, make_ridge
from streamlabel.data.files import check_memory
from streamlabel.errors import DataError
from streamlabel.stats.label_gram import centred_cross
from streamlabel.stats.spectral import dense
from streamlabel.streaming.inputs import SCORINGS, same_rows
from streamlabel.streaming.trials import (
    LOGGER,
    MIXES,
    MOST_WIDE,
    N_HIDDEN_OTHER,
    N_SKETCH,
    RECIPES,
    SAYS,
    SOME_ROWS,
    WIDE,
    Judged,
    Trial,
    Way,
    budget_class,
    choose_recipe,
    promising,
    run_trial,
    sketch,
)
from streamlabel.types import CSC, CSR, BoolArray, FloatArray, IntArray

_MOST_JUDGED, _MOST_MORE = 1000, 6000  # rows; these only where the past is not tried
_FEW_ROWS = 500  # with more, of many features, losses are tried apart from the past, too: there they count more
_MOST_SCORES = 10_000_000
_MOST_LOOSE = 64
_MOST_SHUFFLED = 1 << 24  # rows; more of them, in files, would take memory


class _GrowingGram:
    """A square matrix in a buffer with room to grow; the models that share it each know how much of it is theirs."""

    def __init__(self, gram: FloatArray) -> None:
        self.used = len(gram)
        self.buffer = gram

    def appended(self, mine: int, side: FloatArray, corner: FloatArray) -> _GrowingGram:
        """My part, then new rows and columns: in place if nobody has written behind my part, else in a copy."""
        size = mine + len(corner)
        grown = self
        if self.used != mine or size > len(self.buffer):
            room = np.empty((max(size, mine + mine // 4 + 16),) * 2)
            room[:mine, :mine] = self.buffer[:mine, :mine]
            grown = _GrowingGram(room)
        grown.buffer[:mine, mine:size], grown.buffer[mine:size, :mine] = side, side.T
        grown.buffer[mine:size, mine:size] = corner
        grown.used = size
        return grown


class LabelAnswers:
    """The answers of the labels that may enter a code, on the n rows of `fit`. Immutable but for what it keeps ready.

    labels : (p,), their numbers among all labels of the model. The answers of the first are kept by rows, those of the
    newest (at most `_MOST_LOOSE`) as lists of their positive rows, so that one more label copies little.
    """

    def __init__(
        self,
        labels: IntArray,
        whole: CSR,
        loose: tuple[IntArray, ...] = (),
        gram: _GrowingGram | None = None,
        counts: FloatArray | None = None,
    ) -> None:
        self.labels = labels
        self._whole, self._loose, self._gram = whole, loose, gram
        if counts is None:
            counts = np.append(np.bincount(whole.indices, minlength=whole.shape[1]), [len(rows) for rows in loose])
        self._counts: FloatArray = counts.astype(np.float64)

    @property
    def by_rows(self) -> CSR:
        """The answers as csr_array (n, p) of ones."""
        if self._loose:
            newest = _columns(self._loose, self._whole.shape[0])
            self._whole = sparse.csr_array(sparse.hstack((self._whole, newest), format="csr"))
            self._loose = ()
        return self._whole

    @property
    def gram(self) -> FloatArray:
        """The centred Gram of the answers (p, p); made when first asked for, then grown."""
        if self._gram is None:
            n_labels = len(self.labels)
            check_memory(8 * n_labels**2, f"the Gram of {n_labels} labels that may enter codes (see `dictionary`)")
            self._gram = _GrowingGram(centred_cross(self.by_rows, self.by_rows))
        return self._gram.buffer[: len(self.labels), : len(self.labels)]

    def cross(self, positives: Sequence[IntArray]) -> FloatArray:
        """Centred products (p, k) with new labels, each given by its positive rows: a label costs what these cost."""
        n_rows, whole = self._whole.shape[0], self._whole
        if len(positives) > _MOST_LOOSE and not self._loose:  # the same counts by one product
            found = dense(whole.astype(np.float64).T @ _columns(positives, n_rows))
            return found - np.outer(self._counts, [len(rows) / n_rows for rows in positives])
        result = np.empty((len(self.labels), len(positives)))
        mark = np.zeros(n_rows, dtype=bool)
        for j, rows in enumerate(positives):
            if whole.shape[1]:
                result[: whole.shape[1], j] = np.bincount(whole[rows].indices, minlength=whole.shape[1])
            mark[rows] = True
            result[whole.shape[1] :, j] = [np.count_nonzero(mark[other]) for other in self._loose]
            mark[rows] = False
            result[:, j] -= self._counts * (len(rows) / n_rows)
        return result

    def appended(self, first: int, positives: Sequence[IntArray], side: FloatArray | None = None) -> LabelAnswers:
        """These labels, then new ones numbered from ``first``, answered on every row; ``side`` is `cross` of them."""
        gram = self._gram
        if gram is not None:
            corner = LabelAnswers(np.arange(len(positives)), *self._parts(positives)).cross(positives)
            gram = gram.appended(len(self.labels), self.cross(positives) if side is None else side, corner)
        numbers = np.concatenate((self.labels, np.arange(first, first + len(positives))))
        counts = np.append(self._counts, [len(rows) for rows in positives])
        loose = (*self._loose, *positives)
        if len(loose) <= _MOST_LOOSE:
            return LabelAnswers(numbers, self._whole, loose, gram, counts)
        whole = sparse.csr_array(sparse.hstack((self._whole, _columns(loose, self._whole.shape[0])), format="csr"))
        return LabelAnswers(numbers, whole, (), gram, counts)

    def positives(self, numbers: IntArray) -> list[IntArray | None]:
        """The positive rows of these labels; None for those that have no answers here."""
        places = {int(label): place for place, label in enumerate(self.labels.tolist())}
        n_whole, columns = self._whole.shape[1], None
        found: list[IntArray | None] = []
        for place in (places.get(number) for number in numbers.tolist()):
            if place is None:
                found.append(None)
            elif place >= n_whole:
                found.append(self._loose[place - n_whole])
            else:
                columns = sparse.csc_array(self._whole) if columns is None else columns
                found.append(columns.indices[columns.indptr[place] : columns.indptr[place + 1]])
        return found

    def _parts(self, positives: Sequence[IntArray]) -> tuple[CSR, tuple[IntArray, ...]]:
        """New labels by rows, or as lists if they are few: the product of all with all grows with their square."""
        n_rows = self._whole.shape[0]
        if len(positives) > _MOST_LOOSE:
            return _columns(positives, n_rows).tocsr(), ()
        return sparse.csr_array((n_rows, 0)), tuple(positives)


def positive_rows(labels: CSR) -> list[IntArray]:
    """The positive rows of every label of a matrix (n, k)."""
    columns = labels.tocsc()
    return [columns.indices[columns.indptr[j] : columns.indptr[j + 1]] for j in range(columns.shape[1])]


def _columns(positives: Sequence[IntArray], n_rows: int) -> CSC:
    indptr = np.concatenate(([0], np.cumsum([len(rows) for rows in positives])))
    indices = np.concatenate(positives)
    return sparse.csc_array((np.ones(len(indices), dtype=np.int8), indices, indptr), shape=(n_rows, len(positives)))


def stack(first: Any, second: Any) -> Any:
    """Stack two matrices of rows, dense if both are."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.vstack((first, second))
    return sparse.csr_array(sparse.vstack((sparse.csr_array(first), sparse.csr_array(second)), format="csr"))


@dataclass(frozen=True, eq=False)
class LaterRows:
    """Rows that came after `fit`, with answers for some of its f labels (`streaming.later_rows`).

    X : (k, d);   labels : csr_array (k, f), 0 where nothing is known;   known : (k, f) bool
    """

    X: Any
    labels: CSR
    known: BoolArray

    def joined(self, newer: LaterRows) -> LaterRows:
        """These rows, then newer ones."""
        labels = stack(self.labels, newer.labels)
        return LaterRows(stack(self.X, newer.X), labels, np.vstack((self.known, newer.known)))


class FitMemory:
    """The rows of `fit`, and the trials there of how far the past can be trusted.

    labels : csr_array (n, f), the answers of the labels of `fit`
    judged_rows : (e,), a fixed sample of the rows;  leverages : (e,), their hat diagonal
    leave_one_out : (e, f), their scores under the classifiers of `fit` learned without them
    beta, centre : of the ridge of all rows;   hat : its spectrum, if it is known (`HatSpectrum`)
    tried : the trials that have been run, by their number of rows
    found : the recipes for found examples (`streaming.found`), by number of yes and by what reads names
    later : rows that came later, from which labels of `fit` were learned again; None if there are none
    directions : of the metric in trials, if these are fewer than labels
    few : (s,), the labels that trials use, if these are not all; `leave_one_out` is then theirs alone, (e, s)
    """

    def __init__(
        self,
        X: CSR | FloatArray,
        labels: CSR,
        leave_one_out: FloatArray,
        judged_rows: IntArray,
        leverages: FloatArray,
        seed: int,
        *,
        beta: float,
        centre: bool,
        ridge: PreparedRidge | None = None,
        hat: HatSpectrum | None = None,
        tried: Mapping[int, list[Trial]] | None = None,
        source: Any = None,
        few: IntArray | None = None,
    ) -> None:
        self.X, self.labels, self.few = X, labels, few
        self._source, self._sample = _remember(source)
        self.judged_X = X[judged_rows]
        self.judged_rows = judged_rows
        self.leverages = leverages
        self.leave_one_out = leave_one_out
        self.tried: dict[int, list[Trial]] = dict(tried or {})
        self.found: dict[tuple[int, str], Any] = {}
        self.later: LaterRows | None = None
        self.directions: tuple[FloatArray, FloatArray, FloatArray] | None = None
        self._complete: set[int] = set()  # budgets whose trials have every loss
        self._seed, self._beta, self._centre, self._ridge, self._given_hat = seed, beta, centre, ridge, hat

    def updated(self, leave_one_out: FloatArray, later: LaterRows) -> FitMemory:
        """The same rows, with later ones beside them, and scores under classifiers that know those, too."""
        memory = copy.copy(self)
        memory.leave_one_out, memory.later, memory.directions = leave_one_out, later, None
        memory.tried, memory.found, memory._complete = dict(self.tried), dict(self.found), set(self._complete)
        return memory

    def small(self) -> FitMemory:
        """The same rows with the labels that trials use."""
        if self.few is None:
            return self
        memory = copy.copy(self)
        memory.labels, memory.few = sparse.csr_array(self.labels[:, self.few]), None
        return memory

    @property
    def ridge(self) -> PreparedRidge:
        """The ridge of all rows; factored when it is first asked for, if `fit` did not leave it here."""
        if self._ridge is None:
            self._ridge = make_ridge(self.X, self._beta, centre=self._centre, hat=self._given_hat)
        return self._ridge

    @functools.cached_property
    def iterated(self) -> IteratedRows:
        """All rows, ready for iterations."""
        return IteratedRows(self.X)

    @property
    def hat(self) -> HatSpectrum | None:
        """The hat spectrum of the ridge of all rows, or None if it is not known."""
        return self._given_hat if self._ridge is None else self._ridge.known_hat

    @staticmethod
    def sample(n_rows: int, seed: int, n_labels: int = 1) -> IntArray:
        """A random sample of rows: at most a third, a thousand, and ten million scores; all if there are very few."""
        most = max(100, min(_MOST_JUDGED, _MOST_SCORES // n_labels))
        size = n_rows if n_rows < 60 else min(most, n_rows // 3)
        rng = np.random.default_rng(seed)
        if n_rows > _MOST_SHUFFLED:
            return np.sort(rng.choice(n_rows, size, replace=False))
        return np.sort(rng.permutation(n_rows)[:size])

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle: copies in other processes know the rows by their values only."""
        return {**self.__dict__, "_source": None, "directions": None}

    def recognises(self, X: Any) -> bool:
        """Whether X are the rows of `fit`, to the last bit.

        The very object that was passed to `fit` is recognised by a sample of its values: 4,096 of them instead of all.
        It must not have been written to in between.
        """
        if self._source is not None and self._source() is X:
            if _sampled(X) != self._sample:
                raise DataError("X was written to since fit; pass a copy to fit, or fit again")
            return True
        return same_rows(X, self.X)

    def trials(
        self,
        n_rows: int,
        losses: Sequence[str],
        classifiers: Callable[[IntArray | None], tuple[FloatArray, FloatArray]],
        run: Callable[..., Trial | None] = run_trial,
    ) -> list[Trial]:
        """Trials of these losses at the budget nearest to this number of rows; run when first asked for, then kept.

        ``classifiers`` gives those of some labels of `fit` (None: all), (d, k) and (k,).
        """
        budget = budget_class(n_rows, (self.X.shape[0] - len(self.judged_rows), self.X.shape[1]))
        if losses[-1] != "squared" and budget not in self._complete:
            if all(np.isnan(trial.strengths[1]) for trial in self.tried.get(budget, ())):  # of the squared loss alone
                self.tried.pop(budget, None)
            self._complete.add(budget)
        if budget not in self.tried:
            labels = self.small().labels
            left = np.setdiff1d(np.arange(self.X.shape[0]), self.judged_rows)
            judged = Judged(self.judged_X, labels[self.judged_rows], self.leave_one_out)
            found, first, wide = list[Trial](), RECIPES, self.X.shape[1] > WIDE
            fits = wide and self.X.shape[1] <= MOST_WIDE // N_HIDDEN_OTHER
            alone = not affords_coordinates((budget, self.X.shape[1]), min(labels.shape[1], N_SKETCH))
            if wide and budget > SOME_ROWS and affords_coordinates((budget, self.X.shape[1]), N_SKETCH):
                mixes = MIXES if losses[0] == "squared" else (1.0,)
                some = self.trials(SOME_ROWS, losses, classifiers, run)
                best = [choose_recipe(some, mixes=mixes, scoring=one) for one in SCORINGS if some]
                shares = {one.share for one in best}
                first = tuple(way for way in RECIPES if not way.share or way.share in shares)
                alone |= fits and bool(best) and not (best[0].share or best[0].anchored)  # the past says less there
            count = 1 if alone else n_trials(budget, self.X.shape[1])
            if count:
                LOGGER.info(SAYS, f"about {budget} answers")

            def draw(number: int, ways: Sequence[Way], alone: bool, apart: Trial | None = None) -> Trial | None:
                rng = np.random.default_rng((self._seed, budget, number))
                rows = np.sort(rng.choice(left, budget, replace=False))
                X, by = self.X[rows], judged
                if alone:  # the scores of the past are not needed
                    more = np.append(self.judged_rows, rng.permutation(np.setdiff1d(left, rows))[:_MOST_MORE])
                    by = Judged(self.X[more], labels[more], np.empty((0, 0)))
                sketched = None if alone else self._sketched(X, classifiers)
                scores = functools.partial(_scores, X, classifiers)
                return run(X, labels[rows], scores, by, rng, losses, ways, sketched, apart, alone)

            apart = draw(count, first, True) if fits and not alone and budget > _FEW_ROWS and len(losses) > 1 else None
            for number in range(count):
                one = draw(number, promising(found) if found and wide else first, alone, apart)
                found += [] if one is None else [one]
            self.tried[budget] = found
        return self.tried[budget]

    def _sketched(
        self, X: CSR | FloatArray, classifiers: Callable[[IntArray | None], tuple[FloatArray, FloatArray]]
    ) -> tuple[FloatArray, FloatArray] | None:
        """The scores of rows, and of those to judge by, in fewer directions than there are labels; None without."""
        if self.leave_one_out.shape[1] <= N_SKETCH:
            return None
        if self.directions is None:
            weights, intercept = classifiers(None)
            self.directions = sketch(weights), sketch(intercept[None]), sketch(self.leave_one_out)
        return np.asarray(X @ self.directions[0]) + self.directions[1], self.directions[2]


def _scores(
    X: CSR | FloatArray, classifiers: Callable[[IntArray], tuple[FloatArray, FloatArray]], labels: IntArray
) -> FloatArray:
    weights, intercept = classifiers(labels)
    return np.asarray(X @ weights) + intercept


def n_trials(budget: int, n_features: int = 10**6) -> int:
    """The number of trials: fewer if one is dear; its labels have more answers then, so that it also says more."""
    if budget < 10:
        return 0
    if n_features > WIDE:
        return 6 if budget <= 200 else 3 if budget <= 500 else 2 if budget <= 2000 else 1
    cheap = budget <= 500 or (n_features <= 250 and budget <= 2000)
    return 6 if cheap else 4 if budget <= 1000 else 2 if budget <= 5000 else 1


def _remember(source: Any) -> tuple[weakref.ref[Any] | None, bytes]:
    if isinstance(source, np.ndarray) or sparse.issparse(source):
        return weakref.ref(source), _sampled(source)
    return None, b""


def _sampled(X: Any) -> bytes:
    """Shape, size and an even sample of the values of an array, dense or sparse."""
    values = getattr(X, "data", None) if hasattr(X, "nnz") else X
    flat = np.asarray(values).reshape(-1)
    return repr((X.shape, flat.size, flat.dtype.str)).encode() + flat[:: max(flat.size // 4096, 1)].tobytes()
