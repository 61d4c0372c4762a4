"""An embedded corpus of short news-like texts over named topics, for demonstrations that need no download.

The texts are put together from hand-written fragments. Topics of a section share fragments, mixture topics borrow from
their parents, texts stray from their subject, and some labels are forgotten: about as untidy as a real archive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.data._arguments import RandomState, check_integer, make_rng
from streamlabel.data._news_topics import CLOSINGS, OPENINGS, PLACES, SECTIONS, TOPICS, Bank, Topic
from streamlabel.results import CSR, TextDataset

__all__ = ["ARRIVALS_FROM", "LAST_DAY", "make_news_corpus", "topic_parents"]

ARRIVALS_FROM: Final = "2020-01-01"  # topics that first appear before this day are the past of the demonstration
LAST_DAY: Final = "2023-12-31"
TOPICS_PER_TEXT = (0.30, 0.40, 0.20, 0.10)  # shares of texts with 1, 2, 3 and 4 topics
OWN_SHARE = 0.5  # of the fragments of a topic that come from its own bank; the others come from its section's
BORROWED_SHARE = 0.5  # of the sentences on a mixture topic that are written with a parent's fragments
STRAY_SHARE = 0.25  # of the texts with a sentence on something they are not labelled with
FORGOTTEN_SHARE = 0.04  # of the further topics of a text that the annotator overlooked
KINSHIP, NEIGHBOURHOOD = 25.0, 5.0  # how much likelier a parent or child, a topic of the same section, joins a text
FIRST_DAYS = np.array([topic.first_day for topic in TOPICS], dtype="datetime64[D]")
BY_NAME = {topic.name: topic for topic in TOPICS}


def make_news_corpus(n_texts: int = 3000, *, random_state: RandomState = 0) -> TextDataset:
    """Dated texts with 1 to 4 of 77 topics each, sorted by date.

    A topic occurs on the day it first appears and never before, so the labels can arrive in the order of
    `data.label_stream.dated_stream`: 53 topics appear in early 2018, 24 from `ARRIVALS_FROM` on. Of these, 16 are
    mixtures of two or three earlier topics (`topic_parents`) and 8 have nothing to do with what came before. Needs
    one text a topic at least; the rarest topics have about fifteen in 3,000.

    >>> corpus = make_news_corpus(100)
    >>> corpus.n_rows, corpus.n_labels, corpus.label_names[0]
    (100, 77, 'infectious disease')
    """
    n_texts = check_integer(n_texts, "n_texts (one a topic at least)", low=len(TOPICS), high=1_000_000)
    rng = make_rng(random_state)
    main, days = _draw_subjects(n_texts, rng)
    affinity = _affinities()
    topics = [_draw_topics(subject, day, affinity, rng) for subject, day in zip(main, days, strict=True)]
    texts = tuple(_write_text(labels, rng) for labels in topics)
    kept = [[j for i, j in enumerate(labels) if i == 0 or rng.random() >= FORGOTTEN_SHARE] for labels in topics]
    return TextDataset(
        texts=texts,
        Y=_label_matrix(kept),
        label_names=tuple(topic.name for topic in TOPICS),
        row_ids=tuple(f"news-{i + 1:05d}" for i in range(n_texts)),
        row_dates=days,
        source="embedded news corpus",
    )


def topic_parents() -> dict[str, tuple[str, ...]]:
    """The topics that each mixture topic is made of."""
    return {topic.name: topic.parents for topic in TOPICS if topic.parents}


def _affinities() -> NDArray[np.float64]:
    """How often topic j accompanies topic i, (n_topics, n_topics): by frequency, section and kinship."""
    weights = np.array([topic.weight for topic in TOPICS])
    affinity = np.tile(weights, (len(TOPICS), 1))
    for i, one in enumerate(TOPICS):
        for j, other in enumerate(TOPICS):
            if one.name in other.parents or other.name in one.parents:
                affinity[i, j] *= KINSHIP
            elif one.section == other.section:
                affinity[i, j] *= NEIGHBOURHOOD
    np.fill_diagonal(affinity, 0.0)
    return affinity


def _draw_subjects(n_texts: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.datetime64]]:
    """The main topic and the day of every text, by day. Every topic has a text on its first day."""
    weights = np.array([topic.weight for topic in TOPICS])
    counts = 1 + rng.multinomial(n_texts - len(TOPICS), weights / weights.sum())
    main = np.repeat(np.arange(len(TOPICS)), counts)
    span = (np.datetime64(LAST_DAY, "D") - FIRST_DAYS).astype(np.int64)
    offset = rng.integers(0, span[main] + 1)
    offset[np.cumsum(counts) - counts] = 0
    days = FIRST_DAYS[main] + offset.astype("timedelta64[D]")
    order = np.argsort(days, kind="stable")
    return main[order], days[order]


def _draw_topics(main: int, day: np.datetime64, affinity: NDArray[np.float64], rng: np.random.Generator) -> list[int]:
    """The main topic and those that accompany it, none before its first day."""
    n_topics = 1 + int(np.searchsorted(np.cumsum(TOPICS_PER_TEXT)[:-1], rng.random(), side="right"))
    topics = [int(main)]
    weights = np.where(day >= FIRST_DAYS, affinity[main], 0.0)
    while len(topics) < n_topics and weights.any():
        cumulated = np.cumsum(weights)
        topic = int(np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right"))
        topics.append(topic)
        weights[topic] = 0.0
    return topics


def _write_text(topics: list[int], rng: np.random.Generator) -> str:
    subjects = [*topics]
    if len(topics) == 1 or rng.random() < 0.5:
        subjects.append(topics[0])
    if rng.random() < STRAY_SHARE:
        subjects.append(int(rng.integers(len(TOPICS))))
    used: set[str] = set()
    sentences = [_write_sentence(TOPICS[subjects[i]], used, rng) for i in rng.permutation(len(subjects))]
    if rng.random() < 0.7:
        sentences.append(_pick(CLOSINGS, used, rng))
    numbers = rng.integers(2, 100, size=len(sentences))
    return " ".join(
        sentence.format(place=_pick(PLACES, used, rng), n=number * 10 if number % 3 else number, pct=1 + number % 40)
        for sentence, number in zip(sentences, numbers, strict=True)
    )


def _write_sentence(topic: Topic, used: set[str], rng: np.random.Generator) -> str:
    """An actor, an action and sometimes more; for a mixture topic often about one of its parents."""
    if topic.parents and rng.random() < BORROWED_SHARE:
        topic = BY_NAME[topic.parents[int(rng.integers(len(topic.parents)))]]
    words = [_pick(_bank_for(topic, rng).actors, used, rng), _pick(_bank_for(topic, rng).actions, used, rng)]
    if rng.random() < 0.5:
        words.append(_pick(_bank_for(topic, rng).details, used, rng))
    if rng.random() < 0.3:
        words.insert(0, _pick(OPENINGS, used, rng))
    sentence = " ".join(words)
    return sentence[0].upper() + sentence[1:] + "."


def _bank_for(topic: Topic, rng: np.random.Generator) -> Bank:
    return topic.bank if rng.random() < OWN_SHARE else SECTIONS[topic.section]


def _pick(fragments: Sequence[str], used: set[str], rng: np.random.Generator) -> str:
    """A fragment that the text does not have yet, unless it has them all."""
    fresh = [fragment for fragment in fragments if fragment not in used] or fragments
    choice = fresh[int(rng.integers(len(fresh)))]
    used.add(choice)
    return choice


def _label_matrix(topics: list[list[int]]) -> CSR:
    indptr = np.concatenate([[0], np.cumsum([len(labels) for labels in topics])])
    indices = np.concatenate([np.sort(labels) for labels in topics])
    Y: CSR = sparse.csr_array((np.ones(len(indices), dtype=np.int8), indices, indptr), shape=(len(topics), len(TOPICS)))
    return Y
