"""What trials said is kept, but not across versions that try something else."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np

from streamlabel import ModelStore, StreamingLabelClassifier
from streamlabel.store import stored_rows
from streamlabel.store.parts import Part
from streamlabel.store.stored_rows import TRIED, decode_trials, encode_trials
from streamlabel.streaming.trials import RECIPES, Trial


def test_trials_come_back_unless_the_recipes_are_others():
    measures = np.random.default_rng(0).random((len(RECIPES), 5))
    one = Trial(np.array([0.5, np.nan]), measures, np.ones((len(RECIPES), 2)))
    part = encode_trials({100: [one, Trial(one.strengths, measures + 1.0, one.lines)]}, n_labels=7)
    stored = Part(json.loads(json.dumps(part.content)), part.arrays)
    snapshot = SimpleNamespace()
    found = decode_trials(stored, snapshot, 7)
    assert list(found) == [100]
    np.testing.assert_array_equal(found[100][0].strengths, [0.5, np.nan])
    np.testing.assert_array_equal(found[100][1].lines, one.lines)
    np.testing.assert_array_equal(found[100][1].measures, measures + 1.0)
    assert decode_trials(stored, snapshot, 8) == {}
    others = Part({**stored.content, TRIED: stored.content[TRIED][:-1]}, part.arrays)
    assert decode_trials(others, snapshot, 7) == {}
    older = Part({name: value for name, value in stored.content.items() if name != TRIED}, part.arrays)
    assert decode_trials(older, snapshot, 7) == {}


def test_trials_of_other_recipes_are_run_again_once(rng, tmp_path, monkeypatch):
    X = rng.standard_normal((200, 10))
    Y = (X @ rng.standard_normal((10, 16)) > 1.0).astype(int)
    model = StreamingLabelClassifier().fit(X, Y[:, :12]).add_labels(X, Y[:, 12], ["a"], annotated=range(60))
    with monkeypatch.context() as older:
        older.setattr(stored_rows, "RECIPES", RECIPES[:-1])
        ModelStore.create(tmp_path / "model", model).close()
    for column, tried in ((13, set()), (14, {50})):
        with ModelStore.open(tmp_path / "model", "a") as store:
            assert set(store.model().state_.memory.tried) == tried
            store.add_labels(X, Y[:, [column]], [f"label {column}"], annotated=range(60))
