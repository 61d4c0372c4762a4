"""The answers kept beside a label: they survive writing and reading, newer ones win, damage is told."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from streamlabel.errors import DataError
from streamlabel.streaming.calibration import Estimate
from streamlabel.tagging.examples import LabelExamples

ESTIMATE = Estimate((0.5, 0.1, 0.9), (0.4, 0.2, 0.6), (0.3, 0.2, 0.4), (0.02, 0.01, 0.05), 0.03, 250, 7)


def examples(texts: str, answers: list[bool], *, asked: bool = False, about: str = "", dense: bool = False) -> Any:
    """Answers to texts of one letter each; a text's row is its letter's number, so that it can be told."""
    rows = np.array([[ord(text), 0.0, 1.0] for text in texts]).reshape(-1, 3)
    return LabelExamples.of(list(texts), rows if dense else sparse.csr_array(rows), answers, asked=asked, about=about)


def said(one: LabelExamples) -> dict[str, tuple[bool, bool]]:
    """Text: (answer, whether it was asked)."""
    rows = one.rows if isinstance(one.rows, np.ndarray) else one.rows.toarray()
    letters = [chr(int(row[0])) for row in rows]
    return dict(zip(letters, zip(one.answers.tolist(), one.asked.tolist(), strict=True), strict=True))


def through_json(one: LabelExamples, n_features: int = 3) -> LabelExamples:
    return LabelExamples.from_content(json.loads(json.dumps(one.content(), allow_nan=False)), n_features, "here")


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("texts", ["", "a", "abc"])
def test_answers_are_read_as_they_were_written(texts: str, dense: bool) -> None:
    before = examples(texts, [text != "b" for text in texts], asked=True, about="what", dense=dense).judged(ESTIMATE)
    after = through_json(before)
    assert said(after) == said(before) == {text: (text != "b", True) for text in texts}
    assert isinstance(after.rows, np.ndarray) == dense
    assert after.rows.shape == before.rows.shape
    np.testing.assert_array_equal(after.digests, before.digests)
    assert (after.about, after.estimate) == ("what", ESTIMATE)


def test_rows_are_kept_to_single_precision(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(4, 3))
    before = LabelExamples.of(list("abcd"), rows, [True] * 4, asked=False, about="")
    np.testing.assert_array_equal(through_json(before).rows, rows.astype(np.float32).astype(np.float64))


def test_what_is_not_known_of_an_estimate_stays_unknown() -> None:
    nothing = (float("nan"),) * 3
    after = through_json(examples("a", [True]).judged(replace(ESTIMATE, precision=nothing)))
    assert np.isnan(after.estimate.precision).all()
    assert replace(after.estimate, precision=ESTIMATE.precision) == ESTIMATE
    assert through_json(examples("a", [True])).estimate is None


def test_a_raised_threshold_is_kept_and_older_models_have_none() -> None:
    known = replace(ESTIMATE, raised=(0.7, 0.91, 0.3))
    content = examples("a", [True]).judged(known).content()
    assert LabelExamples.from_content(json.loads(json.dumps(content)), 3, "here").estimate == known
    del content["estimate"]["raised"]
    assert LabelExamples.from_content(content, 3, "here").estimate == ESTIMATE


def test_newer_answers_win_and_what_was_asked_stays_asked() -> None:
    older = examples("ab", [True, False], asked=True, about="old").joined(examples("c", [True]))
    assert said(older) == {"a": (True, True), "b": (False, True), "c": (True, False)}
    found = older.joined(examples("bcd", [True, False, True]))
    expected = {"a": (True, True), "b": (True, True), "c": (False, False), "d": (True, False)}
    assert said(found) == expected
    assert len(found.answers) == 4
    assert found.about == "old"
    assert said(found.joined(examples("c", [True], asked=True, about="new")))["c"] == (True, True)
    assert found.joined(examples("", [], about="new")).about == "new"
    assert said(found.joined(examples("", []))) == expected
    assert said(examples("", []).joined(examples("a", [False]))) == {"a": (False, False)}
    assert said(through_json(found).joined(examples("a", [False], dense=True))) == expected | {"a": (False, True)}


CONTENT = examples("abc", [True, False, True], about="x").judged(ESTIMATE).content()


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"answers": [1, 0]},
        {"asked": [0, 0, 0, 0]},
        {"digests": "AAAA"},
        {"digests": "no base64!"},
        {"lengths": [2, 2, 1]},
        {"lengths": [9, -5, 2]},
        {"values": ""},
        {"indices": 7},
        {"estimate": {"precision": 1}},
        {"estimate": []},
        {"estimate": CONTENT["estimate"] | {"rate": [0.1, 0.2]}},
        {"estimate": CONTENT["estimate"] | {"fires": 7.0}},
    ],
)
def test_damaged_answers_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="here: the answers of a label are damaged"):
        LabelExamples.from_content(CONTENT | change, 3, "here")


@pytest.mark.parametrize("key", sorted(CONTENT))
def test_answers_with_a_gap_are_refused(key: str) -> None:
    with pytest.raises(DataError, match="damaged"):
        LabelExamples.from_content({name: value for name, value in CONTENT.items() if name != key}, 3, "here")


def test_answers_of_other_features_are_refused() -> None:
    with pytest.raises(DataError, match="damaged"):
        LabelExamples.from_content(CONTENT, 2, "here")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@given(content=anything | st.fixed_dictionaries({}, optional=dict.fromkeys(CONTENT, anything)).map(CONTENT.__or__))
def test_whatever_is_there_is_answers_or_an_error(content: Any) -> None:
    try:
        found = LabelExamples.from_content(content, 3, "here")
    except DataError:
        return
    assert len(found.answers) == len(found.asked) == len(found.digests) == found.rows.shape[0]
