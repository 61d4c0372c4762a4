"""Files in and out: opening, unpacking by the file's ending, lines, limits, writing aside and replacing.

Every reader of text gets its lines from here, so that line ends, byte order marks, NUL bytes, broken archives and
inflation without bound are dealt with once. Checks of numbers and seeds that callers give are here, too.
"""

from __future__ import annotations

import bz2
import gzip
import io
import math
import operator
import os
import sys
import tomllib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeAlias, cast

import numpy as np

from streamlabel.errors import DataError, Hint, NotFoundError

# Where the system says nothing: enough for every set of the catalogue, too little to freeze a small machine.
FALLBACK_MEMORY = 4 * 2**30
# A generated name: the string object, its characters, its slot in the tuple.
BYTES_PER_LABEL = 80
# A block of 64 weights a feature is the least that a classifier takes (`streaming.blocks`), with what is made of it.
BYTES_PER_FEATURE = 560
MOST_BLANK_LINES, MOST_BLANK_BYTES = 1_000_000, 1 << 26  # in a row; a small packed file can hold billions


def available_memory() -> int:
    """Bytes that can still be allocated without swapping: of the machine, its container or the process: the least."""
    candidates = [_machine_memory(), _container_memory(), _process_memory()]
    known = [value for value in candidates if value is not None]
    return min(known) if known else FALLBACK_MEMORY


def check_memory(n_bytes: int, what: str, *, source: object = None, line: int | None = None) -> None:
    """Raise DataError when ``n_bytes`` more than what is available would be needed for ``what``."""
    available = available_memory()
    if n_bytes > available:
        raise DataError(
            f"{what} needs {_gigabytes(n_bytes)}, and {_gigabytes(available)} of memory is free",
            source=source,
            line=line,
            hint=Hint.IN_BLOCKS,
        )


def check_shape(n_features: int, n_labels: int, *, source: object = None, line: int | None = None) -> None:
    """Raise DataError when a matrix of so many columns could not be used on this machine."""
    needed = BYTES_PER_FEATURE * n_features + BYTES_PER_LABEL * n_labels
    check_memory(needed, f"a set of {n_features} features and {n_labels} labels", source=source, line=line)


def _gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.3g} GiB"


def _machine_memory() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _container_memory() -> int | None:
    """What a control group still allows (version 2, then version 1); None where there is no limit."""
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            return max(0, int(Path(limit).read_text(encoding="ascii")) - int(Path(used).read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return None


def _process_memory() -> int | None:
    """What the limit of this process on its address space (``ulimit -v``) leaves; None where there is no limit."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        return max(
            0, limit - int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
        )
    except (ImportError, OSError, ValueError, IndexError):
        return None


# Blocks of this size and everything made from them stay in the processor's cache.
BLOCK_SIZE = 1 << 18
MAX_LINE = 1 << 28
# What the arrays made from a block take at most, for each of its bytes.
BYTES_PER_BYTE = 150
MAX_LINE_BYTES = 16 * 2**20
HEAD = 1 << 18  # how much of a file's beginning is looked at
MEMORY_CHECK_BYTES = 64 * 2**20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


Source: TypeAlias = str | os.PathLike[str] | BinaryIO


def source_name(source: Source) -> str:
    """What messages call it."""
    if isinstance(source, str | os.PathLike):
        return "standard input" if source == "-" else os.fspath(source)
    return str(getattr(source, "name", "input"))


@contextmanager
def open_source(source: Source) -> Iterator[IO[bytes]]:
    """A binary file to read: a path (unpacked if it ends in .gz or .bz2), "-" for standard input, or an open file.

    An open file is read as it is and stays open.
    """
    if isinstance(source, io.TextIOBase):
        raise DataError("is open as text; open it in binary mode ('rb')", source=source_name(source))
    if not isinstance(source, str | os.PathLike):
        yield source
    elif source == "-":
        yield sys.stdin.buffer
    else:
        with _opened(source) as handle:
            yield handle


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    check_file(path)
    name = os.fspath(path)
    opener: Any = gzip.open if name.endswith(".gz") else bz2.open if name.endswith(".bz2") else open
    try:
        with opener(name, "rb") as handle:
            yield handle
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        hint = "" if isinstance(error, PermissionError) else "; the file may be damaged or cut short"
        raise DataError(f"cannot be read: {reason}{hint}", source=path) from error


def _chunks(path: str | os.PathLike[str], size: int) -> Iterator[bytes]:
    with _opened(path) as handle:
        while chunk := handle.read(size):
            yield chunk


def replayable(source: Source) -> tuple[Source, bytes]:
    """A source that still begins at its beginning, and how it begins."""
    if isinstance(source, str | os.PathLike) and source != "-":
        with open_source(source) as handle:
            return source, handle.read(HEAD)
    with open_source(source) as handle:
        head = handle.read(HEAD)
        return io.BufferedReader(_Replayed(head, handle, source_name(source))), head


class _Replayed(io.RawIOBase):
    """What was read already, then the rest."""

    def __init__(self, head: bytes, rest: BinaryIO | Any, name: str) -> None:
        self._head, self._rest, self.name = head, rest, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(content) :] if self._head else b""
        buffer[: len(content)] = content
        return len(content)


def check_file(path: str | os.PathLike[str]) -> None:
    """NotFoundError or DataError unless the path names a file."""
    if "\0" in os.fspath(path) or not os.path.exists(path):
        raise NotFoundError(f"{os.fspath(path)}: there is no such file")
    if os.path.isdir(path):
        raise DataError("is a folder; name a file in it", source=path)


def line_blocks(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    r"""The file as blocks of whole lines: (number of the first line, bytes that end in ``\n``).

    Line ends are ``\n`` in what comes out, whatever they were; a byte order mark at the start is left out; a last line
    without an end gets one.
    """
    first_line, rest, rest_size, blank = 1, [], 0, 0
    for chunk in _chunks(path, BLOCK_SIZE):
        end = chunk.rfind(b"\n") + 1
        blank = 0 if chunk.strip() else blank + len(chunk)
        if blank > MOST_BLANK_BYTES:
            raise DataError(f"{blank} blank bytes in a row; is it the right file?", source=path, line=first_line)
        if b"\0" in chunk:
            line = first_line + chunk[: chunk.index(b"\0")].count(b"\n")
            raise DataError("a NUL byte; this is not a text file (or it is UTF-16: use UTF-8)", source=path, line=line)
        if end == 0:
            rest.append(chunk)
            rest_size += len(chunk)
            if rest_size > MAX_LINE:
                problem = f"a line of more than {MAX_LINE} bytes; this is not a text file"
                raise DataError(problem, source=path, line=first_line)
            continue
        check_block(rest_size + end, path, first_line)
        block = _plain(b"".join([*rest, chunk[:end]]), first_line)
        yield first_line, block
        first_line += block.count(b"\n")
        rest, rest_size = [chunk[end:]], len(chunk) - end
    check_block(rest_size, path, first_line)
    last = b"".join(rest)
    if last:
        yield first_line, _plain(last + b"\n", first_line)


def check_block(size: int, path: str | os.PathLike[str], line: int) -> None:
    """Raise DataError when lines that must be read in one piece are too long for the memory there is."""
    if size > 4 * BLOCK_SIZE:
        check_memory(BYTES_PER_BYTE * size, f"a piece of {size} bytes without a row end", source=path, line=line)


def numbered_lines(source: Source, max_line_bytes: int) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers, from 1."""
    name = source_name(source)
    with open_source(source) as handle:
        for number, line in enumerate(read_lines(handle, name, max_line_bytes), start=1):
            if line.strip():
                yield number, line


def read_lines(handle: IO[bytes], source: str, max_line_bytes: int) -> Iterator[str]:
    """The lines with their ends, decoded. A byte order mark is left out; bad bytes and huge lines are errors."""
    line_number, unchecked_bytes, n_blank = 0, 0, 0
    while line := handle.readline(max_line_bytes + 1):
        line_number += 1
        n_blank = 0 if line.strip() else n_blank + 1
        if n_blank > MOST_BLANK_LINES:
            problem = f"{n_blank} blank lines in a row; is it the right file?"
            raise DataError(problem, source=source, line=line_number)
        unchecked_bytes += len(line)
        if unchecked_bytes > MEMORY_CHECK_BYTES:
            check_memory(4 * unchecked_bytes, "reading on", source=source, line=line_number)
            unchecked_bytes = 0
        if len(line) > max_line_bytes:
            problem, hint = f"longer than {max_line_bytes} bytes", Hint.LARGER_LIMIT
            raise DataError(problem, source=source, line=line_number, hint=hint, hint_value="max_line_bytes")
        yield decode_line(line.removeprefix(BYTE_ORDER_MARK) if line_number == 1 else line, source, line_number)


def decode_line(line: bytes, source: str, line_number: int) -> str:
    if b"\0" in line:
        problem = "contains a NUL byte; the file is binary, damaged or UTF-16 (save it as UTF-8)"
        raise DataError(problem, source=source, line=line_number)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"byte {error.start + 1} is not UTF-8; save the file as UTF-8"
        raise DataError(problem, source=source, line=line_number) from None


def read_bytes(path: str | os.PathLike[str], *, what: str) -> bytes:
    """The whole file, after a check that it fits into memory."""
    pieces, size = [], 0
    for chunk in _chunks(path, 1 << 20):
        size += len(chunk)
        check_memory(2 * size, what, source=path)
        pieces.append(chunk)
    return b"".join(pieces)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write that becomes ``path`` in one step when the block ends well, and vanishes when it does not."""
    path = Path(path)
    aside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        aside.unlink(missing_ok=True)  # what a killed process left, or a link that somebody planted
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        with open(os.open(aside, flags, 0o666), "wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
                    yield cast(IO[bytes], packed)
            elif path.suffix == ".bz2":
                with bz2.BZ2File(raw, mode="wb") as packed_bz2:
                    yield cast(IO[bytes], packed_bz2)
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(aside, path)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", source=path) from error
    finally:
        aside.unlink(missing_ok=True)


def packaged_toml(name: str) -> dict[str, Any]:
    """The content of a TOML file that lies beside these modules."""
    return tomllib.loads(resources.files("streamlabel.data").joinpath(name).read_text(encoding="utf-8"))


def show(token: bytes | str, width: int = 40) -> str:
    """A piece of the file for a message: quoted, printable, short."""
    text = token.decode("utf-8", "replace") if isinstance(token, bytes) else token
    return ascii(text if len(text) <= width else text[:width] + "...")


def utf8(text: str, source: str | os.PathLike[str]) -> bytes:
    """The text as UTF-8, or DataError: half a surrogate pair cannot be written, and NUL would not be read back."""
    try:
        encoded = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(f"{show(text[error.start])} in a name cannot be written; remove it", source=source) from error
    if b"\0" in encoded:
        raise DataError("a NUL character in a name cannot be written; remove it", source=source)
    return encoded


def _plain(block: bytes, first_line: int) -> bytes:
    if first_line == 1 and block.startswith(BYTE_ORDER_MARK):
        block = block[len(BYTE_ORDER_MARK) :]
    return block.replace(b"\r\n", b"\n") if b"\r" in block else block


RandomState: TypeAlias = int | np.random.Generator


def check_integer(value: Any, name: str, *, low: int, high: int | None = None) -> int:
    """``value`` as int, low <= value <= high."""
    try:
        number = operator.index(value)
    except TypeError:
        raise DataError(f"{name} is {value!r}; expected a whole number") from None
    if number < low or (high is not None and number > high):
        wanted = f"at least {low:,}" if high is None else f"{low:,} to {high:,}"
        raise DataError(f"{name} is {number:,}; expected {wanted}")
    return number


def check_number(value: Any, name: str, *, low: float, high: float = math.inf) -> float:
    """``value`` as a finite float, low <= value <= high."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{name} is {value!r}; expected a number") from None
    if not math.isfinite(number) or not low <= number <= high:
        wanted = f"at least {low:g}" if high == math.inf else f"{low:g} to {high:g}"
        raise DataError(f"{name} is {number:g}; expected {wanted}")
    return number


def make_rng(random_state: RandomState) -> np.random.Generator:
    """A generator from a seed, or the generator itself (which then moves on)."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_integer(random_state, "random_state", low=0))
