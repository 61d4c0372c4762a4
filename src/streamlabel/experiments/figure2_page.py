"""``streamlabel reproduce figure2``: times as a table and on a log scale, and the experiment itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamlabel.experiments import figure2
from streamlabel.experiments.experiment import Experiment, Page
from streamlabel.experiments.figure2 import MOST_FACTORED, Figure2Record
from streamlabel.experiments.figure2_words import least, not_timed, runs, sentence, sets_of, short
from streamlabel.experiments.method_tables import METHODS_OPTION, by_method, library_notes
from streamlabel.experiments.methods import DICTIONARY, LARGE, METHODS, OWN, PEERS, SLL, Method
from streamlabel.experiments.pictures import Panel, Picture, Series, slug
from streamlabel.experiments.tables import markdown_table
from streamlabel.experiments.tuning import MOST_BYTES, MOST_FEATURES

__all__ = ["EXPERIMENT", "page", "pictures"]


def _limits() -> str:
    limits: dict[int, list[str]] = {}
    for name, method in METHODS.items():
        if method.most_cells != Method.most_cells:
            limits.setdefault(method.most_cells, []).append(name)
    return "; ".join(f"{cells / 1e6:,.0f} million for {', '.join(names)}" for cells, names in sorted(limits.items()))


_HOW = (
    "Seconds from the arrival of the new labels, annotated on all training rows, until they can be scored: CPU (wall), "
    "the least of the runs, on one thread. 'Before' is what can be done once, before they come: the past labels, and "
    "the factor of the rows, which SLL, BR ridge and LEML keep. SLL (the learner that budget and timeline "
    "call 'with the past') and binary relevance learn the new labels alone; LEML, SLEEC and the trees learn all labels "
    "again. Times of our own SLL and BR include thresholds and probabilities for every label, which the others do not "
    "give. "
    "Hyper-parameters are those that a method starts with; nothing is chosen. Times are for comparing within one run: "
    "take them with --jobs 1 on a machine that does nothing else.\n\n"
    f"Large sets: from {LARGE:,} past labels on, SLL keeps a dictionary of {DICTIONARY:,}; with more than "
    f"{MOST_FACTORED:,} rows and features the ridge strength is 1, not chosen. Where dense classifiers of all labels "
    f"would take more than {MOST_BYTES / 2**30:.0f} GiB, the {MOST_FEATURES:,} most frequent features are kept, for "
    "all methods. A method is left out where rows times the labels it has to learn, a row counting the more the more "
    f"features it has, exceed what takes it about eight minutes, unless --methods names it: {_limits()}."
)


def page(records: Sequence[Figure2Record]) -> Page:
    records = _latest_cut(records)
    parts = [_HOW]
    for dataset in sets_of(records):
        here = [record for record in records if record.dataset == dataset]
        first = here[0]
        parts += [
            f"## {dataset}",
            f"{first.n_new} new labels, {first.n_rows:,} rows, {first.n_features:,} features, {runs(here)}.",
            _table(here),
            " ".join([*not_timed(here), *library_notes({record.method for record in here})]),
        ]
    return Page(sentence(records), "\n\n".join(parts), {"rows": _data(records)})


def _latest_cut(records: Sequence[Figure2Record]) -> list[Figure2Record]:
    """Times on different numbers of features do not compare: of each set, those on as many as the last record has."""
    features = {record.dataset: record.n_features for record in records}
    return [record for record in records if record.n_features == features[record.dataset]]


def _table(records: Sequence[Figure2Record]) -> str:
    sizes = sorted({record.n_past for record in records})
    ours = {size: least(records, SLL, size, "cpu_seconds") for size in sizes}
    body = []
    for method, own in by_method(records, (*OWN, *PEERS)):
        line = [method, "all labels" if METHODS[method].retrains else "the new ones"]
        for size in sizes:
            cpu, wall = (least(own, method, size, field) for field in ("cpu_seconds", "seconds"))
            line.append("not run" if cpu is None or wall is None else f"{short(cpu)} ({short(wall)})")
        cpu, reference = least(own, method, sizes[-1], "cpu_seconds"), ours[sizes[-1]]
        line.append("" if not cpu or not reference else f"{cpu / reference:.1f}")
        before = least(own, method, sizes[-1], "past_seconds")
        line.append("" if before is None else short(before))
        body.append(line)
    header = ["method", "learns", *(f"{size:,} past" for size in sizes)]
    return markdown_table([*header, f"times SLL at {sizes[-1]:,}", f"before, at {sizes[-1]:,}"], body)


def _data(records: Sequence[Figure2Record]) -> list[dict[str, Any]]:
    rows = []
    for dataset in sets_of(records):
        for method, own in by_method([r for r in records if r.dataset == dataset], (*OWN, *PEERS)):
            for size in sorted({record.n_past for record in own}):
                cell = [record for record in own if record.n_past == size]
                times = ("seconds", "cpu_seconds", "past_seconds")
                rows.append(
                    {
                        "dataset": dataset,
                        "method": method,
                        "n_past": size,
                        "n_new": cell[0].n_new,
                        "n_rows": cell[0].n_rows,
                        "n_features": cell[0].n_features,
                        "n_runs": len(cell),
                        "parameters": cell[0].parameters,
                        "least": {field: least(cell, method, size, field) for field in times},
                    }
                )
    return rows


def pictures(records: Sequence[Figure2Record]) -> list[Picture]:
    records = _latest_cut(records)
    found = []
    for dataset in sets_of(records):
        here = [record for record in records if record.dataset == dataset]
        lines = tuple(line for method, own in by_method(here, (*OWN, *PEERS)) if (line := _line(method, own)).x)
        if not lines:
            continue
        found.append(
            Picture(
                slug(dataset),
                f"{dataset}: time for {here[0].n_new} new labels",
                "past labels",
                "CPU seconds (log scale)",
                (Panel(f"{here[0].n_rows:,} rows, {here[0].n_features:,} features", lines),),
                " ".join([sentence(here), *not_timed(here)]),
                spread=_spread(here),
                log_x=True,
                log_y=True,
            )
        )
    return found


def _spread(records: Sequence[Figure2Record]) -> str:
    """For the caption, which says already how far the runs lie apart."""
    several = len({(r.method, r.n_past) for r in records}) < len(records)
    return "not drawn, a point is the least of its runs" if several else "none, a point is 1 run"


def _line(method: str, records: Sequence[Figure2Record]) -> Series:
    sizes = sorted({record.n_past for record in records})
    cells = [[r.cpu_seconds for r in records if r.n_past == size and r.cpu_seconds > 0] for size in sizes]
    places = [i for i, cell in enumerate(cells) if cell]
    x = tuple(float(sizes[i]) for i in places)
    return Series(method, x, tuple(float(np.min(cells[i])) for i in places))


EXPERIMENT = Experiment(
    name="figure2",
    title="Time for 100 new labels",
    explanation=(
        "Running time of 100 new labels after different numbers of past labels, for every method (Figure 2).\n\n"
        "SLL and binary relevance learn the new labels alone, LEML, SLEEC and the trees all labels again. CPU seconds "
        "beside wall seconds; take them on a machine that does nothing else. Large sets: --dataset eurlex57k, "
        "wiki10-31k, citeulike-t. What would take many minutes there is left out by a rule that is on the page."
    ),
    record=Figure2Record,
    key=figure2.KEY,
    datasets=("delicious",),
    quick_datasets=("mediamill_reduced",),
    tasks=figure2.tasks,
    keys=figure2.keys,
    run=figure2.run,
    page=page,
    pictures=pictures,
    seeds=3,
    quick_seeds=1,
    options=(METHODS_OPTION,),
    measures_times=True,
)
