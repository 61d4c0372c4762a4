"""Where figures come from: the commands, the day, the versions, the machine."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
from dataclasses import dataclass, field
from pathlib import Path

from streamlabel._version import __version__
from streamlabel.exceptions import DataError

__all__ = ["Origin", "machine", "provenance", "read_origin", "versions"]

_PACKAGES = ("numpy", "scipy", "scikit-learn")
_MEND = "mend or remove the file: the records do not depend on it"


@dataclass(frozen=True)
class Origin:
    """What stands beside the records of an experiment, as JSON; empty where nobody kept it.

    commands : all that wrote records there, in order; the rest is of the last one
    """

    commands: tuple[str, ...] = ()
    date: str = ""
    n_records: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = ""


def provenance(command: str, n_records: int, before: Origin) -> Origin:
    """The origin after this command, which is kept unless it found all records there, written by others."""
    wrote = not before.commands or n_records != before.n_records
    commands = dict.fromkeys((*before.commands, command)) if wrote else before.commands
    return Origin(tuple(commands), datetime.date.today().isoformat(), n_records, versions(), machine())


def read_origin(path: Path) -> Origin:
    """What was kept; a file that is not there is empty. Files of earlier versions name one ``command``.

    Raises
    ------
    DataError : the file is no JSON, or not of this form
    """
    if not path.is_file():
        return Origin()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"not JSON ({error}); {_MEND}", source=path) from None
    if not isinstance(found, dict):
        raise DataError(f"not a JSON object; {_MEND}", source=path)
    commands = found.get("commands", [found["command"]] if "command" in found else [])
    kept, date = found.get("versions", {}), found.get("date", "")
    n_records, where = found.get("n_records", 0), found.get("machine", "")
    if not (isinstance(commands, list) and all(isinstance(one, str) for one in commands)):
        raise DataError(f"commands must be a list of strings; {_MEND}", source=path)
    if not (isinstance(kept, dict) and all(isinstance(one, str) for one in kept.values())):
        raise DataError(f"versions must be strings by name; {_MEND}", source=path)
    if type(n_records) is not int or not isinstance(date, str) or not isinstance(where, str):
        raise DataError(f"n_records must be a whole number, date and machine must be strings; {_MEND}", source=path)
    return Origin(tuple(commands), date, n_records, kept, where)


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
