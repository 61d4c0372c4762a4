"""A small tagged corpus whose new labels are kept apart, for tests of the tagger."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from streamlabel.data.news import make_news_corpus
from streamlabel.data.rows import rows_of_names

NEW = ("football", "vaccination", "hospitals", "railways")


@dataclass(frozen=True)
class TaggedTexts:
    texts: list[str]
    tags: list[list[str]]  # without the new labels
    unseen: list[str]
    rows: dict[str, list[int]]  # of the new labels, among texts
    truth: dict[str, np.ndarray]  # of the new labels, among unseen


@cache
def tagged_texts(n_texts: int = 500, n_unseen: int = 300) -> TaggedTexts:
    corpus = make_news_corpus(n_texts + n_unseen)
    names = list(rows_of_names(corpus.Y, corpus.label_names))
    order = np.random.default_rng(0).permutation(len(names)).tolist()
    train, test = order[:n_texts], order[n_texts:]
    return TaggedTexts(
        [corpus.texts[i] for i in train],
        [[name for name in names[i] if name not in NEW] for i in train],
        [corpus.texts[i] for i in test],
        {name: [place for place, i in enumerate(train) if name in names[i]] for name in NEW},
        {name: np.array([name in names[i] for i in test]) for name in NEW},
    )
