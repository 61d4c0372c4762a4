"""Sets parted for labels that are found later: rows of `fit`, a pool that nobody has looked at, rows that judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from streamlabel.errors import DataError
from streamlabel.experiments.births import fit_logistic, load_by_date
from streamlabel.experiments.experiment import Setting
from streamlabel.experiments.sets import NEWS_CORPUS, load_set, unit_rows, used_name
from streamlabel.metrics.auc import label_auc, label_average_precision
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.kept_rows import stack
from streamlabel.tagging.names import TextDirections, spelled
from streamlabel.types import CSR, BoolArray, FloatArray, IntArray

BY_DATE = {"eurlex57k": (2006, 2012)}  # fit's rows are of the years from the first on, pool and judges from the second
N_FIT, N_KNOWN = 3000, 200
LEAST_FIT, LEAST_POOL, LEAST_TEST = 20, 5, 5  # yes that a new label has in each part
N_EACH = 20  # rows of the pool that stand for no, for each yes, in a logistic regression
STRENGTHS = tuple((C, weight) for C in (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0) for weight in (None, "balanced"))
N_TRIALS = 24


class NamedFeatures:
    """Reads names as texts, for `TextDirections`: (n, d) tf-idf over features that are words.

    counts : (d,) the rows of n_rows that have a feature
    """

    def __init__(self, words: Sequence[str], counts: FloatArray, n_rows: int) -> None:
        self._place = {word: number for number, word in enumerate(words)}
        self.idf = np.log((1.0 + n_rows) / (1.0 + counts)) + 1.0

    def transform(self, texts: Sequence[str]) -> CSR:
        """Rows of length one; a name without a known word is a row of zeros."""
        rows = sparse.lil_array((len(texts), len(self._place)))
        for at, text in enumerate(texts):
            for word in dict.fromkeys((text.lower(), *text.lower().split())):
                if word in self._place:
                    rows[at, self._place[word]] = self.idf[self._place[word]]
        return unit_rows(sparse.csr_array(rows))


@dataclass(frozen=True, eq=False)
class PartedSet:
    """A set with its rows in parts.

    X : (n, d), rows of length one;   Y : (n, m) by columns;   label_names : (m,);   words : reads names
    fit, pool, test : row numbers;   years apart where the set has dates
    """

    name: str
    X: CSR
    Y: sparse.csc_array
    label_names: tuple[str, ...]
    words: NamedFeatures
    fit: IntArray
    pool: IntArray
    test: IntArray

    @cached_property
    def directions(self) -> TextDirections:
        """What reads names; one object, so that trials are run once."""
        return TextDirections(self.words)

    def answers(self, label: int, rows: IntArray) -> BoolArray:
        """Whether the label applies to these rows."""
        return np.isin(rows, self.yes(label))

    def yes(self, label: int, rows: IntArray | None = None) -> IntArray:
        """All rows that the label applies to; or those among ``rows``."""
        found: IntArray = self.Y.indices[self.Y.indptr[label] : self.Y.indptr[label + 1]]
        return found if rows is None else np.intersect1d(found, rows)


@dataclass(frozen=True, eq=False)
class Draw:
    """One draw of new labels, and a model that knows the most frequent of the others."""

    data: PartedSet
    known: IntArray
    new: IntArray
    model: StreamingLabelClassifier
    seed: int


def part_set(name: str, seed: int = 0, n_fit: int = N_FIT) -> PartedSet:
    """Part a set: fit's rows are of its training part, or of earlier years; pool and judges halve the others."""
    rng, used = np.random.default_rng((seed, 1)), used_name(name)
    if used in BY_DATE:
        dated = load_by_date(name)
        begin, middle = (dated.before(year) for year in BY_DATE[used])
        X, Y, label_names = dated.X, dated.columns, dated.label_names
        early, late, words = np.arange(begin, middle), np.arange(middle, X.shape[0]), load_set(name)[0].feature_names
    else:
        train, test = load_set(name)
        X = sparse.csr_array(sparse.vstack((train.X, test.X), format="csr")).astype(np.float64)
        Y = sparse.csc_array(sparse.vstack((train.Y, test.Y)))
        label_names, words = train.label_names, train.feature_names
        early, late = np.arange(train.n_rows), np.arange(train.n_rows, X.shape[0])
    if words is None:
        raise DataError("the features of this set have no names; names of labels cannot be read", source=name)
    fit, late = np.sort(rng.permutation(early)[:n_fit]), rng.permutation(late)
    reader = NamedFeatures(words, np.diff(X[early].tocsc().indptr).astype(np.float64), len(early))
    if used not in BY_DATE and used != NEWS_CORPUS:  # counts of words
        X.data = 1.0 + np.log(np.maximum(X.data, 1.0))
        X = sparse.csr_array(X @ sparse.diags_array(reader.idf))
    half = len(late) // 2
    plain = tuple(one.removeprefix("TAG_") for one in label_names)
    return PartedSet(name, unit_rows(X), Y, plain, reader, fit, np.sort(late[:half]), np.sort(late[half:]))


@dataclass(frozen=True)
class DrawTask:
    """One draw of new labels of a set."""

    dataset: str
    seed: int
    quick: bool


def tasks(setting: Setting) -> list[DrawTask]:
    return [DrawTask(name, seed, setting.quick) for name in setting.datasets for seed in setting.seeds]


@lru_cache(maxsize=1)
def draw_labels(name: str, seed: int, n_new: int, quick: bool = False, named: bool = False) -> Draw:
    """Draw new labels, and fit the most frequent of the others; ``named``: new labels have a word that is a feature."""
    data = part_set(name, seed, N_FIT // 5 if quick else N_FIT)
    in_fit, in_pool, in_test = (_count(data, rows) for rows in (data.fit, data.pool, data.test))
    able = np.flatnonzero((in_fit >= LEAST_FIT) & (in_pool >= LEAST_POOL) & (in_test >= LEAST_TEST))
    if named:
        able = able[np.diff(data.words.transform([spelled(data.label_names[j]) for j in able]).indptr) > 0]
    new = np.sort(np.random.default_rng((seed, 2)).permutation(able)[:n_new])
    others = np.setdiff1d(np.flatnonzero(in_fit > 1), new)
    known = others[np.argsort(-in_fit[others], kind="stable")][: N_KNOWN // 5 if quick else N_KNOWN]
    if not new.size or not known.size:
        raise DataError(f"seed {seed}: too few labels that have yes in all parts", source=name)
    names = [data.label_names[label] for label in known]
    labels = sparse.csr_array(data.Y[:, known].tocsr()[data.fit])
    model = StreamingLabelClassifier(random_state=seed).fit(data.X[data.fit], labels, names)
    return Draw(data, known, new, model, seed)


def _count(data: PartedSet, rows: IntArray) -> IntArray:
    return np.asarray(data.Y.tocsr()[rows].sum(axis=0)).ravel()


def ranking(truth: BoolArray, scores: FloatArray) -> tuple[float, float]:
    """AUC and average precision in percent."""
    answers, columns = truth[:, None].astype(np.int8), scores[:, None]
    return 100.0 * float(label_auc(answers, columns)[0]), 100.0 * float(label_average_precision(answers, columns)[0])


def f1_of(truth: BoolArray, said: BoolArray) -> float:
    """F1 in percent; 0 where nothing is said and nothing is true."""
    return 200.0 * float((truth & said).sum()) / max(int(truth.sum() + said.sum()), 1)


def negatives(pool: IntArray, yes: IntArray, rng: np.random.Generator, each: int = N_EACH) -> IntArray:
    """Rows of the pool that stand for no in a logistic regression, so many for each yes."""
    return np.sort(rng.permutation(np.setdiff1d(pool, yes))[: each * max(len(yes), 1)])


def logistic(yes: Any, no: Any, strength: tuple[float, str | None]) -> LogisticRegression:
    """scikit-learn's logistic regression on rows for yes and no."""
    return fit_logistic(stack(yes, no), np.repeat([1, 0], [yes.shape[0], no.shape[0]]), *strength)


@dataclass(frozen=True)
class Strengths:
    """The strengths of logistic regressions that were best in trials: for ranking, and for F1 at their threshold."""

    ranking: tuple[float, str | None]
    f1: tuple[float, str | None]


def chosen_strengths(draw: Draw, n_yes: int, *, name: bool = False, each: int = N_EACH) -> Strengths:
    """The strengths with the best mean of AUC and average precision, and of F1, over known labels learned as new ones.

    Half of fit's rows give the yes, the others stand for the pool and judge; ``name``: the name is a text for yes, too.
    """
    data, rng = draw.data, np.random.default_rng((draw.seed, n_yes, 3))
    order = rng.permutation(data.fit)
    here, there = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    able = [j for j in draw.known if len(data.yes(j, here)) >= n_yes and len(data.yes(j, there)) > 1]
    values = np.zeros((len(STRENGTHS), 2))
    judges = data.X[there]
    for label in rng.permutation(able)[:N_TRIALS]:
        yes = np.sort(rng.permutation(data.yes(label, here))[:n_yes])
        rows, no = yes_rows(data, label, yes, name=name), data.X[negatives(there, yes, rng, each)]
        if not rows.shape[0]:
            continue
        truth = data.answers(label, there)
        for at, strength in enumerate(STRENGTHS):
            scores = logistic(rows, no, strength).decision_function(judges)
            values[at] += sum(ranking(truth, scores)), f1_of(truth, scores > 0.0)
    best = values.argmax(axis=0)
    return Strengths(STRENGTHS[int(best[0])], STRENGTHS[int(best[1])])


def yes_rows(data: PartedSet, label: int, yes: IntArray, *, name: bool) -> Any:
    """The rows of yes examples; ``name``: with the label's name, read as a text, as another, if it has a known word."""
    rows = data.X[yes]
    words = data.words.transform([spelled(data.label_names[label])]) if name else rows[:0]
    return stack(rows, words) if np.any(words.sum()) else rows
