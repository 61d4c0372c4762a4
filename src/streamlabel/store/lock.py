"""One writer at a time: a lock that the system takes back when its holder dies, with a note of who holds it."""

from __future__ import annotations

import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path

from streamlabel.exceptions import ConflictError, DataError
from streamlabel.store.format import LOCK
from streamlabel.store.limits import open_regular

__all__ = ["FileLock", "WriterLock", "now"]


def now() -> str:
    """The time in UTC, as text that sorts."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class FileLock:
    """Held from construction to `release`; ConflictError where somebody else holds it.

    path, guarded : the file of the lock, which stays; what nobody else may write to meanwhile
    advice : what else to do than to wait, as the message goes on
    """

    def __init__(self, path: Path, guarded: Path, actor: str, advice: str) -> None:
        self._descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
        if not _lock(self._descriptor):
            holder = _read_note(self._descriptor)
            os.close(self._descriptor)
            raise ConflictError(f"{guarded}: {holder} is writing to it; wait until that ends{advice}")
        note = {"pid": os.getpid(), "host": socket.gethostname(), "actor": actor, "since": now()}
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, json.dumps(note).encode())

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class WriterLock(FileLock):
    """The lock of a model's directory."""

    def __init__(self, folder: Path, actor: str) -> None:
        try:
            super().__init__(folder / LOCK, folder, actor, ", or read with mode='r'")
        except DataError as error:
            raise DataError(f"{error.problem}; a model is read with mode='r'", source=folder / LOCK) from error


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
