"""Labels from found examples, end to end: a few yes, a name, a pool that nobody has looked at, against two rivals.

    python benchmarks/found.py --quick                    2,000 laws, 20 new tags: minutes
    python benchmarks/found.py --cache FOLDER             all sets; fitted models are kept in the folder
    python benchmarks/found.py laws --cache FOLDER        one of: laws, bibtex, citeulike

Laws: EURLEX57K, read by a `Tagger`. It is fitted on 10,000 laws of 2006 to 2011 with the 300 most frequent tags but the
new ones. New tags are drawn among those with ten texts and more before 2012 and from 2012 on; they are judged on one
half of the laws of 2012 to 2016, and the other half is the pool. Yes are found among the texts of fit ("old") or in the
pool ("current"). Bibtex and CiteULike: `StreamingLabelClassifier.add_found`, where the test rows are halved.

Rivals get the same answers: scikit-learn's logistic regression with 20 random rows of the pool for each yes as no, its
strength and class weights chosen for each number of yes on known tags (by F1 for the threshold 0.5, by the mean of AUC
and average precision for the other); and the nearest centroid (mean of yes minus mean of the pool). Both once with the
usual threshold (0.5; the midpoint), and once with the best F1 in cross-validation on their own answers. The name is
given to us alone, but for two lines, where it is another yes text of the logistic regression. Test rows choose nothing.
"""

from __future__ import annotations

import argparse
import copy
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from streamlabel import StreamingLabelClassifier, Tagger
from streamlabel.data.text import TextVectorizer
from streamlabel.experiments.found_labels import (
    Draw,
    PartedSet,
    Strengths,
    chosen_strengths,
    f1_of,
    logistic,
    negatives,
    part_set,
    ranking,
    yes_rows,
)
from streamlabel.streaming.kept_rows import stack
from streamlabel.tagging.names import TextDirections

SETS = {"laws": "eurlex57k", "bibtex": "bibtex", "citeulike": "citeulike-t-min5"}
ANSWERS = {"1 yes": (1, 0), "5 yes": (5, 0), "20 yes": (20, 0), "5 yes, 15 no": (5, 15)}
OURS, NAMELESS = "ours", "ours, no name"
SEED, LEAST, N_SVD = 0, 10, 256


@dataclass(frozen=True)
class Learned:
    """What a method says of the test rows (n,), where yes begins, and how good we think it is."""

    scores: Any
    threshold: float
    estimate: Any = None


class Remembering:
    """A fitted vectoriser that reads every text of the set once."""

    def __init__(self, vectorizer: Any, texts: list[str], X: Any) -> None:
        self._vectorizer, self._X = vectorizer, X
        self._place = {text: number for number, text in enumerate(texts)}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._vectorizer, name)

    def transform(self, texts: list[str]) -> Any:
        known = [self._place.get(text, -1) for text in texts]
        return self._X[known] if known and min(known) >= 0 else self._vectorizer.transform(texts)


@dataclass(eq=False)
class Case:
    """A set, new labels, and our learner: `learn` takes rows for yes and no, and a pool or None."""

    draw: Draw
    learn: Callable[..., Learned]

    @property
    def data(self) -> PartedSet:
        return self.draw.data


def kept(path: Path | None, name: str, make: Callable[[], Any]) -> Any:
    """What is in the folder under this name; made and put there if it is not."""
    file = None if path is None else path / f"{name}.joblib"
    if file is not None and file.is_file():
        return joblib.load(file)
    start = time.perf_counter()
    found = make()
    print(f"fitted {name} in {time.perf_counter() - start:.0f} s", flush=True)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump(found, file)
    return found


def new_and_known(data: PartedSet, n_new: int, n_known: int, least: int, early: Any, late: Any) -> tuple[Any, Any]:
    by_row = data.Y.tocsr()
    before, after = (np.asarray(by_row[rows].sum(axis=0)).ravel() for rows in (early, late))
    able = np.flatnonzero((before >= least) & (after >= least))
    new = np.sort(np.random.default_rng(SEED).permutation(able)[:n_new])
    others = np.setdiff1d(np.flatnonzero(before > 1), new)
    return new, others[np.argsort(-before[others], kind="stable")][:n_known]


def embedding(X: Any) -> Any:
    return make_pipeline(TruncatedSVD(N_SVD, random_state=SEED), Normalizer()).fit(X)


def laws(quick: bool, cache: Path | None, dense: bool = False) -> Case:
    table = parquet.read_table(Path(os.environ["STREAMLABEL_DATA"]) / "eurlex57k" / "eurlex57k_text.parquet")
    years = np.array([day.year for day in table["date"].to_pylist()])
    rows = np.flatnonzero(years >= 2006)
    texts, tags = table["text"].take(rows).to_pylist(), table["labels"].take(rows).to_pylist()
    texts = [f"{text} ({number})" for number, text in enumerate(texts)]  # some laws begin alike
    names = sorted({tag for row in tags for tag in row})
    place = {name: number for number, name in enumerate(names)}
    cells = [(at, place[tag]) for at, row in enumerate(tags) for tag in dict.fromkeys(row)]
    Y = sparse.csc_array((np.ones(len(cells), np.int8), np.array(cells).T), shape=(len(texts), len(names)))
    rng = np.random.default_rng(SEED)
    early, late = np.flatnonzero(years[rows] < 2012), np.flatnonzero(years[rows] >= 2012)
    fit = np.sort(rng.permutation(early)[: 2000 if quick else 10000])
    late = rng.permutation(late)[: 2000 if quick else None]
    pool, test = np.sort(late[: len(late) // 2]), np.sort(late[len(late) // 2 :])
    data = PartedSet("laws", sparse.csr_array((0, 0)), Y, tuple(names), None, fit, pool, test)
    n_new, n_known = (20, 100) if quick else (60, 300)
    new, known = new_and_known(data, n_new, n_known, LEAST, fit if quick else early, late)

    def fitted() -> Tagger:
        vectorizer = make_pipeline(TextVectorizer(), TruncatedSVD(N_SVD, random_state=SEED), Normalizer())
        tagger = Tagger(vectorizer=vectorizer) if dense else Tagger()
        labels = Y[:, known].tocsr()[fit]
        return tagger.fit([texts[at] for at in fit], labels, [names[label] for label in known])

    tagger = kept(cache, f"laws-{len(fit)}-{len(new)}-{'dense' if dense else 'words'}", fitted)
    vectorizer = tagger.vectorizer_
    X = vectorizer.transform(texts)
    data = replace(data, X=X if dense else sparse.csr_array(X).astype(np.float64), words=vectorizer)
    reader = Remembering(vectorizer, texts, data.X)
    parts = {
        named: Tagger.from_parts(
            reader, tagger.classifier_, digests=tagger.text_digests_, names="words" if named else None
        )
        for named in (True, False)
    }

    def learn(label: int, yes: Any, no: Any, pool: Any, named: bool = True, sampled: bool = False) -> Learned:
        one, name = copy.copy(parts[named]), names[label]
        given = [[texts[at] for at in side] for side in (yes, no)]
        one.learn(name, *given, pool=None if pool is None else [texts[at] for at in pool], sampled=sampled)
        return Learned(*last(one.classifier_, data.X[data.test]), one.estimate(name))

    return Case(Draw(data, known, new, tagger.classifier_, SEED), learn)


def words(name: str, quick: bool, cache: Path | None, dense: bool = False) -> Case:
    n_new, n_known = (20, 100) if quick else (60, 300)
    data = part_set(name, SEED, 2000 if quick else 10000)
    late = np.concatenate((data.pool, data.test))
    new, known = new_and_known(data, min(n_new, data.Y.shape[1] // 4), n_known, LEAST, data.fit, late)
    if dense:
        svd = embedding(data.X[data.fit])
        inner = data.words
        data = replace(data, X=svd.transform(data.X), words=_Embedded(inner, svd))

    def fitted() -> StreamingLabelClassifier:
        labels = sparse.csr_array(data.Y[:, known].tocsr()[data.fit])
        return StreamingLabelClassifier().fit(data.X[data.fit], labels, [data.label_names[j] for j in known])

    model = kept(cache, f"{name}-{len(data.fit)}-{len(new)}-{'dense' if dense else 'words'}", fitted)
    directions = TextDirections(data.words)

    def learn(label: int, yes: Any, no: Any, pool: Any, named: bool = True, sampled: bool = False) -> Learned:
        one, title = copy.copy(model), data.label_names[label]
        if sampled:
            answers = np.repeat([1, 0], [len(yes), len(no)])
            one.add_labels(data.X[np.concatenate((yes, no))], answers, [title])
            return Learned(*last(one, data.X[data.test]))
        looked = data.X[np.setdiff1d(data.fit if pool is None else pool, np.concatenate((yes, no)))]
        one.add_found(title, data.X[yes], data.X[no], pool=looked, names=directions if named else None)
        return Learned(*last(one, data.X[data.test]), one.reports_[-1].estimate)

    return Case(Draw(data, known, new, model, SEED), learn)


class _Embedded:
    def __init__(self, inner: Any, svd: Any) -> None:
        self._inner, self._svd = inner, svd

    def transform(self, texts: list[str]) -> Any:
        return self._svd.transform(self._inner.transform(texts))


def last(model: StreamingLabelClassifier, X: Any) -> tuple[Any, float]:
    state = model.state_
    return state.classifiers.scores(X, np.array([len(state.names) - 1]))[:, 0], float(state.decisions.thresholds[-1])


def best_threshold(answers: Any, scores: Any) -> float:
    """With the best F1, midway to the next lower score."""
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(answers[order])
    f1 = 2.0 * hits / (np.arange(1, len(order) + 1) + hits[-1])
    below = np.append(ranked[1:], ranked[-1] - 1e-9)
    best = int(np.where(ranked > below, f1, -1.0).argmax())
    return float(0.5 * (ranked[best] + below[best]))


def by_logistic(
    case: Case, label: int, yes: Any, no: Any, pool: Any, strengths: Strengths, name: bool
) -> Iterator[tuple[str, Learned]]:
    data, rng = case.data, np.random.default_rng((SEED, label))
    rows = yes_rows(data, label, yes, name=name)
    others = data.X[np.concatenate((no, negatives(np.setdiff1d(pool, no), yes, rng))).astype(int)]
    title, test = "logistic regression" + (", name as a text" if name else ""), data.X[data.test]
    yield f"{title}, 0.5", Learned(logistic(rows, others, strengths.f1).decision_function(test), 0.0)
    scores = logistic(rows, others, strengths.ranking).decision_function(test)
    answers, threshold = np.repeat([1, 0], [rows.shape[0], others.shape[0]]), 0.0
    if rows.shape[0] > 1:
        C, weights = strengths.ranking
        model = LogisticRegression(C=C, class_weight=weights, solver="liblinear", max_iter=1000)
        folds = StratifiedKFold(min(5, rows.shape[0]), shuffle=True, random_state=SEED)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            unseen = cross_val_predict(model, stack(rows, others), answers, cv=folds, method="decision_function")
        threshold = best_threshold(answers, unseen)
    yield f"{title}, cross-validated", Learned(scores, threshold)


def by_centroid(case: Case, label: int, yes: Any, no: Any, pool: Any) -> Iterator[tuple[str, Learned]]:
    data, rng = case.data, np.random.default_rng((SEED, label, 1))
    rows = data.X[yes] if isinstance(data.X, np.ndarray) else data.X[yes].toarray()
    far = data.X[np.concatenate((no, np.setdiff1d(pool, yes))).astype(int)]
    away = np.asarray(far.mean(axis=0)).ravel()
    line = rows.mean(axis=0) - away
    scores = np.asarray(data.X[data.test] @ line).ravel()
    yield "centroid, midpoint", Learned(scores, float(0.5 * (rows @ line).mean() + 0.5 * away @ line))
    threshold = float(0.5 * (rows @ line).mean() + 0.5 * away @ line)
    if len(rows) > 1:
        others = [(rows.sum(axis=0) - row) / (len(rows) - 1) - away for row in rows]
        unseen = np.array([row @ other for row, other in zip(rows, others, strict=True)])
        beside = np.asarray(far[rng.permutation(far.shape[0])[: 20 * len(rows)]] @ line).ravel()
        answers = np.repeat([1, 0], [len(unseen), len(beside)])
        threshold = best_threshold(answers, np.concatenate((unseen, beside)))
    yield "centroid, cross-validated", Learned(scores, threshold)


def judged(case: Case, label: int, learned: Learned) -> dict[str, float]:
    truth, scores = case.data.answers(label, case.data.test), learned.scores
    said = scores > learned.threshold
    auc, precision = ranking(truth, scores)
    best = scores > best_threshold(truth.astype(int), scores)
    line = {
        "F1": f1_of(truth, said),
        "best F1": f1_of(truth, best),
        "said/true": said.sum() / truth.sum(),
        "AUC": auc,
        "AP": precision,
    }
    if learned.estimate is not None:
        true = {
            "precision": (truth & said).sum() / said.sum() if said.any() else np.nan,
            "recall": (truth & said).sum() / truth.sum(),
            "rate": truth.mean(),
        }
        line["rate/true"] = learned.estimate.rate[0] / true["rate"]
        for name, value in true.items():
            _, low, high = getattr(learned.estimate, name)
            line[f"{name} in"] = np.nan if np.isnan(value) else 100.0 * (low <= value <= high)
    return line


def answered(case: Case, label: int, source: str, n_yes: int, n_no: int) -> tuple[Any, Any] | None:
    """Rows for yes and no, drawn at random; None where there are too few."""
    rows = case.data.fit if source == "old" else case.data.pool
    yes, rng = case.data.yes(label, rows), np.random.default_rng((SEED, label, 2))
    if len(yes) < n_yes or not case.data.answers(label, case.data.test).any():
        return None
    no = rng.permutation(np.setdiff1d(rows, yes))[:n_no]
    return np.sort(rng.permutation(yes)[:n_yes]), np.sort(no)


def found_lines(case: Case, keep: Callable[[pd.DataFrame], None]) -> None:
    """All answers and methods; what is finished is kept as it comes."""
    lines = []
    strengths: dict[Any, Any] = {}
    for title, (n_yes, n_no) in ANSWERS.items():
        for name in (False, True):
            if (n_yes, name) not in strengths:
                strengths[n_yes, name] = chosen_strengths(case.draw, n_yes, name=name)
        for source in ("old", "current"):
            for pool in (case.data.pool, None):
                for label in case.draw.new:
                    found = answered(case, label, source, n_yes, n_no)
                    if found is None:
                        continue
                    yes, no = found
                    key = {"answers": title, "yes from": source, "pool": "none" if pool is None else "current"}
                    around = case.data.fit if pool is None else pool
                    methods = {
                        OURS: case.learn(label, yes, no, pool),
                        NAMELESS: case.learn(label, yes, no, pool, False),
                    }
                    for name in (False, True):
                        strength = strengths[n_yes, name]
                        methods |= dict(by_logistic(case, label, yes, no, around, strength, name))
                    methods |= dict(by_centroid(case, label, yes, no, around))
                    for method, learned in methods.items():
                        lines.append(key | {"method": method, "label": label} | judged(case, label, learned))
                keep(pd.DataFrame(lines))


def embedded_lines(case: Case) -> pd.DataFrame:
    """20 yes and 180 no, chosen, from fit's rows, on dense rows."""
    lines, strengths = [], chosen_strengths(case.draw, 20, each=9)
    for label in case.draw.new:
        found = answered(case, label, "old", 20, 180)
        if found is None:
            continue
        data, (yes, no) = case.data, found
        chosen, plain = (logistic(data.X[yes], data.X[no], one) for one in (strengths.f1, (1.0, None)))
        methods = {
            OURS: case.learn(label, yes, no, data.pool),
            "ours, sampled=True": case.learn(label, yes, no, data.pool, sampled=True),
            "logistic regression, chosen strength": Learned(chosen.decision_function(data.X[data.test]), 0.0),
            "logistic regression, as it is": Learned(plain.decision_function(data.X[data.test]), 0.0),
        }
        for method, learned in methods.items():
            key = {"answers": "20 yes, 180 no", "yes from": "old", "pool": "current", "method": method, "label": label}
            lines.append(key | judged(case, label, learned))
    return pd.DataFrame(lines)


def table(lines: pd.DataFrame) -> str:
    """Means over labels; medians and quartiles of ratios."""
    keys = ["answers", "yes from", "pool", "method"]
    shown = []
    for key, here in lines.groupby(keys, sort=False):
        line = dict(zip(keys, key, strict=True)) | {"labels": len(here)}
        for name in here.columns[len(keys) + 1 :]:
            column = here[name].dropna()
            if "/" in name:
                low, middle, high = column.quantile([0.25, 0.5, 0.75]) if len(column) else (np.nan,) * 3
                line[name] = f"{middle:.2f} ({low:.2f}-{high:.2f})" if len(column) else ""
            else:
                line[name] = f"{column.mean():.1f}" if len(column) else ""
        shown.append(line)
    return pd.DataFrame(shown).to_string(index=False)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=[], help=f"any of: {', '.join(SETS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="2,000 rows, 20 new labels")
    parser.add_argument("--cache", type=Path, help="a folder for fitted models; empty it after changes")
    parser.add_argument("--out", type=Path, help="a file for the tables, written again after every step")
    given = parser.parse_args(argv)
    unknown = [name for name in given.sets if name not in SETS]
    if unknown:
        parser.error(f"no set is called {unknown[0]!r}; there are {', '.join(SETS)}")
    parts: dict[str, str] = {}

    def show(title: str, lines: pd.DataFrame) -> None:
        parts[title] = f"== {title}\n\n{table(lines)}\n"
        if given.out is not None:
            given.out.write_text("\n".join(parts.values()), encoding="utf-8")

    for name in given.sets or SETS:
        for dense in (False, True):
            begin = time.perf_counter()
            make = laws if name == "laws" else lambda *args, name=name: words(SETS[name], *args)
            case = make(given.quick, given.cache, dense)
            title = f"{name}: {len(case.draw.new)} new tags, {len(case.draw.known)} known"
            if dense:
                title += f", chosen answers on {N_SVD} dense features"
                show(title, embedded_lines(case))
            else:
                found_lines(case, lambda lines, title=title: show(title, lines))
            print(parts[title], f"{time.perf_counter() - begin:.0f} s\n", sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
