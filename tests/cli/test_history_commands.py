"""history, diff, rollback, rename, retire, doctor, completion: what is said is what the store says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from streamlabel import ModelStore

Call = Callable[..., Result]
Ask = Callable[..., Any]


def test_a_label_is_renamed_retired_and_brought_back(model: Path, call: Call, ask: Ask) -> None:
    first = ModelStore.open(model).label_names
    for command in (["rename", model, "football", "soccer"], ["retire", model, "football"]):
        would = ask(*command, "--dry-run")
        assert would["revision"] is None
        assert ModelStore.open(model).label_names == first
        did = ask(*command)
        assert did["changes"] == would["changes"]
        assert ask("rollback", model, did["revision"] - 1)["revision"] == did["revision"] + 1
        assert ModelStore.open(model).label_names == first
    ask("retire", model, "football")
    would = ask("rollback", model, "--label", "football", "--dry-run")
    assert [(c["kind"], c["after"]) for c in would["changes"]] == [("added", "football")]
    assert ask("rollback", model, "--label", "football")["changes"] == would["changes"]
    assert ModelStore.open(model).label_names == first
    other = first[0] if first[0] != "football" else first[1]
    ask("rename", model, other, "0.3")  # a name that is the threshold of another
    ask("threshold", model, "football", 0.3)
    before = ask("history", model)[0]["number"] - 1
    assert ask("rollback", model, before, "--label", "0.3", "--dry-run")["changes"] == []
    would = ask("rollback", model, "--label", "football", "--dry-run")
    assert [c["kind"] for c in would["changes"]] == ["threshold"]
    assert ask("rollback", model, "--label", "football")["changes"] == would["changes"]


def test_history_and_diff(model: Path, call: Call, ask: Ask) -> None:
    call("rename", model, "football", "soccer", "--actor", "eve")
    store = ModelStore.open(model)
    found = ask("history", model)
    assert [(r["number"], r["action"]) for r in found] == [(r.number, r.action) for r in store.history()]
    assert found[0]["actor"] == "eve"
    assert [r["number"] for r in ask("history", model, "football")] == [3, 2]
    assert len(ask("history", model, "-n", 1)) == 1
    changes = ask("diff", model, 1)["changes"]
    assert [(c["kind"], c["before"], c["after"]) for c in changes] == [("added", None, "soccer")]
    assert ask("diff", model, 2, 2)["changes"] == []
    assert "no label differs" in call("diff", model, 2, 2).stdout
    assert "football -> soccer" in call("history", model).stdout


def test_mistakes_have_their_codes(model: Path, call: Call) -> None:
    names = ModelStore.open(model).label_names
    call("diff", model, 99, code=3)
    call("rollback", model, 99, code=3)
    call("rollback", model, "--label", "nobody", code=3)
    call("history", model, "nobody", code=3)
    call("rename", model, "football", names[0], code=4)
    call("rename", model, "nobody", "x", code=3)
    call("retire", model, "football", "nobody", code=3)
    call("retire", model, *names, code=1)
    assert ModelStore.open(model).revision == 2


def test_a_second_writer_is_a_conflict(model: Path, call: Call) -> None:
    with ModelStore.open(model, "a", actor="somebody else"):
        assert "somebody else" in call("retire", model, "football", code=4).stderr
        call("retire", model, "football", "--dry-run")


def test_the_actor_comes_from_the_environment(model: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMLABEL_ACTOR", "the night run")
    call("retire", model, "football")
    assert ModelStore.open(model).history()[0].actor == "the night run"


def test_doctor_finds_and_mends(model: Path, call: Call, ask: Ask) -> None:
    assert ask("doctor", model) == {"healthy": True, "findings": []}
    assert "all is whole" in call("doctor", model).stdout
    segment = next(model.glob("[WV]-*"))
    content = bytearray(segment.read_bytes())
    content[200] ^= 0xFF
    segment.write_bytes(bytes(content))
    assert "--repair" in call("doctor", model, code=1).stdout
    mended = ask("doctor", model, "--repair")
    assert all(finding["repaired"] for finding in mended["findings"])
    after = ask("doctor", model)
    (left,) = after["findings"]
    assert (after["healthy"], left["kind"]) == (True, "history")  # an older revision had that label
    for command in (["doctor", model], ["doctor", model, "--repair"]):
        said = call(*command).stdout
        assert f"'streamlabel vacuum {model}' forgets these" in said
        assert "--repair" not in said
    assert ask("vacuum", model, "--dry-run")["forgotten"] == [1, 2]
    assert ask("vacuum", model)["forgotten"] == [1, 2]
    assert ask("doctor", model)["healthy"]
    (model / "catalogue.db").write_bytes(b"nothing")
    call("doctor", model, code=1)


def test_a_label_that_lost_its_row_does_not_come_back(model: Path, call: Call) -> None:
    call("retire", model, "football")
    segment = sorted(model.glob("[WV]-*"))[-1]
    segment.write_bytes(segment.read_bytes()[:64] + bytes(segment.stat().st_size - 64))
    for command in (["rollback", model, 2], ["rollback", model, "--label", "football"]):
        for more in ([], ["--dry-run"]):
            said = call(*command, *more, code=1).stderr
            assert "revision 2 has damaged labels: 'football'" in said
            assert "nothing was changed" in said
    assert ModelStore.open(model).revision == 3
    call("rename", model, ModelStore.open(model).label_names[0], "x")
    assert "bring the other labels back one by one with --label\n" in call("rollback", model, 2, code=1).stderr


def test_a_roll_back_of_a_label_undoes_itself_and_says_so(model: Path, call: Call) -> None:
    call("rename", model, "football", "soccer")
    call("rename", model, "soccer", "kicking")
    for name in ("soccer", "kicking"):
        call("rollback", model, "--label", ModelStore.open(model).label_names[-1])
        assert ModelStore.open(model).label_names[-1] == name
    call("rollback", model, 2, "--label", "kicking")
    assert ModelStore.open(model).label_names[-1] == "football"
    assert "undoes itself when it is repeated" in " ".join(call("rollback", "--help").stdout.split())


@pytest.mark.parametrize("command", ["undo", "rollback"])
def test_the_last_change_is_undone_and_brought_back(model: Path, call: Call, ask: Ask, command: str) -> None:
    call("rename", model, "football", "soccer")
    would = call(command, model, "--dry-run").stdout
    assert would.startswith("would undo revision 3: rename football -> soccer")
    assert ModelStore.open(model).revision == 3
    said = call(command, model).stdout
    assert said.startswith("undid revision 3: rename football -> soccer")
    assert f"'streamlabel rollback {model} 3' brings it back" in said
    assert ModelStore.open(model).label_names[-1] == "football"
    again = ask(command, model)
    assert (again["revision"], again["undone"]["number"], again["undone"]["action"]) == (5, 2, "add")
    assert "football" not in ModelStore.open(model).label_names
    assert "there is no change to undo" in call(command, model, code=1).stderr
    call("rollback", model, 3)
    assert ModelStore.open(model).label_names[-1] == "soccer"
    call("vacuum", model)
    assert "there is no change to undo" in call(command, model, code=1).stderr


def test_undo_goes_back_step_by_step_past_what_is_undone(model: Path, call: Call, ask: Ask) -> None:
    """The names after each step are those of an editor, played through by hand."""
    last = lambda: ModelStore.open(model).label_names[-1]  # noqa: E731
    for name in ("b", "c"):
        call("rename", model, last(), name)
    undone = [ask("undo", model)["undone"]["number"]]  # c
    assert last() == "b"
    call("rename", model, "b", "d")
    call("rollback", model, 4)  # a change as any other: back to c
    assert last() == "c"
    for name in ("d", "b", "football"):
        undone.append(ask("undo", model)["undone"]["number"])
        assert last() == name
    assert undone == [4, 7, 6, 3]
    call("vacuum", model, "--keep-from", 3)
    call("undo", model, code=1)  # what is before is forgotten
    said = [one["action"] for one in ask("history", model)]
    assert said == ["vacuum", *["undo"] * 3, "rollback", "rename", "undo", "rename", "rename", "add", "create"]
    assert "undo      to 6" in call("history", model).stdout


def test_doctor_speaks_to_people_at_a_shell(model: Path, tmp_path: Path, call: Call) -> None:
    table = tmp_path / "all.csv"
    table.write_text("text,tags\n")
    assert call("doctor", table, code=1).stderr == f"error: {table}: is a file, not a model directory\n"
    for path in model.glob("P-*"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(bytes(content))
    said = call("doctor", model, code=1).stdout
    assert f"'streamlabel doctor {model} --repair' mends" in said
    assert said.count("streamlabel doctor") == 1
    assert "MODEL" not in said
    assert "fit again" in said
    assert "put it" not in said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(call: Call, ask: Ask, shell: str) -> None:
    script = call("completion", shell).stdout
    assert "_STREAMLABEL_COMPLETE" in script
    assert ask("completion", shell)["script"].strip() == script.strip()


def test_completion_knows_the_commands_without_loading_them() -> None:
    code = (
        "import sys; sys.argv = ['streamlabel']\nfrom streamlabel.cli import main\n"
        "try:\n main()\nfinally:\n print('numpy' in sys.modules)"
    )
    environment = {
        **os.environ,
        "_STREAMLABEL_COMPLETE": "bash_complete",
        "COMP_WORDS": "streamlabel re",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment, timeout=600
    )
    offered = [line.partition(",")[2] for line in done.stdout.splitlines() if line.startswith("plain,")]
    assert {"relations", "rename", "retire", "reproduce"} <= set(offered)
    assert done.stdout.splitlines()[-1] == "False"
