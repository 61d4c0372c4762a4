"""Bytes in and out of files: opening, limits, writing aside and replacing; and checks of numbers that callers give.

Files in and out: blocks of whole lines, gzip and bzip2 by the file's ending, writing aside.

Every reader of text gets its lines from here, so that line ends, byte order marks, NUL bytes, broken archives and
inflation without bound are dealt with once.
"""

from __future__ import annotations

import bz2
import gzip
import math
import operator
import os
import tomllib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np

from streamlabel.errors import DataError, NotFoundError

# Where the system says nothing: enough for every set of the catalogue, too little to freeze a small machine.
FALLBACK_MEMORY = 4 * 2**30
# A generated name: the string object, its characters, its slot in the tuple.
BYTES_PER_LABEL = 80
# One weight a feature is the least that any use of the matrix needs.
BYTES_PER_FEATURE = 8


def available_memory() -> int:
    """Bytes that can still be allocated without swapping: the machine's, or the container's where that is less."""
    candidates = [_machine_memory(), _container_memory()]
    known = [value for value in candidates if value is not None]
    return min(known) if known else FALLBACK_MEMORY


def check_memory(n_bytes: int, what: str, *, source: object = None, line: int | None = None) -> None:
    """Raise DataError when ``n_bytes`` more than what is available would be needed for ``what``."""
    available = available_memory()
    if n_bytes > available:
        raise DataError(
            f"{what} needs {_gigabytes(n_bytes)}, and {_gigabytes(available)} of memory is free; "
            "check the counts in the file, or use a larger machine",
            source=source,
            line=line,
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


# Blocks of this size and everything made from them stay in the processor's cache.
BLOCK_SIZE = 1 << 18
MAX_LINE = 1 << 28
# What the arrays made from a block take at most, for each of its bytes.
BYTES_PER_BYTE = 150
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def line_blocks(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    r"""The file as blocks of whole lines: (number of the first line, bytes that end in ``\n``).

    Line ends are ``\n`` in what comes out, whatever they were; a byte order mark at the start is left out; a last line
    without an end gets one.
    """
    first_line, rest, rest_size = 1, [], 0
    for chunk in _chunks(path, BLOCK_SIZE):
        end = chunk.rfind(b"\n") + 1
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
        with open(aside, "wb") as raw:
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


def _opened(name: str) -> IO[bytes]:
    if name.endswith(".gz"):
        return cast(IO[bytes], gzip.open(name))
    return cast(IO[bytes], bz2.open(name)) if name.endswith(".bz2") else open(name, "rb")


def _chunks(path: str | os.PathLike[str], size: int) -> Iterator[bytes]:
    name = os.fspath(path)
    try:
        with _opened(name) as handle:
            while chunk := handle.read(size):
                yield chunk
    except FileNotFoundError as error:
        raise NotFoundError(f"{name}: there is no such file") from error
    except (OSError, EOFError, zlib.error, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        hint = "" if isinstance(error, PermissionError) else "; the file may be damaged or cut short"
        raise DataError(f"cannot be read: {reason}{hint}", source=path) from error


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
