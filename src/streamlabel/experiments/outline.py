"""What an experiment shows as points of a list: sentence by sentence, set by set."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["outline"]


def outline(text: str, sets: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Sentences, each with its points.

    A sentence that follows one which begins with a set belongs to it. One that goes through several sets, ``...: SET
    ...; SET ...``, is its beginning and a point a set.

    >>> outline("All win. a: by 1. Or by 2. b: by 3.", ["a", "b"])
    [('All win.', []), ('a: by 1. Or by 2.', []), ('b: by 3.', [])]
    >>> outline("Gains: a 1; b 2.", ["a", "b"])
    [('Gains:', ['a 1.', 'b 2.'])]
    """
    names = "|".join(re.escape(name) for name in sorted(sets, key=len, reverse=True)) or "(?!)"
    named = f"(?:{names})[ :,]"
    found: list[str] = []
    for sentence in re.split(rf"(?<=\.) (?=[A-Z]|{named})", text):
        if found and re.match(named, found[-1]) and not re.match(named, sentence):
            found[-1] += f" {sentence}"
        else:
            found.append(sentence)
    return [_points(sentence, named) for sentence in found]


def _points(sentence: str, named: str) -> tuple[str, list[str]]:
    head, *points = re.split(rf"(?<=[:;]) (?={named})", sentence)
    return (head, [f"{point.rstrip(';.')}." for point in points]) if len(points) > 1 else (sentence, [])
