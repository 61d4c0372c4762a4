"""What people call the columns of texts and of tags."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["LABEL_NAMES", "TEXT_NAMES", "labels_column_of"]

TEXT_NAMES = ("text", "texts", "document", "content", "body", "sentence", "abstract", "description", "comment",
              "message", "question", "title", "headline")  # fmt: skip
LABEL_NAMES = ("labels", "label", "tags", "tag", "categories", "category", "topics", "topic", "keywords", "subjects",
               "classes", "class")  # fmt: skip


def labels_column_of(columns: Iterable[str]) -> str | None:
    """The column that is called as columns of tags are; the first of the usual names wins, else None.

    Case does not matter, but a column in lower case wins against its twin.
    """
    by_case: dict[str, str] = {}
    for column in columns:
        usual = column.lower()
        if usual not in by_case or column == usual:
            by_case[usual] = column
    return next((by_case[usual] for usual in LABEL_NAMES if usual in by_case), None)
