"""The package's exceptions, each with what was wrong, where, and what to do; and close matches for an unknown name.

The error tree.

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
    """Base of every error that streamlabel raises on purpose. Its text is one message for a person."""


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
    """A name that nothing answers to. The message lists what there is, or how to get it."""


class ConflictError(StreamlabelError, ValueError):
    """The request contradicts what is already there (a label name that is taken)."""


class DownloadError(StreamlabelError, OSError):
    """A file could not be fetched, or what came is not what was published."""


class MissingExtraError(StreamlabelError, ImportError):
    """An optional package is not installed. ``extra`` None: no extra of streamlabel has it, it comes alone."""

    def __init__(self, package: str, extra: str | None, purpose: str) -> None:
        self.package = package
        self.extra = extra
        self.purpose = purpose
        super().__init__(f"{purpose} needs the package {package}: {how_to_install(package, extra=extra)}")

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str | None, str]]:
        return type(self), (self.package, self.extra, self.purpose)  # it may come from a worker process


class ConvergenceWarning(UserWarning):
    """A solver stopped before it reached its tolerance; the report says how far it got."""


class AnnotationWarning(UserWarning):
    """The answers for a label are usable, but poorer than they look (positives only, very few, ...)."""


def how_to_install(*packages: str, extra: str | None = None) -> str:
    """The command for packages of an extra, in a clone and elsewhere, or for packages that no extra has.

    >>> how_to_install("pyarrow", extra="arrow")
    "pip install 'streamlabel[arrow]' (in a clone: pip install -e '.[arrow]')"
    >>> how_to_install("napkinxc", "river")
    'pip install napkinxc river'
    """
    if extra is None:
        return f"pip install {' '.join(packages)}"
    return f"pip install 'streamlabel[{extra}]' (in a clone: pip install -e '.[{extra}]')"


def did_you_mean(wanted: str, known: Iterable[str]) -> str:
    """A question with the names that are close; "" where there are none.

    >>> did_you_mean("SSL", ["SLL", "LEML"])
    "did you mean 'SLL'?"
    """
    by_case = {name.casefold(): name for name in known}
    close = [by_case[match] for match in get_close_matches(wanted.strip().casefold(), by_case, n=3, cutoff=0.6)]
    return f"did you mean {' or '.join(map(repr, close))}?" if close else ""
