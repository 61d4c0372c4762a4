"""Labels as people make them, by nothing but the public interface, so that two versions can be compared.

    python benchmarks/before_after.py                                    this version
    git worktree add ../old eb4421c~1                                    the version before names and pools
    PYTHONPATH=../old/src python benchmarks/before_after.py              the same lines for it

A `Tagger` is fitted on 10,000 European laws of 2006 to 2011 (EURLEX57K in `STREAMLABEL_DATA`) with the 300 most
frequent tags but 60 others, which then arrive with a few yes found among fit's texts. They are judged on one half of
the laws of 2012 to 2016; the other half is the pool, where the version knows what that is. Last: half of Bibtex's tags
are adopted from scikit-learn's logistic regressions, and the others are learned from 500 rows: which share of the five
best places the new ones take.
"""

from __future__ import annotations

import copy
import inspect
import os
import resource
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, precision_recall_curve
from sklearn.multiclass import OneVsRestClassifier

from streamlabel import StreamingLabelClassifier, Tagger
from streamlabel.data.catalogue import load_catalogue_set

DATA = Path(os.environ["STREAMLABEL_DATA"])
N_FIT, N_KNOWN, N_NEW, LEAST = 10_000, 300, 60, 10
ANSWERS = {"the name alone": (0, 0), "1 yes": (1, 0), "5 yes": (5, 0), "5 yes, 15 no": (5, 15), "20 yes": (20, 0)}


def f1_and_best(truth: Any, said: Any, scores: Any) -> tuple[float, float]:
    f1 = 2.0 * (truth & said).sum() / max(1, truth.sum() + said.sum())
    precision, recall, _ = precision_recall_curve(truth, scores)
    return f1, np.max(2.0 * precision * recall / np.maximum(precision + recall, 1e-12))


def laws() -> None:
    table = parquet.read_table(DATA / "eurlex57k" / "eurlex57k_text.parquet")
    years = np.array([day.year for day in table["date"].to_pylist()])
    rows, rng = np.flatnonzero(years >= 2006), np.random.default_rng(0)
    texts = [f"{text} ({at})" for at, text in enumerate(table["text"].take(rows).to_pylist())]  # some begin alike
    tags = [set(row) for row in table["labels"].take(rows).to_pylist()]
    early, late = np.flatnonzero(years[rows] < 2012), rng.permutation(np.flatnonzero(years[rows] >= 2012))
    fit = np.sort(rng.permutation(early)[:N_FIT])
    pool, test = np.sort(late[: len(late) // 2]), np.sort(late[len(late) // 2 :])
    counts, later = (Counter(tag for at in part for tag in sorted(tags[at])) for part in (fit, test))
    able = sorted(tag for tag in counts if counts[tag] >= 2 * LEAST and later[tag] >= LEAST)
    new = [able[place] for place in np.sort(rng.permutation(len(able))[:N_NEW])]
    known = [tag for tag, _ in counts.most_common() if tag not in new][:N_KNOWN]

    start = time.process_time()
    names = [sorted(tags[at] & set(known)) for at in fit]
    Y = sparse.csr_array([[tag in row for tag in known] for row in names], dtype=np.int8)
    tagger = Tagger().fit([texts[at] for at in fit], Y, known)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"fit: {time.process_time() - start:.0f} CPU s, the process at most {memory:,.0f} MiB", flush=True)
    judges = tagger.vectorizer_.transform([texts[at] for at in test])
    more = {"pool": [texts[at] for at in pool]} if "pool" in inspect.signature(Tagger.learn).parameters else {}
    print("answers            F1  best F1  average precision  said/true (quartiles)")
    for title, (n_yes, n_no) in ANSWERS.items():
        lines, refused = [], []
        for number, tag in enumerate(new):
            drawn = np.random.default_rng((1, number))
            yes = [texts[at] for at in drawn.permutation([at for at in fit if tag in tags[at]])[:n_yes]]
            no = [texts[at] for at in drawn.permutation([at for at in fit if tag not in tags[at]])[:n_no]]
            one = copy.copy(tagger)
            try:
                one.learn(tag, yes, no, **more)
            except ValueError as error:
                refused.append(str(error))
                continue
            truth = np.array([tag in tags[at] for at in test])
            scores = one.classifier_.decision_function(judges)[:, -1]
            said = sparse.csr_array(one.classifier_.predict(judges))[:, [-1]].toarray().ravel() > 0
            f1, best = f1_and_best(truth, said, scores)
            lines.append((f1, best, average_precision_score(truth, scores), said.sum() / truth.sum()))
        if refused:
            print(f"{title:16} {len(refused)} of {len(new)} refused: {refused[0]}")
        if not lines:
            continue
        mean, ratio = 100.0 * np.mean(lines, axis=0), np.quantile([line[3] for line in lines], (0.25, 0.5, 0.75))
        quartiles = f"{ratio[1]:.2f} ({ratio[0]:.2f}-{ratio[2]:.2f})"
        print(f"{title:16} {mean[0]:4.1f} {mean[1]:8.1f} {mean[2]:18.1f}  {quartiles}", flush=True)


def adopted() -> None:
    train, test = map(partial(load_catalogue_set, "bibtex"), ("train", "test"))
    X, Y, judges, truth = train.X, train.Y, test.X, test.Y
    half = Y.shape[1] // 2
    theirs = OneVsRestClassifier(LogisticRegression(C=10.0, solver="liblinear")).fit(X, Y[:, :half])
    model = StreamingLabelClassifier.from_estimator(theirs)
    rows = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:500])
    asked = half + np.flatnonzero(np.asarray(Y[rows][:, half:].sum(axis=0)).ravel())
    model.add_labels(X[rows], Y[rows][:, asked])
    truth = truth[:, [*range(half), *asked]]
    five = np.argsort(-model.decision_function(judges), axis=1)[:, :5]
    share, right = (five >= half).mean(), np.take_along_axis(truth.toarray(), five, axis=1).mean()
    owed = truth[:, half:].sum() / truth.sum()
    print(f"adopted: new labels take {share:.1%} of the five best places ({owed:.1%} of true tags), P@5 {right:.1%}")


if __name__ == "__main__":
    laws()
    adopted()
