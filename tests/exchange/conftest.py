"""A fitted classifier and a fitted tagger, whose names would hurt a careless format."""

from __future__ import annotations

import numpy as np
import pytest

from streamlabel import StreamingLabelClassifier
from streamlabel.data.news import make_news_corpus
from streamlabel.tagging.tagger import Tagger

NAMES = ["=cmd|' /C calc'!A0", "-1+2", "@SUM(A1)", "+é", 'a, "b"', "<img src=x>", "日本語"]


@pytest.fixture(scope="session")
def rows():
    return np.random.default_rng(1).normal(size=(60, 12))


@pytest.fixture(scope="session")
def classifier():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    Y = (X @ rng.normal(size=(12, 6)) > 0.5).astype(int)
    model = StreamingLabelClassifier(beta=1.0).fit(X, Y, label_names=NAMES[:6])
    return model.add_labels(X, Y[:, :1] | Y[:, 1:2], label_names=NAMES[6:])


@pytest.fixture(scope="session")
def news():
    return make_news_corpus(400, random_state=3)


@pytest.fixture(scope="session")
def tagger(news):
    return Tagger(classifier=StreamingLabelClassifier(beta=1.0)).fit(
        news.texts[:300], news.Y[:300], label_names=news.label_names
    )
