"""The demo: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

from streamlabel.cli import main
from streamlabel.experiments import demo as arrivals
from streamlabel.experiments.demo import report_page


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    page = tmp_path_factory.mktemp("demo") / "report.html"
    result = CliRunner().invoke(main, ["demo", "--json", "--out", str(page)])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), page


def test_the_old_labels_are_bit_identical(run):
    data, _ = run
    assert data["old_unchanged"] is True
    assert data["fingerprint_before"] == data["fingerprint_after"]


def test_the_past_helps_at_a_small_budget(run):
    """Measured on the default run: the claim of the README. It fails when the learner stops earning it."""
    data, _ = run
    last = data["batches"][-1]
    for measure in ("p1", "p3", "p5", "auc"):
        assert last["with_past"][measure] > last["alone"][measure]


def test_every_arriving_label_is_reported_once(run):
    data, _ = run
    labels = [label for batch in data["batches"] for label in batch["labels"]]
    assert len(labels) == len(set(labels)) == data["batches"][-1]["n_known"] - data["n_past"]


class _Resources(HTMLParser):
    def __init__(self):
        super().__init__()
        self.loaded, self.charts = [], 0

    def handle_starttag(self, tag, attrs):
        self.charts += tag == "svg"
        self.loaded += [value for name, value in attrs if name in ("src", "href", "data")]


def test_the_page_is_self_contained(run):
    _, page = run
    text = page.read_text(encoding="utf-8")
    parser = _Resources()
    parser.feed(text)
    assert parser.charts == 4
    assert parser.loaded == []
    assert "<script" not in text
    assert "http" not in text


def test_label_names_are_escaped():
    name = "<img src=x onerror=alert(1)>"
    measures = arrivals.Measures(1.0, 2.0, 3.0, 4.0)
    batch = arrivals.BatchRecord(
        (name,), 3, measures, measures, 1.0, 1.0, (arrivals.Neighbours(name, 3, ((name, 0.5),)),)
    )
    result = arrivals.DemoResult(name, 10, 5, 3, 2, 0, arrivals.ArrivalSettings(), 0.1, (batch,), "0" * 64, "0" * 64)
    assert "<img" not in report_page(result)


def test_the_text_form_says_where_the_report_is(tmp_path):
    page = tmp_path / "page.html"
    result = CliRunner().invoke(main, ["demo", "--batches", "2", "--budget", "40", "--out", str(page)])
    assert result.exit_code == 0, result.output
    assert str(page) in result.stdout
    assert "bit-identical" in result.stdout
    assert page.stat().st_size > 2000


def test_only_a_report_of_its_own_is_replaced(tmp_path):
    page = tmp_path / "page.html"
    page.write_text("precious")
    arguments = ["demo", "--batches", "1", "--budget", "40", "--out", str(page)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 4
    assert "no report of the demo" in result.output
    assert page.read_text() == "precious"
    page.unlink()
    assert [CliRunner().invoke(main, arguments).exit_code for _ in range(2)] == [0, 0]


def test_on_a_real_set(data_root, tmp_path):
    result = CliRunner().invoke(
        main, ["demo", "--dataset", "mediamill_reduced", "--json", "--out", str(tmp_path / "r.html")]
    )
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["n_train"] == 1500
    assert data["n_skipped"] == 10


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--dataset", "bibtx"], 3, "bibtex"),
        (["--budget", "1"], 2, "budget"),
        (["--out", "no/such/folder/r.html"], 3, "no/such/folder"),
        (["--out", "/proc/r.html"], 1, "cannot be written there"),
        (["--budget", "999999", "--out", "report-of-a-test.html"], 1, "ask for fewer"),
    ],
)
def test_mistakes_end_with_one_message(arguments, code, says):
    result = CliRunner().invoke(main, ["demo", *arguments])
    assert result.exit_code == code
    assert says in result.output
    assert "Traceback" not in result.output
