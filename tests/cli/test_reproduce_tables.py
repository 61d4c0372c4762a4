"""``streamlabel reproduce table2`` and ``figure1`` as published: workers, interruptions, libraries that are missing."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from unittest import mock

import pytest

from streamlabel.experiments import peers
from streamlabel.experiments.methods import METHODS, installed
from tiny_commands import has, records_in, run_tiny

ASKED = {
    "table2": ("SLL", "LEML", "SLEEC", "scikit-learn SVM", "napkinXC BR", "napkinXC tree", "river"),
    "figure1": ("SLL", "BR ridge", "SLEEC", "river"),
}
PACKAGES = ("napkinxc", "omikuji", "river")


def run(name: str, out: Path, jobs: int = 1):
    return run_tiny(name, out, "--methods", ",".join(installed(ASKED[name])), "--seeds", "2", jobs=jobs)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """Runs without an interruption, one worker."""
    out = tmp_path_factory.mktemp("whole")
    for name in ASKED:
        result = run(name, out)
        assert result.exit_code == 0, result.output
    return out


def assert_same(name: str, found: Path, expected: Path) -> None:
    assert records_in(found / f"{name}.jsonl") == records_in(expected / f"{name}.jsonl")
    for ending in ("md", "json") if has("pandas") else ():
        assert (found / f"{name}.{ending}").read_bytes() == (expected / f"{name}.{ending}").read_bytes()


@pytest.mark.parametrize("name", list(ASKED))
def test_workers_give_the_same_records_and_tables(name, whole, tmp_path):
    result = run(name, tmp_path, jobs=2)
    assert result.exit_code == 0, result.output
    assert all('"tuned": true' in line for line in records_in(tmp_path / f"{name}.jsonl"))
    assert_same(name, tmp_path, whole)


@pytest.mark.parametrize(("n_kept", "n_bytes"), [(0, 30), (3, 0), (13, 150)])
@pytest.mark.parametrize("name", list(ASKED))
def test_a_cut_file_goes_on_to_the_same_records_and_tables(name, n_kept, n_bytes, whole, tmp_path):
    """Some whole lines, and the beginning of another; nothing else was written yet but the origin."""
    lines = (whole / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    kept = b"".join(lines[:n_kept])
    (tmp_path / f"{name}.jsonl").write_bytes(kept + lines[n_kept][:n_bytes])
    shutil.copy(whole / f"{name}.run.json", tmp_path)
    result = run(name, tmp_path)
    assert result.exit_code == 0, result.output
    assert f"{name}: {len(lines)} runs, {n_kept} done already\n" in result.stderr
    assert ("the last line was incomplete and is dropped" in result.stderr) == (n_bytes > 0)
    assert (tmp_path / f"{name}.jsonl").read_bytes().startswith(kept)
    assert_same(name, tmp_path, whole)


@pytest.fixture
def no_libraries(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(peers, "find_spec", lambda name: None if name in PACKAGES else real(name))


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.package])
@pytest.mark.parametrize("name", list(ASKED))
def test_a_method_that_is_not_installed_is_one_error_that_names_the_package(name, method, no_libraries, tmp_path):
    result = run_tiny(name, tmp_path / "out", "--methods", f"SLL,{method}")
    assert result.exit_code == 1
    package = METHODS[method].package
    assert result.stderr == f"error: the method {method} needs the package {package}: pip install {package}\n"
    assert not (tmp_path / "out").exists()


@pytest.fixture
def few_methods():
    """Of our own only two. A dictionary that is patched whole has its order again afterwards."""
    with mock.patch.dict(METHODS):
        for method in list(METHODS):
            if not METHODS[method].package and method not in ("SLL", "BR ridge"):
                del METHODS[method]
        yield


@pytest.mark.parametrize("name", list(ASKED))
def test_methods_that_are_not_installed_are_left_out_and_the_page_says_so(
    name, no_libraries, few_methods, tmp_path, monkeypatch
):
    module = f"streamlabel.experiments.{name}"
    for group in ("OWN", "PEERS"):
        kept = tuple(one for one in getattr(importlib.import_module(module), group) if one in METHODS)
        monkeypatch.setattr(f"{module}.{group}", kept)
    monkeypatch.setattr(f"{module}._LONGEST_FIRST", ())
    result = run_tiny(name, tmp_path, "--quick", "--seeds", "1")
    assert result.exit_code == 0, result.output
    pytest.importorskip("pandas")
    absent = "not installed (pip install napkinxc omikuji river) | napkinXC BR, napkinXC tree, omikuji, river"
    assert absent in " ".join(result.stdout.split())
    assert {line.split('"method": "')[1].split('"')[0] for line in records_in(tmp_path / f"{name}.jsonl")} == {
        "SLL", "BR ridge",
    }  # fmt: skip
