"""next: the texts to ask about, asked here or in a file that add-label reads back; thresholds and labels after it."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from sklearn.metrics import f1_score

from streamlabel import ModelStore, Tagger
from tagged_texts import tagged_texts

Call = Callable[..., Result]
Ask = Callable[..., Any]
DATA = tagged_texts(300, 100)
MORE = tagged_texts(1200, 100)  # some of these are among DATA, too


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "pool.txt"
    path.write_text("".join(f"{text}\n" for text in MORE.texts[1000:]), encoding="utf-8")
    return path


def test_questions_are_those_of_the_tagger(model: Path, pool: Path, ask: Ask, call: Call) -> None:
    found = ask("next", model, "football", "--pool", pool, "-n", 4)
    expected = Tagger.open(model).next("football", MORE.texts[1000:], 4)
    assert [(one["text"], one["why"]) for one in found["questions"]] == [(one.text, one.why) for one in expected]
    assert [one["probability"] for one in found["questions"]] == pytest.approx([one.probability for one in expected])
    assert expected[0].why in call("next", model, "football", "--pool", pool, "-n", 1).stdout


@pytest.mark.parametrize("name", ["questions.csv", "questions.jsonl"])
def test_a_file_of_questions_is_read_back(
    name: str, model: Path, pool: Path, tmp_path: Path, call: Call, ask: Ask
) -> None:
    texts = ["=1+1 football match", 'a goal,\n"twice" by the team', *MORE.texts[1000:]]
    pool = tmp_path / "pool.jsonl"
    pool.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    out = tmp_path / name
    said = call("next", model, "football", "--pool", pool, "-n", 6, "--out", out).stdout
    assert f"add-label {model} football --more --asked --file {out} --column answer" in said
    if name.endswith("csv"):
        with out.open(encoding="utf-8", newline="") as handle:
            rows = list(csv.DictReader(handle))
        with out.open("w", encoding="utf-8", newline="") as handle:
            writer = csv.DictWriter(handle, rows[0])
            writer.writeheader()
            writer.writerows(row | {"answer": ["yes", "no", ""][i % 3]} for i, row in enumerate(rows))
    else:
        rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
        answered = (row | {"answer": ["yes", "no", ""][i % 3]} for i, row in enumerate(rows))
        out.write_text("".join(json.dumps(row) + "\n" for row in answered), encoding="utf-8")
    assert {row["answer"] for row in rows} == {""}
    report = ask("add-label", model, "football", "--more", "--asked", "--file", out, "--column", "answer")
    assert (report["n_yes"], report["n_no"], report["estimate"]["n_asked"]) == (10, 2, 4)
    asked = [one["text"] for one in ask("next", model, "football", "--pool", pool, "-n", 300)["questions"]]
    assert not {row["text"].removeprefix("'") for row in rows if row["answer"]} & set(asked)
    assert "is there already" in call("next", model, "football", "--pool", pool, "--out", out, code=4).stderr


def test_questions_that_are_asked_here(model: Path, pool: Path, call: Call, ask: Ask) -> None:
    said = call(
        "next", model, "football", "--pool", pool, "--ask", "--actor", "eve", input="y\nwhat\nNo\ns\n\nq\n"
    ).stdout
    assert "y: it applies, n: it does not, s: skip this text, u: take the last answer back, q: quit" in said
    assert said.splitlines()[-1] == "2 answers, 1 yes and 1 no; on the disk as revision 4"
    moved = [line for line in said.splitlines() if line.startswith(("precision", "never yes"))]
    assert [line.rpartition("from ")[2] for line in moved] == ["9 yes and 0 no", "9 yes and 1 no"]
    assert all("recall" in line and "% to " in line for line in moved)
    store = ModelStore.open(model)
    assert [(one.action, one.actor) for one in store.history()[:2]] == [("relearn", "eve")] * 2
    shown = [line for line in said.splitlines() if line in MORE.texts]
    assert len(shown) == len(set(shown)) == 4, "a text that was skipped is not asked again"
    call("undo", model)
    card = call("labels", model, "football").stdout
    assert "learned from 9 yes and 0 no, 1 answer of these to questions" in card


def test_an_answer_is_taken_back_while_asking(model: Path, pool: Path, call: Call, ask: Ask) -> None:
    before = ask("labels", model, "football")
    said = call("next", model, "football", "--pool", pool, "--ask", input="u\ny\nu\nq\n").stdout
    assert "no answer was given yet" in said
    assert "the last answer is taken back: revision 4" in said
    assert said.splitlines()[-1] == "0 answers, 0 yes and 0 no; nothing was changed"
    after = ask("labels", model, "football")
    assert {key for key in before if before[key] != after[key]} <= {"bytes", "revision"}


def test_five_noes_and_no_yes_are_no_idea(model: Path, pool: Path, call: Call) -> None:
    guess = "so far a guess: find a text that it applies to"
    learned = call("add-label", model, "electricity zebrafoo", "--pool", pool).stdout
    assert "1 word of its name and yes texts is not known to the model: zebrafoo" in learned
    said = call("next", model, "electricity zebrafoo", "--pool", pool, "--ask", input="n\n" * 6).stdout
    assert said.count(guess) == 1
    card = call("labels", model, "electricity zebrafoo").stdout
    assert (guess in card, "answer some questions" in card) == (True, False)
    assert guess in call("next", model, "electricity zebrafoo", "--pool", pool, "--ask", input="n\n").stdout
    assert guess not in call("next", model, "football", "--pool", pool, "--ask", input="n\n" * 6).stdout
    assert guess not in call("labels", model, "football").stdout


def test_the_end_of_the_input_ends_the_questions(model: Path, pool: Path, call: Call) -> None:
    assert (
        "0 answers, 0 yes and 0 no; nothing was changed"
        in call("next", model, "football", "--pool", pool, "--ask", input="").stdout
    )
    (pool.parent / "two.txt").write_text(f"{DATA.unseen[0]}\nzzzz\n")
    said = call("next", model, "football", "--pool", pool.parent / "two.txt", "--ask", input="y\n").stdout
    assert "no text of the pool is left to ask about" in said
    assert ModelStore.open(model).revision == 3


def test_mistakes_of_next(model: Path, pool: Path, tmp_path: Path, call: Call) -> None:
    first = ModelStore.open(model).label_names[0]
    assert "was learned by fit" in call("next", model, first, "--pool", pool, "--ask", code=4).stderr
    assert "leave out" in call("next", model, "football", "--pool", pool, "--ask", "--json", code=2).stderr
    assert "give --pool a file" in call("next", model, "football", "--pool", "-", "--ask", code=2).stderr
    assert "'.txt'" in call("next", model, "football", "--pool", pool, "--out", "x.txt", code=2).stderr
    assert "did you mean" in call("next", model, "footbal", "--pool", pool, code=3).stderr
    assert "no such file" in call("next", model, "football", "--pool", tmp_path / "none", code=3).stderr
    assert "give both" in call("add-label", model, "football", "--asked", code=2).stderr
    assert "nothing new about 'football'; give texts" in call("add-label", model, "football", "--more", code=1).stderr
    sampled = ("add-label", model, "football", "--more", "--sampled")
    assert "leave out --more" in call(*sampled, code=2).stderr
    assert ModelStore.open(model).revision == 2


def test_a_label_from_a_sample_takes_no_more_answers(model: Path, tmp_path: Path, call: Call) -> None:
    (tmp_path / "yes.txt").write_text("\n".join(DATA.texts[i] for i in DATA.rows["hospitals"][:5]))
    (tmp_path / "no.txt").write_text("\n".join(DATA.texts[i] for i in range(20) if i not in DATA.rows["hospitals"]))
    call("add-label", model, "hospitals", "--yes", tmp_path / "yes.txt", "--no", tmp_path / "no.txt", "--sampled")
    said = call("add-label", model, "hospitals", "--more", "--yes", tmp_path / "yes.txt", code=4).stderr
    assert "has no answers that are kept; 'add-label --replace' learns it anew" in said


def test_labels_show_what_is_expected_of_them(model: Path, ask: Ask, call: Call) -> None:
    listed = {one["name"]: one["estimate"] for one in ask("labels", model)["labels"]}
    assert [name for name, estimate in listed.items() if estimate] == ["football"]
    known = Tagger.open(model).estimate("football")
    assert known is not None
    assert listed["football"]["recall"]["value"] == pytest.approx(known.recall[0], abs=1e-4)
    header, row = call("labels", model, "--match", "foot").stdout.splitlines()[:2]
    assert header.split()[-2:] == ["precision", "recall"]
    assert row.split()[-1] == f"{known.recall[0]:.0%}"
    assert "precision" not in call("labels", model, "--match", "farming").stdout
    card = call("labels", model, "football").stdout
    assert f"it finds about {known.recall[0]:.0%} (" in card
    assert "did you mean 'football'" in call("labels", model, "footbal", code=3).stderr
    assert "learned with" not in card
    call("threshold", model, "football", 0.9)
    assert "at the threshold that it was learned with, 0." in call("labels", model, "football").stdout


def test_damaged_answers_are_told_and_the_list_goes_on(model: Path, call: Call, ask: Ask) -> None:
    whole = ask("labels", model)["labels"]
    with sqlite3.connect(model / "catalogue.db") as connection:
        connection.execute("UPDATE part SET content = replace(content, 'about', 'abuot') WHERE name LIKE 'answers-%'")
    connection.close()
    result = call("labels", model, "--json")
    listed = json.loads(result.stdout)["labels"]
    assert [one | {"estimate": None} for one in whole] == listed
    said = "warning: the answers of label 'football' are damaged"
    assert said in result.stderr and f"run 'streamlabel doctor {model}'" in result.stderr  # noqa: PT018
    shown = call("labels", model, "football")
    assert said in shown.stderr and "football: id" in shown.stdout  # noqa: PT018
    assert not call("labels", model, "--match", "farming").stderr
    assert "answers of label 'football'" in call("doctor", model, code=1).stdout


def test_a_threshold_is_tuned_on_labelled_texts(model: Path, tmp_path: Path, ask: Ask, call: Call) -> None:
    file = tmp_path / "tagged.jsonl"
    tags = [[*MORE.tags[i], *(["football"] if i in MORE.rows["football"] else [])] for i in range(1000)]
    rows = ({"text": MORE.texts[i], "labels": tags[i]} for i in range(1000))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    before = ask("threshold", model, "football")["threshold"]
    found = ask("threshold", model, "football", "--tune", file)
    truth = np.array(["football" in row for row in tags])
    scores = np.array([dict(one)["football"] for one in Tagger.open(model).suggest(MORE.texts[:1000], 1000)])
    assert found["tuned"]["f1_before"] == pytest.approx(f1_score(truth, scores > before))
    assert found["tuned"]["f1"] == pytest.approx(max(f1_score(truth, scores >= value) for value in scores))
    assert found["tuned"]["f1"] == pytest.approx(f1_score(truth, scores > found["threshold"]))
    assert (found["revision"], found["before"]) == (3, before)
    file.write_text(json.dumps({"text": MORE.texts[0], "labels": ["football"]}) + "\n")
    said = call("threshold", model, "football", "--tune", file, code=1).stderr
    assert "1 of 1 have 'football'; at least 10 with and without are needed" in said
    assert (
        "is not there" in call("threshold", model, ModelStore.open(model).label_names[0], "--tune", file, code=3).stderr
    )


def test_a_threshold_for_a_precision(model: Path, pool: Path, ask: Ask, call: Call) -> None:
    first = ModelStore.open(model).label_names[0]
    found = ask("threshold", model, first, "--precision", 0.7, "--pool", pool)
    tagger = Tagger.open(model)
    chances = tagger.classifier_.predict_proba(tagger.pool(MORE.texts[1000:]).rows)[:, 0]
    scores = np.array([dict(one)[first] for one in tagger.suggest(MORE.texts[1000:], 1000)])
    above = chances[scores > found["threshold"]]
    assert above.mean() == pytest.approx(found["expected"]["precision"])
    assert above.mean() >= 0.7
    assert above.sum() / chances.sum() == pytest.approx(found["expected"]["recall"])
    lower = np.sort(chances)[::-1][: len(above) + 1]
    assert lower.mean() < 0.7
    assert ask("threshold", model, first, "--precision", 0.5, "--dry-run")["revision"] is None
    said = call("threshold", model, first, "--precision", 1, code=1).stderr
    assert "cannot be expected" in said
    assert "at best" in said
    assert "give one of" in call("threshold", model, first, 0.3, "--precision", 0.5, code=2).stderr
    assert "--pool is for" in call("threshold", model, first, "--pool", pool, code=2).stderr


def test_a_found_label_is_learned_again_for_a_precision(model: Path, pool: Path, ask: Ask, call: Call) -> None:
    would = ask("threshold", model, "football", "--precision", 0.3, "--pool", pool, "--dry-run")
    assert (would["revision"], ModelStore.open(model).revision) == (None, 2)
    did = ask("threshold", model, "football", "--precision", 0.3, "--pool", pool)
    assert did == would | {"revision": 3, "dry_run": False}
    known = Tagger.open(model).estimate("football")
    assert known is not None
    assert known.precision[0] == pytest.approx(0.3, abs=0.1)
    assert Tagger.open(model).classifier_.thresholds_[-1] == did["threshold"]
    assert "cannot be expected of 'football'" in call("threshold", model, "football", "--precision", 1, code=1).stderr


def test_a_text_without_a_known_word_gets_no_yes(model: Path, tmp_path: Path, ask: Ask, call: Call) -> None:
    call("threshold", model, "football", -5)
    (tmp_path / "texts.txt").write_text(f"zzzz qqqq\n{DATA.texts[0]}\n")
    unknown, known = (one["labels"] for one in ask("suggest", model, "zzzz qqqq", DATA.texts[0], "-k", 100))
    assert "football" in [one["label"] for one in known if one["yes"]]
    assert not any(one["yes"] for one in unknown)
    assert "so no label is a yes" in call("suggest", model, "zzzz").stderr
    result = call("predict", model, tmp_path / "texts.txt", "--thresholds")
    first, second = (json.loads(line) for line in result.stdout.splitlines())
    assert (first["labels"], "football" in second["labels"]) == ([], True)
    assert "1 text without a word that is known: no label is a yes there" in result.stderr
    best = [json.loads(line) for line in call("predict", model, tmp_path / "texts.txt", "-k", 100).stdout.splitlines()]
    assert [any(row["yes"]) for row in best] == [False, True]
    assert call("explain", model, "zzzz", "football").stdout.startswith("football: no,")
    assert Tagger.open(model).predict(["zzzz", ""]) == [[], []]


def test_history_says_which_answer_a_revision_brought(model: Path, pool: Path, call: Call) -> None:
    call("next", model, "football", "--pool", pool, "--ask", input="y\nn\ny\nu\nn\nq\n")
    call("threshold", model, "football", "0.25")
    told = [line.split(maxsplit=4)[4] for line in call("history", model).stdout.splitlines()[1:7]]
    assert told[:2] == ["threshold  football to 0.25", "relearn    football: 1 answer, no"]
    assert told[2] == "undo       to 4"
    assert told[3] == "relearn    football: 1 answer", "what was taken back is in the history, and its answer is gone"
    assert told[4:] == ["relearn    football: 1 answer, no", "relearn    football: 1 answer, yes"]
    yes = pool.parent / "found.txt"
    yes.write_text(DATA.unseen[0])
    call("add-label", model, "football", "--more", "--yes", yes)
    told = [line.split(maxsplit=4)[4] for line in call("history", model, "-n", "4").stdout.splitlines()[1:]]
    assert told[0] == "relearn    football", "a text that was found answers no question"
    assert told[2] == "relearn    football: 1 answer", "which one is not told any more"
