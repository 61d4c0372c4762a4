"""From a catalogue of format 1, whose rows had few checksums, to one of format 2.

What a catalogue of format 1 says is taken at its word, where it cannot be checked: damage that was there before is
sealed with it.
"""

from __future__ import annotations

import sqlite3

from streamlabel.store.seals import digest_by_revision, facts_seal, part_checksum, place_seal, relations_digest, seal

SCHEMA_1 = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE revision (
    number INTEGER PRIMARY KEY, at TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, detail TEXT NOT NULL);
CREATE TABLE segment (
    number INTEGER PRIMARY KEY, kind INTEGER NOT NULL, n_rows INTEGER NOT NULL, n_bytes INTEGER NOT NULL,
    used_rows INTEGER NOT NULL, used_bytes INTEGER NOT NULL);
CREATE TABLE label (id INTEGER PRIMARY KEY, born INTEGER NOT NULL, origin TEXT NOT NULL);
CREATE TABLE classifier (
    id INTEGER PRIMARY KEY, label INTEGER NOT NULL,
    segment INTEGER NOT NULL, slot INTEGER NOT NULL, start INTEGER NOT NULL, nnz INTEGER NOT NULL,
    checksum INTEGER NOT NULL, intercept REAL NOT NULL, slope REAL NOT NULL, shift REAL NOT NULL,
    n_yes INTEGER NOT NULL, n_no INTEGER NOT NULL, n_unasked INTEGER,
    lam REAL, beta REAL, share REAL NOT NULL, anchored INTEGER NOT NULL,
    loss TEXT NOT NULL, coupled INTEGER NOT NULL, gap REAL NOT NULL);
CREATE TABLE version (
    number INTEGER PRIMARY KEY, label INTEGER NOT NULL, classifier INTEGER NOT NULL, name TEXT NOT NULL,
    threshold REAL NOT NULL, checksum INTEGER NOT NULL, born INTEGER NOT NULL, retired INTEGER);
CREATE UNIQUE INDEX live_name ON version (name) WHERE retired IS NULL;
CREATE INDEX version_label ON version (label);
CREATE TABLE relation (
    classifier INTEGER NOT NULL, neighbour INTEGER NOT NULL, weight REAL NOT NULL,
    PRIMARY KEY (classifier, neighbour)) WITHOUT ROWID;
CREATE TABLE answer (classifier INTEGER PRIMARY KEY, positives BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE metric (
    number INTEGER PRIMARY KEY, label INTEGER NOT NULL, name TEXT NOT NULL, value REAL NOT NULL,
    n_answers INTEGER NOT NULL, revision INTEGER NOT NULL);
CREATE TABLE event (key TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE part (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, content TEXT NOT NULL, born INTEGER NOT NULL, retired INTEGER);
CREATE UNIQUE INDEX live_part ON part (name) WHERE retired IS NULL;
CREATE TABLE part_array (
    part INTEGER NOT NULL, name TEXT NOT NULL, dtype TEXT NOT NULL, shape TEXT NOT NULL,
    segment INTEGER NOT NULL, start INTEGER NOT NULL, n_bytes INTEGER NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY (part, name)) WITHOUT ROWID;
"""

MOVED = ("meta", "revision", "segment", "label", "classifier", "answer", "metric", "event", "part")


def upgrade(connection: sqlite3.Connection, schema: str) -> None:
    """Turn the tables into those of ``schema``, inside the transaction that is open; the catalogue is not hardened."""
    run = connection.execute
    old = {table: run(f"SELECT * FROM {table}").fetchall() for table in MOVED}
    arrays = run("SELECT * FROM part_array ORDER BY part, name").fetchall()
    relations: dict[int, list[tuple[int, float]]] = {}
    for classifier, neighbour, weight in run("SELECT classifier, neighbour, weight FROM relation"):
        relations.setdefault(classifier, []).append((neighbour, weight))
    run("DROP INDEX live_part")
    for table in MOVED:
        run(f"DROP TABLE {table}")
    for statement in schema.split(";"):
        if any(f"TABLE {table} (" in statement for table in MOVED) or "live_part" in statement:
            run(statement)
    for table in ("meta", "segment", "label", "metric", "event"):
        for row in old[table]:
            run(f"INSERT INTO {table} VALUES ({', '.join('?' * (len(row) + 1))})", (*row, seal(*row)))
    answers = {}
    for classifier, positives, checksum in old["answer"]:
        answers[classifier] = checksum
        run("INSERT INTO answer VALUES (?, ?, ?)", (classifier, positives, checksum))
    for row in old["classifier"]:
        related = relations_digest(relations.get(row[0], ()))
        facts = (*row, related, answers.get(row[0]))
        run(
            f"INSERT INTO classifier VALUES ({', '.join('?' * 24)})",
            (*facts, place_seal(*row[:8]), facts_seal(row[0], facts[8:])),
        )
    for number, name, content, born, retired in old["part"]:
        mine = [array[1:] for array in arrays if array[0] == number]
        checksum = part_checksum(name, content, mine)
        run("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", (number, name, content, checksum, born, retired))
    digests = digest_by_revision(connection, [row[0] for row in old["revision"]])
    for row in old["revision"]:
        sealed = (*row, digests[row[0]])
        run("INSERT INTO revision VALUES (?, ?, ?, ?, ?, ?, ?)", (*sealed, seal(*sealed)))
