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
    "table2": Registered(
        "streamlabel.experiments.table2_page:EXPERIMENT",
        "New labels in batches, every method, beside the paper's Table 2.",
    ),
}
