"""An embedded corpus of short news texts with related tags, and example files made of it; no download needed.

The texts are put together from hand-written fragments, and tagged about as untidily as a real archive. What was built
in, and the figures of real sets (counts on the training parts) that it was held against:

* Tags are related. Topics form families whose members share vocabulary (a sentence on poultry may be about animals in
  general), families form sections whose names are broad tags, and some topics, old ones as well as new ones, are
  mixtures: their texts use the words of their parents and few of their own.
* Tags occur together. Bibtex has 2.4 tags a text, EURLEX57K 5.1, Delicious 19; here there are three. The correlation of
  a tag with the one it is closest to has the median 0.28 in Bibtex, 0.45 in Delicious, and about 0.3 here: topics are
  joined by their relatives mostly, and seldom by anything else.
* Frequencies are uneven. In Bibtex a tag has 0.6 to 14 % of the texts, most about 1 %; here a topic has 1 to 4 %, lest
  3,000 texts be too few to judge it, and a broad tag 3 to 19 %.
* Annotators forget a fifth of the broad tags, and now and then a topic that a text is also about.
* Texts are short, stray from their subject, and show a few of the many words of a topic: none gives a topic away.

The numbers below were set by this comparison, not by what some learner makes of the texts. But this is the second
design, and it was made because of a learner: the topics of the first one had nothing in common, the past did not help
new labels there, and the demonstration showed nothing. So a gain on these texts is an illustration; the evidence is
what `streamlabel reproduce budget` measures on real sets.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from streamlabel.data.files import RandomState, check_integer, make_rng, packaged_toml, replacing
from streamlabel.data.rows import rows_of_names
from streamlabel.errors import ConflictError, DataError
from streamlabel.types import CSR, TextDataset

ARRIVALS_FROM: Final = "2020-01-01"  # tags that first appear before this day are the past of the demonstration
LAST_DAY: Final = "2023-12-31"
TOPICS_PER_TEXT = (0.35, 0.40, 0.25)  # shares of texts with 1, 2 and 3 topics; broad tags come on top
OWN_SHARE, FAMILY_SHARE = 0.45, 0.40  # of a topic's fragments that are its own, its family's; the rest: its section's
MIXTURE_OWN_SHARE = 0.25  # of a mixture's fragments that are its own; the rest is written as if about a parent
STRAY_SHARE = 0.2  # of the texts with a sentence on something they are not tagged with
MAX_SENTENCES = 4
BROAD_SHARE = 0.8  # of the broad tags that the annotator remembered
FORGOTTEN_SHARE = 0.06  # of the further topics of a text that the annotator overlooked
KINSHIP, NEIGHBOURHOOD = 100.0, 6.0  # how much likelier a sibling, parent or child, a topic of the section joins a text


@dataclass(frozen=True)
class Bank:
    """Fragments: who, did what, and under which circumstances."""

    actors: tuple[str, ...]
    actions: tuple[str, ...]
    details: tuple[str, ...]


@dataclass(frozen=True)
class Family:
    """Topics that share vocabulary. Its section names a broad tag; None: no section covers it."""

    section: str | None
    bank: Bank


@dataclass(frozen=True)
class Topic:
    """A topic: the day it first appears, how often it is written about, its fragments, and its family or parents."""

    name: str
    first_day: str
    weight: float
    bank: Bank
    family: str | None = None
    parents: tuple[str, ...] = ()


def _bank(entry: Mapping[str, Any]) -> Bank:
    return Bank(tuple(entry["actors"]), tuple(entry["actions"]), tuple(entry["details"]))


_BANKS = packaged_toml("news.toml")
PLACES, OPENINGS, CLOSINGS = (tuple(_BANKS[name]) for name in ("places", "openings", "closings"))
SECTIONS = {name: _bank(entry) for name, entry in _BANKS["sections"].items()}
FAMILIES = {name: Family(entry.get("section"), _bank(entry)) for name, entry in _BANKS["families"].items()}
TOPICS = tuple(
    Topic(one["name"], one["first_day"], one["weight"], _bank(one), one.get("family"), tuple(one.get("parents", ())))
    for one in _BANKS["topics"]
)
FIRST_DAYS = np.array([topic.first_day for topic in TOPICS], dtype="datetime64[D]")
BY_NAME = {topic.name: topic for topic in TOPICS}
BROAD_TAGS = tuple(SECTIONS)


def make_news_corpus(n_texts: int = 3000, *, random_state: RandomState = 0) -> TextDataset:
    """Dated texts with about three of 103 tags each, sorted by date.

    The first 12 columns of `Y` are broad tags, the names of sections; the other 91 are topics. A topic occurs on the
    day it first appears and never before, so the labels can arrive in the order of `data.streams.dated_stream`:
    the broad tags and 59 topics appear in early 2018, 8 mixtures of these until 2019, 24 topics from `ARRIVALS_FROM`
    on. Of the latter, 16 are mixtures of two or three earlier topics (`topic_parents`) and 8 have nothing to do with
    what came before. Needs one text a topic at least; the rarest topics have about thirty in 3,000.

    >>> corpus = make_news_corpus(100)
    >>> corpus.n_rows, corpus.n_labels, corpus.label_names[0], corpus.label_names[12]
    (100, 103, 'health', 'infectious disease')
    """
    n_texts = check_integer(n_texts, "n_texts (one a topic at least)", low=len(TOPICS), high=1_000_000)
    rng = make_rng(random_state)
    main, days = _draw_subjects(n_texts, rng)
    affinity = _affinities()
    topics = [_draw_topics(subject, day, affinity, rng) for subject, day in zip(main, days, strict=True)]
    texts = tuple(_write_text(subjects, rng) for subjects in topics)
    return TextDataset(
        texts=texts,
        Y=_label_matrix(_annotate(topics, rng)),
        label_names=(*BROAD_TAGS, *BY_NAME),
        row_ids=tuple(f"news-{i + 1:05d}" for i in range(n_texts)),
        row_dates=days,
        source="embedded news corpus",
    )


def topic_parents() -> dict[str, tuple[str, ...]]:
    """The topics that each mixture topic is made of, by the day the mixture first appears."""
    return {topic.name: topic.parents for topic in TOPICS if topic.parents}


def _sections(topic: Topic) -> frozenset[str]:
    """The section of the topic's family; for a mixture, those of its parents."""
    if topic.parents:
        return frozenset().union(*(_sections(BY_NAME[parent]) for parent in topic.parents))
    section = FAMILIES[topic.family].section if topic.family else None
    return frozenset() if section is None else frozenset({section})


def _affinities() -> NDArray[np.float64]:
    """How often topic j accompanies topic i, (n_topics, n_topics): by frequency, kinship and section."""
    weights = np.array([topic.weight for topic in TOPICS])
    affinity = np.tile(weights, (len(TOPICS), 1))
    sections = [_sections(topic) for topic in TOPICS]
    for i, one in enumerate(TOPICS):
        for j, other in enumerate(TOPICS):
            neighbours = bool(sections[i] & sections[j])
            siblings = neighbours and one.family is not None and one.family == other.family
            if siblings or one.name in other.parents or other.name in one.parents:
                affinity[i, j] *= KINSHIP
            elif neighbours:
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


def _annotate(topics: list[list[int]], rng: np.random.Generator) -> list[list[int]]:
    """The columns of `Y` that each text is tagged with, in order.

    The main topic is always among them. The first text of a section has its broad tag; later ones mostly do.
    """
    tagged = []
    opened: set[str] = set()
    for subjects in topics:
        kept = [j for i, j in enumerate(subjects) if i == 0 or rng.random() >= FORGOTTEN_SHARE]
        sections = sorted(frozenset[str]().union(*(_sections(TOPICS[j]) for j in subjects)))
        broad = [name for name in sections if rng.random() < BROAD_SHARE or name not in opened]
        opened.update(sections)
        tagged.append(sorted([*(BROAD_TAGS.index(name) for name in broad), *(len(BROAD_TAGS) + j for j in kept)]))
    return tagged


def _write_text(topics: list[int], rng: np.random.Generator) -> str:
    """Two to four sentences: one a topic at least, perhaps a stray one, perhaps an empty phrase at the end."""
    subjects = [*topics]
    if len(topics) == 1 or (len(topics) == 2 and rng.random() < 0.5):
        subjects.append(topics[0])
    if rng.random() < STRAY_SHARE:
        subjects.append(int(rng.integers(len(TOPICS))))
    used: set[str] = set()
    sentences = [_write_sentence(TOPICS[subjects[i]], used, rng) for i in rng.permutation(len(subjects))]
    if len(sentences) < MAX_SENTENCES and rng.random() < 0.7:
        sentences.append(_pick(CLOSINGS, used, rng))
    numbers = rng.integers(2, 100, size=len(sentences))
    return " ".join(
        sentence.format(place=_pick(PLACES, used, rng), n=number * 10 if number % 3 else number, pct=1 + number % 40)
        for sentence, number in zip(sentences, numbers, strict=True)
    )


def _write_sentence(topic: Topic, used: set[str], rng: np.random.Generator) -> str:
    """An actor, an action and sometimes more, each from a bank of its own choice."""
    words = [_pick(_bank_for(topic, rng).actors, used, rng), _pick(_bank_for(topic, rng).actions, used, rng)]
    if rng.random() < 0.5:
        words.append(_pick(_bank_for(topic, rng).details, used, rng))
    if rng.random() < 0.3:
        words.insert(0, _pick(OPENINGS, used, rng))
    sentence = " ".join(words)
    return sentence[0].upper() + sentence[1:] + "."


def _bank_for(topic: Topic, rng: np.random.Generator) -> Bank:
    """The topic's own fragments, its family's or its section's; a mixture mostly takes one of its parents'."""
    if topic.family is None:
        if rng.random() < MIXTURE_OWN_SHARE:
            return topic.bank
        return _bank_for(BY_NAME[topic.parents[int(rng.integers(len(topic.parents)))]], rng)
    family, level = FAMILIES[topic.family], rng.random()
    if level < OWN_SHARE:
        return topic.bank
    if level < OWN_SHARE + FAMILY_SHARE or family.section is None:
        return family.bank
    return SECTIONS[family.section]


def _pick(fragments: Sequence[str], used: set[str], rng: np.random.Generator) -> str:
    """A fragment that the text does not have yet, unless it has them all."""
    fresh = [fragment for fragment in fragments if fragment not in used] or fragments
    choice = fresh[int(rng.integers(len(fresh)))]
    used.add(choice)
    return choice


def _label_matrix(tagged: list[list[int]]) -> CSR:
    indptr = np.concatenate([[0], np.cumsum([len(labels) for labels in tagged])])
    shape = (len(tagged), len(BROAD_TAGS) + len(TOPICS))
    Y: CSR = sparse.csr_array((np.ones(indptr[-1], dtype=np.int8), np.concatenate(tagged), indptr), shape=shape)
    return Y


HELD_BACK = "avian influenza"
POOL = 1200
ANSWERS = 6
STARTER = (
    ("Hens were culled on two farms after birds fell ill.", ["farming", "health"]),
    ("The hospital opened a new ward for children.", ["health"]),
    ("Milk prices fell for the third month.", ["farming", "economy"]),
    ("The central bank left interest rates unchanged.", ["economy"]),
    ("Vaccines against flu reached the clinics.", ["health"]),
    ("A late frost damaged the apple harvest.", ["farming"]),
)


def example_files(n_texts: int = 600, seed: int = 0) -> dict[str, str]:
    """``texts.jsonl``, ``yes.txt``, ``no.txt`` and ``pool.txt``, of the embedded news corpus: name -> content.

    No tag of ``texts.jsonl`` is called `HELD_BACK`; the answers are about texts that are not in it, and the pool has
    others again.
    """
    corpus = make_news_corpus(n_texts + n_texts // 3, random_state=seed)
    tags = list(rows_of_names(corpus.Y, corpus.label_names))
    kept = [i for i in range(corpus.n_rows) if i % 4][:n_texts]
    asked = sorted(set(range(corpus.n_rows)) - set(kept))
    yes = [i for i in asked if HELD_BACK in tags[i]][:ANSWERS]
    if not yes:
        raise DataError(f"so few texts have nothing on {HELD_BACK}; take more than {n_texts}")
    no = [i for i in asked if HELD_BACK not in tags[i]][: 2 * ANSWERS]
    records = [{"text": corpus.texts[i], "labels": [tag for tag in tags[i] if tag != HELD_BACK]} for i in kept]
    return {
        "texts.jsonl": "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records),
        "yes.txt": "".join(f"{corpus.texts[i]}\n" for i in yes),
        "no.txt": "".join(f"{corpus.texts[i]}\n" for i in no),
        "pool.txt": "".join(f"{text}\n" for text in make_news_corpus(POOL, random_state=seed + 1).texts),
    }


def starter_files() -> dict[str, str]:
    """The same files with a few lines each, to be replaced by one's own."""
    lines = [json.dumps({"text": text, "labels": labels}) + "\n" for text, labels in STARTER]
    return {
        "texts.jsonl": "".join(lines),
        "yes.txt": "Bird flu was found in a flock of ducks.\nA second farm reported bird flu.\n",
        "no.txt": "Wheat exports rose.\nA clinic closed for repairs.\n",
        "pool.txt": "".join(f"{text}\n" for text, _ in STARTER),
    }


def write_files(folder: str | os.PathLike[str], files: Mapping[str, str]) -> list[Path]:
    """Write them into a folder, which is made where it is missing; nothing is overwritten."""
    place = Path(folder)
    paths = [place / name for name in files]
    taken = [path for path in paths if path.exists()]
    if taken:
        raise ConflictError(f"{taken[0]} is there already; choose another folder, or move it away")
    place.mkdir(parents=True, exist_ok=True)
    for path, content in zip(paths, files.values(), strict=True):
        with replacing(path) as handle:
            handle.write(content.encode())
    return paths
