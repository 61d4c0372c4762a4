"""The commit of the source, against git's own word on checkouts made here; never an error, never a long wait."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from streamlabel.experiments import provenance
from streamlabel.experiments.provenance import commit_of

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True, env=kept
    ).stdout.strip()


def checkout(folder: Path) -> Path:
    """The package in a checkout with one commit."""
    package = folder / "src" / "toy"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (folder / "README.md").write_text("toy")
    (folder / ".gitignore").write_text(".venv/\n__pycache__/\n")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", folder.name)
    return package


def test_it_is_the_beginning_of_what_git_says(tmp_path, monkeypatch):
    package, other = checkout(tmp_path / "mine"), checkout(tmp_path / "other")
    head = git(package, "rev-parse", "HEAD")
    assert commit_of(package) == head[:10]
    assert commit_of(other) == git(other, "rev-parse", "HEAD")[:10] != head[:10]
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    assert commit_of(package) == head[:10]


def test_changes_of_the_package_alone_are_marked(tmp_path):
    package = checkout(tmp_path)
    clean = commit_of(package)
    (tmp_path / "README.md").write_text("changed")
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "a.pyc").write_text("")
    assert commit_of(package) == clean
    (package / "new.py").write_text("")
    assert commit_of(package) == f"{clean} with changes"
    (package / "new.py").unlink()
    (package / "__init__.py").write_text("a = 1\n")
    assert commit_of(package) == f"{clean} with changes"


def test_a_package_that_is_not_of_the_checkout_has_none(tmp_path):
    checkout(tmp_path)
    for name in (".venv/site-packages/toy", "untracked/toy"):
        installed = tmp_path / name
        installed.mkdir(parents=True)
        (installed / "__init__.py").write_text("")
        assert commit_of(installed) == ""


def test_without_git_or_a_checkout_there_is_none(tmp_path, monkeypatch):
    assert commit_of(tmp_path) == ""
    assert commit_of(tmp_path / "nowhere") == ""
    package = checkout(tmp_path / "mine")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_of(package) == ""


@pytest.mark.skipif(os.name == "nt", reason="a shell script stands for git")
def test_a_git_that_does_not_answer_is_not_waited_for(tmp_path, monkeypatch):
    package = checkout(tmp_path / "mine")
    slow = tmp_path / "git"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(provenance, "_MOST_SECONDS", 0.1)
    began = time.monotonic()
    assert commit_of(package) == ""
    assert time.monotonic() - began < 30.0
