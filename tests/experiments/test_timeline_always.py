"""The learner with its choice switched off: beside own ridge in words, tables and pictures, and never counted."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from streamlabel.experiments.timeline import EXPERIMENT
from streamlabel.experiments.timeline_records import (
    ALWAYS_USED,
    COMPARED,
    EVER,
    LOGISTIC,
    OWN_RIDGE,
    WITH_PAST,
    BirthRecord,
)

RNG = np.random.default_rng(0)
AUC, PRECISION = 70 + 20 * RNG.random(12), 30 + 20 * RNG.random(12)
SHIFT = RNG.normal(size=12)


def record(label: int, method: str, age: int, auc: float, precision: float, **other) -> BirthRecord:
    found = BirthRecord(
        dataset="eurlex57k", start=1990, years=1, label=f"label {label:02d}", method=method, age=age, seed=0,
        born="1990-05-01", n_known=50 + label, n_rows=200, n_yes=4, n_judged=900, n_judged_yes=9, auc=auc,
        average_precision=precision, past_used=method == ALWAYS_USED, old_scores="0" * 64, unchanged=True,
    )  # fmt: skip
    return replace(found, **other)


def stream(auc: float, precision: float, **other) -> list[BirthRecord]:
    """Twelve labels of a learner that is own ridge; the variant is better by so much, give or take one point."""
    found = []
    for label in range(12):
        for age in (EVER, 1):
            found += [record(label, method, age, AUC[label], PRECISION[label], **other) for method in COMPARED]
            always = (AUC[label] + auc + SHIFT[label], PRECISION[label] + precision + SHIFT[label])
            found.append(record(label, ALWAYS_USED, age, *always, **other))
    return sorted(found, key=lambda one: (one.start, one.label, one.method, one.age))


def said(shift: float) -> str:
    values = SHIFT + shift
    return f"{values.mean():+.2f} ± {values.std(ddof=1) / np.sqrt(12):.2f}"


def test_what_it_would_have_changed_is_said_of_every_start_and_in_a_table():
    page = EXPERIMENT.page([*stream(-9.0, 0.0), *stream(8.0, -7.0, start=1991)])
    for auc, precision in ((-9.0, 0.0), (8.0, -7.0)):
        sentence = f"the past changes AUC by {said(auc)} and average precision by {said(precision)} against own ridge."
        assert f"Used for every label, {sentence}" in page.sentence
        change = page.data["runs"][auc > 0]["past_always_used"][0]["auc"]
        assert change["change"] == pytest.approx((SHIFT + auc).mean())
        assert change["n_labels"] == 12
        line = next(line for line in page.body.splitlines() if said(auc) in line)
        assert [cell.strip() for cell in line.split("|")[1:-1]] == [
            "all later", "12", f"{(AUC + SHIFT + auc).mean():.1f}", f"{AUC.mean():.1f}", said(auc),
            f"{(PRECISION + SHIFT + precision).mean():.1f}", f"{PRECISION.mean():.1f}", said(precision),
        ]  # fmt: skip
    json.dumps(page.data, allow_nan=False)


@pytest.mark.parametrize(
    ("auc", "precision", "how", "judged"),
    [
        (-9.0, -9.0, "worse at 1 of 1 starts in AUC and average precision", "right in AUC and average"),
        (
            -9.0,
            0.0,
            "worse at 1 of 1 starts in AUC, level in average",
            "right in AUC, without a sure effect in average",
        ),
        (-9.0, 9.0, "worse at 1 of 1 starts in AUC, better at", "right in AUC, wrong in average precision."),
        (9.0, 9.0, "better at 1 of 1 starts in AUC and average", "wrong in AUC and average precision."),
    ],
)
def test_whether_it_was_right_to_leave_the_past_alone_is_computed(auc, precision, how, judged):
    sentence = EXPERIMENT.page(stream(auc, precision)).sentence
    assert f"Used for every label at a fixed setting ('past always used'), it would have been {how}" in sentence
    assert f"against own ridge: to leave it alone was {judged}" in sentence


def test_starts_at_which_it_was_not_run_are_not_spoken_for():
    older = [one for one in stream(0.0, 0.0, start=1991) if one.method in COMPARED]
    sentence = EXPERIMENT.page([*stream(-9.0, -9.0), *older]).sentence
    assert "('past always used', run at 1 of 2 starts), it would have been worse at 1 of 1 starts in AUC" in sentence


def test_few_labels_decide_nothing():
    few = [one for one in stream(-9.0, 9.0) if one.label < "label 03"]
    assert "undecided in AUC and average precision against own ridge" in EXPERIMENT.page(few).sentence


def test_a_learner_that_used_the_past_left_nothing_alone():
    used = [replace(one, past_used=one.method in (WITH_PAST, ALWAYS_USED)) for one in stream(-9.0, 0.0)]
    sentence = EXPERIMENT.page(used).sentence
    assert f"Used for every label, the past changes AUC by {said(-9.0)}" in sentence
    assert "to leave it alone" not in sentence


def test_it_is_no_competitor_and_changes_nothing_of_the_others():
    records = stream(20.0, 20.0)
    older = [one for one in records if one.method in COMPARED]
    page, before = EXPERIMENT.page(records), EXPERIMENT.page(older)
    assert page.comparisons == before.comparisons
    assert {one.competitor for one in page.comparisons} == {OWN_RIDGE, LOGISTIC}
    assert page.data["runs"][0]["ages"] == before.data["runs"][0]["ages"]
    assert before.data["runs"][0]["past_always_used"] == []
    assert "lways used" not in before.sentence + before.body + EXPERIMENT.pictures(older)[0].reading
    assert "penalty (0.003)" in page.body
    assert "trials know (0.3)" in page.body


def test_labels_that_it_has_not_learned_yet_are_left_out_of_its_figures_alone():
    records = stream(-9.0, 0.0)
    part = [one for one in records if one.method != ALWAYS_USED or one.label < "label 06"]
    page = EXPERIMENT.page(part)
    assert page.comparisons == EXPERIMENT.page(records).comparisons
    assert f"AUC by {(SHIFT[:6] - 9.0).mean():+.2f} ± " in page.sentence
    assert "against own ridge (6 of 12 labels)." in page.sentence
    picture = EXPERIMENT.pictures(part)[0]
    assert [one.label for one in picture.panels[0].series] == list(COMPARED)
    assert "always used" not in picture.reading


def test_it_has_a_line_where_it_has_learned_every_label():
    picture = EXPERIMENT.pictures(stream(-9.0, 0.0))[0]
    line = picture.panels[0].series[-1]
    assert (line.label, line.x) == (ALWAYS_USED, (1.0,))
    assert line.y == pytest.approx(((AUC + SHIFT).mean() - 9.0,))
    assert "'past always used' is the learner without its choice" in picture.reading


def test_what_had_been_seen_of_the_laws_is_said_of_these_alone():
    raised = "now 0.3 points in its trials, was raised after a loss on the later laws of eurlex57k had been seen"
    older = [one for one in stream(0.0, 0.0) if one.method in COMPARED]
    assert raised in EXPERIMENT.page(older).sentence
    assert raised in EXPERIMENT.page([replace(one, dataset="eurlex-4k (stand-in eurlex57k)") for one in older]).sentence
    assert "was raised" not in EXPERIMENT.page([replace(one, dataset="news corpus") for one in older]).sentence
