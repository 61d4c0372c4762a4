"""Reports for a person about a label that a tagger has just learned."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from streamlabel.data.text import TextVectorizer
from streamlabel.stats.threads import one_thread
from streamlabel.store.stored_rows import LEARNING
from streamlabel.streaming.calibration import Estimate, estimate_data
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.found_trials import FoundRecipe
from streamlabel.streaming.judgement import Judgement
from streamlabel.streaming.trials import Clarity
from streamlabel.tagging.examples import LabelExamples
from streamlabel.tagging.names import spelled
from streamlabel.tagging.text_answers import Answers


def unknown_words(vectorizer: Any, texts: Iterable[str], *, but_known: bool = False) -> list[str]:
    """The words of the texts that are not in the vocabulary (or are), those of the most texts first, else as they come.

    Pieces of words and runs of them are no words; a vectoriser without a vocabulary knows every word.
    """
    own = isinstance(vectorizer, TextVectorizer)
    known = frozenset(vectorizer.terms_) if own else getattr(vectorizer, "vocabulary_", None)
    if known is None or getattr(vectorizer, "analyzer", None) != "word":
        return []
    analyse = vectorizer.build_analyzer()
    n_texts: Counter[str] = Counter()
    for text in texts:
        words = dict.fromkeys(analyse(text))
        n_texts.update(word for word in words if (word in known) is but_known and " " not in word)
    return [word for word, _ in n_texts.most_common()]


@dataclass(frozen=True)
class UpdateReport:
    """A report of labels of `fit` that were learned again with new texts.

    labels : their names;   n_fit, n_new : texts of fit, and new ones that were used;   n_known : texts that were left
    out, as they are those of fit or of an earlier update
    later, unknown : names among the tags that were left alone: of labels that were added after fit, and of none
    """

    labels: tuple[str, ...]
    n_fit: int
    n_new: int
    n_known: int
    later: tuple[str, ...]
    unknown: tuple[str, ...]
    seconds: float


MOST_WORDS, MOST_LOOKED_AT = 20, 2000


@dataclass(frozen=True)
class LearnReport:
    """A report of how a tagger learned a label.

    n_yes, n_no : answers that were given;   n_background : texts of the pool that stood for no in learning
    neighbours : (label, weight) of the labels it resembles;   used_past : whether its classifier leans on the past
    threshold : the score from which `predict` says yes
    fires : (on how many texts of the pool it says yes, of how many that were looked at); None if there are none
    estimate : how good it is thought to be on texts like those of the pool, or of the sample; None if it has neither
    pool : where the pool came from: "given", "fit" or "" for none
    name_gain : what names are worth in trials, in points; 0 if the name was not used
    n_unknown_words, unknown_words : words of the name, the description and new yes texts that the vectoriser does not
        know, and from which nothing is learned: how many, and up to 20, the name's first, then those of the most texts
    words_read : the words of the name and the description that it knows, if the name was used
    clarity : how clear it was in trials that the past is (or is not) of use; None if nothing was tried
    """

    name: str
    n_yes: int
    n_no: int
    n_background: int
    neighbours: tuple[tuple[str, float], ...]
    used_past: bool
    threshold: float
    seconds: float
    fires: tuple[int, int] | None = None
    estimate: Estimate | None = None
    pool: str = ""
    name_gain: float = 0.0
    n_unknown_words: int = 0
    unknown_words: tuple[str, ...] = ()
    clarity: Clarity | None = None
    words_read: tuple[str, ...] = ()


def report_label(
    model: StreamingLabelClassifier,
    name: str,
    n_yes: int,
    n_no: int,
    seconds: float,
    *,
    unknown: Sequence[str] = (),
    pool: str = "",
    name_gain: float = 0.0,
) -> LearnReport:
    """Report on a label that the model has learned from so many answers."""
    number = model.state_.names.number(name)
    learned = model.state_.reports[number]
    estimate = learned.estimate
    if not pool or estimate is None:
        fires = count_fires(model, number)
    else:
        fires = round(estimate.fires * estimate.n_pool), estimate.n_pool
    return LearnReport(
        name, n_yes, n_no, learned.n_background, tuple(model.neighbours(name)),
        bool(learned.anchored or learned.share), float(model.state_.decisions.thresholds[number]), seconds, fires,
        estimate, pool, name_gain, len(unknown), tuple(unknown[:MOST_WORDS]), learned.clarity,
    )  # fmt: skip


def report_answers(
    model: StreamingLabelClassifier,
    vectorizer: Any,
    answers: Answers,
    known: LabelExamples | None,
    facts: tuple[FoundRecipe, Judgement] | None,
    pool: str,
    seconds: float,
) -> LearnReport:
    """Report on a label that was learned from these answers, and from all that are known of it."""
    n_yes, n_no = len(answers.yes), len(answers.no)
    if known is not None:
        n_yes, n_no = int(known.answers.sum()), int((~known.answers).sum())
    gain = 0.0 if facts is None or not any(facts[0].weights) else facts[0].gain
    about = "" if known is None else known.about
    words = [spelled(f"{answers.name} {about}")] if gain else []
    named, read = (unknown_words(vectorizer, words, but_known=known) for known in (False, True))
    told = unknown_words(vectorizer, (key for key in answers.yes if isinstance(key, str)))
    unknown = list(dict.fromkeys([*named, *told]))
    estimate = None if known is None else known.estimate
    report = report_label(model, answers.name, n_yes, n_no, seconds, unknown=unknown, pool=pool, name_gain=gain)
    report = replace(report, words_read=tuple(read))
    if report.estimate is None and estimate is not None:  # a store does not keep it in the classifier
        fires = round(estimate.fires * estimate.n_pool), estimate.n_pool
        report = replace(report, estimate=estimate, fires=fires)
    return report


def count_fires(model: StreamingLabelClassifier, number: int) -> tuple[int, int] | None:
    """Count the texts of `fit` on which a label fires, of at most `MOST_LOOKED_AT` drawn; None if none are kept."""
    kept = model.state_.memory
    if kept is None:
        return None
    rows = np.random.default_rng(model.random_state).permutation(int(kept.X.shape[0]))[:MOST_LOOKED_AT]
    with one_thread():  # so that it is the same everywhere
        scores = model.state_.classifiers.scores(kept.X[np.sort(rows)], np.array([number]))[:, 0]
    return int((scores > model.state_.decisions.thresholds[number]).sum()), len(rows)


def report_data(report: LearnReport) -> dict[str, Any]:
    """Convert a report to JSON values, where pairs have names; a threshold may be infinite."""
    found = asdict(report)
    found["neighbours"] = [{"label": label, "weight": weight} for label, weight in report.neighbours]
    found["seconds"] = round(report.seconds, 4)
    found["fires"] = fires_data(report.fires)
    found["estimate"] = estimate_data(report.estimate)
    return found


def fires_data(fires: tuple[int, int] | None) -> dict[str, int] | None:
    """Convert the counts of `count_fires` to JSON values."""
    return None if fires is None else {"n_yes": fires[0], "n_looked_at": fires[1]}


def learn_rows(store: Any, name: str, X: Any, answers: Any, *, dry_run: bool = False) -> LearnReport:
    """Learn a label of a `ModelStore` that takes rows, X (n, d), from an answer for each, and report on it."""
    begin = time.perf_counter()
    kept_dense = LEARNING in store.parts() and not store.get_part(LEARNING).content["sparse"]
    if kept_dense and not isinstance(X, np.ndarray):  # rows of fit are recognised in the form in which they are kept
        X = X.toarray()
    elif not kept_dense and isinstance(X, np.ndarray):
        X = sparse.csr_array(X)
    if dry_run:
        grown = store.model().add_labels(X, answers, [name])
    else:
        store.add_labels(X, answers, [name])
        grown = store.model()
    learned = grown.reports_[-1]
    return LearnReport(
        name, learned.n_yes, learned.n_rows - learned.n_yes, 0, tuple(grown.neighbours(name)),
        bool(learned.anchored or learned.share), float(grown.thresholds_[-1]), time.perf_counter() - begin,
        count_fires(grown, len(grown.label_names_) - 1),
    )  # fmt: skip
