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
from sklearn.preprocessing import normalize

from streamlabel.data.catalogue import load_catalogue_set
from streamlabel.data.news import (
    ARRIVALS_FROM,
    CLOSINGS,
    FAMILIES,
    LAST_DAY,
    SECTIONS,
    TOPICS,
    make_news_corpus,
    topic_parents,
)
from streamlabel.data.streams import dated_stream, first_occurrence
from streamlabel.errors import DataError
from streamlabel.validation import canonical_labels, check_label_names

DIGEST = """
import hashlib
from streamlabel.data.news import make_news_corpus
c = make_news_corpus(300, random_state=7)
parts = ["\\n".join(c.texts).encode(), c.Y.indices.tobytes(), c.Y.indptr.tobytes(), c.row_dates.tobytes()]
print(hashlib.sha256(b"".join(parts)).hexdigest())
"""


BASE = {topic.name: topic for topic in TOPICS if topic.family not in (None, "miscellany")}


@pytest.fixture(scope="module")
def corpus():
    return make_news_corpus(3000, random_state=0)


def section_of(name):
    return FAMILIES[BASE[name].family].section


def columns(corpus):
    """The texts that have each tag, as a boolean vector by name."""
    return dict(zip(corpus.label_names, corpus.Y.toarray().T.astype(bool), strict=True))


def closest_correlations(Y):
    """For every tag, its correlation with the tag that it is correlated with most."""
    phi = np.corrcoef(Y.toarray(), rowvar=False)
    np.fill_diagonal(phi, -1.0)
    return phi.max(axis=1)


def test_shape_and_names(corpus):
    assert corpus.n_rows == len(corpus.row_ids) == len(corpus.row_dates) == 3000
    assert corpus.n_labels == 12 + 91
    assert corpus.label_names == (*SECTIONS, *(topic.name for topic in TOPICS))
    assert check_label_names(corpus.label_names, corpus.n_labels) == corpus.label_names
    assert corpus.Y.dtype == np.int8
    assert (canonical_labels(corpus.Y) != corpus.Y).nnz == 0
    assert len(set(corpus.row_ids)) == 3000
    n_tags = np.diff(corpus.Y.indptr)
    assert n_tags.min() == 1
    assert 3.0 <= n_tags.mean() <= 4.0
    n_topics = corpus.Y[:, 12:].sum(axis=1)
    assert (n_topics.min(), n_topics.max()) == (1, 3)


def test_tags_are_uneven_and_the_rarest_can_be_judged(corpus):
    counts = corpus.Y.sum(axis=0)
    assert 25 <= counts.min() <= 40
    assert counts[12:].max() >= 3 * counts[12:].min()
    assert np.median(counts[:12]) >= 4 * np.median(counts[12:])


def test_broad_tags_come_with_their_topics_and_are_sometimes_forgotten(corpus):
    has = columns(corpus)
    for section in SECTIONS:
        topics = [name for name in BASE if section_of(name) == section]
        about = np.any([has[name] for name in topics], axis=0)
        assert len(topics) >= 2
        assert 0.7 <= has[section][about].mean() <= 0.9
        mixtures = [name for name, parents in topic_parents().items() if set(topics) & set(parents)]
        explained = np.any([about, *(has[name] for name in mixtures)], axis=0)
        assert explained[has[section]].mean() >= 0.95  # the others lost their topic, not their broad tag


def test_tags_are_as_correlated_as_those_of_a_real_set(corpus, data_root):
    bibtex = load_catalogue_set("bibtex", roots=[data_root]).Y
    for tags in (corpus.Y, corpus.Y[:, 12:]):  # with and without the broad ones
        ratio = np.median(closest_correlations(tags)) / np.median(closest_correlations(bibtex))
        assert 2 / 3 <= ratio <= 3 / 2
    ratio = (corpus.Y.nnz / corpus.n_rows) / (bibtex.nnz / bibtex.shape[0])
    assert 1.0 <= ratio <= 1.5


def test_texts_read_like_sentences(corpus):
    assert len(set(corpus.texts)) > 2990
    for text in corpus.texts:
        assert re.fullmatch(r"([A-Z][^.{}|]*\.( |$))+", text), text
        assert "  " not in text
        assert 5 <= len(text.split()) <= 120


def test_texts_are_short(corpus):
    n_sentences = [text.count(".") for text in corpus.texts]
    assert set(n_sentences) == {2, 3, 4}


def test_word_banks_are_rich_and_clean():
    assert {family.section for family in FAMILIES.values()} == {*SECTIONS, None}
    assert {topic.family for topic in TOPICS} == {*FAMILIES, None}
    own = [topic.bank for topic in TOPICS]
    shared = [*SECTIONS.values(), *(family.bank for family in FAMILIES.values())]
    fragments = [part for bank in [*own, *shared] for part in (bank.actors, bank.actions, bank.details)]
    assert all(len(part) >= 3 for part in fragments)
    flat = [fragment for part in [CLOSINGS, *fragments] for fragment in part]
    assert len(set(flat)) > 1700
    for fragment in flat:
        assert fragment == fragment.strip()
        assert set(re.findall(r"{(.*?)}", fragment)) <= {"place", "n", "pct"}


def test_tags_appear_on_their_first_day(corpus):
    first = dict(zip(corpus.label_names, first_occurrence(corpus.Y, corpus.row_dates).astype(str), strict=True))
    for topic in TOPICS:
        assert first[topic.name] == topic.first_day
    for section in SECTIONS:
        assert first[section] == min(topic.first_day for name, topic in BASE.items() if section_of(name) == section)
    assert (np.diff(corpus.row_dates) >= np.timedelta64(0, "D")).all()
    assert corpus.row_dates[-1] <= np.datetime64(LAST_DAY)


def test_mixtures_have_known_parents_in_the_past_and_among_the_arrivals(corpus):
    stream = dated_stream(corpus, cutoff=ARRIVALS_FROM)
    past = {corpus.label_names[j] for j in stream.past}
    arriving = {corpus.label_names[j] for j in stream.arriving}
    parents = topic_parents()
    assert past == {*SECTIONS, *BASE, *(name for name in parents if name in past)}
    assert len(BASE) == 59
    assert len(past & parents.keys()) == 8
    assert len(stream.batches) == len(arriving) == 24
    assert len(arriving & parents.keys()) == 16
    assert stream.left_out.size == 0
    first_day = {topic.name: topic.first_day for topic in TOPICS}
    for child, names in parents.items():
        assert 2 <= len(set(names)) <= 3
        assert all(name in BASE and first_day[name] < first_day[child] for name in names)


def test_mixtures_meet_their_parents_and_siblings_each_other(corpus):
    """Found together far more often than by chance, but not always."""
    has = columns(corpus)

    def lift(one, other):
        return (has[one] & has[other]).mean() / (has[one].mean() * has[other].mean())

    for child, parents in topic_parents().items():
        assert np.mean([lift(child, parent) for parent in parents]) > 3
        assert not any(has[parent][has[child]].mean() > 0.6 for parent in parents)
    for name, topic in BASE.items():
        siblings = [other for other in BASE if BASE[other].family == topic.family and other != name]
        assert siblings
        assert np.mean([lift(name, sibling) for sibling in siblings]) > 3


def test_vocabulary_is_shared_by_siblings_and_inherited_by_mixtures(corpus):
    """Seen in texts on one topic only, so that no companion lends its words."""
    X = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform(corpus.texts)
    topics = corpus.Y[:, 12:].toarray()
    alone = topics * (topics.sum(axis=1, keepdims=True) == 1)
    centres = normalize((X.T @ alone).T)
    likeness = dict(zip(corpus.label_names[12:], centres @ centres.T, strict=True))
    place = {name: j for j, name in enumerate(likeness)}
    base = [place[name] for name in BASE]
    for child, parents in topic_parents().items():
        inherited = likeness[child][[place[parent] for parent in parents]]
        assert inherited.min() > np.quantile(likeness[child][base], 0.75)
    cousinhood = []
    for name, topic in BASE.items():
        siblings = [place[other] for other in BASE if BASE[other].family == topic.family and other != name]
        section = {place[other] for other in BASE if section_of(other) == section_of(name)}
        assert likeness[name][siblings].min() > np.quantile(likeness[name][[j for j in base if j not in section]], 0.9)
        if cousins := sorted(section.difference(siblings, [place[name]])):
            cousinhood.append(likeness[name][siblings].mean() / likeness[name][cousins].mean())
    assert np.median(cousinhood) > 1.5


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
