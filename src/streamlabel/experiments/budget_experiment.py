"""``streamlabel reproduce budget``: grid, records and page put together."""

from __future__ import annotations

from streamlabel.experiments import budget, budget_page, budget_pictures
from streamlabel.experiments.budget_methods import DEFAULT, METHODS, OWN_RIDGE, PAPER, parse_methods
from streamlabel.experiments.experiment import Experiment, Option

__all__ = ["EXPERIMENT"]


def _read_budgets(text: str) -> tuple[int | None, ...]:
    found: list[int | None] = []
    for part in text.split(","):
        word = part.strip()
        if word != "all" and not (word.isdecimal() and len(word) < 16 and int(word) >= 2):
            raise ValueError(f"{word!r} is neither a number of rows, 2 or more, nor 'all'")
        found.append(None if word == "all" else int(word))
    return tuple(found)


EXPERIMENT = Experiment(
    name="budget",
    title="New labels against the number of annotated rows",
    explanation=(
        "Accuracy of new labels against the number of annotated rows, with the past and without it.\n\n"
        "Half of the labels of a set are past; the others arrive together, annotated on the same few rows. The last "
        "line says whether any measure fell more than 0.3 points under own ridge, the same learner without the past."
    ),
    record=budget.BudgetRecord,
    key=budget.KEY,
    datasets=("bibtex", "delicious", "mediamill_reduced"),
    quick_datasets=("mediamill_reduced",),
    tasks=budget.tasks,
    keys=budget.keys,
    run=budget.run,
    page=budget_page.page,
    pictures=budget_pictures.pictures,
    options=(
        Option(
            "budgets",
            "Numbers of annotated rows; 'all' for all of them. [default: 20,50,100,200,500,1000,2000,all]",
            metavar="N,N,...",
            parse=_read_budgets,
        ),
        Option(
            "methods",
            f"Only these, and own ridge: {', '.join(METHODS)}; or 'all'. "
            f"[default: all but {PAPER}; with --quick {DEFAULT}, {OWN_RIDGE}]",
            metavar="NAME,NAME,...",
            parse=parse_methods,
        ),
        Option("paper", "Also run the paper's form: the anchor, without the metric."),
    ),
)
