"""The page of all experiments: made from records, with nothing hidden."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from streamlabel.errors import DataError, NotFoundError
from streamlabel.experiments.experiment import Page, Setting
from streamlabel.experiments.registry import EXPERIMENTS, Registered
from streamlabel.experiments.results_page import ORDER, write_results_page
from streamlabel.experiments.runner import planned, record_file, run_experiment, write_results
from toy_experiment import TOY

TOYS = {"toy": Registered("toy_experiment:TOY", "Counts."), "other": Registered("nowhere:NOTHING", "Not run.")}


@pytest.fixture
def folder(tmp_path) -> Path:
    file = record_file(TOY, tmp_path / "results")
    run_experiment(TOY, planned(TOY, Setting(("a",), (0, 1))), file)
    write_results(TOY, file, tmp_path / "results", "streamlabel reproduce toy --seeds 2")
    return tmp_path


def make(folder: Path, experiments=TOYS):
    return write_results_page(
        folder / "results", folder / "docs" / "results.md", folder / "docs" / "_static" / "results", experiments
    )


def test_it_has_the_table_the_sentence_the_command_the_machine_and_what_is_missing(folder):
    found = make(folder)
    text = (folder / "docs" / "results.md").read_text(encoding="utf-8")
    assert text == found.text
    origin = json.loads((folder / "results" / "toy.run.json").read_text(encoding="utf-8"))
    for part in ("There are 6 records.", "a 1 2 0.300", "`streamlabel reproduce toy --seeds 2`", "- other: not run."):
        assert part in text
    (run,) = origin["commands"]
    assert run["machine"] in text
    for name, version in run["versions"].items():
        assert f"{name} {version}" in text
    assert run["date"] in text
    assert found.not_run == ("other",)
    assert json.loads(json.dumps(found.data))["experiments"]["toy"]["n_records"] == 6


def test_pictures_lie_beside_the_page_and_are_linked_from_it(folder):
    pytest.importorskip("matplotlib")
    found = make(folder)
    assert "![Values](_static/results/toy-values.png)" in found.text
    path = folder / "docs" / "_static" / "results" / "toy-values.png"
    assert path.read_bytes() == (folder / "results" / "toy-values.png").read_bytes()


def test_headings_of_an_experiment_lie_under_its_own(folder, monkeypatch):
    text = make(folder).text
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == [
        "# Results",
        "## The data sets",
        "## What the words mean",
        "## What the experiments show",
        "## Where the learner wins, ties and loses",
        "## A toy",
        "### Values",
    ]


def test_it_says_first_what_this_is_and_which_paper_is_meant(folder):
    first = make(folder).text.partition("## ")[0]
    assert "Streaming label learning (SLL) is a multi-label classifier whose labels grow" in first
    assert "[arXiv:1604.05449](https://arxiv.org/abs/1604.05449)" in first


def test_the_sets_of_the_records_have_their_shapes_and_need_not_be_there(folder, monkeypatch):
    monkeypatch.delenv("STREAMLABEL_DATA", raising=False)
    file = record_file(TOY, folder / "results")
    names = ("bibtex", "mediamill (stand-in mediamill_reduced)", "mediamill_reduced", "wiki10-31k (stand-in twin)")
    run_experiment(TOY, planned(TOY, Setting(names, (0,))), file)
    table = make(folder).text.partition("## The data sets")[2].partition("##")[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()[2:]]
    cells = {line[0]: (*line[1:5], line[6]) for line in lines}
    assert cells == {
        "a": ("", "", "", "", ""),
        "bibtex": ("4,880", "2,515", "1,836", "159", ""),
        "mediamill_reduced": ("1,500", "500", "120", "101", "mediamill"),
        "wiki10-31k (stand-in twin)": ("14,146", "6,616", "101,938", "30,938", "wiki10-31k"),
    }
    described = {line[0]: line[5] for line in lines}
    assert "BibSonomy" in described["bibtex"]
    assert "made up" in described["wiki10-31k (stand-in twin)"]


def test_experiments_come_in_the_order_that_matters_to_a_user_and_unknown_ones_last(folder):
    assert set(ORDER) == set(EXPERIMENTS)
    found = make(folder, {"bounds": TOYS["other"], **TOYS, "table2": TOYS["other"], "budget": TOYS["other"]})
    assert re.findall(r"- (\w+): not run", found.text) == ["budget", "table2", "bounds", "other"]


def test_words_are_explained_before_they_are_used(folder):
    words, _, rest = make(folder).text.partition("## What the experiments show")
    for term in ("SLL", "own ridge", "BR ridge", "LEML", "SLEEC", "P@k", "AUC", "average precision", "stand-in"):
        assert term.lower() in words.lower()
    assert "- toy (" in rest


def test_a_sentence_with_several_sets_has_a_point_for_each(folder, monkeypatch):
    file = record_file(TOY, folder / "results")
    run_experiment(TOY, planned(TOY, Setting(("b (stand-in c)",), (0,))), file)

    def page(records):
        return Page("It grows: a by 1; b (stand-in c) by 2. Both a lot. a: 3. More. b (stand-in c): 4.", "", {})

    monkeypatch.setattr("toy_experiment.TOY", replace(TOY, page=page))
    lines = make(folder).text.splitlines()
    points = ["- It grows:", "  - a by 1.", "  - b (stand-in c) by 2.", "- Both a lot.", "- a: 3. More.",
              "- b (stand-in c): 4."]  # fmt: skip
    first = next(i for i, line in enumerate(lines) if line.startswith("- toy ("))
    assert lines[first].endswith("9 records):")
    assert lines[first + 1 : first + 7] == [f"  {point}" for point in points]
    section = lines.index("## A toy")
    assert lines[section + 4 : section + 10] == points


def test_without_matplotlib_all_else_is_there(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = make(folder)
    assert found.no_pictures.endswith("pip install 'streamlabel[plot]'")
    assert "![" not in found.text
    assert "a 1 2 0.300" in found.text


def test_a_folder_without_records_is_left_alone(tmp_path):
    with pytest.raises(NotFoundError, match="has no records of any experiment; run one, as 'streamlabel reproduce"):
        make(tmp_path, EXPERIMENTS)
    assert list(tmp_path.iterdir()) == []


def test_records_of_unknown_origin_are_said_to_be(folder):
    (folder / "results" / "toy.run.json").unlink()
    text = make(folder).text
    assert "toy: machine and versions were not kept." in text
    assert "`streamlabel reproduce toy`" in text


def test_an_origin_that_cannot_be_read_is_named(folder):
    (folder / "results" / "toy.run.json").write_text("{")
    with pytest.raises(DataError, match=r"toy\.run\.json: not JSON"):
        make(folder)


def test_all_commands_that_wrote_records_are_shown(folder):
    file = record_file(TOY, folder / "results")
    run_experiment(TOY, planned(TOY, Setting(("b",), (0,))), file)
    write_results(TOY, file, folder / "results", "streamlabel reproduce toy --dataset b")
    assert "`streamlabel reproduce toy --seeds 2`\\\n`streamlabel reproduce toy --dataset b`\n" in make(folder).text


def test_every_machine_and_day_on_which_records_were_made_is_named(folder):
    path = folder / "results" / "toy.run.json"
    runs = [
        {"command": "a", "date": "2026-02-01", "versions": {"numpy": "2.0"}, "machine": "a large one"},
        {"command": "b", "date": "2026-01-31", "versions": {"numpy": "1.9"}, "machine": "a small one"},
    ]
    path.write_text(json.dumps({"commands": runs, "n_records": 6}))
    text = make(folder).text
    assert "- toy (2026-01-31 to 2026-02-01, 6 records)" in text
    assert "toy: a large one; numpy 2.0.\n\ntoy: a small one; numpy 1.9.\n" in text


def test_every_commit_is_named_once_with_the_experiments_that_ran_at_it(folder):
    path = folder / "results" / "toy.run.json"
    here = {"date": "2026-02-01", "versions": {"streamlabel": "1", "numpy": "2.0"}, "machine": "a large one"}
    runs = [{"command": "a"} | here, *({"command": name, "commit": name * 10} | here for name in "bcb")]
    path.write_text(json.dumps({"commands": runs, "n_records": 6}))
    text = make(folder).text
    said = "Commits of the source: not kept (toy); bbbbbbbbbb (toy); cccccccccc (toy)."
    assert f"toy: a large one; streamlabel 1, numpy 2.0.\n\n{said}\n\n" in text
    assert text.count("bbbbbbbbbb") == 1
    path.write_text(json.dumps({"commands": runs[:1], "n_records": 6}))
    assert "Commits of the source" not in make(folder).text


def test_the_folder_is_only_read_also_while_a_run_writes_there(folder):
    path = folder / "results" / "toy.jsonl"
    with open(path, "ab") as growing:
        growing.write(b'{"dataset": "a", "se')
    before = {path.name: path.read_bytes() for path in (folder / "results").iterdir()}
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        assert "There are 6 records." in make(folder).text
    finally:
        path.parent.chmod(0o700)
    assert {path.name: path.read_bytes() for path in (folder / "results").iterdir()} == before


def test_the_link_to_how_it_is_run_has_a_text(folder):
    assert "[Experiments](experiments.md) says how to run them." in make(folder).text
