"""A model directory of unknown origin: refused before memory is taken for it, and nothing in it runs."""

from __future__ import annotations

import os
import sqlite3
import tracemalloc
from contextlib import closing

import numpy as np
import pytest

from sealing import reseal
from streamlabel import ModelStore
from streamlabel.errors import ConflictError, DataError, NotFoundError
from streamlabel.store.format import APPLICATION_ID, FORMAT, file_name

REFUSED = (DataError, NotFoundError, ConflictError)


def edit(path, *statements):
    with closing(sqlite3.connect(path / "catalogue.db", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def refused(path, match=None, learning=False):
    """Opening (or also learning from) the directory raises our error and takes hardly any memory."""
    tracemalloc.start()
    try:
        with pytest.raises(REFUSED, match=match):
            ModelStore.open(path).model(learning=learning).decision_function(np.eye(24))
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    ModelStore.doctor(path)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON revision BEGIN DELETE FROM label; END",
        "CREATE VIEW v AS SELECT load_extension('x')",
        "CREATE TABLE more (x)",
        "CREATE INDEX i ON label (born)",
        "CREATE VIRTUAL TABLE f USING fts5(x)",
        "DROP INDEX live_name",
        "ALTER TABLE label ADD COLUMN x",
    ],
)
def test_tables_that_are_not_ours_are_refused(stored, statement):
    try:
        edit(stored, statement)
    except sqlite3.OperationalError as error:
        pytest.skip(f"this SQLite cannot do that: {error}")
    refused(stored, match="not a catalogue that streamlabel made")
    with pytest.raises(DataError):
        ModelStore.open(stored, "a")


def test_a_view_in_the_place_of_a_table_runs_nothing(stored):
    """A view whose reading would call a function, which is registered here to see that it is not called."""
    edit(
        stored,
        "ALTER TABLE meta RENAME TO meta2",
        "CREATE VIEW meta AS SELECT key, hex(randomblob(1000000000)) AS value FROM meta2",
    )
    refused(stored, match="not a catalogue")


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("UPDATE meta SET value = '99999999999' WHERE key = 'n_features'", "features"),
        ("UPDATE meta SET value = '2000000000' WHERE key = 'n_features'", "refused"),
        ("UPDATE meta SET value = '[' WHERE key = 'n_features'", "meta"),
        ("UPDATE meta SET value = '\"24\"' WHERE key = 'n_features'", "meta"),
        ("DELETE FROM meta", "meta"),
        ("UPDATE meta SET value = '{\"beta\": -1}' WHERE key = 'parameters'", "parameters"),
        ("UPDATE meta SET value = '{\"__class__\": 1}' WHERE key = 'parameters'", "parameters"),
        ("UPDATE segment SET n_rows = 1000000000000, n_bytes = 96000000000000 WHERE kind = 1", "header"),
        ("UPDATE segment SET n_rows = -5", "impossible|refused"),
        ("UPDATE segment SET kind = 7", "impossible"),
        ("UPDATE segment SET n_bytes = 'many'", "str"),
        ("UPDATE segment SET number = 10000000 WHERE kind = 1", "no file"),
        ("UPDATE classifier SET slot = 1000000", "outside"),
        ("UPDATE classifier SET slot = -1 WHERE id = 3", "outside"),
        ("UPDATE classifier SET slot = 'x'", "str"),
        ("UPDATE classifier SET slot = 4 WHERE id = 2", "checksum"),
        ("UPDATE classifier SET segment = 77", "not there"),
        ("UPDATE classifier SET segment = 2", "not there"),
        ("UPDATE classifier SET intercept = 9e999", "not finite"),
        ("UPDATE classifier SET intercept = 5.5 WHERE id = 1", "checksum"),
        ("UPDATE classifier SET slope = 9e999", "not a number"),
        ("UPDATE classifier SET shift = 'x'", "str"),
        ("UPDATE version SET threshold = x'00'", "bytes"),
        ("UPDATE version SET name = x'00ff'", "bytes"),
        ("UPDATE version SET label = 9223372036854775807 WHERE number = 2", None),
        ("UPDATE version SET label = 1", "share an id"),
        ("UPDATE relation SET weight = 9e999", "not finite"),
        ("UPDATE relation SET weight = 'x'", "str"),
        ("UPDATE revision SET number = 'x'", None),
        ("UPDATE revision SET number = 1000000 WHERE number = 3", None),
        ("DELETE FROM revision", None),
        ("DELETE FROM version", None),
        ("DELETE FROM label", None),
    ],
)
def test_numbers_that_lie_are_refused(stored, statement, match):
    """By their seals; and with seals that are right, too."""
    try:
        edit(stored, statement)
    except (sqlite3.IntegrityError, sqlite3.OperationalError):
        return  # SQLite itself does not hold it
    refused(stored)
    reseal(stored)
    if match is None:
        try:
            store = ModelStore.open(stored)
            store.scores(np.eye(24))
            store.model(learning=False)
            store.labels()
            store.history()
        except REFUSED:
            pass
        ModelStore.doctor(stored)
    else:
        refused(stored, match)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE part_array SET shape = '[1000000000000, 24]' WHERE name = 'rows'",
        "UPDATE part_array SET dtype = '|O8' WHERE name = 'rows'",
        "UPDATE part_array SET n_bytes = 1000000000000000 WHERE name = 'rows'",
        "UPDATE part_array SET start = 64000000 WHERE name = 'rows'",
        "UPDATE part_array SET start = -64 WHERE name = 'rows'",
        "UPDATE part_array SET segment = 1 WHERE name = 'rows'",
        "UPDATE part_array SET segment = 99 WHERE name = 'rows'",
        'UPDATE part SET content = \'{"n_rows": 1e300, "sparse": true, "hat": null}\' WHERE name = \'learning\'',
        "UPDATE part SET content = '[[[[' WHERE name = 'learning'",
        "DELETE FROM part_array WHERE name = 'judged_rows'",
        "UPDATE part_array SET name = 'labels2' WHERE name = 'labels'",
    ],
)
def test_arrays_that_lie_are_refused(stored, statement):
    edit(stored, statement)
    refused(stored, learning=True)
    reseal(stored)
    refused(stored, learning=True)


@pytest.mark.parametrize("name", ["indices", "indptr"])
def test_indices_out_of_range_never_reach_compiled_code(problem, path, name):
    """The checksum is right, the matrix is not: as somebody would write it who means harm."""
    from scipy import sparse

    from streamlabel import StreamingLabelClassifier

    clf = StreamingLabelClassifier().fit(sparse.csr_array(problem.X), problem.Y[:, :6])
    matrix = clf.state_.memory.X
    getattr(matrix, name)[5] = 10**6
    ModelStore.create(path, clf).close()
    refused(path, match="learning is damaged", learning=True)


@pytest.mark.parametrize("name", ["catalogue.db", "W-000001.f32", "writer.lock", "catalogue.db-journal"])
def test_links_are_not_followed(stored, tmp_path, name):
    elsewhere = tmp_path / "elsewhere"
    (stored / name).rename(elsewhere) if (stored / name).exists() else elsewhere.write_bytes(b"")
    (stored / name).symlink_to(elsewhere)
    refused(stored)


def test_a_pipe_is_not_waited_for(stored):
    (stored / "W-000001.f32").unlink()
    os.mkfifo(stored / "W-000001.f32")
    (stored / "catalogue.db-wal").unlink(missing_ok=True)
    connection = os.open(stored / "W-000001.f32", os.O_RDWR)
    try:
        refused(stored)
    finally:
        os.close(connection)


def test_a_journal_that_names_other_files_is_refused(stored):
    (stored / "catalogue.db-journal").write_bytes(bytes(512) + b"/etc/passwd" + bytes.fromhex("d9d505f920a163d7"))
    refused(stored, match="outside of the model")


def test_no_number_makes_a_name_that_escapes():
    assert file_name(1, 12) == "W-000012.f32"
    for kind, number in ((1, 0), (1, -1), (1, 1_000_000), (9, 1), (1, 10**20)):
        with pytest.raises(ValueError, match="no file"):
            file_name(kind, number)


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"x" * 4096, b"\x80\x04\x95pickle"])
def test_other_files_are_refused(stored, content):
    (stored / "catalogue.db").write_bytes(content)
    refused(stored)


def test_other_databases_and_formats_are_refused(stored, tmp_path):
    edit(stored, f"PRAGMA user_version = {FORMAT + 1}")
    refused(stored, match=rf"format {FORMAT + 1}, and this release reads up to {FORMAT}: upgrade streamlabel")
    with pytest.raises(DataError, match="upgrade"):
        ModelStore.open(stored, "a")
    edit(stored, f"PRAGMA user_version = {FORMAT}", f"PRAGMA application_id = {APPLICATION_ID + 1}")
    refused(stored, match="another program")
    file = tmp_path / "model.pkl"
    file.write_bytes(b"\x80\x04.")
    with pytest.raises(DataError, match="pickled models are not read"):
        ModelStore.open(file)
    with pytest.raises(NotFoundError, match="not a stored model"):
        ModelStore.open(tmp_path)
