"""Guards of a directory: one writer at a time, regular files only, sizes checked before they are believed."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from streamlabel.errors import ConflictError, DataError, Hint, NotFoundError
from streamlabel.store.format import APPLICATION_ID, CATALOGUE, FORMAT, LOCK

JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
PICKLES = (".pkl", ".pickle", ".joblib")


def check_directory(folder: Path) -> None:
    """Check that a directory has a catalogue and plain files only: no links, no devices."""
    if not folder.exists():
        raise NotFoundError(f"{folder}: there is no model", hint=Hint.CREATE, hint_value=str(folder))
    if folder.suffix in PICKLES or folder.is_file():
        raise DataError("is a file; a stored model is a directory (pickled models are not read)", source=folder)
    try:
        with os.scandir(folder) as entries:
            found = {}
            for entry in entries:
                with suppress(FileNotFoundError):  # a vacuum took it away
                    found[entry.name] = entry.stat(follow_symlinks=False).st_mode
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", source=folder) from error
    for name in (CATALOGUE, f"{CATALOGUE}-journal", f"{CATALOGUE}-wal", f"{CATALOGUE}-shm", LOCK):
        if name in found and not stat.S_ISREG(found[name]):
            raise DataError("is a link or a device; a stored model has plain files only", source=folder / name)
    if CATALOGUE not in found:
        raise NotFoundError(f"{folder}: there is no {CATALOGUE} in it; this is not a stored model")


def check_catalogue_file(folder: Path) -> None:
    """Refuse what cannot be a catalogue before SQLite opens it; judged without opening it.

    Whoever opens the file by itself and closes it takes away the locks that SQLite holds on it in the same process.
    """
    path = folder / CATALOGUE
    try:
        size = path.stat().st_size
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror}", source=path) from error
    if size < 100:
        raise DataError("is not a catalogue", source=path, hint=Hint.BACKUP)
    _check_journal(path.with_name(f"{CATALOGUE}-journal"))


def check_format(application: int, written: int, path: Path) -> int:
    """The format of a catalogue that is open; refused where it is not ours, or newer than this release."""
    if application != APPLICATION_ID:
        raise DataError("is a database of another program, not a catalogue of streamlabel", source=path)
    if written > FORMAT:
        raise DataError(
            f"has format {written}, and this release reads up to {FORMAT}: upgrade streamlabel, or export the model "
            "with the release that wrote it",
            source=path,
        )
    if written < 1:
        raise DataError("has no format number; its creation did not finish, delete it", source=path)
    return written


def check_length(folder: Path, expected: int) -> None:
    """Refuse a catalogue that has not as many bytes as its pages; its journal has been played back by now."""
    path = folder / CATALOGUE
    log = path.with_name(f"{CATALOGUE}-wal")
    if log.exists() and log.stat().st_size:
        return  # the newest pages are there
    size = path.stat().st_size
    if size != expected:
        problem = f"has {size} bytes and should have {expected}"
        raise DataError(f"{problem}; it is damaged", source=path, hint=Hint.DOCTOR_OR_BACKUP)


class UnreadableError(DataError):
    """A file that is there but cannot be opened: rights, links, too many open files, a device that fails."""


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a plain file, without following links; returns its descriptor."""
    try:
        # A pipe that nobody writes to would keep a plain open waiting for ever.
        extra = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_BINARY", "O_NONBLOCK", "O_CLOEXEC"))
        descriptor = os.open(path, reduce(or_, extra, flags), 0o644)
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: there is no such file", hint=Hint.DOCTOR) from error
    except OSError as error:
        raise UnreadableError(f"cannot be opened: {error.strerror}", source=path) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadableError("is not a plain file", source=path)
    return descriptor


def check_column(values: Iterable[Any], allowed: type | tuple[type, ...], what: str, source: object) -> None:
    """Check that every value of a column has one of these types: SQLite itself stores anything anywhere."""
    kinds = set(map(type, values)) - set(allowed if isinstance(allowed, tuple) else (allowed,))
    if kinds:
        problem = f"{what} holds {', '.join(sorted(kind.__name__ for kind in kinds))}"
        raise DataError(f"{problem}; the catalogue is damaged or not made by streamlabel", source=source)


def _check_journal(path: Path) -> None:
    """Refuse a journal that names a further file: SQLite would look for that file, and delete it."""
    if not path.exists():
        return
    descriptor = open_regular(path)
    try:
        size = os.fstat(descriptor).st_size
        os.lseek(descriptor, max(size - 8, 0), os.SEEK_SET)
        if size > 8 and os.read(descriptor, 8) == JOURNAL_MAGIC:
            raise DataError("names a file outside of the model, which streamlabel never does; refused", source=path)
    finally:
        os.close(descriptor)


def now() -> str:
    """The time in UTC, as text that sorts."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class FileLock:
    """A lock on a file, held from construction to `release`; ConflictError if somebody else holds it.

    path, guarded : the file of the lock, which stays; what nobody else may write to meanwhile
    hint : what to do where somebody else holds it
    """

    def __init__(self, path: Path, guarded: Path, actor: str, hint: Hint) -> None:
        self._descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
        if not _lock(self._descriptor):
            holder = _read_note(self._descriptor)
            os.close(self._descriptor)
            raise ConflictError(f"{guarded}: {holder} is writing to it", hint=hint)
        note = {"pid": os.getpid(), "host": socket.gethostname(), "actor": actor, "since": now()}
        with suppress(OSError):  # a full disk: the lock is held all the same, others are told "another process"
            os.ftruncate(self._descriptor, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            os.write(self._descriptor, json.dumps(note).encode())

    def release(self) -> None:
        """Give the lock back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class WriterLock(FileLock):
    """The lock of a model's directory."""

    def __init__(self, folder: Path, actor: str) -> None:
        try:
            super().__init__(folder / LOCK, folder, actor, Hint.WAIT_OR_READ)
        except DataError as error:
            error.hint = Hint.READ_ONLY
            raise


def _read_note(descriptor: int) -> str:
    try:
        note = json.loads(os.pread(descriptor, 4096, 0))
        actor = f" ({note['actor']})" if note["actor"] else ""
        return f"process {note['pid']} on {note['host']}{actor}, since {note['since']},"
    except (AttributeError, OSError, ValueError, KeyError, TypeError):
        return "another process"


def _lock(descriptor: int) -> bool:
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
