"""Which commit of the source is running, as far as git knows."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

__all__ = ["commit_of", "source_commit"]

_DIGITS = 10
_MOST_SECONDS = 5.0  # for each of two calls


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
