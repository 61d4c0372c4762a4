"""The number of the format, the names of the files, the tables. Nothing here reads or writes.

To raise the format (a change that an older release would read wrongly: a table, a column, a layout of bytes):

1. Add one to `FORMAT`, and change `SCHEMA` or `HEADER` here.
2. Write ``store/upgrade_N.py`` with one function that turns a catalogue of format N into one of N + 1 inside a
   transaction. `sqlite.writing` calls it under the writer's lock, `sqlite.reading` on a copy in memory, so that all
   other code knows the newest format only. Segments are never rewritten by an upgrade.
3. Keep the tables of format N there: a catalogue of that format must have these and no others.
4. Run ``python tests/store/make_format_model.py``: a small model of the new format joins those of the old ones in
   ``tests/store/formats``. They are never changed or deleted; every release opens all of them.
5. Say in ``docs/store.md`` and in the changelog which release reads which format.

What an older release can ignore (a key in ``meta``, a part, an action of a revision) does not raise it.
"""

from __future__ import annotations

import struct

FORMAT = 2
APPLICATION_ID = 0x534C4231
CATALOGUE = "catalogue.db"
LOCK = "writer.lock"

# Kinds of numbered files: rows of float32; rows of (int32 index, float32 value); arrays of parts.
DENSE, SPARSE, PART = 1, 2, 3
KINDS = {DENSE: ("W", "f32"), SPARSE: ("V", "csr"), PART: ("P", "bin")}
MOST_FILES = 999_999
MOST_FEATURES = 2**31 - 1

SEGMENT_FORMAT = 1  # of the numbered files
# magic, format, kind, number, n_features, rows, bytes that follow the header, 16 spare bytes, CRC-32 of all before it
HEADER = struct.Struct("<8sIIIQQQ16sI")
HEADER_SIZE = HEADER.size
MAGIC = b"SLABELS\0"

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, seal INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE revision (
    number INTEGER PRIMARY KEY, at TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, detail TEXT NOT NULL,
    digest INTEGER NOT NULL, seal INTEGER NOT NULL);
CREATE TABLE segment (
    number INTEGER PRIMARY KEY, kind INTEGER NOT NULL, n_rows INTEGER NOT NULL, n_bytes INTEGER NOT NULL,
    used_rows INTEGER NOT NULL, used_bytes INTEGER NOT NULL, seal INTEGER NOT NULL);
CREATE TABLE label (id INTEGER PRIMARY KEY, born INTEGER NOT NULL, origin TEXT NOT NULL, seal INTEGER NOT NULL);
CREATE TABLE classifier (
    id INTEGER PRIMARY KEY, label INTEGER NOT NULL,
    segment INTEGER NOT NULL, slot INTEGER NOT NULL, start INTEGER NOT NULL, nnz INTEGER NOT NULL,
    checksum INTEGER NOT NULL, intercept REAL NOT NULL, slope REAL NOT NULL, shift REAL NOT NULL,
    n_yes INTEGER NOT NULL, n_no INTEGER NOT NULL, n_unasked INTEGER,
    lam REAL, beta REAL, share REAL NOT NULL, anchored INTEGER NOT NULL,
    loss TEXT NOT NULL, coupled INTEGER NOT NULL, gap REAL NOT NULL,
    relations INTEGER NOT NULL, answers INTEGER, place INTEGER NOT NULL, facts INTEGER NOT NULL);
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
    n_answers INTEGER NOT NULL, revision INTEGER NOT NULL, seal INTEGER NOT NULL);
CREATE TABLE event (key TEXT PRIMARY KEY, revision INTEGER NOT NULL, seal INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE part (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, content TEXT NOT NULL, checksum INTEGER NOT NULL,
    born INTEGER NOT NULL, retired INTEGER);
CREATE UNIQUE INDEX live_part ON part (name) WHERE retired IS NULL;
CREATE TABLE part_array (
    part INTEGER NOT NULL, name TEXT NOT NULL, dtype TEXT NOT NULL, shape TEXT NOT NULL,
    segment INTEGER NOT NULL, start INTEGER NOT NULL, n_bytes INTEGER NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY (part, name)) WITHOUT ROWID;
"""


def file_name(kind: int, number: int) -> str:
    """The name of a segment's file, made from numbers only, so that no catalogue can name a file elsewhere."""
    if kind not in KINDS or not 1 <= number <= MOST_FILES:
        raise ValueError(f"no file has kind {kind!r} and number {number!r}")
    letter, suffix = KINDS[kind]
    return f"{letter}-{number:06d}.{suffix}"
