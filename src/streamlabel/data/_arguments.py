"""Numbers in: the checks that the generators and the label streams share."""

from __future__ import annotations

import math
import operator
from typing import Any, TypeAlias

import numpy as np

from streamlabel.exceptions import DataError

RandomState: TypeAlias = int | np.random.Generator


def check_integer(value: Any, name: str, *, low: int, high: int | None = None) -> int:
    """``value`` as int, low <= value <= high."""
    try:
        number = operator.index(value)
    except TypeError:
        raise DataError(f"{name} is {value!r}; expected a whole number") from None
    if number < low or (high is not None and number > high):
        wanted = f"at least {low:,}" if high is None else f"{low:,} to {high:,}"
        raise DataError(f"{name} is {number:,}; expected {wanted}")
    return number


def check_number(value: Any, name: str, *, low: float, high: float = math.inf) -> float:
    """``value`` as a finite float, low <= value <= high."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{name} is {value!r}; expected a number") from None
    if not math.isfinite(number) or not low <= number <= high:
        wanted = f"at least {low:g}" if high == math.inf else f"{low:g} to {high:g}"
        raise DataError(f"{name} is {number:g}; expected {wanted}")
    return number


def make_rng(random_state: RandomState) -> np.random.Generator:
    """A generator from a seed, or the generator itself (which then moves on)."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_integer(random_state, "random_state", low=0))
