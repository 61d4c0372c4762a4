"""A request that is not answered: a status, and one message for the person behind it.

The package's own messages are for who holds the model: they name paths, processes and Python. Only what they say about
a body is passed on; the rest goes to the log, and the answer says what that person can do.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from streamlabel.exceptions import ConflictError, DataError, NotFoundError, StreamlabelError

__all__ = ["Refusal", "mistakes", "refusal_for"]

logger = logging.getLogger("streamlabel.serve")

GONE = "the model is not where it was; suggestions go on from the last revision, changes wait until it is back"
BUSY = "another process is changing the model; try again in a moment"
BROKEN = "the model could not be read or written; the log of the service says why"


class Refusal(Exception):
    """Ends a request with this status and ``{"error": message}``."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}


@contextmanager
def mistakes() -> Iterator[None]:
    """What is wrong with the answers in a body, as a 400. An error that names a file is not of that kind."""
    try:
        yield
    except DataError as error:
        if error.source is not None:
            raise
        raise Refusal(400, str(error)) from None


def refusal_for(error: StreamlabelError) -> Refusal:
    """What is said about trouble with the model; the trouble itself is logged."""
    logger.error("%s", error)
    if isinstance(error, NotFoundError):
        return Refusal(503, GONE)
    if isinstance(error, ConflictError):
        return Refusal(409, BUSY, {"Retry-After": "1"})
    return Refusal(500, BROKEN)
