"""The embedded corpus: readable, dated, seeded, learnable but not trivial (checked with scikit-learn)."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from streamlabel._validation import canonical_labels, check_label_names
from streamlabel.data._news_topics import CLOSINGS, SECTIONS, TOPICS
from streamlabel.data.corpus import ARRIVALS_FROM, LAST_DAY, make_news_corpus, topic_parents
from streamlabel.data.label_stream import dated_stream, first_occurrence
from streamlabel.exceptions import DataError

DIGEST = """
import hashlib
from streamlabel.data.corpus import make_news_corpus
c = make_news_corpus(300, random_state=7)
parts = ["\\n".join(c.texts).encode(), c.Y.indices.tobytes(), c.Y.indptr.tobytes(), c.row_dates.tobytes()]
print(hashlib.sha256(b"".join(parts)).hexdigest())
"""


@pytest.fixture(scope="module")
def corpus():
    return make_news_corpus(3000, random_state=0)


def test_shape_and_names(corpus):
    assert corpus.n_rows == len(corpus.row_ids) == len(corpus.row_dates) == 3000
    assert corpus.n_labels >= 60
    assert check_label_names(corpus.label_names, corpus.n_labels) == corpus.label_names
    assert corpus.Y.dtype == np.int8
    assert (canonical_labels(corpus.Y) != corpus.Y).nnz == 0
    assert len(set(corpus.row_ids)) == 3000
    n_topics = np.diff(corpus.Y.indptr)
    assert (n_topics.min(), n_topics.max()) == (1, 4)
    assert 1.5 < n_topics.mean() < 2.5


def test_topics_are_uneven_and_some_are_rare(corpus):
    counts = corpus.Y.sum(axis=0)
    assert 5 <= counts.min() <= 25
    assert counts.max() >= 4 * counts.min()


def test_texts_read_like_sentences(corpus):
    assert len(set(corpus.texts)) > 2990
    for text in corpus.texts:
        assert re.fullmatch(r"([A-Z][^.{}|]*\.( |$))+", text), text
        assert "  " not in text
        assert 5 <= len(text.split()) <= 120


def test_word_banks_are_rich_and_clean():
    fragments = [CLOSINGS]
    for bank in [*SECTIONS.values(), *(topic.bank for topic in TOPICS)]:
        assert all((bank.actors, bank.actions, bank.details))
        fragments += [bank.actors, bank.actions, bank.details]
    flat = [fragment for group in fragments for fragment in group]
    assert len(set(flat)) > 700
    for fragment in flat:
        assert fragment == fragment.strip()
        assert set(re.findall(r"{(.*?)}", fragment)) <= {"place", "n", "pct"}


def test_topics_appear_on_their_first_day(corpus):
    first = first_occurrence(corpus.Y, corpus.row_dates)
    assert first.astype(str).tolist() == [topic.first_day for topic in TOPICS]
    assert (np.diff(corpus.row_dates) >= np.timedelta64(0, "D")).all()
    assert corpus.row_dates[-1] <= np.datetime64(LAST_DAY)


def test_arriving_topics_are_mixtures_of_earlier_ones_or_new_ground(corpus):
    stream = dated_stream(corpus, cutoff=ARRIVALS_FROM)
    assert len(stream.past) == 53
    assert len(stream.batches) == len(stream.arriving) == 24
    assert stream.left_out.size == 0
    past = {corpus.label_names[j] for j in stream.past}
    parents = topic_parents()
    assert len(parents) == 16
    for child, names in parents.items():
        assert child not in past
        assert len(names) >= 2
        assert past.issuperset(names)
    assert len(stream.arriving) - len(parents) == 8


def test_topics_are_correlated(corpus):
    """A mixture is labelled together with its parents far more often than frequency alone would have it."""
    joint = (corpus.Y.astype(int).T @ corpus.Y.astype(int)).toarray()
    counts = joint.diagonal()
    place = {name: j for j, name in enumerate(corpus.label_names)}
    for child, parents in topic_parents().items():
        together = sum(joint[place[child], place[parent]] for parent in parents)
        by_chance = sum(counts[place[child]] * counts[place[parent]] / corpus.n_rows for parent in parents)
        assert together > 2 * by_chance


def test_learnable_but_not_trivial(corpus):
    order = np.random.default_rng(0).permutation(corpus.n_rows)
    train, test = order[:2000], order[2000:]
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit([corpus.texts[i] for i in train])
    X, Y = vectorizer.transform(corpus.texts), corpus.Y.toarray()
    scores = Ridge(alpha=1.0).fit(X[train], Y[train]).predict(X[test])
    hit = Y[test, scores.argmax(axis=1)].mean()
    assert 0.75 <= hit <= 0.95


def test_no_word_gives_a_topic_away(corpus):
    """No single word is in nearly all texts of a topic and in hardly any other: topics are not marked."""
    X = TfidfVectorizer(binary=True, use_idf=False, norm=None).fit_transform(corpus.texts)
    Y = corpus.Y.astype(float)
    both = (X.T @ Y).toarray()
    f1 = 2 * both / (X.sum(axis=0).reshape(-1, 1) + Y.sum(axis=0))
    assert f1.max() < 0.85


def test_three_thousand_texts_take_less_than_two_seconds():
    start = time.process_time()
    make_news_corpus(3000, random_state=1)
    assert time.process_time() - start < 2.0


def test_seeds():
    one, same, other = (make_news_corpus(200, random_state=seed) for seed in (3, 3, 4))
    assert one.texts == same.texts
    assert np.array_equal(one.Y.toarray(), same.Y.toarray())
    assert np.array_equal(one.row_dates, same.row_dates)
    assert one.texts != other.texts


def test_same_bytes_in_other_processes():
    digests = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run(
            [sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(run.stdout)
    c = make_news_corpus(300, random_state=7)
    parts = ["\n".join(c.texts).encode(), c.Y.indices.tobytes(), c.Y.indptr.tobytes(), c.row_dates.tobytes()]
    digests.add(hashlib.sha256(b"".join(parts)).hexdigest() + "\n")
    assert len(digests) == 1


def test_the_smallest_corpus_has_every_topic():
    corpus = make_news_corpus(len(TOPICS))
    assert (corpus.Y.sum(axis=0) >= 1).all()
    with pytest.raises(DataError, match="n_texts"):
        make_news_corpus(len(TOPICS) - 1)
