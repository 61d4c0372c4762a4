"""Checksums of what the catalogue says, so that a bit that flipped there is found when it is read.

A row of most tables ends with its `seal`. A version of a label has a checksum of what never changes about it
(`segments.version_checksum`); from when to when it was live is sealed by the revisions: the ``digest`` of a revision is
the exclusive or of the checksums of all versions and parts that are live in it, and of all measurements and keys up to
it, so that a row that vanished, or that lives too long, shows too. A classifier has two seals: of where its weights
lie, which opening a model checks, and of all else that is known of it, with digests of its relations and its answers.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from streamlabel.types import IntArray

NOTES = ("metric", "event")  # tables whose rows belong to a revision and stay
_STEPS, _ALL = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB), (1 << 64) - 1
_PLACE = struct.Struct("<7qd")
_FACTS = struct.Struct("<qdd3q3dqqdqq")
_RELATION = struct.Struct("<qd")


def seal(*values: Any) -> int:
    """The checksum of a row: numbers, texts and None."""
    return zlib.crc32(json.dumps(values).encode())


def place_seal(
    number: int, label: int, segment: int, slot: int, start: int, nnz: int, checksum: int, intercept: float
) -> int:
    """The checksum of where the weights of a classifier lie."""
    return zlib.crc32(_PLACE.pack(number, label, segment, slot, start, nnz, checksum, intercept))


def facts_seal(number: int, facts: Sequence[Any]) -> int:
    """The checksum of how a classifier was learned, and of its probabilities.

    facts : slope, shift, n_yes, n_no, n_unasked, lam, beta, share, anchored, loss, coupled, gap, relations, answers
    """
    slope, shift, n_yes, n_no, n_unasked, lam, beta, share, anchored, loss, coupled, gap, relations, answers = facts
    numbers = _FACTS.pack(
        number, slope, shift, n_yes, n_no, -1 if n_unasked is None else n_unasked, np.nan if lam is None else lam,
        np.nan if beta is None else beta, share, anchored, coupled, gap, relations, -1 if answers is None else answers,
    )  # fmt: skip
    return zlib.crc32(loss.encode(), zlib.crc32(numbers))


def relations_digest(relations: Iterable[tuple[int, float]]) -> int:
    """The exclusive or of the checksums of the relations (neighbour, weight) of a classifier."""
    found = 0
    for neighbour, weight in relations:
        found ^= mixed(zlib.crc32(_RELATION.pack(neighbour, weight)))
    return found


def part_checksum(name: str, content: str, arrays: Iterable[Sequence[Any]]) -> int:
    """The checksum of a part: its name, its content, and where its arrays lie (rows without the part's number)."""
    return seal(name, content, sorted(list(array) for array in arrays))


def digest_by_revision(connection: sqlite3.Connection, revisions: Sequence[int]) -> dict[int, int]:
    """What the digest of each revision should be, by the versions and parts that are there now."""
    changes: dict[int, int] = {}
    for table in ("version", "part"):
        columns = "CAST(checksum AS INTEGER), CAST(born AS INTEGER), CAST(retired AS INTEGER)"  # damage has any type
        for checksum, born, retired in connection.execute(f"SELECT {columns} FROM {table}"):
            changes[born or 0] = changes.get(born or 0, 0) ^ mixed(checksum or 0)
            if retired is not None:
                changes[retired] = changes.get(retired, 0) ^ mixed(checksum or 0)
    for table in NOTES:
        columns = "CAST(seal AS INTEGER), CAST(revision AS INTEGER)"
        for sealed, revision in connection.execute(f"SELECT {columns} FROM {table}"):
            changes[revision or 0] = changes.get(revision or 0, 0) ^ mixed(sealed or 0)
    found, digest = {}, 0
    waiting = sorted(changes)
    for revision in sorted(revisions):
        while waiting and waiting[0] <= revision:
            digest ^= changes[waiting.pop(0)]
        found[revision] = digest
    return found


def combined(checksums: IntArray) -> int:
    """The exclusive or of mixed checksums, as `mixed` gives them one by one."""
    z = np.asarray(checksums, dtype=np.int64).astype(np.uint64) + np.uint64(_STEPS[0])
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_STEPS[1])
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_STEPS[2])
    return int(np.bitwise_xor.reduce(z ^ (z >> np.uint64(31)), initial=np.uint64(0)).astype(np.int64))


def mixed(checksum: int) -> int:
    """A checksum spread over 64 bits (the steps of splitmix64), as a signed number.

    CRC-32 is linear: without it, the exclusive or of the checksums of several rows that differ little is often zero.
    """
    z = (checksum + _STEPS[0]) & _ALL
    z = ((z ^ (z >> 30)) * _STEPS[1]) & _ALL
    z = ((z ^ (z >> 27)) * _STEPS[2]) & _ALL
    z ^= z >> 31
    return z - (1 << 64) if z >> 63 else z
