"""The package's exceptions and warnings, and close matches for an unknown name.

Each message says what was wrong, where, and what to do.

::

    StreamlabelError
    ├── DataError            (ValueError)    what was read or passed in is wrong: file, line, what to do
    ├── NotFoundError        (LookupError)   a data set, a label or a file that is not there
    ├── ConflictError        (ValueError)    a label name that is taken, a second writer
    ├── DownloadError        (OSError)       the network or the checksum failed; what to do offline
    └── MissingExtraError    (ImportError)   an optional package; carries the install line

    ConvergenceWarning       (UserWarning)   a solver stopped short of its tolerance
    AnnotationWarning        (UserWarning)   the answers given are usable, but poorer than they look
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class StreamlabelError(Exception):
    """The base of every error that streamlabel raises on purpose. Its text is one message for a person."""


class DataError(StreamlabelError, ValueError):
    """Input that cannot be used as it is.

    The message reads ``file, line N: what was wrong; what to do``. ``source`` and ``line`` (1-based) are kept
    apart so that a program can point at the place.
    """

    def __init__(self, problem: str, *, source: object = None, line: int | None = None) -> None:
        self.problem = problem
        self.source = None if source is None else str(source)
        self.line = line
        where = ", ".join(part for part in (self.source, None if line is None else f"line {line}") if part)
        super().__init__(f"{where}: {problem}" if where else problem)


class NotFoundError(StreamlabelError, LookupError):
    """An unknown name or a missing file. The message lists what there is, or how to get it."""


class ConflictError(StreamlabelError, ValueError):
    """A request that contradicts what is already there (a label name that is taken)."""


class DownloadError(StreamlabelError, OSError):
    """A download that failed, or that brought something else than what was published."""


class MissingExtraError(StreamlabelError, ImportError):
    """An optional package that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package = package
        self.extra = extra
        self.purpose = purpose
        super().__init__(f"{purpose} needs the package {package}: pip install 'streamlabel[{extra}]'")

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        return type(self), (self.package, self.extra, self.purpose)  # it may come from a worker process


class ConvergenceWarning(UserWarning):
    """A warning that a solver stopped before it reached its tolerance; the report says how far it got."""


class AnnotationWarning(UserWarning):
    """A warning that the answers for a label are usable, but poorer than they look (positives only, very few, ...)."""


def did_you_mean(wanted: str, known: Iterable[str]) -> str:
    """Suggest close matches for an unknown name; "" if there are none.

    >>> did_you_mean("SSL", ["SLL", "LEML"])
    "did you mean 'SLL'?"
    """
    by_case = {name.casefold(): name for name in known}
    close = [by_case[match] for match in get_close_matches(wanted.strip().casefold(), by_case, n=3, cutoff=0.6)]
    return f"did you mean {' or '.join(map(repr, close))}?" if close else ""
