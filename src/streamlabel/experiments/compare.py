"""The learner against its competitors, in data frames: paired differences, their error, and who wins.

A comparison is of one set, place, measure and competitor. The learner wins or loses it where the mean of the paired
differences is more than `LEAST` points and zero lies outside its two-sided interval of level `LEVEL` by Student's t.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

from streamlabel.errors import MissingExtraError
from streamlabel.experiments.sets import is_made_up
from streamlabel.experiments.spec import LEARNER, Frame, Measure, PageSpec, Versus

LEVEL, LEAST = 0.95, 0.1  # of the t interval, and points: what lies closer than either is a tie
FEWEST_PAIRS = 4  # with fewer the interval is so wide that a tie would only mean too few runs
LEAD = 0.1  # by how much wins must exceed losses, or losses wins, as a share of what was decided
WINS, TIES, LOSES, UNDECIDED = "wins", "ties", "loses", "undecided"
OWN_FORMS = frozenset({"SLL logistic", "SLL paper", "SLL paper signed", "SLL anchor only", "SLL past always used"})
_FAMILIES = {  # what is the same method in several libraries, by a part of its name in small letters
    "sll": "",
    "logistic": "logistic regression",
    "napkinxc br": "logistic regression",
    "ridge": "ridge",
    "svm": "linear SVM",
    "hinge": "linear SVM",
}
_COLUMNS = ["dataset", "where", "measure", "competitor", "gain", "error", "freedom", "n_rows", "quick", "counted"]
_ROWS = {100.0: "up to 100", 1000.0: "101 to 1,000", np.inf: "more than 1,000"}
ALL_ROWS = "all"


def pandas() -> Any:
    """The package, which only pages need.

    Raises
    ------
    MissingExtraError : it is not installed
    """
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("pandas", "experiments", "the page of an experiment") from None
    return pandas


def frame_of(records: Sequence[Any], spec: PageSpec) -> Frame:
    """Records as a frame, a row each, by the names of pages and as the spec prepares them."""
    frame = pandas().DataFrame([dataclasses.asdict(record) for record in records])
    if "method" in frame:
        frame["method"] = frame["method"].replace(dict(spec.names))
    if spec.order and len(frame):
        places = frame["method"].map({name: place for place, name in enumerate(spec.order)})
        frame = frame.assign(place=places).sort_values(["dataset", "place"], kind="stable").drop(columns="place")
    return spec.prepare(frame) if len(frame) else frame


def comparisons(frame: Frame, versus: Versus | None) -> Frame:
    """A row for every set, place, measure and competitor.

    gain : how much better the learner is, in points, whichever way the measure points; the mean over pairs
    error, freedom : the standard error of the gain (NaN for a single run) and its degrees of freedom
    n_rows : annotated rows a new label; NaN where all are annotated
    quick : of runs whose hyper-parameters were not chosen
    counted : against a competitor, on a real set, not quick, in a measure that is fair to it
    """
    if versus is None or not len(frame):
        return _with_verdicts(pandas().DataFrame(columns=_COLUMNS))
    ours, theirs = _sides(frame, versus)
    found = []
    for measure in versus.measures:
        gains = _paired(ours, theirs, measure.field, measure.points, versus.pairs)
        if versus.runs_once:
            gains = [_one_run(one, ours, theirs, measure, versus.runs_once) for one in gains]
        unfair = {name for name, field in versus.unfair if field == measure.field}
        found += [{**one, "measure": measure.title, "counted": one["competitor"] not in unfair} for one in gains]
    return _with_verdicts(pandas().DataFrame(found, columns=_COLUMNS))


def _sides(frame: Frame, versus: Versus) -> tuple[Frame, Frame]:
    if versus.split is not None:
        ours, theirs = versus.split(frame)
    else:
        placed = frame.assign(where=frame[versus.place].map(versus.where.format))
        ours, theirs = placed[placed["method"] == LEARNER], placed[placed["method"] != LEARNER]
    usual = {"n_rows_a_label": np.nan, "tuned": True}  # of experiments whose records do not say
    ours, theirs = (
        side.assign(**{name: value for name, value in usual.items() if name not in side}) for side in (ours, theirs)
    )
    return ours, theirs


def _paired(ours: Frame, theirs: Frame, field: str, points: float, pairs: str) -> list[dict[str, Any]]:
    keys = ["dataset", "where", pairs]
    both = ours[[*keys, field, "tuned"]].merge(
        theirs[[*keys, field, "tuned", "method", "n_rows_a_label"]], on=keys, suffixes=("", "_other")
    )
    both["gain"] = points * (both[field] - both[f"{field}_other"])
    both = both.dropna(subset="gain")
    both["quick"] = ~both["tuned_other"].astype(bool)
    found = []
    for (dataset, where, method), group in both.groupby(["dataset", "where", "method"], sort=False):
        gain, error, freedom = mean_and_error(group["gain"])
        rows = group["n_rows_a_label"].iloc[0]
        place = {"dataset": dataset, "where": where, "competitor": method, "n_rows": rows}
        found.append({**place, "gain": gain, "error": error, "freedom": freedom, "quick": bool(group["quick"].any())})
    return found


def mean_and_error(gains: Sequence[float]) -> tuple[float, float, float]:
    """The mean, its standard error (NaN for a single value), and the degrees of freedom."""
    values = np.asarray(gains, dtype=np.float64)
    error = float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else float("nan")
    return float(values.mean()), error, float(values.size - 1)


def _one_run(one: dict[str, Any], ours: Frame, theirs: Frame, measure: Measure, once: frozenset[str]) -> dict[str, Any]:
    """Where fewer than two pairs exist: the mean over all runs, by Welch's error; NaN where it is not known."""
    if one["freedom"] >= 1.0:
        return one
    theirs = theirs[theirs["method"] == one["competitor"]]
    mine, other = (
        measure.points * side[(side["dataset"] == one["dataset"]) & (side["where"] == one["where"])][measure.field]
        for side in (ours, theirs)
    )
    gain, error, freedom = unpaired(mine, other)
    known = len(mine) > 1 and (len(other) > 1 or one["competitor"] in once)
    return {**one, "gain": gain, "error": error if known else float("nan"), "freedom": freedom}


def unpaired(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Difference of means, error and degrees of freedom of runs that do not belong together (Welch).

    A single value counts as one that does not vary; two of them decide nothing.
    """
    sides = [np.asarray(values, dtype=np.float64) for values in (ours, theirs)]
    gain = float(sides[0].mean() - sides[1].mean())
    parts = [(values.var(ddof=1) / values.size, values.size - 1) for values in sides if values.size > 1]
    if not parts:
        return gain, float("nan"), 0.0
    variance = sum(part for part, _ in parts)
    weight = sum(part**2 / freedom for part, freedom in parts)
    freedom = variance**2 / weight if weight else sum(freedom for _, freedom in parts)
    return gain, float(np.sqrt(variance)), float(freedom)


def verdict_of(gain: float, error: float, freedom: float) -> str:
    """Wins, ties or loses; undecided with too few pairs. A gain below a tenth of a point is a tie however sure."""
    if np.isnan(error) or freedom < FEWEST_PAIRS - 1:
        return UNDECIDED
    if abs(gain) <= max(float(stdtrit(freedom, (1 + LEVEL) / 2)) * error, LEAST):
        return TIES
    return WINS if gain > 0 else LOSES


def _with_verdicts(found: Frame) -> Frame:
    figures = zip(found["gain"], found["error"], found["freedom"], strict=True)
    made_up = found["dataset"].map(is_made_up).astype(bool)
    own_form = found["competitor"].isin(OWN_FORMS)
    fair = found["counted"].astype(bool) & ~found["quick"].astype(bool) & ~made_up
    return found.assign(
        verdict=[verdict_of(*one) for one in figures], own_form=own_form & fair, counted=fair & ~own_form
    )


def standings(compared: Frame, by: Sequence[str]) -> Frame:
    """Wins, ties, losses and undecided comparisons of every group, the mean gain in points, and the lead of the counts.

    lead : ahead or behind where wins and losses differ by more than `LEAD` of what was decided, else level
    """
    keys = list(by)
    counts = compared.groupby([*keys, "verdict"], sort=False).size().unstack(fill_value=0)
    counts = counts.reindex(columns=[WINS, TIES, LOSES, UNDECIDED], fill_value=0)
    counts["gain"] = compared.groupby(keys, sort=False)["gain"].mean()
    counts["lead"] = [lead_of(*one) for one in counts[[WINS, TIES, LOSES]].itertuples(index=False)]
    order = compared.drop_duplicates(keys)[keys]
    return order.merge(counts.reset_index(), on=keys, how="left")


def lead_of(wins: int, ties: int, loses: int) -> str:
    """
    >>> lead_of(13, 85, 2), lead_of(6, 85, 0), lead_of(0, 1, 9), lead_of(0, 0, 0)
    ('ahead', 'level', 'behind', 'undecided')
    """
    decided = wins + ties + loses
    if not decided:
        return UNDECIDED
    if abs(wins - loses) <= LEAD * decided:
        return "level"
    return "ahead" if wins > loses else "behind"


def family_of(competitor: str) -> str:
    """What a method is called where libraries are taken together.

    >>> family_of("scikit-learn logistic"), family_of("SLL logistic"), family_of("omikuji")
    ('logistic regression', 'SLL logistic', 'omikuji')
    """
    return next((name for part, name in _FAMILIES.items() if part in competitor.lower()), "") or competitor


def rows_of(n_rows: float) -> str:
    """The range that a number of annotated rows lies in; NaN is all rows."""
    return ALL_ROWS if np.isnan(n_rows) else next(words for most, words in _ROWS.items() if n_rows <= most)


def by_rows(compared: Mapping[str, Frame], used_name: Any = lambda name: name) -> Frame:
    """Standings over experiments by range of annotated rows and family of competitors, with the sets by lead."""
    parts = [frame[frame["counted"] | frame["own_form"]] for frame in compared.values()]
    whole = pandas().concat([part for part in parts if len(part)] or parts)
    whole = whole.assign(
        rows=whole["n_rows"].map(rows_of),
        against=whole["competitor"].map(family_of),
        dataset=whole["dataset"].map(used_name),
    )
    found = standings(whole, ["rows", "against"])
    sets = standings(whole, ["rows", "against", "dataset"])
    for lead in ("ahead", "level", "behind"):
        here = sets[sets["lead"] == lead].groupby(["rows", "against"])["dataset"].agg(", ".join)
        found[f"{lead} on"] = [here.get((row.rows, row.against), "") for row in found.itertuples()]
    order = [*_ROWS.values(), ALL_ROWS]
    return found.sort_values("rows", key=lambda column: column.map(order.index), kind="stable")
