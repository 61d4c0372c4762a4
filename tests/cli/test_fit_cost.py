"""What fit says it will take, and its refusals, against what a process takes and what the system allows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from streamlabel import Tagger
from streamlabel.cli import fit as fit_module
from streamlabel.data.files import available_memory
from streamlabel.data.jsonl import write_jsonl
from streamlabel.data.synthetic import make_twin
from tagged_texts import tagged_texts

Call = Callable[..., Result]
Ask = Callable[..., Any]
pytest.importorskip("resource")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    data = tagged_texts(300, 100)
    path = tmp_path / "tagged.csv"
    rows = (f'"{text}","{";".join(tags)}"\n' for text, tags in zip(data.texts, data.tags, strict=True))
    path.write_text("text,tags\n" + "".join(rows), encoding="utf-8")
    return path


def test_very_many_labels_are_pruned(file: Path, tmp_path: Path, ask: Ask, call: Call) -> None:
    ask("fit", tmp_path / "few", file, "--prune", "20", "--dictionary", "10")
    assert [path.suffix for path in (tmp_path / "few").glob("[VW]-*")] == [".csr"]
    model = Tagger.open(tmp_path / "few").classifier_
    assert (model.prune, model.dictionary) == (20, 10)
    assert "road" in ask("fit", tmp_path / "would", file, "--prune", "auto", "--dry-run")
    assert "neither a number nor auto" in call("fit", tmp_path / "bad", file, "--prune", "much", code=2).stderr


def test_words_can_be_left_out_and_the_loss_chosen(file: Path, tmp_path: Path, ask: Ask) -> None:
    every = ask("fit", tmp_path / "every", file)["n_features"]
    assert ask("fit", tmp_path / "few", file, "--max-features", "40", "--loss", "logistic")["n_features"] == 40
    rare = ask("fit", tmp_path / "frequent", file, "--min-df", "5", "--dry-run")
    assert 0 < rare["n_features"] < every
    with Tagger.open(tmp_path / "few") as tagger:
        assert (tagger.classifier_.loss_, len(tagger.vectorizer_.terms_)) == ("logistic", 40)


def test_words_are_for_texts(file: Path, tmp_path: Path, call: Call) -> None:
    (tmp_path / "rows.svm").write_text("0 1:1\n1 2:1\n", encoding="utf-8")
    said = call("fit", tmp_path / "new", tmp_path / "rows.svm", "--min-df", "3", code=2).stderr
    assert "are for texts" in said
    assert "tfidf" in call("fit", tmp_path / "new", file, "--vectorizer", "hashing", "--min-df", "3", code=2).stderr


def test_a_dry_run_refuses_what_memory_would_not_hold(
    file: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "GiB more is free" in call("fit", tmp_path / "new", file, "--dry-run").stdout
    monkeypatch.setattr(fit_module, "available_memory", lambda: 2**20)
    assert "would take about" in call("fit", tmp_path / "new", file, "--dry-run", code=1).stderr


def test_the_limit_of_a_process_is_seen() -> None:
    script = (
        "import resource; from streamlabel.data.files import available_memory;"
        "limit = resource.getrlimit(resource.RLIMIT_AS)[1];"
        "resource.setrlimit(resource.RLIMIT_AS, (2**32, limit)); print(available_memory())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < min(2**32, available_memory() + 2**30)


MEASURED = """
import json, resource, sys
from streamlabel.cli import main
main(sys.argv[1:], standalone_mode=False)
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]))
"""


@pytest.mark.slow
def test_the_prediction_is_within_a_factor_of_two(tmp_path: Path) -> None:
    twin, file = make_twin(4_500, 5_000, 100, 60.0, 4.0, random_state=0), tmp_path / "rows.jsonl"
    write_jsonl(twin, file)

    def command(*more: str) -> list[Any]:
        words = [sys.executable, "-c", MEASURED, "fit", str(tmp_path / "model"), str(file), "--json", *more]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        document, end = json.JSONDecoder().raw_decode(done.stdout)
        return [document, *json.loads(done.stdout[end:])]

    said, *_ = command("--dry-run")
    _, seconds, peak = command()
    assert said["road"] == "single"
    assert 0.5 <= said["memory"] / peak <= 2.0
    assert 0.4 <= said["seconds"] / seconds <= 2.5  # cores that others use too make CPU times longer
