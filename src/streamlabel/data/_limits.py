"""How much memory there is, and the refusal of input that asks for more, before anything is allocated."""

from __future__ import annotations

import os
from pathlib import Path

from streamlabel.exceptions import DataError

__all__ = ["available_memory", "check_memory", "check_shape"]

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
