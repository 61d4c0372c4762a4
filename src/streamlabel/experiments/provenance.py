"""Where figures come from: the command, the day, the versions, the machine."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

from streamlabel._version import __version__

__all__ = ["machine", "provenance", "versions"]

_PACKAGES = ("numpy", "scipy", "scikit-learn")


def provenance(command: str, n_records: int) -> dict[str, Any]:
    """What stands beside the figures of one run, as JSON."""
    return {
        "command": command,
        "date": datetime.date.today().isoformat(),
        "n_records": n_records,
        "versions": versions(),
        "machine": machine(),
    }


def versions() -> dict[str, str]:
    found = {"streamlabel": __version__, "python": platform.python_version()}
    return found | {name: importlib.metadata.version(name) for name in _PACKAGES}


def machine() -> str:
    """Processor, cores and memory, as far as the system tells."""
    parts = [_processor(), f"{os.cpu_count() or 1} cores"]
    if memory := _memory():
        parts.append(f"{memory / 2**30:.0f} GiB of memory")
    return ", ".join(parts)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine() or "unknown processor"


def _memory() -> int:
    """Bytes; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0
