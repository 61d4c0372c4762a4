"""Pages: templates that are filled, the report of a folder, and what the page of the committed records claims."""

from __future__ import annotations

import json
import re
import sys
import tarfile
from pathlib import Path

import pytest

from streamlabel.errors import DataError, MissingExtraError, NotFoundError
from streamlabel.experiments import report
from streamlabel.experiments.asking import STARTS
from streamlabel.experiments.compare import family_of, standings
from streamlabel.experiments.experiment import EXPERIMENTS, Registered, Setting
from streamlabel.experiments.named_labels import AS_TEXT, WITHOUT
from streamlabel.experiments.record_file import read_records
from streamlabel.experiments.report import ORDER, Results, fill, page_template, write_report, write_results
from streamlabel.experiments.runner import planned, record_file, run_experiment
from streamlabel.experiments.spec import LEARNER
from tiny_commands import no_picture
from toy_experiment import TOY

DOCS = Path(__file__).parents[2] / "docs"
TOYS = {"toy": Registered("toy_experiment:TOY", "Counts."), "other": Registered("nowhere:NOTHING", "Not run.")}
NAMES = sorted(EXPERIMENTS)
FOUND = ("names", "questions")  # they have a page of their own


def test_a_placeholder_that_nobody_fills_is_an_error():
    assert fill("a {{b}}\n\n{{ c }}\n\nd", {"b": "B", "c": ""}.get) == "a B\n\nd"
    with pytest.raises(DataError, match=r"page of x: nothing fills the placeholder \{\{ e \}\}"):
        fill("{{b}} {{ e }}", {"b": "B"}.get, "the page of x")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_all_tables_facts_and_plots_of_its_experiment_and_no_others(name):
    spec = EXPERIMENTS[name].load().page
    places = set(re.findall(r"\{\{(.+?)\}\}", page_template(name)))
    assert places == {*spec.tables, *spec.facts, *(f"plot {plot.name}" for plot in spec.plots)}


@pytest.mark.parametrize("name", ["report", "results", "found"])
def test_the_report_names_tables_and_plots_that_there_are(name):
    own = {"sets", "by_rows", "leads", "standings", "looked_at", "not_looked_at", "runs", "machines", "days"}
    for place in set(re.findall(r"\{\{(.+?)\}\}", page_template(name))) - own:
        kind, _, rest = place.rpartition(" ")
        experiment, _, part = rest.partition(".")
        spec = EXPERIMENTS[experiment].load().page
        assert part in ({plot.name for plot in spec.plots} if kind else {*spec.tables, *spec.facts})


@pytest.fixture
def folder(tmp_path) -> Path:
    pytest.importorskip("pandas")
    file = record_file(TOY, tmp_path / "results")
    run_experiment(TOY, planned(TOY, Setting(("a",), (0, 1))), file)
    write_results(TOY, file, tmp_path / "results", "streamlabel reproduce toy --seeds 2")
    (tmp_path / "words.md").write_text(
        "{{toy.count}} {{other.anything}}\n\n{{plot toy.values}}\n\n{{toy.values}}\n\n{{runs}}\n"
    )
    return tmp_path


def make(folder: Path, experiments=TOYS):
    pictures = folder / "docs" / "_static" / "results"
    return write_report(folder / "results", folder / "docs" / "results.md", pictures, folder / "words.md", experiments)


def test_a_report_has_tables_pictures_commands_and_what_is_missing(folder):
    pytest.importorskip("matplotlib")
    found = make(folder)
    text = (folder / "docs" / "results.md").read_text(encoding="utf-8")
    assert text == found.text
    for part in ("6 *Not run: `streamlabel reproduce other`.*", "#### a", "`streamlabel reproduce toy --seeds 2`"):
        assert part in text
    assert "![Values](_static/results/toy-values.png)" in text
    assert (folder / "docs" / "_static" / "results" / "toy-values.png").is_file()
    assert found.not_run == ("other",)
    assert json.loads(json.dumps(found.data))["experiments"]["toy"]["n_records"] == 6
    assert set(ORDER) == set(EXPERIMENTS)


def test_a_report_may_write_the_page_of_every_experiment(folder):
    out = folder / "r.md"
    write_report(folder / "results", out, folder, folder / "words.md", TOYS, pages=folder / "pages")
    assert (folder / "pages" / "toy.md").read_bytes() == (folder / "results" / "toy.md").read_bytes()


def test_records_are_only_read(folder):
    before = {path.name: path.read_bytes() for path in (folder / "results").iterdir()}
    path = folder / "results" / "toy.jsonl"
    with open(path, "ab") as file:
        file.write(b'{"a line that is being wri')
    make(folder)
    path.write_bytes(before["toy.jsonl"])
    assert {path.name: path.read_bytes() for path in (folder / "results").iterdir()} == before


def test_a_folder_without_records_a_wrong_word_and_a_missing_package_are_one_error_each(folder, tmp_path, monkeypatch):
    with pytest.raises(NotFoundError, match="has no records of any experiment; run one"):
        write_report(tmp_path / "empty", tmp_path / "r.md", tmp_path, None, TOYS)
    (folder / "words.md").write_text("{{toy.nothing}}")
    with pytest.raises(DataError, match=r"words\.md: nothing fills the placeholder \{\{toy\.nothing\}\}"):
        make(folder)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"needs the package pandas: pip install 'streamlabel\[experiments\]'"):
        make(folder)
    assert not (folder / "docs" / "results.md").exists()


def test_without_matplotlib_a_report_has_no_pictures_and_says_so(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = make(folder)
    assert found.missing.endswith("pip install -e '.[experiments]')")
    assert "![" not in found.text


# What docs/results.md says in words must be true of the committed records.


@pytest.fixture(scope="module")
def committed(tmp_path_factory) -> Path:
    pytest.importorskip("pandas")
    folder = tmp_path_factory.mktemp("committed")
    for kind, place in (("results", folder), ("found", folder / "found")):
        with tarfile.open(DOCS / "_static" / kind / "records.tar.gz") as archive:
            archive.extractall(place, filter="data")
    return folder


def results(committed: Path, name: str) -> Results:
    experiment, folder = EXPERIMENTS[name].load(), committed / "found" if name in FOUND else committed
    return Results(experiment, read_records(folder / f"{name}.jsonl", experiment.record, experiment.key))


def test_the_page_of_results_is_short_and_made_of_the_committed_records(committed, tmp_path, monkeypatch):
    monkeypatch.setattr("streamlabel.experiments.report.draw", no_picture)
    (tmp_path / "words.md").write_text(page_template("results"), encoding="utf-8")
    made = write_report(committed, tmp_path / "results.md", tmp_path / "_static" / "results", tmp_path / "words.md")
    assert made.text == (DOCS / "results.md").read_text(encoding="utf-8")
    assert 15_000 < len(made.text.encode()) < 20_000
    assert made.text.count("|--") >= 6  # tables
    shown = re.findall(r"\]\((_static/results/.*?\.png)\)", made.text)
    assert len(shown) == 6
    assert {path.name for path in (DOCS / "_static" / "results").iterdir()} == {
        "records.tar.gz", *(Path(link).name for link in shown),
    }  # fmt: skip
    lines = [line.split("|") for line in made.text.splitlines() if re.match(r"\|.* (ahead|behind) \(", line)]
    leads = {cells[1].strip(): cells[2:6] for cells in lines}
    for against in ("ridge", "logistic regression", "linear SVM", "LEML", "SLEEC"):
        assert all("ahead" in cell for cell in leads[against][:2]), "up to a thousand answers SLL is ahead of all"
    assert all("ahead" in cell for cell in leads["SLL anchor only"])
    for against in ("logistic regression", "linear SVM", "napkinXC tree", "SLL logistic"):
        assert "behind" in leads[against][3], "with all rows annotated"


def test_the_page_of_found_examples_is_short_and_made_of_the_committed_records(committed, tmp_path, monkeypatch):
    monkeypatch.setattr("streamlabel.experiments.report.draw", no_picture)
    (tmp_path / "words.md").write_text(page_template("found"), encoding="utf-8")
    pictures = tmp_path / "_static" / "found"
    made = write_report(committed / "found", tmp_path / "found.md", pictures, tmp_path / "words.md")
    assert made.text == (DOCS / "found.md").read_text(encoding="utf-8")
    assert len(made.text.encode()) < 8_000
    shown = re.findall(r"\]\((_static/found/.*?\.png)\)", made.text)
    names = {path.name for path in (DOCS / "_static" / "found").iterdir()}
    assert names == {"records.tar.gz", *(Path(link).name for link in shown)}


def test_what_the_page_says_of_names_and_questions(committed):
    names = results(committed, "names").frame.groupby(["dataset", "method", "n_yes"])["average_precision"].mean()
    sets = ("bibtex", "citeulike-t-min5", "eurlex57k")
    for name, as_good_as in zip(sets, (5, 10, 10), strict=True):
        ours, alone, rival = (names[name, one] for one in (LEARNER, WITHOUT, AS_TEXT))
        assert ours[1] > alone[as_good_as]
        assert ours[20] - alone[20] > 2.9
        assert (ours - rival)[1:].min() > 0.3
    assert abs(names["eurlex57k", LEARNER, 0] - names["eurlex57k", WITHOUT, 5]) < 1
    assert all(abs(names[name, LEARNER, 0] - names[name, AS_TEXT, 0]) < 1 for name in sets[:2])
    found = results(committed, "questions").frame.groupby(["start", "dataset", "n_answers", "method"])
    f1, precision, n_yes = (found[field].mean().unstack("method") for field in ("f1", "average_precision", "n_yes"))
    (name_alone, two_yes), near, top = STARTS, "nearest to the threshold", "highest scores"
    for start in STARTS:
        assert 0.4 < n_yes["at random"].loc[start, :, 50].min() < n_yes["at random"].loc[start, :, 50].max() < 1.3
        assert f1[top][start, "eurlex57k", 10] < f1[top][start, "eurlex57k", 0] - 3
        for name in sets:
            rest = precision.loc[start, name, 50].drop("at random")
            assert rest.min() > precision.loc[start, name, 50]["at random"] + 2
            assert n_yes.loc[start, name, 50].idxmax() == top
    early = f1.loc[name_alone].xs(10, level="n_answers")
    assert (early.idxmax(axis=1) == "next").all()
    assert early["next"][list(sets)].round(1).tolist() == [31.6, 35.6, 46.0]
    assert early[near][list(sets)].round(1).tolist() == [29.2, 34.9, 45.7]
    gap = (f1[near] - f1["next"]).loc[two_yes].xs(50, level="n_answers")
    assert [1.5 < gap["bibtex"] < 2.5, abs(gap["citeulike-t-min5"]) < 0.5, 2.5 < gap["eurlex57k"] < 3.5] == [True] * 3
    gained = f1["next"] - f1["next"].xs(0, level="n_answers").reindex(f1.index.droplevel("n_answers")).to_numpy()
    assert gained.loc[:, "citeulike-t-min5", 50].max() < 3


def test_what_the_page_says_of_the_paper_and_of_few_answers(committed):
    table2 = results(committed, "table2").compared
    claim = table2[
        (table2["competitor"] == "BR ridge")
        & (table2["measure"] == "P@1")
        & table2["dataset"].isin(["bibtex", "delicious"])
    ]
    assert len(claim) == 10
    assert claim["gain"].abs().max() < 0.3
    logistic = table2[(table2["competitor"].map(family_of) == "logistic regression") & table2["counted"]]
    assert set(logistic[logistic["measure"].isin(["micro AUC", "ranking loss"])]["verdict"]) == {"loses"}
    p1 = standings(logistic[logistic["measure"] == "P@1"], ["dataset"]).set_index("dataset")["lead"]
    assert (p1["bibtex"], p1["delicious"], p1["eurlex-4k (stand-in eurlex57k)"]) == ("ahead", "behind", "behind")
    ridge = table2[(table2["competitor"] == "BR ridge") & (table2["verdict"] == "wins") & table2["counted"]]
    assert ridge["dataset"].tolist() == ["delicious"] * 13
    budget = results(committed, "budget")
    few = budget.compared[(budget.compared["dataset"] == "reuters-21578") & (budget.compared["n_rows"] <= 100)]
    level = standings(few.assign(against=few["competitor"].map(family_of)), ["against"]).set_index("against")["lead"]
    assert set(level) == {"ahead"}
    assert not (few["verdict"] == "loses").any()
    auc = budget.compared[(budget.compared["measure"] == "AUC")].set_index(["dataset", "competitor", "where"])["gain"]
    logistic = auc["reuters-21578"][["BR logistic", "scikit-learn logistic"]].groupby("where").min()
    assert all(logistic[f"{n} rows"] > 0.0 for n in (100, 200, 500))
    assert all(-0.45 < logistic[f"{n} rows"] < 0.05 for n in (50, 1000, 2000, 4000, 8000, 13219))
    assert all(
        auc["reuters-21578", "BR ridge", f"{n} rows"] > 2.0 for n in (100, 200, 500, 1000, 2000, 4000, 8000, 13219)
    )
    needed = [line["AUC"] for line in budget.sections("savings")["delicious"]][:6]
    assert all(2.0 <= float(cell.split("(")[1].rstrip("x)")) <= 9.5 for cell in needed)
    assert budget.value("bar") == "missed"
    ridge = budget.compared[budget.compared["competitor"] == "BR ridge"]
    behind = ridge[ridge["gain"] < -0.3]
    assert set(behind["dataset"] + ", " + behind["measure"]) == {
        "bibtex, average precision", "reuters-21578, AUC", "mediamill_reduced, average precision",
    }  # fmt: skip
    assert behind["gain"].min() > -0.55


@pytest.mark.slow
def test_what_the_page_says_of_the_calendar(committed):
    timeline = results(committed, "timeline")
    facts = timeline.sections("facts")[""]
    assert [line["past used for"] for line in facts] == ["160", "0", "0"]
    assert sum(int(line["arrived"]) for line in facts) == 641
    found = timeline.compared[timeline.compared["competitor"] == "scikit-learn logistic"]
    assert found[found["measure"] == "AUC"]["verdict"].tolist() == ["ties"] * 3
    assert found[found["measure"] == "average precision"]["verdict"].tolist() == ["wins"] * 3


@pytest.mark.parametrize("name", [*sorted(set(NAMES) - {"timeline"}), pytest.param("timeline", marks=pytest.mark.slow)])
def test_the_committed_records_open_and_have_a_whole_page(name, committed):
    found = results(committed, name)
    text = fill(page_template(name), lambda place: "" if place.startswith("plot ") else found.value(place))
    assert "nan" not in text.lower().replace("finance", "")
    json.dumps(found.data, allow_nan=False, default=lambda value: value.item())


@pytest.mark.parametrize("name", NAMES)
def test_a_page_of_no_records_is_there_and_empty(name, tmp_path):
    pytest.importorskip("pandas")
    experiment = EXPERIMENTS[name].load()
    outcome = write_results(experiment, record_file(experiment, tmp_path), tmp_path, "x")
    assert outcome.text.startswith("# ")
    assert outcome.data["comparisons"] == []


def test_what_was_not_run_is_said_once(tmp_path):
    whole = report._Whole(tmp_path, tmp_path / "page.md", tmp_path)
    whole.not_run = ["figure1", "table2"]
    places = ("plot figure1.curves", "figure1.rows", "table2.everybody", "table2.claim")
    said = "*Not run: `streamlabel reproduce {}`.*"
    assert [whole.value(place) for place in places] == [said.format("figure1"), "", said.format("table2"), ""]
