"""Where figures come from: kept over several commands, and checked when read."""

from __future__ import annotations

import importlib.metadata
import json

import pytest

from streamlabel.errors import DataError
from streamlabel.experiments import provenance
from streamlabel.experiments.provenance import CommandRun, Origin, read_origin, with_command, write_origin


def test_every_command_is_kept_once_in_order_with_its_machine(tmp_path, monkeypatch):
    path = tmp_path / "toy.run.json"
    for command, where in [("a", "here"), ("b", "here"), ("a", "here"), ("a", "there")]:
        monkeypatch.setattr(provenance, "machine", lambda where=where: where)
        found = with_command(read_origin(path), command)
        write_origin(found, path)
        assert read_origin(path) == found
    assert found.commands == ("a", "b")
    kept = json.loads(path.read_text(encoding="utf-8"))["commands"]
    assert [(run["command"], run["machine"]) for run in kept] == [("a", "here"), ("b", "here"), ("a", "there")]
    assert all(set(run) == {"command", "date", "versions", "machine", "commit"} for run in kept)
    assert [place.partition(";")[0] for place in found.places] == ["here", "there"]


def test_days_are_the_first_and_the_last():
    assert Origin().date == ""
    assert Origin((CommandRun("a"), CommandRun("b", "2026-01-31"))).date == "2026-01-31"
    days = ("2026-02-01", "2025-12-31", "2026-01-31")
    assert Origin(tuple(CommandRun("a", day) for day in days)).date == "2025-12-31 to 2026-02-01"


def test_records_are_quick_where_all_commands_were():
    full, quick = CommandRun("streamlabel reproduce toy"), CommandRun("streamlabel reproduce toy --quick --seeds 1")
    assert Origin((quick, quick)).is_quick
    assert not any(Origin(runs).is_quick for runs in [(), (full,), (quick, full)])


def test_the_earlier_forms_are_read(tmp_path):
    path = tmp_path / "toy.run.json"
    path.write_text('{"command": "streamlabel reproduce toy", "date": "2026-01-31", "n_records": 3}')
    assert read_origin(path) == Origin((CommandRun("streamlabel reproduce toy", "2026-01-31"),), 3)
    path.write_text('{"commands": ["a", "b"], "date": "2026-01-31", "versions": {"numpy": "2"}, "machine": "here"}')
    found = read_origin(path)
    assert found.runs == (CommandRun("a"), CommandRun("b", "2026-01-31", {"numpy": "2"}, "here"))
    assert (found.commands, found.date, found.places) == (("a", "b"), "2026-01-31", ("here; numpy 2",))
    assert read_origin(tmp_path / "other.run.json") == Origin()


def test_a_command_that_goes_on_at_another_commit_is_there_again(tmp_path, monkeypatch):
    path = tmp_path / "toy.run.json"
    for commit in ("", "aaaaaaaaaa", "bbbbbbbbbb with changes", "aaaaaaaaaa"):
        monkeypatch.setattr(provenance, "source_commit", lambda commit=commit: commit)
        write_origin(with_command(read_origin(path), "a"), path)
    found = read_origin(path)
    assert [run.commit for run in found.runs] == ["", "aaaaaaaaaa", "bbbbbbbbbb with changes"]
    assert found.commits == ("aaaaaaaaaa", "bbbbbbbbbb with changes")
    assert len(found.places) == 1


def test_versions_are_those_of_what_is_installed(monkeypatch):
    installed = {"numpy": "2.0", "scipy": "1.9", "scikit-learn": "1.5", "river": "0.22"}

    def version(name):
        if name not in installed:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    found = provenance.versions()
    assert {name: found[name] for name in found if name not in ("streamlabel", "python")} == installed
    installed |= {"matplotlib": "3.8", "napkinxc": "0.7", "omikuji": "0.5"}
    assert installed.items() <= provenance.versions().items()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"command": "a", "versions": 3}', "versions must be"),
        ('{"commands": [{"command": "a", "versions": {"numpy": 2}}]}', "versions must be"),
        ('{"commands": [{"date": "2026-01-31"}]}', "commands must be"),
        ('{"commands": "a"}', "commands must be"),
        ('{"command": 3}', "commands must be"),
        ('{"commands": [3]}', "commands must be"),
        ('{"n_records": "3"}', "n_records must be"),
        ('{"command": "a", "machine": null}', "machine and commit must be"),
        ('{"commands": [{"command": "a", "date": 2026}]}', "date, machine and commit must be"),
        ('{"commands": [{"command": "a", "commit": null}]}', "commit must be"),
    ],
)
def test_a_wrong_form_is_one_error_that_names_the_file(tmp_path, text, says):
    (tmp_path / "toy.run.json").write_text(text)
    with pytest.raises(DataError, match=rf"toy\.run\.json: .*{says}.*; mend or remove"):
        read_origin(tmp_path / "toy.run.json")
