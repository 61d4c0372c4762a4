"""Tables of experiments: frames in, Markdown out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from streamlabel.experiments.compare import LOSES, TIES, UNDECIDED, WINS, standings
from streamlabel.experiments.spec import Frame, Measure, Pivot

NOTHING = "*No records for this table.*"
Sections = dict[str, list[dict[str, str]]]  # a heading, "" for none, and the lines below it


def markdown_table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table, padded so that it also reads as text: numbers stand right, words left."""
    widths = [max(len(line[j]) for line in (header, *body)) for j in range(len(header))]
    right = [not body or _are_numbers([line[j] for line in body]) for j in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(cells, widths, right, strict=True)
        )
        return "| " + " | ".join(padded) + " |"

    rules = ("-" * (width + 1) + (":" if number else "-") for width, number in zip(widths, right, strict=True))
    return "\n".join([line(header), "|" + "|".join(rules) + "|", *map(line, body)])


def _are_numbers(column: Sequence[str]) -> bool:
    """Most of what is there begins with a digit or a sign.

    >>> _are_numbers(["12.1 ± 0.2", "-3", "not run", ""]), _are_numbers(["SLL", "2 rows"])
    (True, False)
    """
    filled = [cell for cell in column if cell]
    return 2 * sum(cell.lstrip("+-*")[:1].isdigit() for cell in filled) > len(filled)


def sections(table: Any, frame: Frame, compared: Frame) -> Sections:
    """What a table of a page says, set by set: the spec's pivot, or what its function gives.

    A function gives a frame or a list of dictionaries; lines with a ``dataset`` are put under that heading.
    """
    if isinstance(table, Pivot):
        return pivot(frame, table)
    found = table(frame, compared)
    lines = found if isinstance(found, list) else found.to_dict("records")
    parts: Sections = {}
    for line in lines:
        cells = {str(name): text(value) for name, value in line.items() if name != "dataset"}
        parts.setdefault(str(line.get("dataset", "")), []).append(cells)
    return parts


def markdown(parts: Mapping[str, Sequence[Mapping[str, str]]], level: str = "###") -> str:
    """Every section under its heading; columns without any entry are left out."""
    shown = []
    for heading, lines in parts.items():
        names = dict.fromkeys(name for line in lines for name in line)
        header = [name for name in names if any(line.get(name) for line in lines)]
        body = [[line.get(name, "") for name in header] for line in lines]
        if header:
            shown += [f"{level} {heading}"] if heading else []
            shown.append(markdown_table(header, body))
    return "\n\n".join(shown) or NOTHING


def text(value: Any) -> str:
    """
    >>> text(1234), text(0.5), text(float("nan")), text("a")
    ('1,234', '0.5', '', 'a')
    """
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)


def with_spread(mean: float, spread: float, digits: int, signed: bool = False) -> str:
    """A mean and its spread; a gain that rounds to zero is +0.00, never -0.00.

    >>> with_spread(2.0, 1.0, 1), with_spread(-0.001, float("nan"), 2, signed=True), with_spread(float("nan"), 1.0, 2)
    ('2.0 ± 1.0', '+0.00', '')
    """
    if np.isnan(mean):
        return ""
    first = f"{mean:+z.{digits}f}" if signed else f"{mean:.{digits}f}"
    return first if np.isnan(spread) else f"{first} ± {spread:.{digits}f}"


def pivot(frame: Frame, spec: Pivot) -> Sections:
    """Means over runs with their spread; a cell of fewer runs than others have says of how many."""
    parts: Sections = {}
    for dataset, here in spec.keep(frame).groupby("dataset", sort=False):
        if not spec.columns:
            columns = {measure.title: _cells(here, spec, measure, list(spec.rows)) for measure in spec.measures}
            parts[str(dataset)] = _lines(columns, spec)
            continue
        for measure in spec.measures:
            cells = _cells(here, spec, measure, [*spec.rows, spec.columns])
            heading = spec.titles.get(spec.columns, "{}")
            wide: dict[str, dict[Any, str]] = {}
            found = list(here[spec.columns].unique())  # numbers by size, words as they come
            for value in found if any(isinstance(one, str) for one in found) else sorted(found):
                wide[heading.format(value)] = {key[:-1]: cell for key, cell in cells.items() if key[-1] == value}
            if any(cells.values()):
                parts[f"{dataset}: {measure.title}"] = _lines(wide, spec)
    return parts


def _cells(here: Frame, spec: Pivot, measure: Measure, fields: list[str]) -> dict[Any, str]:
    grouped = here.groupby(fields, sort=False)[measure.field]
    means, sizes = grouped.mean(), grouped.count()
    spreads = {"sd": grouped.std, "error": grouped.sem}[spec.spread]() if spec.spread else means * np.nan
    most = here["seed"].nunique() if "seed" in here else 1
    found = {}
    for key in means.index:
        fewer = f" ({sizes[key]} of {most})" if 1 < sizes[key] < most else ""
        shown = with_spread(means[key], spreads[key], measure.digits)
        found[key if isinstance(key, tuple) else (key,)] = shown + fewer if shown else ""
    return found


def _lines(columns: Mapping[str, Mapping[Any, str]], spec: Pivot) -> list[dict[str, str]]:
    keys = list(dict.fromkeys(key for cells in columns.values() for key in cells))
    if not any(isinstance(part, str) for key in keys for part in key):
        keys.sort()
    first = [spec.titles.get(name, name) for name in spec.rows]
    return [
        dict(zip(first, map(text, key), strict=True)) | {name: cells.get(key, "") for name, cells in columns.items()}
        for key in keys
        if any(cells.get(key) for cells in columns.values())
    ]


def differences(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """The learner minus every other method, in points, place by place; above zero the learner is better."""
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for one in compared.itertuples():
        key = one.dataset, one.competitor, one.where
        line = found.setdefault(key, {"dataset": one.dataset, "SLL against": one.competitor, "at": one.where})
        line[one.measure] = with_spread(one.gain, one.error, 2, signed=True)
    return list(found.values())


def standing_lines(frame: Frame, compared: Frame) -> list[dict[str, str]]:
    """Wins, ties and losses of the learner against every method, over places and measures."""
    return standing_cells(standings(compared, ["dataset", "competitor"]), {"competitor": "SLL against"})


def standing_cells(found: Frame, titles: Mapping[str, str]) -> list[dict[str, str]]:
    """Lines of `compare.standings` with the gain at two digits."""
    shown = found.rename(columns={**titles, "gain": "mean gain"})
    shown["mean gain"] = [with_spread(gain, float("nan"), 2, signed=True) for gain in found["gain"]]
    counts = {name: shown[name].astype(int) for name in (WINS, TIES, LOSES, UNDECIDED)}
    lines: list[dict[str, str]] = shown.assign(**counts).to_dict("records")
    return lines


def chosen(frame: Frame, grid: Callable[[str, Any], Sequence[Mapping[str, Any]]]) -> list[dict[str, str]]:
    """How often each value of a hyper-parameter was chosen, and how often it was the lowest or highest of its grid.

    grid : from a method and one of its records to the candidates; a grid of fewer than three numbers has no edge
    """
    counts: dict[tuple[str, str, str], dict[Any, int]] = {}
    edges: dict[tuple[str, str, str], list[bool]] = {}
    for record in frame.itertuples():
        for name, value in json.loads(record.parameters or "{}").items():
            key = record.dataset, record.method, name
            counts.setdefault(key, {}).setdefault(value, 0)
            counts[key][value] += 1
            numbers = sorted(
                {one[name] for one in grid(record.method, record) if isinstance(one.get(name), int | float)}
            )
            if len(numbers) > 2 and value in numbers:
                edges.setdefault(key, []).append(value in (numbers[0], numbers[-1]))
    found = []
    for key, values in counts.items():
        ordered = sorted(values, key=lambda value: (isinstance(value, str), value))
        judged = edges.get(key, [])
        found.append(
            {
                "dataset": key[0],
                "method": str(key[1]),
                "hyper-parameter": key[2],
                "chosen (how often)": ", ".join(f"{text(value)} ({values[value]})" for value in ordered),
                "at an edge of the grid": f"{sum(judged)} of {len(judged)}" if judged else "",
            }
        )
    return found
