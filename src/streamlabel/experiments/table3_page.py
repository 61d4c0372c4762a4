"""Neighbours of labels as a page: beside the paper's, by penalty, and how firm they are."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamlabel.experiments.experiment import Page
from streamlabel.experiments.pictures import Panel, Picture, Series
from streamlabel.experiments.sets import asked_name
from streamlabel.experiments.table3_records import (
    ALL,
    CENTRED,
    HALF_LABELS,
    HALF_ROWS,
    OF_PAPER,
    PAPER,
    SIGNED,
    NeighbourRecord,
)
from streamlabel.experiments.tables import markdown_table
from streamlabel.streaming.trials import LAM

__all__ = ["page", "pictures"]

_FIRST = 5  # neighbours of a label that the paper prints, and that a record keeps
_DRAWS = {HALF_ROWS: "kept with half of the rows", HALF_LABELS: "kept with half of the labels"}


def page(records: Sequence[NeighbourRecord]) -> Page:
    parts, data = [], []
    for dataset in dict.fromkeys(record.dataset for record in records):
        here = [record for record in records if record.dataset == dataset]
        parts += [f"## {dataset}: neighbours", _NOTE, _neighbour_table(here)]
        parts += [f"## {dataset}: how firm they are", _FIRM_NOTE, _firm_table(here)]
        parts += [f"## {dataset}: by penalty, and as printed", _PENALTY_NOTE, _penalty_table(here)]
        if papers := [record for record in here if record.view == OF_PAPER]:
            parts += [f"## {dataset}: the paper's neighbours in our codes", _PAPER_NOTE, _paper_table(papers)]
        data += [_label_data(here, label) for label in _labels(here)]
    return Page(_sentence(records), "\n\n".join(parts), {"labels": data})


_NOTE = (
    "The label arrives after all others. Its neighbours are the labels with the largest weights in its code, with "
    "sign: a negative one speaks against it; in parentheses the rows that have both. The paper prints five "
    "neighbours, without weights, and not its penalty."
)
_FIRM_NOTE = (
    "In how many draws a neighbour stayed in the code with the same sign: with a random half of the rows, and with a "
    "random half of the other labels (of the draws in which it was among them)."
)
_PENALTY_NOTE = (
    "The penalty is a share of the rows; a larger one keeps fewer labels. *As printed* is the paper's own coding, "
    "answers -1/+1 and no intercept: there, codes are spent on the constant -1."
)
_PAPER_NOTE = (
    "Rows that have both labels, and the weight of the paper's neighbour in our code (centred) at each penalty. A "
    "label that never stands beside another one can only speak against it."
)


def _paper_table(records: Sequence[NeighbourRecord]) -> str:
    lams = sorted({record.lam for record in records})
    body = []
    for label in _labels(records):
        for rank in sorted({record.rank for record in records}):
            found = {r.lam: r for r in records if (r.label, r.rank) == (label, rank)}
            first = next(iter(found.values()))
            weights = [f"{found[lam].weight:+.3f}" if found[lam].weight else "0" for lam in lams]
            body.append([label, first.neighbour, f"{first.n_both} of {first.n_yes}", *weights])
    return markdown_table(["label", "in the paper", "rows with both", *(f"at {lam:.1g}" for lam in lams)], body)


def _labels(records: Sequence[NeighbourRecord]) -> list[str]:
    return list(dict.fromkeys(record.label for record in records))


def _code(
    records: Sequence[NeighbourRecord], label: str, lam: float = LAM, coding: str = CENTRED
) -> list[NeighbourRecord]:
    """The neighbours of a label that arrived after all others, by rank."""
    wanted = (label, ALL, coding, lam)
    found = [r for r in records if (r.label, r.view, r.coding, r.lam) == wanted and r.neighbour]
    return sorted(found, key=lambda record: record.rank)


def _shared(code: Sequence[NeighbourRecord], dataset: str, label: str) -> tuple[tuple[str, ...], list[str]]:
    """The paper's neighbours, and those that are among ours."""
    paper = PAPER.get(asked_name(dataset), {}).get(label, ())
    return paper, [record.neighbour for record in code if record.neighbour in paper]


def _written(code: Sequence[NeighbourRecord]) -> str:
    return ", ".join(f"{record.weight:+.2f} {record.neighbour} ({record.n_both})" for record in code) or "(empty)"


def _counts(records: Sequence[NeighbourRecord], label: str, view: str, rank: int) -> tuple[int, int]:
    """Draws in which the neighbour at this rank was kept, and in which it could have been."""
    draws = [r for r in records if (r.label, r.view, r.lam, r.rank) == (label, view, LAM, rank) and r.available]
    return sum(record.kept for record in draws), len(draws)


def _neighbour_table(records: Sequence[NeighbourRecord]) -> str:
    header = ["label", "rows with it", "code size", "its neighbours here", "in the paper", "shared"]
    body = []
    for label in _labels(records):
        code = _code(records, label)
        paper, shared = _shared(code, records[0].dataset, label)
        sizes = [record for record in records if record.label == label]
        body.append(
            [
                label,
                str(sizes[0].n_yes),
                str(code[0].code_size if code else 0),
                _written(code),
                ", ".join(paper) or "-",
                f"{len(shared)} of {len(paper)}" if paper else "-",
            ]
        )
    return markdown_table(header, body)


def _firm_table(records: Sequence[NeighbourRecord]) -> str:
    body = []
    for label in _labels(records):
        for record in _code(records, label):
            counts = [_counts(records, label, view, record.rank) for view in _DRAWS]
            figures = [f"{kept} of {able}" for kept, able in counts]
            body.append([label, record.neighbour, f"{record.weight:+.3f}", *figures])
    return markdown_table(["label", "neighbour", "weight", *_DRAWS.values()], body)


def _penalty_table(records: Sequence[NeighbourRecord]) -> str:
    body = []
    for label in _labels(records):
        for coding in (CENTRED, SIGNED):
            for lam in sorted({record.lam for record in records}):
                code = _code(records, label, lam, coding)
                _, shared = _shared(code, records[0].dataset, label)
                size = str(code[0].code_size if code else 0)
                body.append([label, coding, f"{lam:.3g}", size, _written(code), str(len(shared))])
    return markdown_table(["label", "coding", "penalty", "code size", "neighbours", "shared with the paper"], body)


def _label_data(records: Sequence[NeighbourRecord], label: str) -> dict[str, Any]:
    code = _code(records, label)
    paper, shared = _shared(code, records[0].dataset, label)
    return {
        "dataset": records[0].dataset,
        "label": label,
        "code_size": code[0].code_size if code else 0,
        "neighbours": [
            {"name": record.neighbour, "weight": record.weight}
            | {view: list(_counts(records, label, view, record.rank)) for view in _DRAWS}
            for record in code
        ],
        "paper": list(paper),
        "shared": shared,
        "paper_weights": [
            {"name": r.neighbour, "lam": r.lam, "weight": r.weight, "n_both": r.n_both}
            for r in records
            if (r.label, r.view) == (label, OF_PAPER)
        ],
        "by_penalty": [
            {"coding": coding, "lam": lam, "code_size": found[0].code_size if found else 0}
            | {"neighbours": [[record.neighbour, record.weight] for record in found]}
            for coding in (CENTRED, SIGNED)
            for lam in sorted({record.lam for record in records})
            for found in [_code(records, label, lam, coding)]
        ],
    }


def _sentence(records: Sequence[NeighbourRecord]) -> str:
    if not records:
        return "Nothing was run."
    pairs = list(dict.fromkeys((record.dataset, record.label) for record in records))
    codes = {pair: [r for r in records if (r.dataset, r.label) == pair] for pair in pairs}
    kept = [
        np.divide(*counts)
        for (_, label), here in codes.items()
        for record in _code(here, label)
        if (counts := _counts(here, label, HALF_ROWS, record.rank))[1]
    ]
    parts = _beside_paper({pair: here for pair, here in codes.items() if _shared((), *pair)[0]})
    if kept:
        share = 100.0 * float(np.mean(kept))
        parts.append(f"a neighbour stays in the code in {share:.0f}% of draws of half of the rows")
    sentence = "; ".join(parts) or f"codes of {len(pairs)} labels"
    return sentence[0].upper() + sentence[1:] + "."


def _beside_paper(codes: Mapping[tuple[str, str], Sequence[NeighbourRecord]]) -> list[str]:
    """Of the labels that the paper shows, how many of its neighbours we share: a short code has no first five."""
    if not codes:
        return []

    def found(lam: float, coding: str) -> tuple[int, list[int]]:
        here = {pair: _code(records, pair[1], lam, coding) for pair, records in codes.items()}
        n_shared = sum(len(_shared(code, *pair)[1]) for pair, code in here.items())
        return n_shared, [code[0].code_size if code else 0 for code in here.values()]

    n_paper = sum(len(_shared((), *pair)[0]) for pair in codes)
    n_shared, sizes = found(LAM, CENTRED)
    extent = " to ".join(dict.fromkeys((str(min(sizes)), str(max(sizes)))))
    where = "in" if max(sizes) <= _FIRST else "among the first five of"
    lams = {record.lam for records in codes.values() for record in records if record.lam <= LAM}
    low = max((lam for lam in lams if min(found(lam, CENTRED)[1]) >= _FIRST), default=LAM)
    longer = f"{found(low, CENTRED)[0]} where the penalty is low enough ({low:.1g}) for codes of five or more, "
    return [
        f"{n_shared} of the paper's {n_paper} neighbours are {where} our codes of {extent} labels",
        f"among the first five are {longer if low < LAM else ''}{found(LAM, SIGNED)[0]} with the paper's coding",
    ]


def pictures(records: Sequence[NeighbourRecord]) -> list[Picture]:
    """How often each neighbour is kept, a panel a label, a picture a set."""
    found = []
    datasets = list(dict.fromkeys(record.dataset for record in records))
    for dataset in datasets:
        here = [record for record in records if record.dataset == dataset]
        panels = [_panel(here, label) for label in _labels(here) if _code(here, label)]
        if panels:
            found.append(
                Picture(
                    name="kept" if len(datasets) == 1 else "kept-" + "-".join(dataset.split()),
                    title=f"Neighbours of labels of {dataset}: how often they stay when data are taken away",
                    x_label="neighbour, largest weight first",
                    y_label=f"draws in which it stays (% of up to {len({record.seed for record in here})})",
                    panels=tuple(panels),
                    reading=_sentence(here),
                    kind="bars",
                )
            )
    return found


def _panel(records: Sequence[NeighbourRecord], label: str) -> Panel:
    code = _code(records, label)
    named = ", ".join(f"{record.rank} {record.neighbour}" for record in code)
    series = []
    for view, what in _DRAWS.items():
        counts = [_counts(records, label, view, record.rank) for record in code]
        shares = tuple(100.0 * kept / able if able else 0.0 for kept, able in counts)
        series.append(Series(what, tuple(str(record.rank) for record in code), shares))
    return Panel(label + "\n" + "\n".join(textwrap.wrap(named, 44)), tuple(series))
