"""Every growing model of the project through the suite of promises."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from streamlabel import StreamingLabelClassifier
from streamlabel.streaming import arrival
from streamlabel.streaming.checks import LABEL_ARRIVAL_CHECKS, check_label_arrival_old_scores_bit_identical
from streamlabel.streaming.trials import LAM, Recipe

MODELS = {
    "default": {},
    "own ridge": {"lam": None, "metric": None},
    "paper": {"metric": None, "lam": 0.003},
    "anchor and metric": {"lam": 0.003, "metric": 0.3, "beta": 1.0},
    "dictionary": {"dictionary": 6, "lam": 0.003},
    "logistic": {"loss": "logistic"},
    "squared hinge": {"loss": "squared_hinge", "lam": 0.003, "beta": 1.0},
    "alternating": {"start": "alternating"},
    "signed": {"fit_intercept": False, "lam": 0.003, "metric": None},
}

# Squared, logistic and both, each alone, with the anchor, with the metric, with both.
RECIPES = {
    f"{mix:g} of logistic, metric {share:g}, {'anchored' if lam else 'no anchor'}":
        Recipe(share, lam or LAM, lam is not None, 0.3, mix=mix, other_strength=0.1, line=(0.1, 0.3))
    for mix in (0.0, 0.5, 1.0) for share in (0.0, 0.3) for lam in (None, LAM)
} | {"0.3 of logistic, own lines": Recipe(0.0, LAM, False, 0.3, mix=0.3, other_strength=0.1, line=None)} | {
    f"trimmed, with {'a firm ridge' if firm else 'logistic'}, metric {share:g}":
        Recipe(share, LAM, bool(share), 0.3, mix=0.5, other_strength=9.0, line=None, trim=1.5, firm=firm)
    for firm in (0.0, 30.0) for share in (0.0, 0.3)
}  # fmt: skip


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_promises_of_every_recipe(recipe, monkeypatch):
    used = []

    def choose(trials, **_):
        used.append(recipe)
        return recipe

    monkeypatch.setattr(arrival, "run_trials", lambda *_: [None])
    monkeypatch.setattr(arrival, "choose_recipe", choose)
    for check in LABEL_ARRIVAL_CHECKS:
        check(StreamingLabelClassifier)
    assert used


@pytest.mark.parametrize("check", LABEL_ARRIVAL_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
def test_promises(check, options):
    check(functools.partial(StreamingLabelClassifier, **options))


def test_the_suite_bites():
    class Forgetful(StreamingLabelClassifier):
        """Nudges an old classifier when a label arrives."""

        def decision_function(self, X):
            scores = super().decision_function(X)
            scores[:, 0] = np.nextafter(scores[:, 0], np.inf) if scores.shape[1] > 12 else scores[:, 0]
            return scores

    with pytest.raises(AssertionError, match="scores of old labels changed"):
        check_label_arrival_old_scores_bit_identical(Forgetful)
    assert len(LABEL_ARRIVAL_CHECKS) == 10
