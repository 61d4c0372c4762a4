"""Numbers out of text, whole blocks at a time.

The kernel of the readers. A block of lines is cut at every byte that is not a digit; each run of digits becomes an
integer by arithmetic on eight bytes at once; a decimal ``12.345`` is then 12345 / 1000. Both operands are exact as
long as 12345 <= 2**53 and the power is at most 10**22, and the division rounds correctly, so the result is bit for bit
what ``float("12.345")`` gives. Everything else (exponents, more digits, signs written as ``+``) goes through ``float``.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

U64 = np.uint64
PAD = 16
MAX_RUN = 16
MAX_DIGITS = 19
MINUS, DOT = ord("-"), ord(".")
NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

IS_DIGIT_RUN = np.array([int("0f" * k + "00" * (8 - k), 16) for k in range(9)], dtype=U64)
POWERS = U64(10) ** np.arange(MAX_RUN + 1, dtype=U64)
FLOAT_POWERS = POWERS.astype(np.float64)


def byte_table(entries: dict[bytes, int], default: int = 0) -> NDArray[np.uint8]:
    """A table of 256 entries: ``table[byte]`` is the number given for that byte. Keys may hold several bytes."""
    table = np.full(256, default, dtype=np.uint8)
    for characters, number in entries.items():
        table[list(characters)] = number
    return table


class Tokens:
    """The tokens of one block: what stands between two neighbouring separators (possibly nothing).

    Parameters
    ----------
    block : bytes that end in a separator
    is_separator : (256,) table, non-zero for the bytes that separate

    Attributes
    ----------
    before, after : uint8 (n_tokens,), the separator before and after each token; before the first stands ``\\n``
    sizes : (n_tokens,), how many bytes each token has
    """

    def __init__(self, block: bytes, is_separator: NDArray[np.uint8]) -> None:
        self._block = block
        buffer = np.frombuffer(b"\n" * PAD + block, dtype=np.uint8)
        # Breaks: every byte that is not a digit, from the last padding byte (the separator before token 0) on.
        self._breaks = np.flatnonzero((buffer[PAD - 1 :] - np.uint8(48)) > 9) + (PAD - 1)
        self._kinds = buffer[self._breaks]
        self._lengths = np.diff(self._breaks, append=self._breaks[-1:] + 1) - 1
        self._runs = _digit_runs(buffer, self._breaks, self._lengths)
        separators = np.flatnonzero(is_separator[self._kinds])
        self._heads, self._tails = separators[:-1], separators[1:]
        kinds = self._kinds[separators]
        self.before, self.after = kinds[:-1], kinds[1:]
        self.sizes = np.diff(self._breaks[separators]) - 1

    def text(self, token: int) -> bytes:
        """The bytes of one token."""
        start = int(self._breaks[self._heads[token]]) + 1 - PAD
        return self._block[start : start + int(self.sizes[token])]

    def line(self, token: int) -> int:
        """How many lines of the block end before this token."""
        return int(np.count_nonzero(self.after[:token] == ord("\n")))

    def integers(self, which: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Values of these tokens, and which of them really are 1 to 16 digits and nothing else."""
        heads = self._heads[which]
        lengths = self._lengths[heads]
        valid = (self._tails[which] - heads == 1) & (lengths > 0) & (lengths <= MAX_RUN)
        return self._runs[heads].astype(np.int64), valid

    def floats(self, which: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Values of these tokens, equal to ``float(token)``, and which of them are finite decimal numbers."""
        heads = self._heads[which]
        inner = self._tails[which] - heads - 1
        negative = (inner > 0) & (self._kinds[heads + 1] == MINUS) & (self._lengths[heads] == 0)
        heads = heads + negative
        inner = inner - negative
        has_dot = (inner == 1) & (self._kinds[heads + 1] == DOT)
        whole_length = self._lengths[heads]
        part_length = self._lengths[heads + 1] * has_dot
        power = np.minimum(part_length, MAX_RUN)
        mantissa = self._runs[heads] * POWERS[power] + self._runs[heads + 1] * has_dot
        n_digits = whole_length + part_length
        simple = (inner == has_dot) & (n_digits > 0) & (n_digits <= MAX_DIGITS) & (mantissa <= U64(2**53))
        simple &= np.maximum(whole_length, part_length) <= MAX_RUN
        values = mantissa.astype(np.float64) / FLOAT_POWERS[power]
        np.negative(values, out=values, where=negative)
        for position in np.flatnonzero(~simple):
            token = self.text(int(which[position]))  # ``nan`` and ``inf`` are words, not numbers, here
            values[position] = float(token) if NUMBER.fullmatch(token) else np.nan
        return values, np.isfinite(values)


def _digit_runs(buffer: NDArray[np.uint8], breaks: NDArray[np.intp], lengths: NDArray[np.intp]) -> NDArray[np.uint64]:
    """The run of digits after each break as an integer: exact to 16 digits, meaningless beyond. One entry a break."""
    # words[i] is the eight bytes from i on; the last of the bytes is the highest.
    words = np.ndarray(shape=(len(buffer) - 7,), dtype="<u8", buffer=buffer.data, strides=(1,))
    ends = breaks[1:]
    runs = np.zeros(len(breaks), dtype=U64)
    runs[:-1] = _eight_digits(words[ends - 8], np.minimum(lengths[:-1], 8))
    long = np.flatnonzero(lengths[:-1] > 8)
    if long.size:
        runs[long] += U64(10**8) * _eight_digits(words[ends[long] - 16], np.minimum(lengths[long] - 8, 8))
    return runs


def _eight_digits(words: NDArray[np.uint64], lengths: NDArray[np.intp]) -> NDArray[np.uint64]:
    """The number written in the last ``lengths`` bytes of each word: digits to pairs, to fours, to eight."""
    words = words & IS_DIGIT_RUN[lengths]
    words *= U64(10 * 2**8 + 1)
    words >>= U64(8)
    words &= U64(0x00FF00FF00FF00FF)
    words *= U64(100 * 2**16 + 1)
    words >>= U64(16)
    words &= U64(0x0000FFFF0000FFFF)
    words *= U64(10000 * 2**32 + 1)
    words >>= U64(32)
    return words
