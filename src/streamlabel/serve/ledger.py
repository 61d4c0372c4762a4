"""The ledger of answers: what people said in an annotation tool, in a small database beside the model.

From it a label can be learned again. It is no part of the model's history: an undo does not change what people said. An
answer is one row, however many labels were offered; a list of offered labels is kept once, and a text while an answer
to it stands.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streamlabel.errors import DataError
from streamlabel.store.guard import open_regular
from streamlabel.store.sqlite import PATIENCE, explain, journal_mode, tables_of, tables_of_schema
from streamlabel.tagging.text_answers import digest

FILE = "label-studio.db"
PRAGMAS = ("synchronous = FULL", "trusted_schema = OFF", "cell_size_check = ON")
OF_ONE = "WHERE project = ? AND annotation = ? AND field = ?"
SCHEMA = """
CREATE TABLE answer (
    project INTEGER NOT NULL, annotation INTEGER NOT NULL, field TEXT NOT NULL, task INTEGER NOT NULL,
    text BLOB NOT NULL, offer INTEGER NOT NULL, at TEXT NOT NULL, deleted INTEGER NOT NULL,
    PRIMARY KEY (project, annotation, field));
CREATE INDEX answer_offer ON answer (offer, deleted);
CREATE INDEX answer_task ON answer (project, task);
CREATE INDEX answer_text ON answer (text);
CREATE TABLE yes (
    label TEXT NOT NULL, project INTEGER NOT NULL, annotation INTEGER NOT NULL, field TEXT NOT NULL,
    PRIMARY KEY (project, annotation, field, label)) WITHOUT ROWID;
CREATE TABLE offer (number INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE);
CREATE TABLE offered (
    label TEXT NOT NULL, offer INTEGER NOT NULL, PRIMARY KEY (label, offer)) WITHOUT ROWID;
CREATE TABLE text (digest BLOB PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE birth (
    project INTEGER NOT NULL, label TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (project, label)) WITHOUT ROWID;
CREATE TABLE due (label TEXT PRIMARY KEY, n INTEGER NOT NULL, urgent INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE pulled (project INTEGER PRIMARY KEY, until TEXT NOT NULL)
"""


@dataclass(frozen=True)
class LedgerAnswer:
    """One person's answer to one text: of the labels that were offered, those that apply.

    field : the field of the task that has the text;   at : when it was given, as the tool writes it
    """

    project: int
    annotation: int
    task: int
    field: str
    text: str
    yes: tuple[str, ...]
    offered: tuple[str, ...]
    at: str


@dataclass(frozen=True)
class Said:
    """What is said about one label: the newest standing answer of each text, and texts whose answers are deleted."""

    yes: dict[bytes, str]
    no: dict[bytes, str]
    deleted: frozenset[bytes]


@dataclass(frozen=True)
class Due:
    """A label whose answers have changed ``n`` times since it was learned; ``urgent``: a yes came, went or was new."""

    label: str
    n: int
    urgent: bool


class Ledger:
    """The ledger of a model's directory. Each call is one transaction, on the disk when it returns."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, threading.Lock()

    def record(self, answers: Iterable[LedgerAnswer], fixed: Container[str] = (), urgent: Container[str] = ()) -> None:
        """Take answers in, each in place of what the same annotation said before.

        fixed : labels that are never due;   urgent : labels that are so although no yes has changed
        """
        with self._transaction() as run:
            for one in answers:
                key, text, offer = (one.project, one.annotation, one.field), digest(one.text), _offer(run, one.offered)
                before = run(f"SELECT text, offer, at, deleted FROM answer {OF_ONE}", key).fetchone()
                said = {row[0] for row in run(f"SELECT label FROM yes {OF_ONE}", key)}
                if before is not None and (one.at, 0) < (before[2], before[3]):
                    continue  # it is older than what is known, or was deleted since
                if before == (text, offer, one.at, 0) and said == set(one.yes):
                    continue
                same = before is not None and before[:2] == (text, offer) and not before[3]
                changed = said ^ set(one.yes) if same else said | set(one.yes)
                run(f"DELETE FROM yes {OF_ONE}", key)
                run(
                    "INSERT OR REPLACE INTO answer VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
                    (*key, one.task, text, offer, one.at),
                )
                run("INSERT OR IGNORE INTO text VALUES (?, ?)", (text, one.text))
                for label in one.yes:
                    run("INSERT INTO yes VALUES (?, ?, ?, ?)", (label, *key))
                for label in {*one.offered, *changed}:
                    if label not in fixed:
                        _make_due(run, label, urgent=label in changed or label in urgent)
                if before is not None:
                    _drop_text(run, before[0])

    def delete(
        self, project: int, *, annotations: Iterable[int] = (), tasks: Iterable[int] = (), fixed: Container[str] = ()
    ) -> None:
        """Mark answers as deleted: those of annotations, or all those of tasks."""
        which = [*(("annotation", number) for number in annotations), *(("task", number) for number in tasks)]
        with self._transaction() as run:
            for column, number in which:
                query = f"SELECT annotation, field, text, offer FROM answer WHERE project = ? AND {column} = ?"
                for annotation, field, text, offer in run(f"{query} AND NOT deleted", (project, number)).fetchall():
                    key = project, annotation, field
                    run(f"UPDATE answer SET deleted = 1 {OF_ONE}", key)
                    run(f"DELETE FROM yes {OF_ONE}", key)
                    for (label,) in run("SELECT label FROM offered WHERE offer = ?", (offer,)).fetchall():
                        if label not in fixed:
                            _make_due(run, label, urgent=True)
                    _drop_text(run, text)

    def annotations(self, project: int, task: int, before: str) -> set[int]:
        """The annotations of a task whose answers stand and were given before a time."""
        query = "SELECT annotation FROM answer WHERE project = ? AND task = ? AND at < ? AND NOT deleted"
        with self._transaction() as run:
            return {row[0] for row in run(query, (project, task, before))}

    def offer(self, project: int, labels: Iterable[str], at: str, fixed: Container[str] = ()) -> dict[str, str]:
        """Note which labels a project has now; returns since when, "" for those that it had when it was first seen.

        New ones become due, but for the fixed: they may be learned from their name alone.
        """
        with self._transaction() as run:
            known = dict(run("SELECT label, at FROM birth WHERE project = ?", (project,)).fetchall())
            at = at if known else ""
            for label in dict.fromkeys(labels):
                if label not in known:
                    known[label] = at
                    run("INSERT INTO birth VALUES (?, ?, ?)", (project, label, at))
                    if label not in fixed:
                        _make_due(run, label, urgent=True)
            return known

    def said(self, label: str) -> Said:
        """What is said about a label now."""
        with self._transaction() as run:
            found = run(
                "SELECT a.text, t.content, a.deleted, y.label IS NOT NULL FROM offered o "
                "JOIN answer a ON a.offer = o.offer LEFT JOIN text t ON t.digest = a.text "
                "LEFT JOIN yes y ON y.project = a.project AND y.annotation = a.annotation AND y.field = a.field "
                "AND y.label = o.label WHERE o.label = ? ORDER BY a.at, a.annotation",
                (label,),
            ).fetchall()
        newest = {text: (content, is_yes) for text, content, deleted, is_yes in found if not deleted}
        yes, no = ({text: c for text, (c, is_yes) in newest.items() if is_yes == side} for side in (1, 0))
        return Said(yes, no, frozenset(text for text, _, deleted, _ in found if deleted and text not in newest))

    def due(self) -> list[Due]:
        """The labels whose answers have changed since they were learned, the urgent ones first."""
        with self._transaction() as run:
            found = run("SELECT label, n, urgent FROM due ORDER BY urgent DESC, n DESC, label").fetchall()
        return [Due(label, n, bool(urgent)) for label, n, urgent in found]

    def done(self, one: Due) -> None:
        """A label was learned from what was known when it was due; if more has come since, it stays due."""
        with self._transaction() as run:
            run("DELETE FROM due WHERE label = ? AND n = ?", (one.label, one.n))

    def hurry(self) -> None:
        """Make every label that is due urgent."""
        with self._transaction() as run:
            run("UPDATE due SET urgent = 1")

    def pulled(self, project: int, until: str | None = None) -> str:
        """The time of the newest change that was asked for and taken in, "" at first; ``until`` sets it."""
        with self._transaction() as run:
            if until is not None:
                run("INSERT OR REPLACE INTO pulled VALUES (?, ?)", (project, until))
            found = run("SELECT until FROM pulled WHERE project = ?", (project,)).fetchone()
        return found[0] if found else ""

    @contextmanager
    def _transaction(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        """A transaction on the file as it is now: the directory may have been replaced by another model's."""
        path = self._folder / FILE
        with self._lock, explain(self._folder, FILE):
            if path.is_symlink():
                raise DataError("is a link; a stored model has plain files only", source=path)
            if not path.exists():
                os.close(open_regular(path, os.O_RDWR | os.O_CREAT))
                path.chmod(0o600)
            connection = sqlite3.connect(path, isolation_level=None, timeout=PATIENCE)
            try:
                for pragma in (f"journal_mode = {journal_mode(sqlite3.sqlite_version_info)}", *PRAGMAS):
                    connection.execute(f"PRAGMA {pragma}")
                connection.execute("BEGIN IMMEDIATE")
                found = tables_of(connection)
                if not found:
                    for statement in SCHEMA.split(";"):
                        connection.execute(statement)
                elif found != tables_of_schema(SCHEMA):
                    raise DataError("is no ledger that streamlabel made; take it away", source=path)
                yield connection.execute
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            finally:
                connection.close()


def _offer(run: Callable[..., sqlite3.Cursor], labels: tuple[str, ...]) -> int:
    """The number of a list of offered labels; the list is kept once."""
    mark = digest(json.dumps(labels))
    found = run("SELECT number FROM offer WHERE digest = ?", (mark,)).fetchone()
    if found is None:
        found = (run("INSERT INTO offer (digest) VALUES (?)", (mark,)).lastrowid,)
        for label in set(labels):
            run("INSERT INTO offered VALUES (?, ?)", (label, found[0]))
    return int(found[0])


def _make_due(run: Callable[..., sqlite3.Cursor], label: str, *, urgent: bool) -> None:
    again = "ON CONFLICT (label) DO UPDATE SET n = n + 1, urgent = urgent OR excluded.urgent"
    run(f"INSERT INTO due VALUES (?, 1, ?) {again}", (label, int(urgent)))


def _drop_text(run: Callable[..., sqlite3.Cursor], text: bytes) -> None:
    """Forget a text to which no answer stands any more."""
    if run("SELECT 1 FROM answer WHERE text = ? AND NOT deleted LIMIT 1", (text,)).fetchone() is None:
        run("DELETE FROM text WHERE digest = ?", (text,))
