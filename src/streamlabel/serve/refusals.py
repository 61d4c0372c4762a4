"""A request that is not answered: a status, and one message for the person behind it."""

from __future__ import annotations

from streamlabel.exceptions import ConflictError, DataError, NotFoundError, StreamlabelError

__all__ = ["Refusal", "refusal_for"]


class Refusal(Exception):
    """Ends a request with this status and ``{"error": message}``."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}


def refusal_for(error: StreamlabelError) -> Refusal:
    """The status that stands for an error of the package: the caller's mistake, or (500) trouble with the model."""
    if isinstance(error, NotFoundError):
        return Refusal(404, str(error))
    if isinstance(error, ConflictError):
        return Refusal(409, str(error))
    wrong_body = isinstance(error, DataError) and error.source is None  # else it names a file of the model
    return Refusal(400 if wrong_body else 500, str(error))
