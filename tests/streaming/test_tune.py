"""Trials that are paid for at the end of fit, once: the first label does not wait, and learns as it would have."""

from __future__ import annotations

import numpy as np

from streamlabel import StreamingLabelClassifier, Tagger
from streamlabel.data.news import make_news_corpus
from streamlabel.streaming import found, kept_rows
from streamlabel.streaming.arrival import run_all_trials
from streamlabel.streaming.inputs import checked_parameters


def test_a_tuned_model_runs_no_trial_when_labels_arrive(rng, monkeypatch, tmp_path):
    X = rng.standard_normal((400, 12))
    Y = (X @ rng.standard_normal((12, 20)) + rng.standard_normal((400, 20)) > 1.0).astype(int)
    late = StreamingLabelClassifier().fit(X, Y[:, :16])
    for rows in (np.arange(30), np.arange(150), None):
        late.add_labels(X, Y[:, 16], [f"on {0 if rows is None else len(rows)}"], annotated=rows)
    tuned = StreamingLabelClassifier(tune="fit").fit(X, Y[:, :16])
    assert set(late.state_.memory.tried) <= set(tuned.state_.memory.tried)
    monkeypatch.setattr(kept_rows, "n_trials", lambda budget: 1 / 0)
    for rows in (np.arange(30), np.arange(150), None):
        tuned.add_labels(X, Y[:, 16], [f"on {0 if rows is None else len(rows)}"], annotated=rows)
    assert np.array_equal(tuned.coef_, late.coef_)


def test_a_tuned_model_has_the_factor_that_all_rows_need(rng):
    X = rng.standard_normal((400, 12))
    Y = (X @ rng.standard_normal((12, 16)) + rng.standard_normal((400, 16)) > 1.0).astype(int)
    for settings, needed in (({"metric": None, "loss": "squared"}, True), ({"metric": 0.3}, False)):
        model = StreamingLabelClassifier(**settings).fit(X, Y)
        model.state_.memory._ridge = None  # as after a fit that keeps none, or in a store
        run_all_trials(checked_parameters(model), model.state_)
        assert (model.state_.memory._ridge is not None) == needed


def test_a_tuned_tagger_keeps_what_it_tried_for_names_and_found_texts(monkeypatch, tmp_path):
    corpus = make_news_corpus(300, random_state=0)
    tagger = Tagger(classifier=StreamingLabelClassifier(tune="fit")).fit(
        corpus.texts[:200], corpus.Y[:200], corpus.label_names
    )
    tagger.save(tmp_path / "model")
    monkeypatch.setattr(found, "run_found_trials", lambda *given: 1 / 0)
    with Tagger.open(tmp_path / "model", "a") as stored:
        assert len(stored.classifier_.state_.memory.found) == len(tagger.classifier_.state_.memory.found) == 7
        stored.learn("winning", corpus.texts[:2], pool=corpus.texts[200:])
