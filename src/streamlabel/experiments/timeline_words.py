"""What the records of the timeline show, in short sentences; plainly, where the learner left the past alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamlabel.experiments.comparisons import LOSES, WINS, Comparison, mean_and_error
from streamlabel.experiments.sets import marking_made_up
from streamlabel.experiments.timeline_always import change, complete_ages, refusal, seen_before
from streamlabel.experiments.timeline_records import ALWAYS_USED, EVER, OWN_RIDGE, WITH_PAST, BirthRecord
from streamlabel.experiments.timeline_values import (
    MEASURES,
    OTHERS,
    Run,
    ages,
    arrivals,
    by_run,
    comparisons,
    in_words,
    is_judged,
    signed,
    values,
)

__all__ = ["FEWEST_LABELS", "caption", "past_used", "sentence", "title", "why"]

FEWEST_LABELS = 5  # a point of a picture rests on no fewer


def title(run: Run) -> str:
    dataset, start, years = run
    return f"{dataset}, labels born from {start} on, annotated for {in_words(years)}"


def past_used(records: Sequence[BirthRecord]) -> str:
    found = arrivals(records)
    used, labels = {record.label for record in found if record.past_used}, {record.label for record in found}
    seeds = " (with any seed)" if len({record.seed for record in found}) > 1 else ""
    return f"used for {len(used)} of {len(labels)} labels{seeds}"


def sentence(records: Sequence[BirthRecord]) -> str:
    """What holds for all starts first, then one sentence a start."""
    if not records:
        return "Nothing was run."
    runs = by_run(records)
    found = arrivals(records)
    ridge = {run: here for run, here in runs.items() if _is_ridge(here)}
    parts = [*_left_alone(ridge, len(runs)), *seen_before(records)]
    if found:
        n_same = sum(record.unchanged for record in found)
        parts.append(f"Old scores were untouched after {n_same} of {len(found)} arrivals.")
    return marking_made_up(" ".join([*parts, *(_reached(run, here) for run, here in runs.items())]))


def caption(records: Sequence[BirthRecord]) -> str:
    """For a picture, whose tables stand beside it."""
    runs = by_run(records)
    ridge = [run for run, here in runs.items() if _is_ridge(here)]
    parts = ["A label is annotated in its first years and judged on later rows, by its age."]
    if ridge:
        where = "" if len(ridge) == len(runs) else f" {_starts(ridge)}"
        parts.append(
            f"'{WITH_PAST}' and '{OWN_RIDGE}' lie on each other{where}: the learner chose not to use the past."
        )
    if any(complete_ages(here, {*ages(here, FEWEST_LABELS)} - {EVER}) for here in runs.values()):
        parts.append(f"'{ALWAYS_USED}' is the learner without its choice, at a fixed setting.")
    if any({*ages(here)} - {*ages(here, FEWEST_LABELS)} - {EVER} for here in runs.values()):
        parts.append(f"Points of fewer than {FEWEST_LABELS} labels are left out.")
    return " ".join(parts)


def _is_ridge(records: Sequence[BirthRecord]) -> bool:
    """Whether the learner used the past for no label, and has own ridge's figures to the last digit."""
    if not is_judged(records) or any(record.past_used for record in arrivals(records)):
        return False
    found = [values(records, measure, EVER) for measure in MEASURES]
    return all(np.array_equal(one[WITH_PAST], one[OWN_RIDGE]) for one in found)


def _starts(runs: Sequence[Run]) -> str:
    return f"where labels are born from {', '.join(dict.fromkeys(str(start) for _, start, _ in runs))} on"


def _left_alone(runs: dict[Run, list[BirthRecord]], n_runs: int) -> list[str]:
    """That the learner is ridge in these runs, and what follows from it for a user."""
    if not runs:
        return []
    n_arrivals = sum(len(arrivals(here)) for here in runs.values())
    where = "" if len(runs) == n_runs else f" {_starts(list(runs))}"
    return [
        f"The past was used for 0 of {n_arrivals} arrivals{where}: the learner's trials on known labels chose not to "
        f"use it, so the learner is {OWN_RIDGE} here, with nothing lost and nothing gained.",
        *refusal(list(runs.values())),
        *_instead([one for here in runs.values() for one in comparisons(here)]),
    ]


def why(records: Sequence[BirthRecord]) -> list[str]:
    """A paragraph where the learner is own ridge at some start; else none."""
    if not any(_is_ridge(here) for here in by_run(records).values()):
        return []
    return [
        "Why the past was not used: the learner uses it only where labels of the start, hidden and learned again from "
        "about as many rows as a new one has, gain enough by it on other rows, and these did not. The choice is made "
        "for a number of rows, not label by label."
    ]


def _instead(found: Sequence[Comparison]) -> list[str]:
    """One sentence a competitor other than own ridge: in which measures it is better, and worse."""
    said = []
    for other in OTHERS:
        if other == OWN_RIDGE:
            continue
        parts, wanted = [], []
        for measure in MEASURES.values():
            verdicts = [one.verdict for one in found if (one.competitor, one.measure) == (other, measure)]
            n_better, n_worse = verdicts.count(LOSES), verdicts.count(WINS)
            counts = [f"{how} at {n}" for how, n in (("better", n_better), ("worse", n_worse)) if n]
            parts.append(
                f"{' and '.join(counts)} of {len(verdicts)} starts in {measure}" if counts else f"level in {measure}"
            )
            wanted += [measure] if n_better > n_worse else []
        advice = f": use it instead where {' and '.join(wanted)} is what you need" if wanted else ""
        said.append(f"{other[0].upper()}{other[1:]} is {', '.join(parts)}{advice}.")
    return said


def _reached(run: Run, records: Sequence[BirthRecord]) -> str:
    if not is_judged(records):
        return f"{title(run)}: nothing to judge yet."
    ridge = _is_ridge(records)
    others = [other for other in OTHERS if not (ridge and other == OWN_RIDGE)]
    found = [values(records, measure, EVER) for measure in MEASURES]
    reached = [f"{said} {one[WITH_PAST].mean():.1f}%" for said, one in zip(MEASURES.values(), found, strict=True)]
    gains = [
        f"{' and '.join(signed(*mean_and_error(one[WITH_PAST] - one[other])) for one in found)} against {other}"
        for other in others
    ]
    used = "" if ridge else f", the past {past_used(records)}"
    return " ".join([f"{title(run)}{used}: {' and '.join(reached)}; {', '.join(gains)}.", *change(records)])
