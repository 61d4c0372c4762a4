"""predict and evaluate: against the tagger, brute force and scikit-learn; blocks and memory do not matter."""

from __future__ import annotations

import csv
import importlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from scipy import sparse
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score

from processes import PATIENCE, started
from streamlabel import ModelStore, StreamingLabelClassifier, Tagger
from tagged_texts import tagged_texts

Call = Callable[..., Result]
Ask = Callable[..., Any]
DATA = tagged_texts(300, 100)


@pytest.fixture
def unseen(tmp_path: Path) -> Path:
    path = tmp_path / "unseen.jsonl"
    records = (json.dumps({"id": f"n{i}", "text": text}) for i, text in enumerate(DATA.unseen))
    path.write_text("\n".join(records) + "\n")
    return path


def test_top_k_is_what_the_tagger_suggests_in_any_blocks(model: Path, call: Call, unseen: Path) -> None:
    found = [json.loads(line) for line in call("predict", model, unseen, "-k", 3).stdout.splitlines()]
    for i, (row, pairs) in enumerate(zip(found, Tagger.open(model).suggest(DATA.unseen, 3), strict=True)):
        assert (row["row"], row["id"], row["labels"]) == (i, f"n{i}", [name for name, _ in pairs])
        assert row["scores"] == pytest.approx([score for _, score in pairs], rel=1e-5)
    once = call("predict", model, unseen).stdout
    assert call("predict", model, unseen, "--rows-per-block", 7).stdout == once
    assert call("predict", model, unseen, "--memory", 1).stdout == once
    assert call("predict", model, "-", input=unseen.read_text()).stdout == once


def test_thresholds_give_what_the_tagger_predicts(model: Path, call: Call, unseen: Path) -> None:
    found = [json.loads(line) for line in call("predict", model, unseen, "--thresholds").stdout.splitlines()]
    assert [set(row["labels"]) for row in found] == [set(names) for names in Tagger.open(model).predict(DATA.unseen)]
    assert all(row["scores"] == sorted(row["scores"], reverse=True) for row in found)


def test_probabilities_are_those_of_the_classifier(model: Path, call: Call, unseen: Path) -> None:
    tagger = Tagger.open(model)
    expected = tagger.classifier_.predict_proba(tagger.vectorizer_.transform(DATA.unseen))
    column = {name: j for j, name in enumerate(tagger.label_names_)}
    plain = call("predict", model, unseen).stdout.splitlines()
    lines = call("predict", model, unseen, "--probabilities").stdout.splitlines()
    for i, (line, without) in enumerate(zip(lines, plain, strict=True)):
        row = json.loads(line)
        assert row["probabilities"] == pytest.approx([expected[i, column[name]] for name in row["labels"]], rel=1e-4)
        del row["probabilities"]
        assert row == json.loads(without)
    table = list(csv.DictReader(io.StringIO(call("predict", model, unseen, "--probabilities", "--to", "csv").stdout)))
    for cells in table:
        assert float(cells["probability"]) == pytest.approx(
            expected[int(cells["row"]), column[cells["label"]]], rel=1e-4
        )


def test_ids_of_any_column_are_passed_on(model: Path, call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("key,text\nk1,the bird\nk2,the flu\n")
    (tmp_path / "a.jsonl").write_text('{"text": "bird", "number": 7}\n{"text": "flu", "number": 8}\n')
    for name, column, ids in (("a.csv", "key", ["k1", "k2"]), ("a.jsonl", "number", ["7", "8"])):
        lines = call("predict", model, tmp_path / name, "--id", column).stdout.splitlines()
        assert [json.loads(line)["id"] for line in lines] == ids
        assert "no " in call("predict", model, tmp_path / name, "--id", "nothing", code=1).stderr
    (tmp_path / "a.txt").write_text("bird\n")
    assert "--id is for JSONL and CSV" in call("predict", model, tmp_path / "a.txt", "--id", "key", code=1).stderr


def test_ids_of_rows_of_numbers(call: Call, tmp_path: Path) -> None:
    rows = [{"features": [i % 2, i % 3], "labels": ["ab"[i % 2]], "key": f"k{i}"} for i in range(8)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    call("fit", tmp_path / "model", tmp_path / "rows.jsonl")
    lines = call("predict", tmp_path / "model", tmp_path / "rows.jsonl", "--id", "key").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [f"k{i}" for i in range(8)]
    (tmp_path / "rows.svm").write_text("0 0:2\n")
    said = call("predict", tmp_path / "model", tmp_path / "rows.svm", "--id", "key", code=1).stderr
    assert "--id is for jsonl and parquet" in said


def test_evaluate_says_when_the_texts_are_those_of_fit(model: Path, call: Call, ask: Ask, tmp_path: Path) -> None:
    def file(texts: list[str]) -> Path:
        lines = (json.dumps({"text": text, "tags": ["football"]}) + "\n" for text in texts)
        (tmp_path / "texts.jsonl").write_text("".join(lines))
        return tmp_path / "texts.jsonl"

    most = file([*DATA.texts[:20], *DATA.unseen[:5]])
    assert ask("evaluate", model, most)["n_rows_of_fit"] == 20
    said = "20 of 25 texts are those the model was fitted on: these figures flatter it"
    assert said in call("evaluate", model, most).stdout
    few = file([*DATA.texts[:2], *DATA.unseen[:10]])
    assert ask("evaluate", model, few)["n_rows_of_fit"] == 2
    assert "flatter" not in call("evaluate", model, few).stdout


def test_thresholds_stand_beside_the_scores(model: Path, call: Call, unseen: Path) -> None:
    tagger = Tagger.open(model)
    known = dict(zip(tagger.label_names_, tagger.classifier_.thresholds_.tolist(), strict=True))
    said = tagger.predict(DATA.unseen)
    for row, names in zip(call("predict", model, unseen).stdout.splitlines(), said, strict=True):
        found = json.loads(row)
        assert found["thresholds"] == pytest.approx([known[name] for name in found["labels"]], rel=1e-5)
        pairs = zip(found["labels"], found["scores"], found["thresholds"], strict=True)
        assert {name for name, score, above in pairs if score > above} == set(names) & set(found["labels"])
        assert found["yes"] == [name in names for name in found["labels"]]
    table = list(csv.DictReader(io.StringIO(call("predict", model, unseen, "--to", "csv").stdout)))
    assert all(float(row["threshold"]) == pytest.approx(known[row["label"]], rel=1e-5) for row in table)
    assert [row["yes"] for row in table] == ["yes" if row["label"] in said[int(row["row"])] else "" for row in table]


def test_a_label_that_never_fires_is_still_json(model: Path, call: Call, ask: Ask, unseen: Path) -> None:
    with ModelStore.open(model, "a") as store:
        store.set_threshold("football", float("inf"))
    names = len(ModelStore.open(model).label_names)
    rows = [json.loads(line) for line in call("predict", model, unseen, "-k", names).stdout.splitlines()]
    assert all(row["thresholds"][row["labels"].index("football")] is None for row in rows)
    (found,) = ask("labels", model, "--match", "football")["labels"]
    assert found["threshold"] is None


def test_a_guess_is_said_and_what_is_given_is_not(model: Path, call: Call, unseen: Path, tmp_path: Path) -> None:
    guessed = call("predict", model, unseen)
    assert guessed.stderr == f"{unseen}: guessed texts in 'text' (--text overrides)\n"
    assert call("predict", model, unseen, "--text", "text").stderr == ""
    assert "standard input: guessed" in call("predict", model, "-", input=unseen.read_text()).stderr
    tagged(tmp_path / "test.csv")
    said = call("evaluate", model, tmp_path / "test.csv").stderr
    assert "guessed texts in 'text', tags in 'tags'" in said


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_a_table_on_standard_input_is_no_list_of_texts(model: Path, call: Call, ask: Ask, delimiter: str) -> None:
    table = io.StringIO()
    writer = csv.writer(table, delimiter=delimiter)
    writer.writerows([["id", "text", "tags"], *([i, text, "health"] for i, text in enumerate(DATA.unseen[:5]))])
    found = call("predict", model, "-", input=table.getvalue())
    assert found.stderr == "standard input: guessed CSV, texts in 'text' (--text overrides)\n"
    expected = [[name for name, _ in pairs] for pairs in Tagger.open(model).suggest(DATA.unseen[:5])]
    assert [json.loads(line)["labels"] for line in found.stdout.splitlines()] == expected
    lines = call("predict", model, "-", input="\n".join(DATA.unseen[:5]))
    assert "standard input: taken for one text a line" in lines.stderr
    assert [json.loads(line)["labels"] for line in lines.stdout.splitlines()] == expected
    assert len(ask("predict", model, "-", "--format", "lines", input="id,text\n1,flu\n")) == 2


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_one_json_array_and_an_empty_table_are_told(command: str, model: Path, call: Call, tmp_path: Path) -> None:
    array = json.dumps([{"text": text, "tags": []} for text in DATA.unseen[:3]])
    for name in ("array.json", "array.jsonl"):
        (tmp_path / name).write_text(array)
        assert "is one JSON array; make it JSONL" in call(command, model, tmp_path / name, code=1).stderr
    assert "is one JSON array" in call(command, model, "-", input=array, code=1).stderr
    (tmp_path / "empty.csv").write_text("")
    assert "empty.csv: holds no rows" in call(command, model, tmp_path / "empty.csv", code=1).stderr


def test_forms_say_the_same(model: Path, call: Call, ask: Ask, unseen: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in call("predict", model, unseen).stdout.splitlines()]
    assert ask("predict", model, unseen) == lines
    call("predict", model, unseen, "--out", tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert [(int(r["row"]), r["label"]) for r in rows] == [(x["row"], label) for x in lines for label in x["labels"]]
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(DATA.unseen[:4]))
    assert [json.loads(line)["labels"] for line in call("predict", model, texts).stdout.splitlines()] == [
        row["labels"] for row in lines[:4]
    ]


def test_what_is_read_is_never_overwritten_and_other_files_only_by_force(
    model: Path, call: Call, unseen: Path, tmp_path: Path
) -> None:
    before = unseen.read_bytes()
    link = tmp_path / "link.jsonl"
    link.symlink_to(unseen)
    for out in (unseen, link):
        said = call("predict", model, unseen, "--out", out, "--force", code=4).stderr
        assert "is the file that is read" in said
    command = [sys.executable, "-m", "streamlabel", "predict", str(model), "-", "--out", str(unseen), "--force"]
    with open(unseen, "rb") as handle:
        assert subprocess.run(command, check=False, stdin=handle, capture_output=True).returncode == 4
    out = tmp_path / "out.jsonl"
    out.write_text("precious")
    assert "--force" in call("predict", model, unseen, "--out", out, code=4).stderr
    assert (unseen.read_bytes(), out.read_text()) == (before, "precious")
    done = call("predict", model, unseen, "--out", out, "--force")
    assert done.stderr.endswith(f"wrote {len(DATA.unseen)} rows to {out}\n")
    assert out.read_text() == call("predict", model, unseen).stdout


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("out.csv", ["--json"], 2),
        ("out.jsonl", ["--json"], 2),
        ("out.xlsx", [], 2),
        ("out", [], 2),
        ("out.csv", ["--to", "jsonl"], 2),
        ("out.json", ["--to", "jsonl", "--json"], 2),
        ("out.json", [], 0),
        ("out.json", ["--json"], 0),
        ("out.txt", ["--to", "csv"], 0),
        ("out.ndjson", [], 0),
    ],
)
def test_the_ending_says_how_it_is_written(
    model: Path, call: Call, unseen: Path, tmp_path: Path, name: str, options: list[str], code: int
) -> None:
    out = tmp_path / name
    said = call("predict", model, unseen, "--out", out, *options, code=code)
    assert out.exists() == (code == 0)
    if code:
        assert "--out" in said.stderr or "--to or --json" in said.stderr
    elif name.endswith(".json"):
        assert len(json.loads(out.read_text())) == len(DATA.unseen)
    elif name.endswith(".txt"):
        assert out.read_text().startswith("row,id,label,score,threshold,yes\n")
    else:
        assert len([json.loads(line) for line in out.read_text().splitlines()]) == len(DATA.unseen)


def test_no_spreadsheet_runs_a_label(tmp_path: Path, call: Call) -> None:
    clf = StreamingLabelClassifier.from_coef(np.eye(2), np.zeros(2), ["=1+1", "plain"])
    ModelStore.create(tmp_path / "model", clf).close()
    (tmp_path / "rows.svm").write_text("0 1:2 2:1\n")
    rows = list(
        csv.reader(io.StringIO(call("predict", tmp_path / "model", tmp_path / "rows.svm", "--to", "csv").stdout))
    )
    assert [row[:4] for row in rows[1:]] == [["0", "", "'=1+1", "2"], ["0", "", "plain", "1"]]


def test_mistakes_of_predict(model: Path, call: Call, unseen: Path, tmp_path: Path) -> None:
    call("predict", model, unseen, "-k", 3, "--thresholds", code=2)
    call("predict", model, tmp_path / "none.jsonl", code=3)
    call("predict", model, unseen, "--out", tmp_path / "no" / "folder.csv", code=1)
    (tmp_path / "broken.jsonl").write_text('{"text": "fine"}\nbroken\n')
    out = tmp_path / "out.jsonl"
    assert "line 2" in call("predict", model, tmp_path / "broken.jsonl", "--out", out, code=1).stderr
    assert not out.exists()
    (tmp_path / "empty.jsonl").write_text("")
    assert "no rows" in call("predict", model, tmp_path / "empty.jsonl", code=1).stderr


@pytest.mark.skipif(os.name == "nt", reason="pipes are those of POSIX")
def test_a_reader_that_goes_away_ends_it_quietly(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "many.txt"
    path.write_text("".join(f"{text}\n" for text in DATA.unseen * 30))
    command = [sys.executable, "-m", "streamlabel", "predict", str(model), str(path), "--rows-per-block", "10"]
    with started(command) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'{"row": 0')
        process.stdout.close()
        message = process.stderr.read()
        assert process.wait(PATIENCE) == 0
    assert message == b""


def tagged(path: Path) -> tuple[list[str], np.ndarray]:
    """A labelled file of unseen texts with the new labels as tags, and the truth."""
    names = list(DATA.truth)
    lines = ["text,tags"]
    for i, text in enumerate(DATA.unseen):
        lines.append(f'"{text}",{";".join([*(n for n in names if DATA.truth[n][i]), "something else"])}')
    path.write_text("\n".join(lines) + "\n")
    return names, np.array([DATA.truth[name] for name in names]).T.astype(int)


def test_evaluate_agrees_with_scikit_learn(model: Path, ask: Ask, call: Call, tmp_path: Path) -> None:
    path = tmp_path / "test.csv"
    names, truth = tagged(path)
    found = ask("evaluate", model, path, "--per-label", "-k", 1)
    assert found["unknown_tags"] == 4  # the other new labels, and "something else"
    tagger = Tagger.open(model)
    scores = tagger.classifier_.decision_function(tagger.vectorizer_.transform(DATA.unseen))
    column = tagger.label_names_.index("football")
    (football,) = [one for one in found["labels"] if one["label"] == "football"]
    mine = truth[:, names.index("football")]
    assert football["n_true"] == mine.sum()
    assert football["auc"] == pytest.approx(roc_auc_score(mine, scores[:, column]), abs=1e-5)
    said = scores[:, column] > tagger.classifier_.thresholds_[column]
    assert football["f1"] == pytest.approx(f1_score(mine, said), abs=1e-5)
    assert football["precision"] == pytest.approx(precision_score(mine, said), abs=1e-5)
    assert (football["recall"], football["n_predicted"]) == (
        pytest.approx(recall_score(mine, said), abs=1e-5),
        said.sum(),
    )
    never = [one for one in found["labels"] if not one["n_true"] and not one["n_predicted"]]
    assert all(one["precision"] is one["recall"] is None for one in never)
    assert found["macro_auc"] == football["auc"]  # no other label of the model occurs
    assert found["P@1"] == pytest.approx(np.mean(mine[scores.argmax(axis=1) == column].sum() / len(mine)), abs=1e-5)
    table = call("evaluate", model, path, "--per-label").stdout
    assert re.search(r"label +true +said yes +AUC +AP +F1 +precision +recall\n", table)
    (row,) = re.findall(r"^football .*$", table, re.MULTILINE)
    assert row.split()[-2:] == [f"{100 * football['precision']:.1f}", f"{100 * football['recall']:.1f}"]


def test_labels_that_never_occur_and_are_never_said_are_not_in_macro_f1(
    model: Path, ask: Ask, call: Call, tmp_path: Path
) -> None:
    with ModelStore.open(model, "a") as store:
        silent = store.label_names[0]
        store.set_threshold(silent, float("inf"))
    path = tmp_path / "test.csv"
    names, truth = tagged(path)
    found = ask("evaluate", model, path, "--per-label")
    tagger = Tagger.open(model)
    scores = tagger.classifier_.decision_function(tagger.vectorizer_.transform(DATA.unseen))
    whole = np.zeros(scores.shape, dtype=int)
    whole[:, tagger.label_names_.index("football")] = truth[:, names.index("football")]
    said = scores > tagger.classifier_.thresholds_
    expected = f1_score(whole, said, average="macro", zero_division=np.nan)
    assert found["macro_f1"] == pytest.approx(expected, abs=1e-5)
    left_out = [name for name, known in zip(tagger.label_names_, (whole | said).any(axis=0), strict=True) if not known]
    assert silent in left_out
    assert found["n_labels_not_in_f1"] == len(left_out)
    assert [one["label"] for one in found["labels"] if one["f1"] is None] == left_out
    assert f"{len(left_out)} label" in call("evaluate", model, path).stdout.splitlines()[-1]


def test_evaluate_in_blocks_is_the_same(model: Path, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("streamlabel.cli.scoring")
    tagged(tmp_path / "test.csv")
    whole = ask("evaluate", model, tmp_path / "test.csv", "--per-label")
    monkeypatch.setattr(module, "CELLS", 500)
    assert ask("evaluate", model, tmp_path / "test.csv", "--per-label") == whole


def test_rows_without_tags_are_told_to_count_as_misses(model: Path, ask: Ask, call: Call, tmp_path: Path) -> None:
    path = tmp_path / "test.csv"
    rows = [f'"{DATA.texts[0]}",football', f'"{DATA.texts[1]}",', f'"{DATA.texts[2]}",something else']
    path.write_text("\n".join(["text,tags", *rows]) + "\n")
    assert ask("evaluate", model, path)["n_rows_without_tags"] == 2
    assert "2 rows without a tag that the model knows: 0 in P@k" in call("evaluate", model, path).stdout
    path.write_text("\n".join(["text,tags", rows[0]]) + "\n")
    assert "without a tag" not in call("evaluate", model, path).stdout


def test_evaluate_refuses_what_does_not_fit(model: Path, call: Call, tmp_path: Path) -> None:
    (tmp_path / "rows.svm").write_text("0 1:2\n")
    assert "takes texts" in call("evaluate", model, tmp_path / "rows.svm", code=1).stderr
    (tmp_path / "other.csv").write_text("text,tags\nhello,nothing known\n")
    assert "nothing to measure" in call("evaluate", model, tmp_path / "other.csv", code=1).stderr


def test_a_folder_has_a_part_to_learn_from_and_one_to_measure_on(tmp_path: Path, ask: Ask, call: Call) -> None:
    rng = np.random.default_rng(0)
    for split, n_rows in (("train", 80), ("test", 30)):
        X = rng.standard_normal((n_rows, 5))
        sparse.save_npz(tmp_path / f"X_{split}.npz", sparse.csr_array(X))
        sparse.save_npz(tmp_path / f"Y_{split}.npz", sparse.csr_array((X[:, :2] > 0).astype(np.int8)))
    assert ask("fit", tmp_path / "model", tmp_path)["n_rows"] == 80
    assert ask("evaluate", tmp_path / "model", tmp_path)["n_rows"] == 30
    assert ask("evaluate", tmp_path / "model", tmp_path, "--split", "train")["n_rows"] == 80
    assert len(call("predict", tmp_path / "model", tmp_path).stdout.splitlines()) == 30
    call("evaluate", tmp_path / "model", tmp_path, "--split", "other", code=3)


def test_a_set_in_two_files(tmp_path: Path, ask: Ask, call: Call) -> None:
    rows = "".join(f"{i % 2},{1 - i % 2},{i}.5\n" for i in range(1, 9))
    header = "@relation r\n@attribute a {0,1}\n@attribute b {0,1}\n@attribute x numeric\n@data\n"
    (tmp_path / "set.arff").write_text(header + rows)
    (tmp_path / "set.xml").write_text('<labels><label name="a"></label><label name="b"></label></labels>')
    assert "--labels-file" in call("fit", tmp_path / "model", tmp_path / "set.arff", code=1).stderr
    found = ask("fit", tmp_path / "model", tmp_path / "set.arff", "--labels-file", tmp_path / "set.xml")
    assert (found["n_labels"], found["n_features"]) == (2, 1)
    for name, matrix in (("X", np.arange(8.0)[:, None]), ("Y", np.array([[0], [1]] * 4, dtype=np.int8))):
        sparse.save_npz(tmp_path / f"{name}.npz", sparse.csr_array(matrix))
    assert "--labels-file" in call("fit", tmp_path / "two", tmp_path / "X.npz", code=1).stderr
    assert ask("fit", tmp_path / "two", tmp_path / "X.npz", "--labels-file", tmp_path / "Y.npz")["n_rows"] == 8
