"""What the tagger's defaults were chosen by: vectorisers, and how a label with few answers is started.

    python benchmarks/tagger_choices.py                 the embedded news corpus
    python benchmarks/tagger_choices.py eurlex57k       the beginnings of EU laws, where STREAMLABEL_DATA has them
    python benchmarks/tagger_choices.py news answers    only what few answers give by default, and at their word

All figures are of rows that were held out from the training part; the last part has texts of its own, on which nothing
was chosen.
"""

from __future__ import annotations

import copy
import itertools
import os
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score

from streamlabel.data.news import make_news_corpus
from streamlabel.data.rows import rows_of_names
from streamlabel.data.text import TextVectorizer
from streamlabel.tagging import text_answers as weak_answers
from streamlabel.tagging.tagger import Tagger
from streamlabel.tagging.vectorizers import HashedTextVectorizer

N_FIT = 1200
VECTORISERS = {
    "words, min_df=1": TextVectorizer(min_df=1),
    "words": TextVectorizer(),
    "words and pairs": TextVectorizer(ngram_range=(1, 2)),
    "words, no sublinear tf": TextVectorizer(sublinear_tf=False),
    "hashing, 2^14": HashedTextVectorizer(n_columns=2**14),
    "hashing, 2^15": HashedTextVectorizer(n_columns=2**15),
    "hashing, 2^16": HashedTextVectorizer(n_columns=2**16),
    "hashing pairs, 2^16": HashedTextVectorizer(n_columns=2**16, longest=2),
}
BOUNDS = (weak_answers.CAP, weak_answers.MOST_OFTEN)
Tagged = tuple[list[str], list[list[str]]]


def read(name: str, seed: int = 0) -> Tagged:
    if name == "news":
        corpus = make_news_corpus(3000, random_state=seed)
        chosen = np.random.default_rng(1).permutation(3000)[: 3000 if seed else 1700]
        tags = list(rows_of_names(corpus.Y, corpus.label_names))
        return [corpus.texts[i] for i in chosen], [tags[i] for i in chosen]
    import pyarrow.parquet as parquet

    path = Path(os.environ["STREAMLABEL_DATA"]) / "eurlex57k" / "eurlex57k_text.parquet"
    table = parquet.read_table(path, columns=["split", "text", "labels"], filters=[("split", "=", "train")])
    table = table.take(np.random.default_rng(seed).choice(len(table), 3000 if seed else 2200, replace=False))
    tags = table["labels"].to_pylist()
    usual = {tag for tag, count in Counter(tag for row in tags[:N_FIT] for tag in row).items() if count >= 10}
    return table["text"].to_pylist(), [[tag for tag in row if tag in usual] for row in tags]


def compare_vectorisers(texts: list[str], tags: list[list[str]]) -> None:
    print(f"{'vectoriser':24} {'columns':>8} {'P@1':>6} {'P@3':>6} {'P@5':>6}")
    for name, vectorizer in VECTORISERS.items():
        tagger = Tagger(vectorizer).fit(texts[:N_FIT], tags[:N_FIT])
        found = tagger.suggest(texts[N_FIT:], k=5)
        hits = np.array([[tag in row for tag, _ in best] for best, row in zip(found, tags[N_FIT:], strict=True)])
        measures = " ".join(f"{100 * hits[:, :k].mean():6.1f}" for k in (1, 3, 5))
        print(f"{name:24} {tagger.classifier_.n_features_in_:8} {measures}", flush=True)


def hidden_labels(texts: list[str], tags: list[list[str]]) -> tuple[list[str], Tagger]:
    """Some labels, and a tagger that does not know them."""
    counts = Counter(tag for row in tags[:N_FIT] for tag in row)
    later = Counter(tag for row in tags[N_FIT:] for tag in row)
    usable = sorted(tag for tag, count in counts.items() if count >= 12 and later[tag] >= 3)
    new = np.random.default_rng(3).choice(usable, min(25, len(usable) // 2), replace=False).tolist()
    return new, Tagger().fit(texts[:N_FIT], [[tag for tag in row if tag not in new] for row in tags[:N_FIT]])


def compare_answers(texts: list[str], tags: list[list[str]]) -> None:
    """Few yes and no, at their word and by default; a near no has a tag that often comes with the label."""
    new, base = hidden_labels(texts, tags)
    columns = ("AUC", "precision", "recall", "F1", "fires", "at most")
    print(
        f"\n{len(new)} labels {'yes':>4} {'no':>4} {'':>8} {'taken':>12}" + "".join(f"{name:>10}" for name in columns)
    )
    for (n_yes, n_no), near in itertools.product(((1, 1), (3, 3), (6, 12), (10, 60)), (False, True)):
        for word, weak_no in (("at word", 0), ("by default", None)):
            rows = [
                judged(base, texts, tags, name, draw(tags, name, n_yes, n_no, near, number), weak_no)
                for number, name in enumerate(new)
            ]
            found = 100 * np.array([*np.mean(rows, axis=0), np.max(rows, axis=0)[-1]])
            said = "".join(f"{value:10.1f}" for value in found)
            print(f"{n_yes:14} {n_no:4} {'near' if near else 'random':>8} {word:>12}{said}", flush=True)


def draw(tags: list[list[str]], name: str, n_yes: int, n_no: int, near: bool, seed: int) -> tuple[list[int], list[int]]:
    rng, fitted = np.random.default_rng(seed), tags[:N_FIT]
    yes = [i for i, row in enumerate(fitted) if name in row]
    beside = {tag for tag, _ in Counter(tag for i in yes for tag in fitted[i] if tag != name).most_common(2)}
    no = [i for i, row in enumerate(fitted) if name not in row and (not near or beside & set(row))]
    return rng.choice(yes, n_yes, replace=False).tolist(), rng.choice(no, min(n_no, len(no)), replace=False).tolist()


def judged(
    base: Tagger, texts: list[str], tags: list[list[str]], name: str, answers: tuple[list[int], list[int]],
    weak_no: int | None,
) -> tuple[float, ...]:  # fmt: skip
    truth = np.array([name in row for row in tags[N_FIT:]])
    tagger = copy.copy(base)
    tagger.learn(name, *answers, weak_no=weak_no)
    scores = tagger.classifier_.decision_function(tagger.vectorizer_.transform(texts[N_FIT:]))[:, -1]
    fires = scores > tagger.classifier_.thresholds_[-1]
    measures = (measure(truth, fires, zero_division=0) for measure in (precision_score, recall_score, f1_score))
    return (roc_auc_score(truth, scores), *measures, fires.mean())


def compare_starts(texts: list[str], tags: list[list[str]]) -> None:
    new, base = hidden_labels(texts, tags)
    print(
        f"\n{len(new)} labels {'yes':>7} {'weak no':>8} {'bounded':>8} {'AUC':>6} {'F1':>6} {'fires':>6} {'at most':>8}"
    )
    for n_yes in (1, 3, 10):
        for n_weak in (10 * n_yes, 20 * n_yes, 50 * n_yes, N_FIT):
            for word, bounds in (("no", (np.inf, 1.0)), ("yes", BOUNDS)):
                weak_answers.CAP, weak_answers.MOST_OFTEN = bounds
                measures = measure(base, texts, tags, new, n_yes, n_weak)
                print(f"{n_yes:17} {n_weak:8} {word:>8} {measures}", flush=True)


def measure(base: Tagger, texts: list[str], tags: list[list[str]], new: list[str], n_yes: int, n_weak: int) -> str:
    rows = []
    for number, name in enumerate(new):
        truth = np.array([name in row for row in tags[N_FIT:]])
        positives = [i for i, row in enumerate(tags[:N_FIT]) if name in row]
        yes = np.random.default_rng(number).choice(positives, n_yes, replace=False).tolist()
        tagger = copy.copy(base)
        tagger.learn(name, yes=yes, weak_no=n_weak)
        scores = tagger.classifier_.decision_function(tagger.vectorizer_.transform(texts[N_FIT:]))[:, -1]
        fires = scores > tagger.classifier_.thresholds_[-1]
        rows.append((roc_auc_score(truth, scores), f1_score(truth, fires, zero_division=0), fires.mean()))
    means, most = 100 * np.mean(rows, axis=0), 100 * np.max(rows, axis=0)[2]
    return f"{means[0]:6.1f} {means[1]:6.1f} {means[2]:6.1f} {most:8.0f}"


if __name__ == "__main__":
    chosen = sys.argv[1] if len(sys.argv) > 1 else "news"
    if sys.argv[2:] != ["answers"]:
        tagged = read(chosen)
        compare_vectorisers(*tagged)
        compare_starts(*tagged)
    compare_answers(*read(chosen, seed=1))
