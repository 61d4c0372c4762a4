"""Which experiments there are. They are imported when they are used."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from streamlabel.experiments.experiment import Experiment

__all__ = ["EXPERIMENTS", "Registered"]


@dataclass(frozen=True)
class Registered:
    """Where an `Experiment` lies, ``module:OBJECT``, and its line in the list of commands."""

    target: str
    summary: str

    def load(self) -> Experiment[Any, Any]:
        module, _, attribute = self.target.partition(":")
        found = getattr(importlib.import_module(module), attribute)
        assert isinstance(found, Experiment)
        return found


EXPERIMENTS = {
    "bounds": Registered(
        "streamlabel.experiments.bounds:EXPERIMENT",
        "The two theorems of the paper against what they bound.",
    ),
    "budget": Registered(
        "streamlabel.experiments.budget_experiment:EXPERIMENT",
        "Accuracy of new labels against the number of annotated rows.",
    ),
    "figure1": Registered(
        "streamlabel.experiments.figure1_page:EXPERIMENT",
        "Accuracy over all labels against the share of them at the start.",
    ),
    "figure2": Registered(
        "streamlabel.experiments.figure2_page:EXPERIMENT",
        "Running time of 100 new labels against the number of past ones.",
    ),
    "table2": Registered(
        "streamlabel.experiments.table2_page:EXPERIMENT",
        "New labels in batches, every method, beside the paper's Table 2.",
    ),
    "table3": Registered(
        "streamlabel.experiments.table3:EXPERIMENT",
        "The labels that named labels are made of, beside the paper's Table 3.",
    ),
    "timeline": Registered(
        "streamlabel.experiments.timeline:EXPERIMENT",
        "Labels in the order of the calendar: learned from their first years, judged on what follows.",
    ),
}
