"""What a person is told about a label that a tagger has just learned."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from streamlabel.models.calibration import Clarity
from streamlabel.models.snapshot import export_rows
from streamlabel.models.streaming import StreamingLabelClassifier
from streamlabel.models.text_answers import Answers
from streamlabel.models.unknown_words import unknown_words
from streamlabel.models.weak_answers import count_fires

__all__ = ["LearnReport", "fires_data", "report_data", "report_label"]

MOST_WORDS = 20


@dataclass(frozen=True)
class LearnReport:
    """How a label was learned.

    n_yes, n_no : answers that were given;   n_weak_no : texts of fit that were taken for no though nobody was asked
    neighbours : (label, weight) of the labels it resembles;   used_past : whether its classifier leans on the past
    threshold : the score from which `predict` says yes
    fires : (on how many of fit's texts it says yes, of how many that were looked at); None where these are not kept
    n_unknown_words, unknown_words : words of new yes texts that the vectoriser does not know, and from which nothing is
        learned: how many, and up to 20 of them, those of the most texts first
    clarity : how clear it was in trials that the past is (or is not) of use; None where nothing was tried
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
    """The report of a label that the model has learned from these answers."""
    unknown = unknown_words(vectorizer, (key for key in answers.yes if isinstance(key, str)))
    number = model._numbers[answers.name]
    learned = model._reports[number]
    return LearnReport(
        answers.name,
        len(answers.yes),
        len(answers.no),
        len(answers.weak),
        tuple(model.neighbours(answers.name)),
        bool(learned.anchored or learned.share),
        float(model._decisions.thresholds[number]),
        seconds,
        count_fires(model, number, export_rows(model)),
        len(unknown),
        tuple(unknown[:MOST_WORDS]),
        learned.clarity,
    )


def report_data(report: LearnReport) -> dict[str, Any]:
    """A report as it is written in JSON, where pairs have names; a threshold may be infinite."""
    found = asdict(report)
    found["neighbours"] = [{"label": label, "weight": weight} for label, weight in report.neighbours]
    found["seconds"] = round(report.seconds, 4)
    found["fires"] = fires_data(report.fires)
    return found


def fires_data(fires: tuple[int, int] | None) -> dict[str, int] | None:
    return None if fires is None else {"n_yes": fires[0], "n_looked_at": fires[1]}
