"""merge and threshold: what they say is what the store does and what predict then says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from streamlabel import ModelStore, Tagger
from tagged_texts import tagged_texts

Call = Callable[..., Result]
Ask = Callable[..., Any]
DATA = tagged_texts(300, 100)


def n_fires(model: Path, label: str) -> int:
    return sum(label in labels for labels in Tagger.open(model).predict(DATA.texts))


@pytest.mark.parametrize("value", ["0.4", "-0.25"])
def test_a_threshold_is_shown_set_and_taken_back(model: Path, call: Call, ask: Ask, value: str) -> None:
    (record,) = [one for one in ModelStore.open(model).labels() if one.name == "football"]
    shown = ask("threshold", model, "football")
    assert (shown["threshold"], shown["revision"]) == (record.threshold, None)
    assert shown["fires"] == {"n_yes": n_fires(model, "football"), "n_looked_at": 300}
    would = ask("threshold", model, "football", value, "--dry-run")
    assert ModelStore.open(model).revision == 2
    did = ask("threshold", model, "football", value, "--actor", "eve")
    assert (did["revision"], ModelStore.open(model).history()[0].actor) == (3, "eve")
    assert would["fires"] == did["fires"] == {"n_yes": n_fires(model, "football"), "n_looked_at": 300}
    assert did["fires"] != shown["fires"]
    call("rename", model, "football", "soccer")
    assert "of 300 texts of fit (" in (said := call("threshold", model, "soccer").stdout)
    assert "%), whatever pool it was learned with\n" in said
    assert f"learned with {record.threshold:.3f}" in call("threshold", model, "soccer").stdout
    assert ask("threshold", model, "soccer", "auto")["threshold"] == record.threshold
    assert Tagger.open(model).classifier_.thresholds_[-1] == record.threshold


def test_a_vacuum_forgets_what_it_was_learned_with(model: Path, call: Call, ask: Ask) -> None:
    call("threshold", model, "football", 0.4)
    call("vacuum", model)
    assert ask("threshold", model, "football", "auto")["threshold"] == 0.4


def test_mistakes_of_threshold(model: Path, call: Call) -> None:
    for value in ("high", "nan", "inf"):
        assert "give a number, or auto" in call("threshold", model, "football", value, code=2).stderr
    assert "did you mean 'football'?" in call("threshold", model, "footbal", code=3).stderr
    assert ModelStore.open(model).revision == 2


def test_merged_labels_are_what_the_store_makes_of_them(model: Path, tmp_path: Path, call: Call, ask: Ask) -> None:
    names = ModelStore.open(model).label_names
    would = ask("merge", model, "football", names[0], "--dry-run")
    assert ModelStore.open(model).label_names == names
    did = ask("merge", model, "football", names[0])
    assert (did["labels"], did["into"], did["how"]) == (["football", names[0]], names[0], "averaged")
    assert would == did | {"dry_run": True, "revision": None, "how": None}
    store = ModelStore.open(model)
    assert sorted(store.label_names) == sorted(set(names) - {"football"})
    older = ModelStore.open(model, revision=2)
    X = Tagger.open(model).vectorizer_.transform(DATA.unseen)
    weight = np.array([one.n_yes for one in older.labels() if one.name in did["labels"]], dtype=float)
    parts = older.scores(X)[:, [names.index(names[0]), names.index("football")]]
    merged = store.scores(X)[:, store.label_names.index(names[0])]
    np.testing.assert_allclose(merged, parts @ weight / weight.sum(), atol=1e-6)
    ask("rollback", model, 2)
    assert ModelStore.open(model).label_names == names


def test_labels_of_fit_are_learned_again_from_the_answers_of_both(model: Path, call: Call, ask: Ask) -> None:
    first, second = ModelStore.open(model).label_names[:2]
    said = call("merge", model, first, second, "both").stdout
    assert f"merged {first!r} and {second!r} into 'both': learned again from all their answers" in said
    assert call("history", model, "-n", 1).stdout.rstrip().endswith(f"merge  {first}, {second} -> both")
    (record,) = [one for one in ModelStore.open(model).labels() if one.name == "both"]
    assert record.n_yes == sum(first in tags or second in tags for tags in DATA.tags)


def test_mistakes_of_merge(model: Path, call: Call) -> None:
    names = ModelStore.open(model).label_names
    assert "did you mean 'tennis'" in call("merge", model, "football", "tenis", code=3).stderr
    assert "rename" in call("merge", model, "football", "zzz", code=3).stderr
    assert "takes two labels" in call("merge", model, "football", "football", code=3).stderr
    call("merge", model, "nobody", names[0], code=3)
    for more in ([], ["--dry-run"]):
        assert "characters" in call("merge", model, "football", "tennis", "x" * 300, *more, code=1).stderr
    call("merge", model, names[0], code=2)
    assert ModelStore.open(model).label_names == names
