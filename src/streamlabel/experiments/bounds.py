"""``streamlabel reproduce bounds``: the two theorems of the paper against measurements.

What they bound is the distance of a stream to the whole problem, and the risk of new labels. Theorem 2 is also checked
on small random problems of every awkward kind, which are numbered.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from streamlabel.data.streams import LabelStream, random_stream
from streamlabel.errors import ConvergenceWarning, DataError
from streamlabel.experiments.experiment import Experiment, Key, Setting, named
from streamlabel.experiments.sets import learnable, load_set, training_rows, unit_rows
from streamlabel.experiments.spec import Frame, PageSpec, Plot, most
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.trials import LAM
from streamlabel.theory.excess_risk import clipped_loss, printed_terms, risk_bound
from streamlabel.theory.streaming_distance import (
    RowSpectrum,
    distance_bound,
    row_spectrum,
    solve_together,
    streaming_gradient,
)
from streamlabel.types import CSR, Dataset, FloatArray, IntArray

RISK, DISTANCE = 1, 2
KEY = ("theorem", "dataset", "n_rows", "n_batches", "batch", "beta", "seed")
RANDOM = "random problems"
KINDS = ("plain", "copies of labels", "repeated features", "more features than rows", "rare labels", "unrelated labels")
_ROWS = (20, 40, 80)
_BETAS = (1e-3, 1e-1, 1.0, 10.0, 1e3)
_ROUNDING = 1e-7  # relative; what a distance may lie above its bound by arithmetic alone


@dataclass(frozen=True)
class BoundsRecord:
    """One bound and what it bounds. Theorem 1 counts a label, means over the labels that have arrived.

    n_rows : of learning
    n_batches, batch : of the stream; batches that have arrived (random problems: 0, and the number of the problem)
    beta : the strength; 0 where the model chose it (theorem 1)
    actual : theorem 1: risk on unseen rows less that on the rows of learning. Theorem 2: ``||Zh - Z||_F``
    bound, printed : the mended bound on ``actual``, and the paper's (theorem 1: its terms, without constants)
    held, checked : inequalities that held, and how many there were (theorem 1: one a label; theorem 2: both bounds)
    scale : theorem 1: the risk on the rows of learning. Theorem 2: ``||Zh||_F``
    epsilon, code_norm, past_norm, weights_norm : the norms of deviations, codes, past classifiers, all that is bounded
    own, past, confidence, alone : parts of ``bound``, and the same bound for own ridge (theorem 1 only)
    curvature, gradient_norm, cancelled : theorem 2 only; ``cancelled`` is ``||beta E S1'||_F``, equal to the gradient's
    """

    theorem: int
    dataset: str
    n_rows: int
    n_batches: int
    batch: int
    beta: float
    seed: int
    n_past: int
    n_new: int
    actual: float
    bound: float
    printed: float
    held: int
    checked: int
    scale: float
    epsilon: float
    code_norm: float
    past_norm: float
    weights_norm: float
    own: float = 0.0
    past: float = 0.0
    confidence: float = 0.0
    alone: float = 0.0
    curvature: float = 0.0
    gradient_norm: float = 0.0
    cancelled: float = 0.0


def random_rows(number: int) -> int:
    """How many rows problem ``number`` has."""
    return _ROWS[number % len(_ROWS)]


def random_beta(number: int) -> float:
    """The strength that problem ``number`` is solved with."""
    return _BETAS[number % len(_BETAS)]


def random_problem(number: int, seed: int) -> tuple[FloatArray, IntArray, int, str]:
    """Rows X (n, d), labels (n, m) of 0/1 with both answers in each, how many of them are past, how these are learned.

    Kinds, sizes and the start ("independent", "alternating") take turns with the number.
    """
    rng = np.random.default_rng((seed, number))
    kind, n_rows = KINDS[number % len(KINDS)], random_rows(number)
    n_features = n_rows + 5 if kind == "more features than rows" else int(rng.integers(2, 13))
    n_past, n_new = int(rng.integers(2, 9)), int(rng.integers(1, 6))
    X = rng.normal(size=(n_rows, n_features))
    if kind == "repeated features":
        X[:, -1] = X[:, 0]
    n_topics = 3
    topics = X @ rng.normal(size=(n_features, n_topics))
    wishes = topics @ rng.normal(size=(n_topics, n_past + n_new)) + 0.5 * rng.normal(size=(n_rows, n_past + n_new))
    if kind == "unrelated labels":
        wishes = rng.normal(size=wishes.shape)
    share = 0.1 if kind == "rare labels" else 0.4
    labels = (wishes > np.quantile(wishes, 1.0 - share, axis=0)).astype(np.int64)
    if kind == "copies of labels":
        labels[:, n_past] = labels[:, 0]
        labels[:, 1] = 1 - labels[:, 0]
    return X, labels, n_past, ("independent", "alternating")[number // len(KINDS) % 2]


def distances_of_stream(missing: list[Key], train: Dataset, stream: LabelStream) -> Iterator[BoundsRecord]:
    """All rows of a real set: the labels of `fit` learned each alone, the others in batches; once for every beta.

    Labels without a yes (or a no) on any row cannot be learned and are left out.
    """
    X = unit_rows(train.X)
    past, *batches = (labels[learnable(train.Y[:, labels])] for labels in (stream.past, *stream.batches))
    rows, answers = X.toarray(), train.Y[:, np.concatenate((past, *batches))].toarray().astype(np.float64)
    rows, answers = rows - rows.mean(axis=0), answers - answers.mean(axis=0)
    spectrum = row_spectrum(rows)
    for key in missing:
        model = StreamingLabelClassifier(beta=named(KEY, key)["beta"], lam=LAM, metric=None).fit(X, train.Y[:, past])
        for labels in batches:
            if labels.size:
                model.add_labels(X, train.Y[:, labels])
        yield _distance_record(key, rows, answers, model, len(past), spectrum)


def random_record(number: int, seed: int) -> BoundsRecord:
    """A random problem in the paper's form: answers -1/+1, no intercept, one label after another."""
    X, labels, n_past, start = random_problem(number, seed)
    beta = random_beta(number)
    key = (DISTANCE, RANDOM, random_rows(number), 0, number, beta, seed)
    model = StreamingLabelClassifier(beta=beta, lam=LAM, metric=None, start=start, fit_intercept=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the alternating start: the theorem holds for any past
        model.fit(X, labels[:, :n_past])
        for label in range(n_past, labels.shape[1]):
            model.add_labels(X, labels[:, [label]])
    return _distance_record(key, X, 2.0 * labels - 1.0, model, n_past, row_spectrum(X))


def _distance_record(
    key: Key, X: FloatArray, Y: FloatArray, model: StreamingLabelClassifier, n_past: int, spectrum: RowSpectrum
) -> BoundsRecord:
    beta, weights, structure = named(KEY, key)["beta"], model.coef_.T, model.structure_
    whole = solve_together(X, Y, structure, beta, spectrum)
    found = distance_bound(X, Y, structure, beta, weights, spectrum)
    distance, scale = float(linalg.norm(whole - weights)), float(linalg.norm(whole))
    codes = structure[:, n_past:]
    bounds = [min(bound, sys.float_info.max) for bound in (found.tight, found.printed)]
    slack = _ROUNDING * (scale + found.weights_norm)
    return BoundsRecord(
        **named(KEY, key),
        n_past=n_past,
        n_new=weights.shape[1] - n_past,
        actual=distance,
        bound=bounds[0],
        printed=bounds[1],
        held=sum(distance <= bound + slack for bound in bounds),
        checked=len(bounds),
        scale=scale,
        epsilon=float(linalg.norm(weights[:, n_past:] - weights @ codes.toarray())),
        code_norm=float(np.abs(codes.data).sum()),
        past_norm=float(linalg.norm(weights[:, :n_past])),
        weights_norm=found.weights_norm,
        curvature=found.curvature,
        gradient_norm=found.gradient_norm,
        cancelled=float(linalg.norm(streaming_gradient(weights, structure, n_past, beta))),
    )


def risk_records(missing: list[Key], train: Dataset, test: Dataset, stream: LabelStream) -> Iterator[BoundsRecord]:
    """Past labels on one half of the rows, new ones on rows of the other half: the theorem takes the past as given.

    Only past labels may enter a code, so that new labels learned together are what they would be batch after batch.
    The strength is the one that was chosen for the past, on its half.
    """
    seed = missing[0][-1]
    X, X_test = unit_rows(train.X), unit_rows(test.X)
    order = np.random.default_rng(seed).permutation(train.n_rows)
    first, second = np.sort(order[: train.n_rows // 2]), order[train.n_rows // 2 :]
    past = stream.past[learnable(train.Y[first][:, stream.past])]
    known = X[first], train.Y[first][:, past]
    model = StreamingLabelClassifier(dictionary="fit", lam=LAM, metric=None, random_state=seed).fit(*known)
    model.set_params(beta=model.beta_).fit(*known)
    for size in sorted({key[2] for key in missing}):
        rows = np.sort(second[:size])
        able = [labels[learnable(train.Y[rows][:, labels])] for labels in stream.batches]
        arriving = np.concatenate(able)
        if not able[0].size:
            raise DataError(f"{missing[0][1]}: no label of the first batch has a yes and a no on {size} rows")
        answers = train.Y[rows][:, arriving]
        helped = copy.copy(model).add_labels(X[rows], answers)
        alone = copy.copy(model).set_params(lam=None).add_labels(X[rows], answers)
        ends = np.cumsum([len(labels) for labels in able])
        for key in missing:
            if key[2] == size:
                n_new = int(ends[named(KEY, key)["batch"] - 1])
                seen, unseen = (X[rows], answers[:, :n_new]), (X_test, test.Y[:, arriving[:n_new]])
                yield _risk_record(key, seen, unseen, len(past), _stacked(helped), helped.structure_, _stacked(alone))


def _risk_record(
    key: Key,
    seen: tuple[CSR, CSR],
    unseen: tuple[CSR, CSR],
    n_past: int,
    weights: FloatArray,
    structure: sparse.csc_array,
    alone: FloatArray,
) -> BoundsRecord:
    """The labels after the first ``n_past`` in ``weights`` (d + 1, ...) and ``alone``, as many as ``seen`` has."""
    X, targets = _with_ones(seen[0]), seen[1].toarray().astype(np.float64)
    n_new = targets.shape[1]
    here = slice(n_past, n_past + n_new)
    old, new, codes, own = weights[:, :n_past], weights[:, here], structure[:n_past, here], alone[:, here]
    printed, mended = printed_terms(X, new, old, codes), risk_bound(X, targets, new, old, codes)
    plain = risk_bound(X, targets, own, own[:, :0], np.zeros((0, n_new)))
    truth, scores = unseen[1].toarray().astype(np.float64), np.asarray(_with_ones(unseen[0]) @ new)
    found = clipped_loss(truth, scores).mean(axis=0)
    return BoundsRecord(
        **named(KEY, key),
        n_past=n_past,
        n_new=n_new,
        actual=float((found - mended.seen).mean()),
        bound=float(mended.gap.mean()),
        printed=(printed.representation + printed.confidence) / n_new,
        held=int((found <= mended.risk).sum()),
        checked=n_new,
        scale=float(mended.seen.mean()),
        epsilon=printed.epsilon,
        code_norm=printed.code_norm,
        past_norm=printed.past_norm,
        weights_norm=printed.weights_norm,
        own=float(mended.own.mean()),
        past=float(mended.past.mean()),
        confidence=float(mended.confidence.mean()),
        alone=float(plain.gap.mean()),
    )


def _stacked(model: StreamingLabelClassifier) -> FloatArray:
    return np.vstack((model.coef_.T, model.intercept_))


def _with_ones(X: CSR) -> CSR:
    return sparse.csr_array(sparse.hstack((X, sparse.csr_array(np.ones((X.shape[0], 1)))), format="csr"))


SIZES, BETAS, N_BATCHES, N_PROBLEMS = (250, 500, 1000, 2000, sys.maxsize), (1.0, 10.0, 100.0), 5, 60
QUICK_SIZES, QUICK_BETAS, QUICK_BATCHES, QUICK_PROBLEMS = (250, sys.maxsize), (1.0,), 2, 15


@dataclass(frozen=True)
class BoundsTask:
    """One theorem on one order of the labels of a set, or on random problems."""

    theorem: int
    dataset: str
    seed: int
    sizes: tuple[int, ...] = ()
    betas: tuple[float, ...] = ()
    n_batches: int = N_BATCHES
    n_problems: int = 0


def tasks(setting: Setting) -> list[BoundsTask]:
    sizes, betas, batches, problems = (
        (QUICK_SIZES, QUICK_BETAS, QUICK_BATCHES, QUICK_PROBLEMS)
        if setting.quick
        else (SIZES, BETAS, N_BATCHES, N_PROBLEMS)
    )
    grid = [(name, seed) for name in setting.datasets for seed in setting.seeds]
    return [
        *(BoundsTask(DISTANCE, name, seed, betas=betas, n_batches=batches) for name, seed in grid),
        *(BoundsTask(RISK, name, seed, sizes=sizes, n_batches=batches) for name, seed in grid),
        *(BoundsTask(DISTANCE, RANDOM, seed, n_problems=problems) for seed in setting.seeds),
    ]


def keys(task: BoundsTask, n_train: int | None = None) -> list[Key]:
    if task.dataset == RANDOM:
        numbers = range(task.n_problems)
        return [(DISTANCE, RANDOM, random_rows(i), 0, i, random_beta(i), task.seed) for i in numbers]
    n_train = training_rows(task.dataset) if n_train is None else n_train
    n_batches = task.n_batches
    if task.theorem == DISTANCE:
        return [(DISTANCE, task.dataset, n_train, n_batches, n_batches, beta, task.seed) for beta in task.betas]
    sizes = sorted({min(size, n_train - n_train // 2) for size in task.sizes})
    batches = range(1, n_batches + 1)
    return [(RISK, task.dataset, size, n_batches, batch, 0.0, task.seed) for size in sizes for batch in batches]


def run(task: BoundsTask, done: Collection[Key] = ()) -> Iterator[BoundsRecord]:
    if task.dataset == RANDOM:
        for number in range(task.n_problems):
            if keys(task)[number] not in done:
                yield random_record(number, task.seed)
    else:
        yield from run_on(task, *load_set(task.dataset), done)


def run_on(task: BoundsTask, train: Dataset, test: Dataset, done: Collection[Key] = ()) -> Iterator[BoundsRecord]:
    """Half of the labels, drawn with the seed, are past; the others arrive in batches. Rows have length one."""
    missing = [key for key in keys(task, train.n_rows) if key not in done]
    stream = random_stream(train.n_labels, train.n_labels // 2, n_batches=task.n_batches, random_state=task.seed)
    if missing:
        if task.theorem == DISTANCE:
            yield from distances_of_stream(missing, train, stream)
        else:
            yield from risk_records(missing, train, test, stream)


TERMS = {
    "bound": "mended bound",
    "confidence": "of which: confidence",
    "own": "of which: deviation from the anchor",
    "past": "of which: freedom of the code",
    "alone": "the same bound for BR ridge",
    "actual": "measured: unseen less seen risk",
}
_DISTANCES = {"printed": "bound as printed", "bound": "mended bound", "actual": "true distance"}


def _one_grid(frame: Frame) -> Frame:
    """Of the streams of a set those with the most batches: a quick run beside a full one is not shown."""
    return frame[frame["n_batches"] == frame.groupby(["theorem", "dataset"])["n_batches"].transform("max")]


def _of(frame: Frame, theorem: int) -> Frame:
    return frame[frame["theorem"] == theorem]


def _times(here: Frame, name: str) -> float:
    """How many times the bound is what it bounds, median over the records where there is anything to bound."""
    some = here[here["actual"] > 1e-9 * here["scale"]]
    return float((some[name] / some["actual"]).median()) if len(some) else 0.0


def _held(here: Frame) -> str:
    return f"{here['held'].sum():,} of {here['checked'].sum():,}"


def _last_batch(frame: Frame) -> Frame:
    return most(_of(frame, RISK), "batch")


def _by_rows(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """Theorem 1 by the number of annotated rows, all batches in."""
    found = []
    for (dataset, n_rows), here in _last_batch(frame).groupby(["dataset", "n_rows"]):
        line = {"dataset": dataset, "rows": str(n_rows)}
        line |= {title: f"{here[name].mean():.4f}" for name, title in TERMS.items()}
        line |= {"seen risk": f"{here['scale'].mean():.4f}", "printed terms": f"{here['printed'].mean():.4f}"}
        found.append({**line, "held": _held(here)})
    return found


def _along(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """Theorem 1 along the stream, with the most rows."""
    found = []
    titles = {"epsilon": "epsilon", "code_norm": "‖S‖₁₁", "past_norm": "‖W_old‖", "weights_norm": "‖W‖"}
    figures = {"printed": "printed terms", "bound": "bound", "actual": "measured"}
    for (dataset, batch), here in most(_of(frame, RISK), "n_rows").groupby(["dataset", "batch"]):
        line = {"dataset": dataset, "batch": str(batch), "new labels": f"{here['n_new'].mean():.0f}"}
        line |= {title: f"{here[name].mean():.2f}" for name, title in titles.items()}
        found.append(line | {title: f"{here[name].mean():.4f}" for name, title in figures.items()})
    return found


def _distances(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """Theorem 2: medians over seeds, and over random problems."""
    found = []
    for (dataset, beta), here in _of(frame, DISTANCE).groupby(["dataset", "beta"]):
        share = (here["actual"] / here["scale"]).where(here["scale"] > 0, 0.0).median()
        line = {"set": dataset, "beta": f"{beta:g}", "true distance": f"{here['actual'].median():.3g}"}
        line |= {"of ‖Zh‖": f"{100 * share:.2g}%", "mended bound": f"{here['bound'].median():.3g}"}
        line |= {"times the truth": f"{_times(here, 'bound'):,.1f}", "printed bound": f"{here['printed'].median():.3g}"}
        found.append({**line, "times the truth, printed": f"{_times(here, 'printed'):,.0f}", "held": _held(here)})
    return found


def _credit(frame: Frame, compared: Frame) -> str:
    """At how many numbers of rows the bound is lower than that of BR ridge."""
    means = _last_batch(frame).groupby(["dataset", "n_rows"])[["bound", "alone"]].mean()
    return f"{(means['bound'] < means['alone']).sum()} of {len(means)}"


def _long(frame: Frame, names: Mapping[str, str]) -> Frame:
    """One row a figure, for lines that are fields."""
    long = frame.melt(id_vars=["dataset", "n_rows", "beta", "seed"], value_vars=list(names), var_name="term")
    return long.assign(term=long["term"].map(names))


PAGE = PageSpec(
    prepare=_one_grid,
    tables={"rows": _by_rows, "along": _along, "distances": _distances},
    facts={
        "held_1": lambda frame, compared: _held(_of(frame, RISK)),
        "times_1": lambda frame, compared: f"{_times(_of(frame, RISK), 'bound'):,.0f}",
        "credit": _credit,
        "held_2": lambda frame, compared: _held(_of(frame, DISTANCE)),
        "times_2": lambda frame, compared: f"{_times(_of(frame, DISTANCE), 'bound'):.1f}",
        "times_2_printed": lambda frame, compared: f"{_times(_of(frame, DISTANCE), 'printed'):,.0f}",
    },
    plots=(
        Plot(
            "risk",
            "Theorem 1: how the bound on unseen rows shrinks with annotated rows",
            "n_rows",
            "value",
            "annotated rows (log scale)",
            "squared error a label (log scale)",
            "What the bound allows lies far above what is measured. Bands are standard errors over seeds.",
            line="term",
            of=lambda frame, compared: _long(_last_batch(frame), TERMS),
            log_x=True,
            log_y=True,
        ),
        Plot(
            "distance",
            "Theorem 2: classifiers of a stream against those learned all at once",
            "beta",
            "value",
            "strength beta (log scale)",
            "distance of classifiers (Frobenius norm, log scale)",
            "Lines are medians; bands go from the lower to the upper quartile over seeds and problems.",
            line="term",
            middle="median",
            spread="quartiles",
            of=lambda frame, compared: _long(_of(frame, DISTANCE), _DISTANCES),
            log_x=True,
            log_y=True,
        ),
    ),
)
EXPERIMENT = Experiment(
    name="bounds",
    title="The two theorems, computed",
    explanation=(
        "The bounds of the paper's two theorems against what they bound.\n\n"
        "Theorem 1: the risk of new labels on unseen rows, after every batch of a stream. Theorem 2: the distance of "
        "classifiers learned label after label to those learned all at once, on whole sets and on small random "
        "problems. Both as printed and mended; the page says in how many of how many checks they held."
    ),
    record=BoundsRecord,
    key=KEY,
    datasets=("bibtex", "delicious"),
    quick_datasets=("mediamill_reduced",),
    tasks=tasks,
    keys=keys,
    run=run,
    page=PAGE,
)
