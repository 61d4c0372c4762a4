"""Reports for a person about a label that a tagger has just learned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from streamlabel.data.text import TextVectorizer
from streamlabel.streaming.classifier import StreamingLabelClassifier
from streamlabel.streaming.trials import Clarity
from streamlabel.tagging.text_answers import Answers, count_fires


def unknown_words(vectorizer: Any, texts: Iterable[str]) -> list[str]:
    """The words of the texts that are not in the vocabulary, those of the most texts first, else as they come.

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
        n_texts.update(word for word in words if word not in known and " " not in word)
    return [word for word, _ in n_texts.most_common()]


MOST_WORDS = 20


@dataclass(frozen=True)
class LearnReport:
    """A report of how a tagger learned a label.

    n_yes, n_no : answers that were given;   n_weak_no : texts of fit that were taken for no though nobody was asked
    neighbours : (label, weight) of the labels it resembles;   used_past : whether its classifier leans on the past
    threshold : the score from which `predict` says yes
    fires : (on how many of fit's texts it says yes, of how many that were looked at); None if these are not kept
    n_unknown_words, unknown_words : words of new yes texts that the vectoriser does not know, and from which nothing is
        learned: how many, and up to 20 of them, those of the most texts first
    clarity : how clear it was in trials that the past is (or is not) of use; None if nothing was tried
    """

    name: str
    n_yes: int
    n_no: int
    n_weak_no: int
    neighbours: tuple[tuple[str, float], ...]
    used_past: bool
    threshold: float
    seconds: float
    fires: tuple[int, int] | None = None
    n_unknown_words: int = 0
    unknown_words: tuple[str, ...] = ()
    clarity: Clarity | None = None


def report_label(model: StreamingLabelClassifier, vectorizer: Any, answers: Answers, seconds: float) -> LearnReport:
    """Report on a label that the model has learned from these answers."""
    unknown = unknown_words(vectorizer, (key for key in answers.yes if isinstance(key, str)))
    number = model.state_.names.number(answers.name)
    learned = model.state_.reports[number]
    return LearnReport(
        answers.name,
        len(answers.yes),
        len(answers.no),
        len(answers.weak),
        tuple(model.neighbours(answers.name)),
        bool(learned.anchored or learned.share),
        float(model.state_.decisions.thresholds[number]),
        seconds,
        count_fires(model, number, model.state_.memory),
        len(unknown),
        tuple(unknown[:MOST_WORDS]),
        learned.clarity,
    )


def report_data(report: LearnReport) -> dict[str, Any]:
    """Convert a report to JSON values, where pairs have names; a threshold may be infinite."""
    found = asdict(report)
    found["neighbours"] = [{"label": label, "weight": weight} for label, weight in report.neighbours]
    found["seconds"] = round(report.seconds, 4)
    found["fires"] = fires_data(report.fires)
    return found


def fires_data(fires: tuple[int, int] | None) -> dict[str, int] | None:
    """Convert the counts of `count_fires` to JSON values."""
    return None if fires is None else {"n_yes": fires[0], "n_looked_at": fires[1]}
