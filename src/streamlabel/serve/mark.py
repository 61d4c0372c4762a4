"""Which model a directory holds, and which revision of it: another model may have come with the same number."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamlabel.store.catalogue import reading
from streamlabel.store.format import CATALOGUE
from streamlabel.store.reader import latest_revision

__all__ = ["Mark", "read_mark"]


@dataclass(frozen=True)
class Mark:
    """file : device and number of the catalogue's file;   note : when the revision was made, by whom, what it did"""

    file: tuple[int, int]
    revision: int
    note: tuple[Any, ...] | None


def read_mark(folder: Path, revision: int | None = None) -> Mark:
    """The mark of the newest revision, or of that one; its note is None where there is no such revision."""
    with reading(folder) as connection:
        found = (folder / CATALOGUE).stat()
        number = latest_revision(connection, folder) if revision is None else revision
        query = "SELECT at, actor, action, detail FROM revision WHERE number = ?"
        note = connection.execute(query, (number,)).fetchone()
    return Mark((found.st_dev, found.st_ino), number, note)
