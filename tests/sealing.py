"""Seal a catalogue anew after it was written to: what somebody does who means harm, and not a bit that flips."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import suppress
from pathlib import Path

from streamlabel.store.seals import digest_by_revision, facts_seal, part_checksum, place_seal, relations_digest, seal
from streamlabel.store.segments import version_checksum

KEYS = {"meta": "key", "segment": "number", "label": "id", "metric": "number", "event": "key"}


def reseal(folder: Path) -> None:
    connection = sqlite3.connect(folder / "catalogue.db", isolation_level=None)
    run = connection.execute
    for table, key in KEYS.items():
        for row in run(f"SELECT * FROM {table}").fetchall():
            run(f"UPDATE {table} SET seal = ? WHERE {key} = ?", (seal(*row[:-1]), row[0]))
    related: dict[int, list[tuple[int, float]]] = {}
    for owner, neighbour, weight in run("SELECT * FROM relation").fetchall():
        related.setdefault(owner, []).append((neighbour, weight))
    for row in run("SELECT * FROM classifier").fetchall():
        with suppress(struct.error):
            digest = relations_digest(related.get(row[0], ()))
            facts = facts_seal(row[0], (*row[8:20], digest, row[21]))
            values = (digest, place_seal(*row[:8]), facts, row[0])
            run("UPDATE classifier SET relations = ?, place = ?, facts = ? WHERE id = ?", values)
    for number, *row in run("SELECT number, label, classifier, name, threshold FROM version").fetchall():
        run("UPDATE version SET checksum = ? WHERE number = ?", (version_checksum(*row), number))
    for number, name, content in run("SELECT number, name, content FROM part").fetchall():
        columns = "name, dtype, shape, segment, start, n_bytes, checksum"
        arrays = run(f"SELECT {columns} FROM part_array WHERE part = ?", (number,)).fetchall()
        run("UPDATE part SET checksum = ? WHERE number = ?", (part_checksum(name, content, arrays), number))
    rows = run("SELECT number, at, actor, action, detail FROM revision").fetchall()
    for row in rows:
        sealed = (*row, digest_by_revision(connection, [one[0] for one in rows])[row[0]])
        run("UPDATE revision SET digest = ?, seal = ? WHERE number = ?", (sealed[-1], seal(*sealed), row[0]))
    connection.close()
