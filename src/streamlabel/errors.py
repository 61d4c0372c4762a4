"""The package's exceptions and warnings, and close matches for an unknown name.

Each message says what was wrong, where, and what to do.

::

    StreamlabelError
    ├── DataError            (ValueError)    what was read or passed in is wrong: file, line, what to do
    ├── NotFoundError        (LookupError)   a data set, a label or a file that is not there
    ├── ConflictError        (ValueError)    a label name that is taken, a second writer
    ├── DownloadError        (OSError)       the network or the checksum failed; what to do offline
    ├── ClusterError         (OSError)       the machines that do the work were lost; how to go on
    └── MissingExtraError    (ImportError)   an optional package; carries the install line

    ConvergenceWarning       (UserWarning)   a solver stopped short of its tolerance
    AnnotationWarning        (UserWarning)   the answers given are usable, but poorer than they look
    DeviceWarning            (UserWarning)   there is no GPU, or it is too small for what it was asked
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import Enum


class Hint(Enum):
    """What to do about an error, in the words of Python. The command line and the service have their own words."""

    BACKUP = "restore it from a backup"
    CLOSE_QUOTE = "close its quote, or raise {}"
    CREATE = "save a fitted one there first"
    DOCTOR = "run doctor"
    DOCTOR_OR_BACKUP = "run doctor, or restore it from a backup"
    FEWER_FEATURES = "keep at most {} features (max_features of TextVectorizer), or learn fewer labels or rows"
    FORMAT = "pass format=, one of {}"
    HISTORY = "history() says what there was"
    IN_BLOCKS = "check the counts in the file, read it in blocks (scale.out_of_core), or use a larger machine"
    LABELS = "labels() lists all"
    LABELS_OF_ARFF = "give the Mulan file as xml=, or n_labels= (-n: the last n)"
    LABELS_OF_ROWS = "give Y_path, or the folder that holds both"
    LABEL_BY_LABEL = "choose a revision that is whole, or bring {} back one by one with rollback(label=...)"
    LARGER_LIMIT = "raise {} if that is right"
    LEAVE_OUT = "open the model with leave_out_damaged=True to use the others, or repair it with doctor(repair=True)"
    MORE_MEMORY = "raise max_bytes if that is right"
    ONE_CONTENT = "pass text_field=None or features_field=None to choose"
    OTHER_FOLDER = "wait until that ends, or choose another folder"
    QUESTION = "pass question= to say which to read"
    READ_ONLY = "open the model with mode='r'"
    REPAIR = "run doctor(repair=True) first"
    REPEATED_LABELS = "keep one, or pass repeated_labels='merge' to count it once"
    TAKES_ROWS = "open it with ModelStore.open"
    TEXT_COLUMN = "pass text_column= to say which has the texts"
    TAG_DELIMITER = "use one character for delimiter_of_tags, such as ';' or '|'"
    TEXT_FIELD = "pass text_field= to say which is the text"
    VECTORIZER = "pass it again, fitted: vectorizer=..."
    VOCABULARY = "lower min_df, raise max_df or leave out stop_words"
    WAIT_OR_READ = "wait until that ends, or read with mode='r'"
    WHOLE_MODEL = "roll back the whole model, rollback({})"
    WITHOUT_LEARNING = "use model(learning=False), or doctor(repair=True)"


class StreamlabelError(Exception):
    """The base of every error that streamlabel raises on purpose. Its text is one message for a person.

    hint, hint_value : what to do about it, and what stands for {} in the words of that; the text ends with them
    """

    def __init__(self, message: str = "", *, hint: Hint | None = None, hint_value: str = "") -> None:
        self.hint, self.hint_value = hint, hint_value
        super().__init__(message)

    def __str__(self) -> str:
        return self.told({})

    def told(self, words: Mapping[Hint, str]) -> str:
        """The text with the hint in other words than those of Python; without it where they are empty."""
        said = "" if self.hint is None else words.get(self.hint, self.hint.value).format(self.hint_value)
        return f"{self.args[0]}; {said}" if said else str(self.args[0])


class DataError(StreamlabelError, ValueError):
    """Input that cannot be used as it is.

    The message reads ``file, line N: what was wrong; what to do``. ``problem``, ``source`` and ``line`` (1-based) are
    kept apart so that a program can point at the place.
    """

    def __init__(
        self,
        problem: str,
        *,
        source: object = None,
        line: int | None = None,
        hint: Hint | None = None,
        hint_value: str = "",
    ) -> None:
        self.problem = problem
        self.source = None if source is None else str(source)
        self.line = line
        where = ", ".join(part for part in (self.source, None if line is None else f"line {line}") if part)
        super().__init__(f"{where}: {problem}" if where else problem, hint=hint, hint_value=hint_value)


class NotFoundError(StreamlabelError, LookupError):
    """An unknown name or a missing file. The message lists what there is, or how to get it."""


class ConflictError(StreamlabelError, ValueError):
    """A request that contradicts what is already there (a label name that is taken)."""


class DownloadError(StreamlabelError, OSError):
    """A download that failed, or that brought something else than what was published."""


class ClusterError(StreamlabelError, OSError):
    """Workers or a scheduler that were lost, or never there. What was done is kept where the message says so."""


class MissingExtraError(StreamlabelError, ImportError):
    """An optional package that is not installed. ``extra`` None: no extra of streamlabel has it, it comes alone."""

    def __init__(self, package: str, extra: str | None, purpose: str) -> None:
        self.package = package
        self.extra = extra
        self.purpose = purpose
        super().__init__(f"{purpose} needs the package {package}: {how_to_install(package, extra=extra)}")

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str | None, str]]:
        return type(self), (self.package, self.extra, self.purpose)  # it may come from a worker process


class ConvergenceWarning(UserWarning):
    """A warning that a solver stopped before it reached its tolerance; the report says how far it got."""


class AnnotationWarning(UserWarning):
    """A warning that the answers for a label are usable, but poorer than they look (positives only, very few, ...)."""


class DeviceWarning(UserWarning):
    """A warning that the CPU does what a GPU was asked for: there is none, or its memory is too small."""


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


def did_you_mean(wanted: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Suggest close matches for an unknown name; "" if there are none. ``cutoff`` 1: the same but for case.

    >>> did_you_mean("SSL", ["SLL", "LEML"])
    "did you mean 'SLL'?"
    """
    by_case = {name.casefold(): name for name in known}
    close = [by_case[match] for match in get_close_matches(wanted.strip().casefold(), by_case, n=3, cutoff=cutoff)]
    return f"did you mean {' or '.join(map(repr, close))}?" if close else ""
