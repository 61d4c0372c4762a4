"""Names that nothing answers to: which was meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["did_you_mean"]


def did_you_mean(wanted: str, known: Iterable[str]) -> str:
    """A question with the names that are close; "" where there are none.

    >>> did_you_mean("SSL", ["SLL", "LEML"])
    "did you mean 'SLL'?"
    """
    by_case = {name.casefold(): name for name in known}
    close = [by_case[match] for match in get_close_matches(wanted.strip().casefold(), by_case, n=3, cutoff=0.6)]
    return f"did you mean {' or '.join(map(repr, close))}?" if close else ""
