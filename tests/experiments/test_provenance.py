"""Where figures come from: kept over several commands, and checked when read."""

from __future__ import annotations

import dataclasses
import json

import pytest

from streamlabel.exceptions import DataError
from streamlabel.experiments.provenance import Origin, provenance, read_origin


def test_every_command_that_wrote_records_is_kept_once_in_order(tmp_path):
    path = tmp_path / "toy.run.json"
    asked = [("a", 2), ("b", 5), ("a", 6), ("found all there", 6)]
    for command, n_records in asked:
        found = provenance(command, n_records, read_origin(path))
        path.write_text(json.dumps(dataclasses.asdict(found)), encoding="utf-8")
        assert read_origin(path) == found
    assert found.commands == ("a", "b")
    assert found.n_records == 6


def test_the_earlier_form_with_one_command_is_read(tmp_path):
    path = tmp_path / "toy.run.json"
    path.write_text('{"command": "streamlabel reproduce toy", "date": "2026-01-31", "n_records": 3}')
    assert read_origin(path) == Origin(("streamlabel reproduce toy",), "2026-01-31", 3)
    assert read_origin(tmp_path / "other.run.json") == Origin()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"versions": 3}', "versions must be"),
        ('{"versions": {"numpy": 2}}', "versions must be"),
        ('{"commands": "a"}', "commands must be"),
        ('{"command": 3}', "commands must be"),
        ('{"commands": [3]}', "commands must be"),
        ('{"n_records": "3"}', "n_records must be"),
        ('{"machine": null}', "machine must be"),
        ('{"date": 2026}', "date and machine must be"),
    ],
)
def test_a_wrong_form_is_one_error_that_names_the_file(tmp_path, text, says):
    (tmp_path / "toy.run.json").write_text(text)
    with pytest.raises(DataError, match=rf"toy\.run\.json: .*{says}.*; mend or remove"):
        read_origin(tmp_path / "toy.run.json")
