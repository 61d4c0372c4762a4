"""Where figures come from: the commands, each with its day, the versions, the machine and the commit."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from streamlabel._version import __version__
from streamlabel.errors import DataError
from streamlabel.experiments.record_file import write_whole

_PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib", "napkinxc", "omikuji", "river")
_DIGITS = 10  # of a commit
_MOST_SECONDS = 5.0  # for each of two calls of git
_MEND = "mend or remove the file: the records do not depend on it"


@dataclass(frozen=True)
class CommandRun:
    """A command that wrote records, and when and where that was; empty where nobody kept it."""

    command: str
    date: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = ""
    commit: str = ""

    @property
    def place(self) -> str:
        """Machine and versions in words."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return "; ".join(part for part in (self.machine, versions) if part)


@dataclass(frozen=True)
class Origin:
    """What stands beside the records of an experiment, as JSON; empty where nobody kept it.

    runs : all that wrote records there, in order; a command that went on another day, or elsewhere, is there again
    n_records : how many there were when the tables were last made
    """

    runs: tuple[CommandRun, ...] = ()
    n_records: int = 0

    @property
    def commands(self) -> tuple[str, ...]:
        """Each once."""
        return tuple(dict.fromkeys(run.command for run in self.runs))

    @property
    def is_quick(self) -> bool:
        """Whether all records are of quick forms."""
        return bool(self.runs) and all("--quick" in command.split() for command in self.commands)

    @property
    def date(self) -> str:
        """The day, or the first and the last; "" where it is not known."""
        days = sorted(run.date for run in self.runs if run.date)
        return " to ".join(dict.fromkeys((days[0], days[-1]))) if days else ""

    @property
    def places(self) -> tuple[str, ...]:
        """Every machine with its versions, in words; none where they were not kept."""
        return tuple(dict.fromkeys(run.place for run in self.runs if run.place))

    @property
    def commits(self) -> tuple[str, ...]:
        """Every commit of the source that is known, in order."""
        return tuple(dict.fromkeys(run.commit for run in self.runs if run.commit))

    def as_data(self) -> dict[str, Any]:
        return {"commands": [dataclasses.asdict(run) for run in self.runs], "n_records": self.n_records}


def with_command(origin: Origin, command: str) -> Origin:
    """The origin with this command, run here and today."""
    run = CommandRun(command, datetime.date.today().isoformat(), versions(), machine(), source_commit())
    return origin if run in origin.runs else dataclasses.replace(origin, runs=(*origin.runs, run))


def write_origin(origin: Origin, path: Path) -> None:
    write_whole(path, json.dumps(origin.as_data(), indent=2) + "\n")


def read_origin(path: Path) -> Origin:
    """What was kept; a file that is not there is empty.

    Files of earlier versions have one ``command``, or ``commands`` as strings, and day, versions and machine of the
    last one alone.

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
    if not isinstance(commands, list):
        raise DataError(f"commands must be a list; {_MEND}", source=path)
    n_records = found.get("n_records", 0)
    if type(n_records) is not int:
        raise DataError(f"n_records must be a whole number; {_MEND}", source=path)
    last = {name: found[name] for name in ("date", "versions", "machine") if name in found}
    runs = [{"command": one} if isinstance(one, str) else one for one in commands]
    if last and runs and isinstance(commands[-1], str):
        runs[-1] = runs[-1] | last
    return Origin(tuple(_run(one, path) for one in runs), n_records)


def _run(found: Any, path: Path) -> CommandRun:
    if not (isinstance(found, dict) and isinstance(found.get("command"), str)):
        raise DataError(f"commands must be strings, or objects with a command; {_MEND}", source=path)
    kept = found.get("versions", {})
    date, where, commit = (found.get(name, "") for name in ("date", "machine", "commit"))
    if not (isinstance(kept, dict) and all(isinstance(one, str) for one in kept.values())):
        raise DataError(f"versions must be strings by name; {_MEND}", source=path)
    if not all(isinstance(one, str) for one in (date, where, commit)):
        raise DataError(f"date, machine and commit must be strings; {_MEND}", source=path)
    return CommandRun(found["command"], date, kept, where, commit)


def versions() -> dict[str, str]:
    """Those of the packages that figures depend on, as far as they are installed."""
    found = {"streamlabel": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


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


@cache
def source_commit() -> str:
    """That of this package when it was first asked for; "" where it does not run from a git checkout."""
    return commit_of(Path(__file__).parents[1])


def commit_of(package: Path) -> str:
    """The first digits of the commit, and "with changes" where files of the package differ from it.

    "" without git, and where git does not have the package, as one that is installed inside another checkout.
    """
    try:
        commit = _git(package, "rev-parse", "HEAD", "HEAD:./__init__.py")[:_DIGITS]
        changes = _git(package, "status", "--porcelain", "--", ".")
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{commit} with changes" if changes else commit


def _git(folder: Path, *arguments: str) -> str:
    """What git prints; no lock is taken, and variables that name another repository, as in a hook, are left out."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        ["git", "-C", str(folder), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=kept | {"GIT_OPTIONAL_LOCKS": "0"},
        timeout=_MOST_SECONDS,
        check=True,
        encoding="utf-8",
        errors="replace",
    ).stdout
