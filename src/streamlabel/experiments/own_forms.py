"""The learner's other forms, which are no competitors: a user can simply take one."""

from __future__ import annotations

__all__ = ["OWN_FORMS"]

_LOGISTIC = 'its form with the logistic loss (`loss="logistic"`)'
OWN_FORMS = {  # by the name of the method in the experiments; one form may have several
    "SLL logistic": _LOGISTIC,
    "logistic with the past": _LOGISTIC,
    "SLL paper": "the paper's form of it (SLL paper)",
    "SLL paper signed": "the paper's form of it without an intercept (SLL paper signed)",
    "paper (anchor only)": "its form without the metric (`metric=None`)",
}
