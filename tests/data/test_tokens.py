"""The tokenizer gives exactly what float() and int() give."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamlabel.data.tokens import Tokens, byte_table

SPACES = byte_table({b" \n": 1})
DIGITS = st.text("0123456789", max_size=22)
DECIMALS = st.builds(lambda sign, whole, part: f"{sign}{whole}.{part}", st.sampled_from(["", "-", "+"]), DIGITS, DIGITS)
EXPONENTS = st.builds(lambda number, power: f"{number}e{power}", DECIMALS, st.integers(-330, 330))
REPRS = st.floats(allow_nan=False, allow_infinity=False).map(repr)
ROUNDED = st.builds(lambda value, digits: f"{value:.{digits}g}", st.floats(1e-9, 1e9), st.integers(1, 17))


def as_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(DIGITS, DECIMALS, EXPONENTS, REPRS, ROUNDED), min_size=1, max_size=20))
@example(
    ["9007199254740992", "9007199254740993", "0.30000000000000004", "-0", "-0.0", "1.", ".5", ".", "-", "--1", "1-"]
)
@example(["5e-324", "1.7976931348623157e308", "123456789012345678901234567890", "0.000000000000000000001", "1e400"])
def test_floats_are_what_float_gives(texts: list[str]) -> None:
    tokens = Tokens((" ".join(texts) + "\n").encode(), SPACES)
    values, valid = tokens.floats(np.arange(len(texts)))
    expected = np.array([as_float(text) for text in texts])
    assert np.array_equal(valid, np.isfinite(expected))
    assert values[valid].tobytes() == expected[valid].tobytes()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text("0123456789-.a", max_size=20), min_size=1, max_size=20))
def test_integers_are_what_int_gives(texts: list[str]) -> None:
    tokens = Tokens((" ".join(texts) + "\n").encode(), SPACES)
    values, valid = tokens.integers(np.arange(len(texts)))
    for position, text in enumerate(texts):
        assert valid[position] == (text.isdigit() and len(text) <= 16)
        assert not valid[position] or values[position] == int(text)
        assert tokens.text(position) == text.encode()


def test_words_that_float_knows_are_not_numbers_here() -> None:
    texts = ["nan", "inf", "-Infinity", "1_000", "0x10", "1e", "\u0661"]
    tokens = Tokens((" ".join(texts) + "\n").encode(), SPACES)
    assert not tokens.floats(np.arange(len(texts)))[1].any()


def test_lines_are_counted() -> None:
    tokens = Tokens(b"1 2\n\n3\n", SPACES)
    assert [tokens.line(i) for i in range(len(tokens.sizes))] == [0, 0, 1, 2]
