"""The methods that are compared, by name: how each meets a batch of new labels, and what it may choose from."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from streamlabel.baselines.binary_relevance import BinaryRelevance
from streamlabel.baselines.leml import LEML
from streamlabel.baselines.sleec import SLEEC
from streamlabel.errors import MissingExtraError, did_you_mean, how_to_install
from streamlabel.experiments.experiment import Option
from streamlabel.experiments.peers import NapkinXC, Omikuji, OneVsRest, River, missing
from streamlabel.experiments.spec import Frame
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.types import CSR, FloatArray

Parameters = Mapping[str, Any]
SLL, BR = "SLL", "BR ridge"
QUICK = (SLL, BR, "BR logistic", "LEML", "SLEEC", "scikit-learn logistic")  # of quick forms by default
DICTIONARY, LARGE = 3000, 5000  # labels that may enter a code (the paper's number), from so many past labels on
_ENTRIES = 34  # of a row cost an iterative solver as much as one label of the row does


class Learner(Protocol):
    """A method at given hyper-parameters, from before a batch of labels arrives to its scores."""

    def start(self, X: CSR, Y_past: CSR) -> None:
        """What is done before the batch arrives."""
        ...

    def arrive(self, Y_new: CSR) -> None:
        """What has to be done when it arrives, answered on all rows of X: this is what is timed."""
        ...

    def change(self, **parameters: Any) -> None:
        """Other hyper-parameters for what comes next (`Method.at_arrival`, `Method.at_scoring`)."""
        ...

    def scores(self, X: CSR) -> FloatArray:
        """(n, k), of the labels of the last batch."""
        ...

    def cut(self) -> FloatArray | float | None:
        """What a score must exceed to be a yes, a label or for all; None where the method decides nothing."""
        ...


class Adding:
    """Past labels are fitted, new ones added; without past labels the batch is fitted.

    Every batch is added to the model of the past labels, not to the batch before it.
    """

    def __init__(self, model: StreamingLabelClassifier, *, coupled: bool = False) -> None:
        self._empty, self._coupled = model, coupled
        self._known: StreamingLabelClassifier | None = None

    def start(self, X: CSR, Y_past: CSR) -> None:
        self._X = X
        self._known = self._empty.fit(X, Y_past) if Y_past.shape[1] else None

    def arrive(self, Y_new: CSR) -> None:
        if self._known is None:
            self._model = self._empty.fit(self._X, Y_new)
        else:  # an arrival replaces what the model holds, never writes into it
            self._model = copy.copy(self._known).add_labels(self._X, Y_new, coupled=self._coupled)
        self._n_new = Y_new.shape[1]

    def change(self, **parameters: Any) -> None:
        self._empty.set_params(**parameters)  # the model of the past labels, once they are fitted

    def scores(self, X: CSR) -> FloatArray:
        found: FloatArray = self._model.decision_function(X)
        return found[:, -self._n_new :]

    def cut(self) -> FloatArray | float | None:
        return self._model.thresholds_[-self._n_new :]


class _Fitting:
    """A model is made and fitted when labels arrive."""

    _model: Any
    _n_new: int

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def change(self, **parameters: Any) -> None:
        self._model.set_params(**parameters)

    def cut(self) -> FloatArray | float | None:
        """The thresholds that the model has chosen, or the one it has for all labels."""
        chosen: FloatArray | None = getattr(self._model, "thresholds_", None)
        usual: float | None = getattr(self._model, "threshold", None)
        return usual if chosen is None else chosen[-self._n_new :]


class Apart(_Fitting):
    """The new labels are learned by themselves; nothing of the past is needed or used."""

    def start(self, X: CSR, Y_past: CSR) -> None:
        self._X = X

    def arrive(self, Y_new: CSR) -> None:
        self._model = self._make().fit(self._X, Y_new)
        self._n_new = Y_new.shape[1]

    def scores(self, X: CSR) -> FloatArray:
        return np.asarray(self._model.decision_function(X))


class Retraining(_Fitting):
    """All labels, past and new, are learned again, by a model of their own."""

    def start(self, X: CSR, Y_past: CSR) -> None:
        self._X, self._Y_past = X, Y_past

    def arrive(self, Y_new: CSR) -> None:
        labels = sparse.csr_array(sparse.hstack((self._Y_past, Y_new), format="csr"))
        labels.sort_indices()
        self._model = self._make().fit(self._X, labels)
        self._n_new = Y_new.shape[1]

    def scores(self, X: CSR) -> FloatArray:
        return np.asarray(self._model.decision_function(X))[:, -self._n_new :]


class Refitting(Retraining):
    """The same by one model, which keeps what depends on the rows alone from before (`LEML.prepare`)."""

    def __init__(self, model: LEML) -> None:
        super().__init__(lambda: model)
        self._model = model

    def start(self, X: CSR, Y_past: CSR) -> None:
        super().start(X, Y_past)
        self._model.prepare(X)


@dataclass(frozen=True)
class Method:
    """One line of a table.

    make : hyper-parameters and seed to a learner
    grid : the hyper-parameters to choose from; the first are those that are used where nothing is chosen
    independent : a new label is learned the same whatever else is in its batch, so a part of a batch needs no run
    retrains : a batch means that the past labels are learned again, too
    apart : the past labels are not learned at all
    random : it depends on the seed also when the order of labels does not matter
    at_arrival, at_scoring : the hyper-parameters that matter only when labels arrive, and only when rows are scored
    most_cells : `cells` beyond which a run takes many minutes; it is then left out unless asked for by name
    all_batches : `cells` up to which every batch of an order is run; beyond, the largest only, unless asked for by name
    package : what has to be installed
    """

    name: str
    make: Callable[[Parameters, int], Learner]
    grid: tuple[dict[str, Any], ...]
    independent: bool = False
    retrains: bool = False
    apart: bool = False
    random: bool = False
    at_arrival: frozenset[str] = frozenset()
    at_scoring: frozenset[str] = frozenset()
    most_cells: int = 10**11
    all_batches: int = 10**11
    package: str = ""

    def cells(self, n_rows: int, n_entries: int, n_past: int, n_new: int) -> int:
        """Rows times labels that a run has to learn, before the batch arrives and when it does; rows by their entries.

        n_entries : non-zero features of all rows together
        """
        return (n_rows + n_entries // _ENTRIES) * (n_new if self.apart else n_past + n_new)


def _grid(**values: Iterable[Any]) -> tuple[dict[str, Any], ...]:
    return tuple(dict(zip(values, chosen, strict=True)) for chosen in product(*values.values()))


def _sll(parameters: Parameters, seed: int, *, coupled: bool = False, **fixed: Any) -> Learner:
    return Adding(StreamingLabelClassifier(random_state=seed, **fixed, **parameters), coupled=coupled)


def _br_ridge(parameters: Parameters, seed: int) -> Learner:
    return Adding(BinaryRelevance(random_state=seed, **parameters))  # the factor of the rows is kept


def _leml(parameters: Parameters, seed: int) -> Learner:
    return Refitting(LEML(random_state=seed, **parameters))


def _sleec(parameters: Parameters, seed: int) -> Learner:
    return Retraining(partial(SLEEC, random_state=seed, **parameters))


def _fitting(
    how: Callable[..., Learner], model: Callable[..., Any], parameters: Parameters, seed: int, *, takes: str = "seed",
    **fixed: Any,
) -> Learner:  # fmt: skip
    """A model that is made when labels arrive; ``takes`` is what it calls its seed, "" where it has none."""
    return how(partial(model, **fixed, **({takes: seed} if takes else {}), **parameters))


_of_loss = partial(_fitting, Apart, BinaryRelevance, takes="random_state")
_PAPER: dict[str, Any] = {"metric": None, "loss": "squared", "start": "alternating", "coupled": True}
_BETAS = ("auto", 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_LAMS = ("auto", 0.001, 0.01)  # "auto" is 0.003
_LOSS_BETAS = ("auto", 0.03, 0.1, 0.3, 1.0, 3.0)
_PEER_STRENGTHS = (3.0, 1.0, 10.0, 0.3, 30.0)

_SLOW = 3 * 10**8  # about eight minutes of a core
_OWN_METHODS = (
    Method(SLL, _sll, _grid(lam=_LAMS, beta=_BETAS), independent=True, at_arrival=frozenset({"lam"})),
    Method("SLL paper", partial(_sll, **_PAPER), _grid(lam=_LAMS, beta=_BETAS), most_cells=_SLOW),
    Method(
        "SLL paper signed", partial(_sll, fit_intercept=False, **_PAPER), _grid(lam=_LAMS, beta=("auto", 1.0, 10.0)),
        most_cells=_SLOW,
    ),
    Method(
        "SLL logistic", partial(_sll, loss="logistic"), _grid(beta=_LOSS_BETAS), independent=True, most_cells=_SLOW
    ),
    Method(BR, _br_ridge, _grid(beta=_BETAS), independent=True),
    Method(
        "BR logistic", partial(_of_loss, loss="logistic"), _grid(beta=_LOSS_BETAS),
        independent=True, apart=True, most_cells=_SLOW,
    ),
    Method(
        "BR squared hinge", partial(_of_loss, loss="squared_hinge"), _grid(beta=_LOSS_BETAS),
        independent=True, apart=True, most_cells=_SLOW,
    ),
    Method(
        "LEML", _leml, _grid(rank=(100, 50, 250), beta=(1.0, 0.03, 0.1, 0.3, 3.0, 10.0, 30.0)),
        retrains=True, random=True, at_arrival=frozenset({"rank", "beta"}), all_batches=4 * _SLOW,
    ),
    Method(
        "SLEEC", _sleec, _grid(n_neighbours=(250, 500), n_predict_neighbours=(25, 50, 100), beta=(3.0, 1.0)),
        retrains=True, random=True, at_scoring=frozenset({"n_predict_neighbours"}), all_batches=_SLOW,
    ),
)  # fmt: skip
_PEER_METHODS = (
    Method(
        "scikit-learn logistic", partial(_fitting, Apart, OneVsRest, kind="logistic"), _grid(C=_PEER_STRENGTHS),
        independent=True, apart=True, most_cells=_SLOW,
    ),
    Method(
        "scikit-learn SVM", partial(_fitting, Apart, OneVsRest, kind="svm"), _grid(C=(0.3, 0.1, 1.0, 0.03, 3.0)),
        independent=True, apart=True, random=True, most_cells=_SLOW,
    ),
    Method(
        "napkinXC BR", partial(_fitting, Apart, NapkinXC, kind="BR"), _grid(liblinear_c=_PEER_STRENGTHS),
        apart=True, most_cells=_SLOW, package="napkinxc",
    ),
    Method(
        "napkinXC tree", partial(_fitting, Retraining, NapkinXC, kind="PLT"), _grid(liblinear_c=_PEER_STRENGTHS),
        retrains=True, random=True, most_cells=4 * _SLOW, package="napkinxc",
    ),
    Method(
        "omikuji", partial(_fitting, Retraining, Omikuji, takes=""), _grid(linear_c=(0.3, 0.1, 1.0, 3.0)),
        retrains=True, random=True, most_cells=4 * _SLOW, package="omikuji",
    ),
    Method(
        "river", partial(_fitting, Apart, River), _grid(rate=(1.0, 0.1, 5.0, 0.02, 25.0)),
        apart=True, random=True, package="river",
    ),
)  # fmt: skip
METHODS = {method.name: method for method in (*_OWN_METHODS, *_PEER_METHODS)}
OWN = tuple(method.name for method in _OWN_METHODS)
PEERS = tuple(method.name for method in _PEER_METHODS)
PAPER_NAMES = {SLL: "SLL", BR: "BR", "LEML": "LEML", "SLEEC": "SLEEC"}  # what the paper calls them


def installed(names: Iterable[str]) -> list[str]:
    """Those of the methods whose package is there."""
    return [name for name in names if not (METHODS[name].package and missing(METHODS[name].package))]


def sized(method: Method, n_past: int) -> Method:
    """The method for so many past labels: from `LARGE` on, streaming labels are written by a dictionary."""
    if not method.name.startswith(SLL) or n_past < LARGE:
        return method
    return replace(method, grid=tuple({**candidate, "dictionary": DICTIONARY} for candidate in method.grid))


def to_run(asked: Sequence[str] | None, otherwise: Iterable[str], *, quick: bool = False) -> list[str]:
    """The methods that were asked for, which must be installed; else those of the others that are (quick: `QUICK`)."""
    for name in asked or ():
        if not installed([name]):
            raise MissingExtraError(METHODS[name].package, None, f"the method {name}")
    return list(asked) if asked else installed(name for name in dict.fromkeys(otherwise) if not quick or name in QUICK)


def grid_of(name: str, record: Any) -> tuple[dict[str, Any], ...]:
    """What a method of the records could choose from (`tables.chosen`)."""
    return METHODS[name].grid


def parse_methods(text: str) -> tuple[str, ...]:
    """Names separated by commas; capitals do not matter. A name that is not there is a ValueError.

    >>> parse_methods("sll, BR RIDGE")
    ('SLL', 'BR ridge')
    """
    by_lower = {name.lower(): name for name in METHODS}
    wanted = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in wanted if word.lower() not in by_lower]
    if unknown or not wanted:
        hint = " ".join(filter(None, (did_you_mean(word, METHODS) for word in unknown)))
        there = f"{hint} There are" if hint else "there are"
        raise ValueError(f"no method is called {', '.join(unknown) or text!r}; {there} {', '.join(METHODS)}")
    return tuple(dict.fromkeys(by_lower[word.lower()] for word in wanted))


def absent(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """The methods that a set has no record of, as lines of a table, by what is known of the reason."""
    found = []
    for dataset, here in frame.groupby("dataset", sort=False):
        missing_here = [name for name in METHODS if name not in set(here["method"])]
        there = set(installed(missing_here))
        packages = dict.fromkeys(METHODS[name].package for name in missing_here if name not in there)
        why = {
            f"not installed ({how_to_install(*packages)})": [name for name in missing_here if name not in there],
            "not asked for, or too many rows times labels for it": [name for name in missing_here if name in there],
        }
        found += [
            {"set": str(dataset), "why": word, "methods": ", ".join(names)} for word, names in why.items() if names
        ]
    return found


NOT_RUN_NOTE = (
    "A method whose package is not installed is left out, as is one that would take many minutes a run on so many rows "
    "and labels, unless --methods names it; the page says which."
)
METHODS_OPTION = Option(
    "methods",
    f"Only these: {', '.join(METHODS)}. [default: all; with --quick {', '.join(QUICK)}]",
    metavar="NAME,NAME,...",
    parse=parse_methods,
)
