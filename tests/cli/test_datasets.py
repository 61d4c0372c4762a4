"""``streamlabel datasets``: what is printed, as text and as JSON, and the exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from http_site import Site, closed_port, running_site
from streamlabel.cli import main
from streamlabel.data import catalogue
from streamlabel.data.catalogue import ENTRIES, Entry, RemoteFile
from streamlabel.data.fetch import fetch_set
from tiny_set import N_TRAIN, ROWS, TINY, write_form, xc_text


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMLABEL_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("STREAMLABEL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as site:
        site.files = {
            "/train.txt": xc_text(ROWS[:N_TRAIN]).encode(),
            "/test.txt": xc_text(ROWS[N_TRAIN:]).encode(),
        }
        yield site


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["datasets", *arguments])


def use(monkeypatch: pytest.MonkeyPatch, entry: Entry) -> None:
    monkeypatch.setattr(catalogue, "ENTRIES", (*ENTRIES, entry))
    monkeypatch.setattr("streamlabel.cli.downloads.ENTRIES", (*ENTRIES, entry))


def test_list_shows_every_set_and_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, TINY)
    write_form("xc", tmp_path / "data" / "tiny")
    result = call("list")
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = {line.split()[0]: line.split() for line in result.stdout.splitlines()}
    assert lines["bibtex"] == ["bibtex", "4,880", "/", "2,515", "1,836", "159", "-"]
    assert lines["tiny-3"] == ["tiny-3", "5", "/", "3", "4", "3", str(tmp_path / "data" / "tiny")]


def test_list_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, TINY)
    write_form("npz", tmp_path / "cache" / "datasets" / "tiny-3")
    sets = {row["name"]: row for row in json.loads(call("list", "--json").stdout)}
    assert set(sets) == {*(entry.name for entry in ENTRIES), "tiny-3"}
    assert sets["bibtex"]["present"] is False
    assert sets["tiny-3"] == {
        "name": "tiny-3",
        "description": "eight rows",
        "n_rows": {"train": 5, "test": 3},
        "n_features": 4,
        "n_labels": 3,
        "present": True,
        "folder": str(tmp_path / "cache" / "datasets" / "tiny-3"),
        "files": "npz",
    }


def test_info_of_an_absent_set_says_how_to_get_it() -> None:
    result = call("info", "Wiki10-31K")
    assert result.exit_code == 0
    assert "not on this machine" in result.stdout
    assert "101,938" in result.stdout
    assert "streamlabel datasets get wiki10-31k" in result.stdout
    assert "manikvarma.org" in result.stdout
    data = json.loads(call("info", "wiki10-31k", "--json").stdout)
    assert (data["n_labels"], data["labels_per_example"], data["measured"]) == (30938, None, None)


def test_info_of_a_present_set_measures_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, TINY)
    write_form("xc", tmp_path / "data" / "tiny")
    result = call("info", "tiny")
    assert result.exit_code == 0
    assert "agrees with what was published" in result.stdout
    measured = json.loads(call("info", "tiny", "--json").stdout)["measured"]
    # By hand: 6 assignments and 8 values on 5 rows, 4 and 4 on 3 rows; 3 labels.
    assert measured["train"]["labels_per_example"] == 1.2
    assert measured["test"]["labels_per_example"] == 1.3333
    assert measured["all"] == {
        "n_rows": 8,
        "n_features": 4,
        "n_labels": 3,
        "labels_per_example": 1.25,
        "examples_per_label": 3.3333,
        "values_per_example": 1.5,
    }


def test_info_says_what_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, replace(TINY, n_labels=4))
    write_form("xc", tmp_path / "data" / "tiny")
    result = call("info", "tiny")
    assert result.exit_code == 1
    assert "DIFFERS         train: labels: 3 here, 4 published" in result.stdout
    assert json.loads(call("info", "tiny", "--json").stdout)["differences"]


@pytest.mark.parametrize("command", ["info", "get"])
def test_unknown_name_is_3_with_the_nearest(command: str) -> None:
    result = call(command, "delicous")
    assert result.exit_code == 3
    assert result.stderr == "error: no data set is called 'delicous'; did you mean delicious?\n"
    assert result.stdout == ""


def test_get_downloads_and_prints_the_folder(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, replace(TINY, files=tuple(RemoteFile(site.url + path) for path in site.files)))
    folder = tmp_path / "cache" / "datasets" / "tiny-3"
    result = call("get", "tiny")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{folder}\n", "")
    assert call("get", "tiny").stdout == f"{folder}\n"
    assert len(site.requests) == 2  # the second call found it there
    assert json.loads(call("get", "tiny", "--force", "--json").stdout) == {
        "name": "tiny-3",
        "present": True,
        "folder": str(folder),
        "files": "XC text",
    }
    assert len(site.requests) == 4


def test_get_into_another_cache(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, replace(TINY, files=tuple(RemoteFile(site.url + path) for path in site.files)))
    elsewhere = tmp_path / "elsewhere"
    assert call("get", "tiny", "--cache-dir", str(elsewhere)).exit_code == 0
    assert (elsewhere / "datasets" / "tiny-3" / "train.txt").exists()
    assert str(elsewhere) in call("list", "--cache-dir", str(elsewhere)).stdout


def test_get_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, TINY)
    given = write_form("xc", tmp_path / "given")
    result = call("get", "tiny", "--from", str(given / "train.txt"), "--from", str(given / "test.txt"))
    assert result.exit_code == 0
    assert call("get", "tiny", "--from", str(tmp_path / "absent")).exit_code == 3


def test_get_without_network_tells_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlabel.cli.downloads.fetch_set", partial(fetch_set, attempts=1))
    use(monkeypatch, replace(TINY, files=(RemoteFile(f"http://127.0.0.1:{closed_port()}/train.txt"),)))
    result = call("get", "tiny")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: http://127.0.0.1")
    assert "By hand: write them yourself" in result.stderr
    assert str(tmp_path / "cache" / "datasets" / "tiny-3") in result.stderr


@pytest.mark.parametrize("name", ["eurlex-4k", "wiki10-31k", "citeulike-t"])
def test_get_of_a_set_without_an_address(name: str) -> None:
    result = call("get", name)
    assert result.exit_code == 1
    assert "By hand" in result.stderr
    assert name in result.stderr
