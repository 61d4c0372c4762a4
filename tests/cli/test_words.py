"""Mistakes at the shell: the message speaks of options and commands, and names what was probably meant."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from scipy import sparse

import streamlabel
from streamlabel import ModelStore
from streamlabel.cli.output import SHELL_WORDS
from streamlabel.errors import Hint
from streamlabel.serve.access import SERVICE_WORDS
from tagged_texts import tagged_texts

Call = Callable[..., Result]
DATA = tagged_texts(300, 100)
PYTHON = re.compile(r"\w=['\w\[.]|\w+\(\)|\(\w+=|mode=|Y_path|min_df|ModelStore")


def test_every_hint_is_given_somewhere_and_has_words_everywhere() -> None:
    tables = [importlib.import_module(name) for name in ("streamlabel.cli.output", "streamlabel.serve.access")]
    files = set(Path(streamlabel.__file__).parent.rglob("*.py")) - {Path(str(one.__file__)) for one in tables}
    given = {name for path in files for name in re.findall(r"\bHint\.([A-Z_]+)", path.read_text(encoding="utf-8"))}
    assert given == {hint.name for hint in Hint}
    for words in (SHELL_WORDS, SERVICE_WORDS):
        assert set(words) == set(Hint)
        assert [said for said in words.values() if PYTHON.search(said)] == []


def damage(model: Path) -> None:
    segment = next(model.glob("[WV]-*"))
    content = bytearray(segment.read_bytes())
    content[200] ^= 0xFF
    segment.write_bytes(bytes(content))


def test_a_damaged_model_is_told_in_commands(model: Path, tmp_path: Path, call: Call) -> None:
    damage(model)
    yes = tmp_path / "yes.txt"
    yes.write_text(DATA.texts[0])
    for command in (
        ["suggest", model, DATA.texts[0]],
        ["explain", model, "x"],
        ["add-label", model, "x", "--yes", yes],
    ):
        said = call(*command, code=1).stderr
        assert "'streamlabel doctor MODEL --repair'" in said
        assert not PYTHON.search(said)


def test_a_second_writer_is_told_in_commands(model: Path, call: Call) -> None:
    with ModelStore.open(model, "a", actor="eve"):
        said = call("retire", model, "football", code=4).stderr
    assert "commands that change nothing can still read it" in said
    assert not PYTHON.search(said)


def test_files_that_cannot_be_learned_from_are_told_in_options(tmp_path: Path, call: Call) -> None:
    sparse.save_npz(tmp_path / "X.npz", sparse.csr_array(np.eye(3)))
    arff = "@relation r\n@attribute a {0,1}\n@attribute x numeric\n@data\n1,2\n"
    (tmp_path / "set.arff").write_text(arff)
    (tmp_path / "few.csv").write_text("text,tags\n!,a\n?,b\n")
    (tmp_path / "two.jsonl").write_text('{"text": "x", "labels": ["a"], "features": [1]}\n')
    wanted = {"X.npz": "--labels-file", "set.arff": "--labels-file", "few.csv": "more texts", "two.jsonl": "leave one"}
    for name, said in wanted.items():
        message = call("fit", tmp_path / "model", tmp_path / name, code=1).stderr
        assert said in message
        assert not PYTHON.search(message)


def test_a_plain_text_file_and_a_folder_are_not_taken_for_a_set(tmp_path: Path, model: Path, call: Call) -> None:
    (tmp_path / "yes.txt").write_text("Bird flu was found on 2 farms.\n")
    (tmp_path / "texts.jsonl").write_text("{}\n")
    for command in (["fit", tmp_path / "new"], ["evaluate", model]):
        assert "plain text without tags" in call(*command, tmp_path / "yes.txt", code=1).stderr
    for begin in ("\ufeff3 2 2\n", "3\t2\t2\n"):
        (tmp_path / "rows.txt").write_text(begin + "0 0:1\n1 1:1\n0,1 0:1 1:1\n", encoding="utf-8")
        assert "learned 2 labels" in call("fit", tmp_path / f"xc{len(begin)}", tmp_path / "rows.txt").stdout
        assert "name a file in it, such as texts.jsonl" in call(*command, tmp_path, code=1).stderr
    (tmp_path / "xc.txt").write_text("2 1 1\n0 0:1\n 0:2\n")
    assert "would learn 1 label from 2 rows" in call("fit", tmp_path / "new", tmp_path / "xc.txt", "--dry-run").stdout


def test_a_column_that_is_not_there_is_told_with_those_that_are(model: Path, tmp_path: Path, call: Call) -> None:
    records = [{"text": DATA.texts[0]}, {"text": DATA.texts[1], "ok": "yes"}]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert (
        "no field 'nosuch'; the fields are 'text', 'ok'"
        in call("add-label", model, "new", "--file", path, "--column", "nosuch", code=1).stderr
    )
    csv = tmp_path / "answers.csv"
    csv.write_text("text,ok\nx,yes\n")
    assert (
        "no column 'nosuch'; the columns are 'text', 'ok'"
        in call("add-label", model, "new", "--file", csv, "--column", "nosuch", code=1).stderr
    )


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [(["sugest"], "suggest"), (["add-labels"], "add-label"), (["datasets", "lst"], "list"), (["Fit"], "fit")],
)
def test_a_mistyped_command_is_asked_for(arguments: list[str], meant: str, call: Call) -> None:
    assert f"Did you mean '{meant}'" in call(*arguments, code=2).stderr


def test_a_mistyped_label_is_asked_for_everywhere(model: Path, tmp_path: Path, call: Call) -> None:
    (tmp_path / "tags.csv").write_text("text,tags\nx,trains\ny,\n")
    for command in (
        ["history", model, "footbal"], ["rollback", model, "--label", "footbal"], ["retire", model, "footbal"],
        ["rollback", model, 1, "--label", "footbal"], ["rename", model, "Football", "x"],
        ["relations", model, "football "], ["explain", model, "x", "fotball"],
    ):  # fmt: skip
        assert "did you mean 'football'?" in call(*command, code=3).stderr
    said = call("add-label", model, "train", "--file", tmp_path / "tags.csv", code=3).stderr
    assert "did you mean 'trains'?" in said


def test_names_are_stripped_and_twins_are_told(model: Path, tmp_path: Path, call: Call) -> None:
    yes = tmp_path / "yes.txt"
    yes.write_text("".join(f"{DATA.texts[i]}\n" for i in DATA.rows["railways"][:3]))
    for empty in ("", "  "):
        assert "the name of the label is empty" in call("add-label", model, empty, "--yes", yes, code=2).stderr
        assert "the name of the label is empty" in call("rename", model, "football", empty, code=2).stderr
    assert "'football' is known already" in call("add-label", model, " football ", "--yes", yes, code=4).stderr
    assert "taken off: 'railways'" in call("add-label", model, "railways ", "--yes", yes).stderr
    assert ModelStore.open(model).label_names[-1] == "railways"
    said = call("add-label", model, "Railways", "--yes", yes, "--dry-run").stderr
    assert said == "warning: there is a label 'railways', which differs from 'Railways' only by case\n"
    assert call("rename", model, "railways", "Railways").stderr == ""
    assert ModelStore.open(model).label_names[-1] == "Railways"


def test_a_name_that_is_close_to_a_known_one_is_learned_and_told(model: Path, tmp_path: Path, call: Call) -> None:
    yes = tmp_path / "yes.txt"
    yes.write_text("".join(f"{DATA.texts[i]}\n" for i in DATA.rows["railways"][:3]))
    for name in ("footballs", "Footbal", "foodball", "foot", "football 2"):
        done = call("add-label", model, name, "--yes", yes, "--dry-run", "--json")
        told = f"warning: {name!r} is close to a label that is known; did you mean 'football'?\n"
        assert done.stderr == ("" if name in ("foot", "football 2") else told)
        assert json.loads(done.stdout)["name"] == name
    assert "is close" not in call("add-label", model, "football", "--yes", yes, code=4).stderr
    assert call("rename", model, "football", "footballs").stderr == ""


def test_files_of_answers_are_named_where_they_are_wrong(model: Path, tmp_path: Path, call: Call) -> None:
    yes, no, empty, table = (tmp_path / name for name in ("yes.txt", "no.txt", "empty.txt", "both.csv"))
    yes.write_text("trains\n\nticket prices\n")
    no.write_text("hens\nticket prices\n")
    empty.write_text("\n")
    table.write_text("text,ok\ntrains,yes\nhens,no\ntrains,no\n")
    for given in (["--yes", empty], ["--yes", yes, "--no", empty]):
        said = call("add-label", model, "railways", *given, code=1).stderr
        assert said == f"error: {empty}: holds no texts; is it the right file, and whole?\n"
    said = call("add-label", model, "railways", "--yes", "-", input=" ", code=1).stderr
    assert said.endswith("error: standard input: holds no texts; is it the right file, and whole?\n")
    said = call("add-label", model, "railways", "--yes", yes, "--no", no, code=1).stderr
    where = f"{no}, line 2: 'ticket prices' is a no here and a yes in {yes}, line 3"
    assert said == f"error: {where}; keep one of the two\n"
    said = call("add-label", model, "railways", "--file", table, "--column", "ok", "--text", "text", code=1).stderr
    assert f"{table}, line 4: 'trains' is a no here and a yes in {table}, line 2" in said


def test_twins_among_the_tags_of_a_file_are_told(tmp_path: Path, call: Call) -> None:
    names = ["farming", "Farming", "economy", "farming "]
    lines = [json.dumps({"text": DATA.texts[i], "labels": [names[i % 4]]}) for i in range(40)]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines) + "\n")
    said = call("fit", tmp_path / "model", tmp_path / "texts.jsonl", "--dry-run").stderr.splitlines()
    assert [re.findall(r"'([^']*)'", line) for line in said] == [["farming", "Farming"], ["farming", "farming "]]
