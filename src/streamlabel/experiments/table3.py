"""``streamlabel reproduce table3``: the labels that named labels are made of, and how firm that is."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from streamlabel.errors import NotFoundError
from streamlabel.experiments.experiment import Experiment, Key, Option, Setting, named
from streamlabel.experiments.paper import NEIGHBOURS
from streamlabel.experiments.sets import NEWS_CORPUS, asked_name, load_set
from streamlabel.experiments.spec import Frame, PageSpec, Plot
from streamlabel.stats.label_gram import centred_cross, signed_label_gram
from streamlabel.streaming.trials import LAM
from streamlabel.structure.represent import lasso_path
from streamlabel.types import CSR, Dataset, FloatArray, IntArray

ALL, HALF_LABELS, HALF_ROWS = "all others", "half of the others", "half of the rows"
OF_PAPER = "the paper's neighbours"
CENTRED, SIGNED = "centred", "as printed"
KEY = ("dataset", "label", "view", "coding", "lam", "seed", "rank")
LAMS = (LAM / 30.0, LAM / 10.0, LAM / 3.0, LAM, 10.0 * LAM / 3.0)
N_NEIGHBOURS = 5
LABELS = {
    "bibtex": ("epitope", "fornepomuk", "concept"),
    NEWS_CORPUS: ("avian influenza", "telemedicine", "microplastics"),
}
Code: TypeAlias = list[tuple[int, float]]  # (label, weight), largest weight first


@dataclass(frozen=True)
class NeighbourRecord:
    """One neighbour of one label.

    view : which labels were past, or which rows were seen: `ALL`, `HALF_LABELS`, `HALF_ROWS`; `OF_PAPER`: as `ALL`, but
        the neighbour is the one at this place in the paper, whatever its weight
    coding : `CENTRED`, or `SIGNED` as the paper prints it: answers -1/+1, no intercept
    lam : the penalty as a share of the rows
    neighbour, weight : at this rank, by size; "" and 0 where the code is shorter
    code_size, n_yes, n_both : labels in the code; rows with the label; rows with it and the neighbour
    available, kept : whether the neighbour that has this rank with all labels and rows was past here, and whether it is
        in this code with the same sign
    """

    dataset: str
    label: str
    view: str
    coding: str
    lam: float
    seed: int
    rank: int
    neighbour: str
    weight: float
    code_size: int
    n_yes: int
    n_both: int
    available: bool
    kept: bool


@dataclass(frozen=True)
class NeighbourTask:
    """Some labels of one set, with all draws: a lasso takes milliseconds."""

    dataset: str
    labels: tuple[str, ...]
    seeds: tuple[int, ...]


def tasks(setting: Setting) -> list[NeighbourTask]:
    found = []
    for dataset in setting.datasets:
        train, _ = load_set(dataset)
        names = shown_names(train.label_names)
        wanted = setting.options.get("label", ()) or LABELS.get(dataset) or _usual_labels(train)
        labels = tuple(dict.fromkeys(names[find_label(names, name, dataset)] for name in wanted))
        found.append(NeighbourTask(dataset, labels, setting.seeds))
    return found


def keys(task: NeighbourTask) -> list[Key]:
    ways = [(ALL, CENTRED, 0), (ALL, SIGNED, 0)]
    ways += [(view, CENTRED, seed) for seed in task.seeds for view in (HALF_LABELS, HALF_ROWS)]
    return [
        (task.dataset, label, view, coding, lam, seed, rank)
        for label in task.labels
        for view, coding, seed in [*ways, *([(OF_PAPER, CENTRED, 0)] if _paper(task.dataset, label) else [])]
        for lam in LAMS
        for rank in range(1, N_NEIGHBOURS + 1)
    ]


def _paper(dataset: str, label: str) -> list[str]:
    return NEIGHBOURS.get(asked_name(dataset), {}).get(label, [])


def run(task: NeighbourTask, done: Collection[Key] = ()) -> Iterator[NeighbourRecord]:
    return run_on(task, load_set(task.dataset)[0], done)


def run_on(task: NeighbourTask, train: Dataset, done: Collection[Key] = ()) -> Iterator[NeighbourRecord]:
    """The label arrives after the others (or after half of them, or with half of the rows), at five penalties."""
    names = shown_names(train.label_names)
    missing = {key[:-1]: None for key in keys(task) if key not in done}  # without the rank, in order
    counted = train.Y.astype(np.int64)
    together = (counted.T @ counted).toarray()  # rows with both labels
    references: dict[tuple[str, float], Code] = {}
    for place in missing:
        _, label, view, coding, lam, seed = place
        number = names.index(label)
        if (label, lam) not in references:
            references[label, lam] = _code(train.Y, number, _others(train, number), lam, CENTRED)
        rows, others = _draw(train, number, view, seed)
        code = _code(train.Y if rows is None else train.Y[rows], number, others, lam, coding)
        if view == OF_PAPER:
            weights = dict(code)
            code_shown = [(j, weights.get(j, 0.0)) for j in map(names.index, _paper(task.dataset, label))]
        else:
            code_shown = code
        for rank in range(1, N_NEIGHBOURS + 1):
            if (*place, rank) not in done:
                reference, weight = _at(references[label, lam], rank)
                neighbour, own_weight = _at(code_shown, rank)
                yield NeighbourRecord(
                    **named(KEY, (*place, rank)),
                    neighbour=names[neighbour] if neighbour >= 0 else "",
                    weight=own_weight,
                    code_size=len(code),
                    n_yes=int(together[number, number]),
                    n_both=int(together[number, neighbour]) if neighbour >= 0 else 0,
                    available=bool(reference in others),
                    kept=any(other == reference and value * weight > 0.0 for other, value in code),
                )


def find_label(names: Sequence[str], wanted: str, dataset: str) -> int:
    """The column of the label called so, upper and lower case apart if need be.

    Raises
    ------
    NotFoundError : with the closest names
    """
    for form in (str, str.casefold):
        for number, name in enumerate(names):
            if form(name) == form(wanted):
                return number
    close = difflib.get_close_matches(wanted, names, n=5, cutoff=0.5)
    hint = (
        f"did you mean {', '.join(close)}?" if close else f"it has {len(names)} labels, such as {', '.join(names[:5])}"
    )
    raise NotFoundError(f"no label of {dataset} is called {wanted!r}; {hint}")


def shown_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names without a beginning that all of them share, such as ``TAG_``."""
    first, last = min(names), max(names)
    cut = first.find("_") + 1
    shared = 0 < cut < min(map(len, names)) and first[:cut] == last[:cut]
    return tuple(name[cut:] if shared else name for name in names)


def _usual_labels(train: Dataset) -> tuple[str, ...]:
    """Three labels for a set without labels of its own to show: of middle frequency."""
    order = np.argsort(np.asarray(train.Y.sum(axis=0)).ravel(), kind="stable")
    middle = len(order) // 2
    names = shown_names(train.label_names)
    return tuple(names[j] for j in order[max(0, middle - 1) : middle + 2])


def _others(train: Dataset, label: int) -> IntArray:
    return np.delete(np.arange(train.n_labels), label)


def _draw(train: Dataset, label: int, view: str, seed: int) -> tuple[IntArray | None, IntArray]:
    """The rows (None: all) and the past labels of one draw."""
    others = _others(train, label)
    rng = np.random.default_rng((seed, label))
    if view == HALF_LABELS:
        return None, np.sort(rng.permutation(others)[: len(others) // 2])
    if view == HALF_ROWS:
        return np.sort(rng.permutation(train.n_rows)[: train.n_rows // 2]), others
    return None, others


def _code(Y: CSR, label: int, others: IntArray, lam: float, coding: str) -> Code:
    """The lasso of step 1; ``lam`` is a share of the rows in 0/1 coding, which is a quarter of that in -1/+1."""
    columns: CSR = Y[:, np.append(others, label)]
    gram: FloatArray = centred_cross(columns, columns) if coding == CENTRED else signed_label_gram(columns)
    penalty = lam * Y.shape[0] * (1.0 if coding == CENTRED else 4.0)
    found = lasso_path(gram[:-1, :-1], gram[:-1, -1], [penalty], energy=float(gram[-1, -1])).codes
    order = np.argsort(-np.abs(found.data), kind="stable")
    return [(int(others[found.indices[i]]), float(found.data[i])) for i in order]


def _at(code: Code, rank: int) -> tuple[int, float]:
    return code[rank - 1] if rank <= len(code) else (-1, 0.0)


def _read_labels(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(";"))
    if not all(names):
        raise ValueError(f"{text!r} has an empty name; write names apart by ';'")
    return names


_DRAWS = {HALF_ROWS: "kept with half of the rows", HALF_LABELS: "kept with half of the labels"}


def _found(frame: Frame) -> Frame:
    """Neighbours of labels that arrived after all others."""
    return frame[(frame["view"] == ALL) & (frame["neighbour"] != "")]


def _usual(frame: Frame) -> Frame:
    return frame[(frame["coding"] == CENTRED) & (frame["lam"] == LAM)]


def _written(code: Frame) -> str:
    lines = code.sort_values("rank").itertuples()
    return ", ".join(f"{one.weight:+.2f} {one.neighbour} ({one.n_both})" for one in lines)


def _codes(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """Every label with its neighbours at every penalty and coding, and how many of the paper's are among them."""
    found = []
    sizes = frame[frame["view"] == ALL].groupby(["dataset", "label", "coding", "lam"], sort=False)
    for (dataset, label, coding, lam), here in sizes:
        code, paper = here[here["neighbour"] != ""], _paper(dataset, label)
        found.append(
            {
                "dataset": dataset,
                "label": label,
                "coding": coding,
                "penalty": f"{lam:.3g} (usual)" if lam == LAM else f"{lam:.3g}",
                "labels in the code": str(here["code_size"].iloc[0]),
                "neighbours (rows with both)": _written(code) or "none",
                "shared with the paper": f"{code['neighbour'].isin(paper).sum()} of {len(paper)}" if paper else "",
            }
        )
    return found


def _firm(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """In how many draws a neighbour stayed in the code with its sign, of those in which it could have."""
    drawn = _usual(frame)
    drawn = drawn[drawn["available"]].groupby(["dataset", "label", "rank", "view"])["kept"].agg(["sum", "size"])
    found = []
    for one in _usual(_found(frame)).itertuples():
        line = {"dataset": one.dataset, "label": one.label, "neighbour": one.neighbour, "weight": f"{one.weight:+.3f}"}
        for view, title in _DRAWS.items():
            key = one.dataset, one.label, one.rank, view
            line[title] = "{} of {}".format(*drawn.loc[key]) if key in drawn.index else ""
        found.append(line)
    return found


def _theirs(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """The paper's neighbours: rows that have both labels, and the weight in our code at each penalty."""
    here = frame[frame["view"] == OF_PAPER]
    found = []
    for (dataset, label, _), lines in here.groupby(["dataset", "label", "rank"], sort=False):
        first = lines.iloc[0]
        line = {"dataset": dataset, "label": label, "in the paper": first["neighbour"]}
        line["rows with both"] = f"{first['n_both']} of {first['n_yes']}"
        for one in lines.sort_values("lam").itertuples():
            line[f"weight at {one.lam:.1g}"] = f"{one.weight:+.3f}" if one.weight else "0"
        found.append(line)
    return found


def _shared(frame: Frame, compared: Frame) -> str:
    """How many of the paper's neighbours are in our codes at the usual penalty."""
    code = _usual(_found(frame))
    pairs = code[["dataset", "label"]].drop_duplicates().itertuples(index=False)
    whole = {pair: _paper(*pair) for pair in pairs}
    n_shared = sum(one.neighbour in whole[one.dataset, one.label] for one in code.itertuples())
    return f"{n_shared} of {sum(map(len, whole.values()))}"


def _stay(frame: Frame, compared: Frame) -> str:
    """The share of draws of half of the rows in which a neighbour stays, the mean over neighbours."""
    ranks = _usual(_found(frame))[["dataset", "label", "rank"]]
    drawn = _usual(frame)
    drawn = drawn[(drawn["view"] == HALF_ROWS) & drawn["available"]].merge(ranks)
    shares = drawn.groupby(["dataset", "label", "rank"])["kept"].mean()
    return f"{100 * shares.mean():.0f}%" if len(shares) else "none"


def _drawn(frame: Frame, compared: Frame) -> Frame:
    """The draws in which a neighbour could stay, in percent of them."""
    names = _usual(_found(frame))[["dataset", "label", "rank", "neighbour"]]
    drawn = _usual(frame)
    drawn = drawn[drawn["view"].isin(_DRAWS) & drawn["available"]].drop(columns="neighbour")
    shown = drawn.merge(names, on=["dataset", "label", "rank"]).sort_values(["dataset", "label", "rank"], kind="stable")
    return shown.assign(stays=100.0 * shown["kept"], view=shown["view"].map(_DRAWS))


PAGE = PageSpec(
    tables={"codes": _codes, "firm": _firm, "theirs": _theirs},
    facts={"shared": _shared, "stay": _stay},
    plots=(
        Plot(
            "kept",
            "Neighbours of labels: how often they stay when data are taken away",
            "neighbour",
            "stays",
            "neighbour, largest weight first",
            "draws in which it stays (%)",
            "A neighbour that stays when half of the rows, or half of the other labels, are taken away is firm.",
            panel="label",
            line="view",
            spread="",
            of=_drawn,
            bars=True,
        ),
    ),
)
EXPERIMENT = Experiment(
    name="table3",
    title="What labels are made of",
    explanation=(
        "The neighbours of named labels: the labels with the largest weights in their codes, signed.\n\n"
        "Each label arrives after all others, and, for stability, after a random half of them or with a random half of "
        "the rows; at five penalties. Beside it the paper's Table 3."
    ),
    record=NeighbourRecord,
    key=KEY,
    datasets=("bibtex",),
    quick_datasets=("bibtex",),
    tasks=tasks,
    keys=keys,
    run=run,
    page=PAGE,
    seeds=20,
    quick_seeds=5,
    options=(
        Option(
            "label",
            "Labels to show, apart by ';'. [default: epitope;fornepomuk;concept on Bibtex]",
            metavar="NAME;NAME",
            parse=_read_labels,
        ),
    ),
)
