"""Labels that were learned in groups, put together in the order in which they were named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from streamlabel.models.arrival import Arrival
from streamlabel.models.calibration import Recipe
from streamlabel.models.decisions import best_f1_thresholds, fit_sigmoids
from streamlabel.models.reports import LabelReport
from streamlabel.results import CSC, FloatArray, IntArray

__all__ = ["Decisions", "LearnedGroup", "NewLabels", "decide", "gather"]


@dataclass(frozen=True, eq=False)
class Decisions:
    """Where a score means yes, and which probability it means (`models.decisions`), (k,) each."""

    thresholds: FloatArray
    slope: FloatArray
    offset: FloatArray

    def appended(self, other: Decisions) -> Decisions:
        """These, then the others."""
        return Decisions(
            np.append(self.thresholds, other.thresholds),
            np.append(self.slope, other.slope),
            np.append(self.offset, other.offset),
        )


@dataclass(frozen=True, eq=False)
class LearnedGroup:
    """Labels of one arrival that were asked on the same q rows.

    columns : (k,), their places in the arrival
    answers : (q, k), 0/1;   correlations : their products with the past, where these were made
    """

    columns: IntArray
    arrival: Arrival
    recipe: Recipe
    beta: float
    loss: str
    answers: FloatArray
    correlations: FloatArray | None
    coupled: bool = False


@dataclass(frozen=True, eq=False)
class NewLabels:
    """All labels of one arrival, in the order of their names."""

    weights: FloatArray
    intercept: FloatArray
    codes: CSC
    decisions: Decisions
    reports: tuple[LabelReport, ...]


def decide(scores: FloatArray, answers: FloatArray, threshold: float | str, usual: float) -> Decisions:
    """Thresholds and probabilities from scores (e, k) of rows that were not learned from, and their 0/1 answers.

    threshold : "f1" or one score for all;   usual : the threshold where no label has a positive answer here
    """
    slope, offset = fit_sigmoids(scores, answers)
    if threshold != "f1":
        return Decisions(np.full(scores.shape[1], float(threshold)), slope, offset)
    found = best_f1_thresholds(scores, answers)
    missing = np.isnan(found)
    return Decisions(np.where(missing, usual if missing.all() else np.nanmedian(found), found), slope, offset)


def gather(groups: Sequence[LearnedGroup], names: tuple[str, ...], threshold: float | str, usual: float) -> NewLabels:
    """The groups as one batch."""
    order = np.argsort(np.concatenate([group.columns for group in groups]))
    arrivals = [group.arrival for group in groups]
    found = [_decide(group, threshold, usual) for group in groups]
    decisions = found[0]
    for other in found[1:]:
        decisions = decisions.appended(other)
    codes = arrivals[0].codes
    if len(groups) > 1:
        codes = sparse.csc_array(sparse.hstack([arrival.codes for arrival in arrivals], format="csc")[:, order])
    reports = [report for group in groups for report in _reports(group, names)]
    return NewLabels(
        np.hstack([arrival.weights for arrival in arrivals])[:, order],
        np.concatenate([arrival.intercept for arrival in arrivals])[order],
        codes,
        Decisions(decisions.thresholds[order], decisions.slope[order], decisions.offset[order]),
        tuple(reports[place] for place in order),
    )


def _decide(group: LearnedGroup, threshold: float | str, usual: float) -> Decisions:
    rows = group.arrival.judged_rows
    return decide(group.arrival.judged_scores, group.answers if rows is None else group.answers[rows], threshold, usual)


def _reports(group: LearnedGroup, names: tuple[str, ...]) -> list[LabelReport]:
    recipe, arrival = group.recipe, group.arrival
    anchored = arrival.anchored.tolist()
    sizes, counts = np.diff(arrival.codes.indptr), group.answers.sum(axis=0)
    gaps = [report.violation for report in arrival.reports] or [0.0] * len(group.columns)
    return [
        LabelReport(
            names[column], len(group.answers), int(counts[j]), recipe.share, recipe.lam, anchored[j], group.beta,
            int(sizes[j]), gaps[j], group.loss, group.coupled, recipe.clarity,
        )
        for j, column in enumerate(group.columns)
    ]  # fmt: skip
