"""The SQLite catalogue of a stored model: opening it for reading and for writing, and what its errors mean.

Readers open it read-only, inside one transaction, with a schema that must be ours to the letter: a trigger, a view or
a table more is refused, so that nothing in a file of unknown origin runs. Journal: the write-ahead log only if the
library has the fix of the WAL-reset bug, else a rollback journal that is truncated.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from streamlabel.errors import ConflictError, DataError, Hint
from streamlabel.store.format import APPLICATION_ID, CATALOGUE, FORMAT, SCHEMA
from streamlabel.store.guard import check_catalogue_file, check_directory, check_format, check_length
from streamlabel.store.upgrade_1 import SCHEMA_1, upgrade

# Seconds to wait for another process that holds the catalogue for the moment of a commit.
PATIENCE = 20.0
MOST_BYTES_A_VALUE = 1 << 28
FUNCTIONS = {"coalesce", "count", "length", "max", "min", "sum"}
READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_PRAGMA}
_WRONG = (struct.error, TypeError, AttributeError)  # of rows that an upgrade cannot seal
WRITES = READS | {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}


def journal_mode(library: tuple[int, ...]) -> str:
    """The journal mode: WAL if its reset bug is fixed (3.51.3 and later of that line, 3.53.0 on), else TRUNCATE."""
    fixed = library >= (3, 53, 0) or (3, 51, 3) <= library < (3, 52, 0)
    return "wal" if fixed else "truncate"


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the catalogue read-only, in one transaction: everything that is read belongs to one revision."""
    check_directory(folder)
    check_catalogue_file(folder)
    with explain(folder):
        connection = _open_reader(folder)
        try:
            _harden(connection, READS)
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            written = _format_of(connection, folder)
            _check_schema(connection, folder, written)
            if written < FORMAT:
                connection = _upgraded(connection)
            yield connection
        finally:
            connection.close()


def _format_of(connection: sqlite3.Connection, folder: Path) -> int:
    """The format of the catalogue as the transaction sees it, which may still be in the log."""
    names = ("application_id", "user_version", "page_count", "page_size")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # from here on it is locked
    application, written, n_pages, page_size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    check_length(folder, n_pages * page_size)
    return check_format(application, written, folder / CATALOGUE)


def copied(folder: Path) -> sqlite3.Connection:
    """A copy of the catalogue in memory, of one revision: what others write later does not change it."""
    with reading(folder) as connection, explain(folder):
        copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        try:
            connection.backup(copy)
            _harden(copy, READS)
        except BaseException:
            copy.close()
            raise
        return copy


def _upgraded(old: sqlite3.Connection) -> sqlite3.Connection:
    """A copy in memory, of the newest format; the old one is closed."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        old.backup(copy)
        upgrade(copy, SCHEMA)
        _harden(copy, READS)
    except _WRONG as error:
        copy.close()
        raise DataError(f"its tables hold what we do not write ({error}); it is damaged", source=CATALOGUE) from error
    except BaseException:
        copy.close()
        raise
    finally:
        old.close()
    return copy


def writing(folder: Path) -> sqlite3.Connection:
    """Open the catalogue for the one writer, who holds the lock; every transaction is flushed to the disk."""
    with reading(folder):
        pass
    with explain(folder):
        connection = _connect(folder, "rw")
        try:
            _upgrade_in_place(connection, folder)
            _harden(connection, WRITES)
            wanted = journal_mode(sqlite3.sqlite_version_info)
            (found,) = connection.execute(f"PRAGMA journal_mode = {wanted}").fetchone()
            if found != wanted:
                raise ConflictError(
                    f"{folder}: its journal is {found!r} and cannot be changed while others read; retry"
                )
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")
            _check_schema(connection, folder, FORMAT)
            (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if said != "ok":
                raise DataError(f"is damaged ({said}); restore it from a backup", source=folder / CATALOGUE)
        except BaseException:
            connection.close()
            raise
        return connection


def shrink(connection: sqlite3.Connection) -> int:
    """Give the free pages of the writer's catalogue back to the disk, all or none; returns how many bytes."""
    free, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_size"))
    if not free:
        return 0
    connection.set_authorizer(None)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 1)  # VACUUM attaches the copy that it makes
    try:
        connection.execute("VACUUM")
    except sqlite3.OperationalError:  # no room for the copy, or somebody reads: the pages are used for what comes next
        return 0
    finally:
        _harden(connection, WRITES)
    return int(free * size)


def _upgrade_in_place(connection: sqlite3.Connection, folder: Path) -> None:
    """Turn the catalogue of an older release into one of this one, whole or not at all."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        (written,) = connection.execute("PRAGMA user_version").fetchone()
        if written < FORMAT:
            _check_schema(connection, folder, written)
            upgrade(connection, SCHEMA)
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    except _WRONG as error:
        connection.execute("ROLLBACK")
        raise DataError(f"its tables hold what we do not write ({error}); it is damaged", source=folder) from error
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def create_catalogue(folder: Path) -> None:
    """Create an empty catalogue of this format."""
    with explain(folder):
        connection = _connect(folder, "rwc")
        try:
            connection.executescript(
                f"BEGIN; {SCHEMA} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT}; COMMIT;"
            )
        finally:
            connection.close()


@contextmanager
def explain(folder: Path, file: str = CATALOGUE) -> Iterator[None]:
    """Turn SQLite's errors into one message that says what to do."""
    source = folder / file
    try:
        yield
    except sqlite3.OperationalError as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise ConflictError(f"{source}: another process holds it for more than {PATIENCE:g} s; retry") from error
        if "full" in text:
            raise DataError(
                "the disk is full; nothing was changed. Free some space and repeat", source=source
            ) from error
        if "readonly" in text or "unable to open" in text:
            raise DataError(f"cannot be written ({text})", source=source, hint=Hint.READ_ONLY) from error
        raise DataError(f"cannot be read or written: {text}", source=source, hint=Hint.DOCTOR) from error
    except sqlite3.IntegrityError as error:
        raise ConflictError(f"{source}: a name is taken ({error}); choose another one") from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise DataError(f"is damaged ({error})", source=source, hint=Hint.DOCTOR_OR_BACKUP) from error


def schema_problem(connection: sqlite3.Connection, written: int = FORMAT) -> str:
    """The difference between the tables and ours, in words; "" if there is none."""
    found, ours = tables_of(connection), tables_of_schema(SCHEMA if written == FORMAT else SCHEMA_1)
    extra, missing = found - ours, ours - found
    if not extra and not missing:
        return ""
    kind, name, _ = sorted(extra or missing, key=str)[0]
    return f"{'has' if extra else 'lacks'} the {kind} {name!r}" + (" as we do not write it" if extra else "")


def _open_reader(folder: Path) -> sqlite3.Connection:
    connection = _connect(folder, "ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return connection
    except BaseException as error:
        connection.close()
        if not isinstance(error, sqlite3.OperationalError) or "locked" in str(error):
            raise
    # A writer was killed in the middle of a commit: its journal must be played back, which takes the right to write.
    with suppress(sqlite3.OperationalError):
        recovering = _connect(folder, "rw")
        try:
            recovering.execute("SELECT count(*) FROM sqlite_master").fetchone()
        finally:
            recovering.close()
        return _connect(folder, "ro")
    pending = [folder / f"{CATALOGUE}{end}" for end in ("-journal", "-wal")]
    if any(path.exists() and path.stat().st_size for path in pending):
        raise DataError(
            "its last writer was killed, and the directory is read-only; open it once where it can be written",
            source=folder,
        )
    return _connect(folder, "ro&immutable=1")


def _connect(folder: Path, mode: str) -> sqlite3.Connection:
    uri = f"{(folder / CATALOGUE).absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=PATIENCE, check_same_thread=False)


def _harden(connection: sqlite3.Connection, allowed: set[int]) -> None:
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES_A_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {pragma}")

    def authorise(action: int, first: str | None, second: str | None, *_: Any) -> int:
        if action == sqlite3.SQLITE_FUNCTION:
            return sqlite3.SQLITE_OK if second in FUNCTIONS else sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK if action in allowed else sqlite3.SQLITE_DENY

    connection.set_authorizer(authorise)


def _check_schema(connection: sqlite3.Connection, folder: Path, written: int) -> None:
    problem = schema_problem(connection, written)
    if problem:
        raise DataError(f"{problem}; it is not a catalogue that streamlabel made", source=folder / CATALOGUE)


def tables_of(connection: sqlite3.Connection) -> frozenset[tuple[Any, ...]]:
    """What a database has: kind, name and statement of each table and index."""
    return frozenset(connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall())


@lru_cache(maxsize=3)
def tables_of_schema(schema: str) -> frozenset[tuple[Any, ...]]:
    """What a database of this schema has (`tables_of`)."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(schema)
        return tables_of(connection)
    finally:
        connection.close()
