"""Errors as data: what to do about them, where they point, and both after a copy or a way through a pipe."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from streamlabel.errors import ConflictError, DataError, DownloadError, Hint, MissingExtraError, NotFoundError
from streamlabel.errors import StreamlabelError as Base

WORDS = {Hint.FORMAT: "--format gives it, one of {}"}
HINT = {"hint": Hint.FORMAT, "hint_value": "csv, {jsonl}"}
ERRORS = [
    *(kind("what {it} is", **HINT) for kind in (Base, ConflictError, NotFoundError, DownloadError)),
    DataError("what {it} is", source="a.txt", line=3, **HINT),
]


def through_a_pipe(error: Any) -> Any:
    return pickle.loads(pickle.dumps(error))  # noqa: S301


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_what_to_do_is_said_in_words_of_python_or_others(error: Base) -> None:
    for one in (error, copy.copy(error), copy.deepcopy(error), through_a_pipe(error)):
        assert type(one) is type(error)
        assert vars(one) == vars(error)
        assert str(one).endswith("what {it} is; pass format=, one of csv, {jsonl}")
        assert one.told(WORDS).endswith("what {it} is; --format gives it, one of csv, {jsonl}")


def test_without_a_hint_there_is_nothing_more_to_say() -> None:
    assert (str(NotFoundError("no {}")), DataError("no {}", source="x").told(WORDS)) == ("no {}", "x: no {}")
    missing = through_a_pipe(MissingExtraError("onnx", "onnx", "the export"))
    assert (missing.package, missing.hint) == ("onnx", None)
