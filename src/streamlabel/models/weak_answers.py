"""A new label with few no: texts that nobody was asked about stand for it, and its threshold is kept in bounds.

A person who names three texts for a new label says nothing about the others, but most of these are a no, for most
labels are rare. So some of the texts of `fit` are drawn and taken for no: `PER_YES` for each yes, not all of them.
There are texts among them to which the label applies, and where the yes are few these outweigh them: taking all 1,200
in place of 20 a yes lowered the AUC of labels learned from three texts from 0.88 to 0.68.

A few answered no do not change that. They are chosen by people, often because they look like a yes, and say little
about the other texts: labels of 6 yes and 12 such no fired on 42 % of the texts at their word, and on 4 % with weak
answers, which raised AUC from 0.76 to 0.91. From `ENOUGH` no on, the answers themselves tell how often a score fires.

From so few yes the best threshold cannot be told: chosen by leave-one-out F1 it made labels of one yes fire on 9 texts
out of 10. The texts of `fit` tell how often a threshold fires, and the labels of `fit` how often labels apply. So the
threshold is raised until the label fires on `CAP` times the mean share of these at most, or of its own yes. That raised
F1 from 6 to 27 % for labels of one yes, from 28 to 32 % for three, and left it at 44 % for ten.

The figures are of ``benchmarks/tagger_choices.py``: embedded news corpus, 25 labels, rows that were held out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamlabel.exceptions import DataError
from streamlabel.models.snapshot import KeptRows
from streamlabel.models.streaming import StreamingLabelClassifier
from streamlabel.models.text_answers import Answers
from streamlabel.results import FloatArray, IntArray
from streamlabel.stats.threads import one_thread

__all__ = ["add_weak_answers", "bounded_thresholds", "count_fires"]

PER_YES = 20
ENOUGH = 100
MOST = 1000
CAP = 2.0
MOST_OFTEN = 0.5
MOST_LOOKED_AT = 2000


def add_weak_answers(answers: Answers, n_rows: int, weak_no: int | None, seed: int) -> Answers:
    """The answers with rows of `fit` taken for no: ``weak_no`` of them.

    None: as many as make `PER_YES` no for each yes; none where `ENOUGH` no were given.
    """
    n_yes, n_no = len(answers.yes), len(answers.no)
    if weak_no is None:
        wanted = 0 if n_no >= ENOUGH else max(0, min(PER_YES * n_yes - n_no, MOST))
    elif isinstance(weak_no, bool) or not isinstance(weak_no, int | np.integer) or weak_no < 0:
        raise DataError(f"weak_no is {weak_no!r}; it must be None or a whole number from 0")
    else:
        wanted = int(weak_no)
    weak = np.sort(np.random.default_rng(seed).permutation(_not_asked(answers, n_rows))[:wanted])
    if not n_no and not weak.size:
        problem = "no text of fit is left to be taken for no" if wanted else "weak_no is 0"
        raise DataError(
            f"label {answers.name!r} has positive answers only, and {problem}; give at least one text that it does not "
            "apply to"
        )
    return replace(answers, weak=tuple(weak.tolist()))


def bounded_thresholds(
    model: StreamingLabelClassifier, batch: list[Answers], kept: KeptRows | None, seed: int
) -> dict[int, float]:
    """Label number -> threshold, for the labels of a batch that have weak answers and would fire too often."""
    found: dict[int, float] = {}
    for answers in batch:
        if not answers.weak or kept is None:
            continue
        n_rows, number = int(kept.X.shape[0]), model._numbers[answers.name]
        own = len(answers.yes) / n_rows
        share = min(CAP * max(kept.labels.nnz / np.prod(kept.labels.shape), own), MOST_OFTEN)
        rows = np.random.default_rng(seed).permutation(_not_asked(answers, n_rows))[:MOST_LOOKED_AT]
        scores = _scores(model, number, kept, rows)
        bound = float(np.quantile(scores, 1.0 - share))
        if bound > model._decisions.thresholds[number]:
            found[number] = bound
    return found


def count_fires(model: StreamingLabelClassifier, number: int, kept: KeptRows | None) -> tuple[int, int] | None:
    """On how many texts of `fit` a label fires, of how many (at most `MOST_LOOKED_AT`, drawn); None: none are kept."""
    if kept is None:
        return None
    rows = np.random.default_rng(model.random_state).permutation(int(kept.X.shape[0]))[:MOST_LOOKED_AT]
    scores = _scores(model, number, kept, rows)
    return int((scores > model._decisions.thresholds[number]).sum()), len(rows)


def _scores(model: StreamingLabelClassifier, number: int, kept: KeptRows, rows: IntArray) -> FloatArray:
    """Of one label on some rows of `fit`; on one thread, as a threshold is made of them that is the same everywhere."""
    with one_thread():
        return model._classifiers.scores(kept.X[np.sort(rows)], np.array([number]))[:, 0]


def _not_asked(answers: Answers, n_rows: int) -> IntArray:
    asked = [key for key in (*answers.yes, *answers.no) if isinstance(key, int)]
    return np.setdiff1d(np.arange(n_rows), asked)
