"""The life of a label from the shell: each command against the Python objects that it drives."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from streamlabel import ModelStore, StreamingLabelClassifier, Tagger
from streamlabel.cli import add_label
from streamlabel.cli.add_label import report_lines
from streamlabel.streaming.found import Pool
from tagged_texts import tagged_texts

Call = Callable[..., Result]
Ask = Callable[..., Any]
DATA = tagged_texts(300, 100)


def write_texts(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def write_tagged(path: Path, rows: range = range(300)) -> Path:
    records = ({"content": DATA.texts[i], "tags": DATA.tags[i]} for i in rows)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_from_a_file_to_a_label_that_was_not_in_it(tmp_path: Path, call: Call, ask: Ask) -> None:
    file, model = write_tagged(tmp_path / "tagged.jsonl"), tmp_path / "model"
    fitted = ask("fit", model, file)
    assert (fitted["n_rows"], fitted["columns"]["text"], fitted["columns"]["labels"]) == (300, "content", "tags")
    assert fitted["bytes"] > fitted["bytes_for_learning"] > 0
    yes = write_texts(tmp_path / "yes.txt", [DATA.texts[i] for i in DATA.rows["football"][:8]])
    no = write_texts(tmp_path / "no.txt", [DATA.texts[i] for i in range(9) if i not in DATA.rows["football"]])
    report = ask("add-label", model, "football", "--yes", yes, "--no", no, "--actor", "eve")
    assert (report["n_yes"], report["revision"]) == (8, 2)
    best = ask("suggest", model, DATA.texts[DATA.rows["football"][0]])[0]["labels"]
    assert "football" in [one["label"] for one in best if one["yes"]]
    reference = Tagger().fit(DATA.texts, DATA.tags)
    reference.learn("football", DATA.rows["football"][:8], [i for i in range(9) if i not in DATA.rows["football"]])
    expected = dict(reference.suggest(DATA.texts[DATA.rows["football"][0]], 5))
    assert {one["label"]: one["score"] for one in best} == pytest.approx(expected, abs=1e-5)
    assert ask("history", model)[0]["actor"] == "eve"


def test_fit_says_what_counts_as_a_word_and_what_reads_names(
    tmp_path: Path, call: Call, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_tagged(tmp_path / "tagged.jsonl")
    usual = ask("fit", tmp_path / "usual", file)
    both = ask("fit", tmp_path / "numbers", file, "--numbers", "--names", "none")
    assert both["n_features"] > usual["n_features"]
    assert Tagger.open(tmp_path / "numbers").vectorizer_.numbers
    with Tagger.open(tmp_path / "numbers", "a") as tagger:
        assert tagger.names is None
    said = call("add-label", tmp_path / "numbers", "soccer", code=1)
    assert "its name is not used; give at least one example" in said.stderr
    monkeypatch.setitem(sys.modules, "wordllama", None)
    said = call("fit", tmp_path / "static", file, "--names", "static", code=1)
    assert "pip install -e '.[names]'" in said.stderr
    assert not (tmp_path / "static").exists()


def test_add_label_says_how_often_it_fires(model: Path, ask: Ask, call: Call, tmp_path: Path) -> None:
    yes = write_texts(tmp_path / "yes.txt", [DATA.texts[i] for i in DATA.rows["hospitals"][:1]])
    no = write_texts(
        tmp_path / "no.txt", [next(t for i, t in enumerate(DATA.texts) if i not in DATA.rows["hospitals"])]
    )
    pool = write_texts(tmp_path / "pool.txt", DATA.unseen)
    rest = Pool.of(np.arange(len(DATA.unseen))[:, None], StreamingLabelClassifier().random_state).rest[:, 0]
    report = ask("add-label", model, "hospitals", "--yes", yes, "--no", no, "--pool", pool)
    predicted = Tagger.open(model).predict(DATA.unseen)
    said = sum("hospitals" in predicted[at] for at in rest.tolist())
    assert report["fires"] == {"n_yes": said, "n_looked_at": 50}
    assert 0 < said < 10
    printed = call("add-label", model, "hospitals", "--yes", yes, "--no", no, "--pool", pool, "--replace").stdout
    assert f"it fires on {said} of 50 texts" in printed
    assert "that is often" not in printed
    printed = call("add-label", model, "hospitals", "--yes", yes, "--no", no, "--replace", "--sampled").stdout
    assert "that is often: give more no answers" in printed
    assert "counted on 2 answers of the sample" in printed


def test_who_waits_for_trials_is_told_once(
    model: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(add_label, "note", said.append)
    for n_yes, n_told in ((8, 0), (1, 1), (1, 1)):  # the model has learned a label of eight yes before
        yes = write_texts(tmp_path / "yes.txt", [DATA.texts[i] for i in DATA.rows["football"][:n_yes]])
        call("add-label", model, f"{n_yes} of {len(said)}", "--yes", yes)
        assert len(said) == n_told
    sample = write_texts(tmp_path / "sample.txt", [DATA.texts[i] for i in range(40) if i not in DATA.rows["football"]])
    call("add-label", model, "sampled", "--yes", yes, "--no", sample, "--sampled")
    call("labels", model)
    assert [line.partition(":")[0] for line in said] == [
        f"trying out on known labels how to learn from about {what}" for what in ("1 yes", "50 answers")
    ]


def test_a_name_alone_that_says_nothing_is_refused(model: Path, call: Call, tmp_path: Path) -> None:
    no = write_texts(tmp_path / "no.txt", DATA.texts[:2])
    for options in ([], ["--no", no]):
        said = call("add-label", model, "L0231", *options, code=1).stderr
        assert "no yes example, and no word of its name is known here" in said
        assert said.endswith("a model of 'fit --names static' (extra 'names') reads names by their meaning\n")


def test_a_wrong_mark_between_tags_is_told(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "tags.csv"
    rows = [f"text number {i} of some,t{i % 3}; u{i % 2}" for i in range(12)]
    file.write_text("\n".join(["text,tags", *rows]) + "\n")
    said = call("fit", tmp_path / "one", file, "--tag-delimiter", "|").stderr
    assert "no tags of the first rows are parted by '|', and 12 of 12 cells have ';'; is --tag-delimiter right?" in said
    assert "warning" not in call("fit", tmp_path / "two", file, "--tag-delimiter", ";").stderr
    file.write_text("\n".join(["text,tags", *(f"text number {i},t{i};u" for i in range(12))]) + "\n")
    said = call("fit", tmp_path / "three", file, "--tag-delimiter", "|", code=1).stderr
    assert "so that every text has a tag of its own; is --tag-delimiter right?" in said
    assert not (tmp_path / "three").exists()


def test_embeddings_with_tags_by_name(call: Call, ask: Ask, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6)).astype(np.float32)
    Y = X @ rng.standard_normal((6, 3)) > 0.5
    tags = [[name for name, yes in zip("abc", row, strict=True) if yes] for row in Y]
    np.save(tmp_path / "X.npy", X)
    for file, names in (("tags.jsonl", "ab"), ("new.jsonl", "c")):
        lines = (json.dumps([name for name in row if name in names]) for row in tags)
        (tmp_path / file).write_text("\n".join(lines) + "\n")
    model, rows = tmp_path / "model", tmp_path / "X.npy"
    found = ask("fit", model, rows, "--labels-file", tmp_path / "tags.jsonl")
    assert (found["n_rows"], found["n_features"], found["n_labels"]) == (80, 6, 2)
    assert (
        ask("add-label", model, "c", "--file", rows, "--labels-file", tmp_path / "new.jsonl")["n_yes"] == Y[:, 2].sum()
    )
    (record,) = [one for one in ask("labels", model)["labels"] if one["name"] == "c"]
    assert record["n_unasked"] == 0
    order = [ModelStore.open(model).label_names.index(name) for name in "abc"]
    reference = StreamingLabelClassifier().fit(X.astype(float), Y[:, :2].astype(int), label_names=["a", "b"])
    reference.add_labels(X.astype(float), Y[:, [2]].astype(int), ["c"])
    expected = reference.decision_function(X.astype(float))
    np.testing.assert_allclose(ModelStore.open(model).scores(X)[:, order], expected, atol=1e-5)
    lines = call("predict", model, rows, "-k", 1).stdout.splitlines()
    assert [json.loads(line)["labels"][0] for line in lines] == ["abc"[j] for j in expected.argmax(axis=1)]
    assert ask("evaluate", model, rows, "--labels-file", tmp_path / "new.jsonl")["n_rows"] == 80
    assert "--labels-file" in call("fit", tmp_path / "other", rows, code=1).stderr


def test_a_dry_run_learns_and_stores_nothing(model: Path, ask: Ask, tmp_path: Path) -> None:
    yes = write_texts(tmp_path / "yes.txt", [DATA.texts[i] for i in DATA.rows["hospitals"][:6]])
    dry = ask("add-label", model, "hospitals", "--yes", yes, "--dry-run")
    assert dry["revision"] is None
    assert "hospitals" not in ModelStore.open(model).label_names
    wet = ask("add-label", model, "hospitals", "--yes", yes)
    assert wet["revision"] == 3
    assert dry["neighbours"] == wet["neighbours"]
    assert dry["n_background"] == wet["n_background"] == (300 - dry["n_yes"]) // 2
    assert dry["estimate"] == wet["estimate"]


def test_a_known_label_is_learned_anew_when_asked(model: Path, call: Call, ask: Ask, tmp_path: Path) -> None:
    yes = write_texts(tmp_path / "yes.txt", [DATA.texts[i] for i in DATA.rows["football"]])
    refused = call("add-label", model, "football", "--yes", yes, code=4)
    assert "--replace" in refused.stderr
    assert ask("add-label", model, "football", "--yes", yes, "--replace")["n_yes"] == len(DATA.rows["football"])


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_answers_in_a_column(model: Path, ask: Ask, call: Call, tmp_path: Path, form: str) -> None:
    rows = DATA.rows["railways"][:5]
    said: dict[int, Any] = dict.fromkeys(rows, True) | {i: False for i in range(20) if i not in rows} | {30: None}
    path = tmp_path / f"answers.{form}"
    if form == "csv":
        words = {True: "yes", False: "0", None: ""}
        lines = ["text,ok", *(f'"{DATA.texts[i]}",{words[answer]}' for i, answer in said.items())]
    else:
        lines = [json.dumps({"text": DATA.texts[i], "ok": answer}) for i, answer in said.items()]
    path.write_text("\n".join(lines) + "\n")
    report = ask("add-label", model, "railways", "--file", path, "--column", "ok")
    assert (report["n_yes"], report["n_no"]) == (len(rows), len([a for a in said.values() if a is False]))
    path.write_text(path.read_text() + ("x,perhaps\n" if form == "csv" else '{"text": "x", "ok": "perhaps"}\n'))
    assert (
        f"line {len(said) + (2 if form == 'csv' else 1)}"
        in call("add-label", model, "again", "--file", path, "--column", "ok", code=1).stderr
    )


def test_answers_among_tags(model: Path, ask: Ask, call: Call, tmp_path: Path) -> None:
    path = tmp_path / "tags.csv"
    path.write_text("text,tags\n" + "".join(f'"{DATA.texts[i]}",{"trains;x" if i < 3 else "x"}\n' for i in range(9)))
    report = ask("add-label", model, "trains", "--file", path)
    assert (report["n_yes"], report["n_no"]) == (3, 6)
    assert "--column" in call("add-label", model, "planes", "--file", path, code=3).stderr


def test_answers_must_be_given_one_way(model: Path, call: Call) -> None:
    call("add-label", model, "x", "--yes", "a.txt", "--file", "b.csv", code=2)
    call("add-label", model, "x", "--yes", "-", "--no", "-", code=1)


def test_suggest_reads_lines_and_marks_by_threshold(model: Path, ask: Ask, call: Call) -> None:
    texts = DATA.texts[:3]
    found = ask("suggest", model, "-", "-k", "2", input="\n".join(texts))
    tagger = Tagger.open(model)
    predicted = tagger.predict(texts)
    for one, text, said in zip(found, texts, predicted, strict=True):
        assert one["text"] == text
        assert [label["label"] for label in one["labels"]] == [name for name, _ in tagger.suggest(text, 2)]
        assert all(label["yes"] == (label["label"] in said) for label in one["labels"])
    assert texts[1] in call("suggest", model, *texts).stdout
    call("suggest", model, "-", "x", code=2)
    call("suggest", model, "-", input="\n", code=1)


@pytest.mark.parametrize("text", ["", "zzzqqq xxyyzz"])
def test_a_text_without_a_known_word_is_told(model: Path, call: Call, ask: Ask, text: str) -> None:
    said = f"no word of {text!r} is known, so no label is a yes; the scores are those of an empty text\n"
    assert call("suggest", model, text).stderr == said
    assert call("suggest", model, DATA.texts[0]).stderr == ""
    (found,) = ask("suggest", model, text)
    intercepts = Tagger.open(model).classifier_.intercept_
    assert [one["score"] for one in found["labels"]] == pytest.approx(sorted(intercepts, reverse=True)[:5])


def test_suggest_shows_where_yes_begins(model: Path, call: Call, ask: Ask) -> None:
    (found,) = ask("suggest", model, DATA.texts[0])
    known = {one["name"]: one["threshold"] for one in ask("labels", model)["labels"]}
    assert all(one["threshold"] == known[one["label"]] for one in found["labels"])
    shown = call("suggest", model, DATA.texts[0]).stdout.splitlines()
    best = found["labels"][0]
    assert shown[0].split() == ["score", "yes", "above", "label"]
    assert shown[1].split()[:2] == [f"{best['score']:.3f}", f"{best['threshold']:.3f}"]


def test_explain_says_that_a_threshold_is_no_probability(model: Path, call: Call, ask: Ask) -> None:
    text = DATA.texts[DATA.rows["football"][0]]
    why = ask("explain", model, text, "football")
    likely = why["probability"] > 0.5
    for threshold, said in ((why["score"] - 1, True), (why["score"] + 1, False)):
        with ModelStore.open(model, "a") as store:
            store.set_threshold("football", threshold)
        shown = call("explain", model, text, "football").stdout
        assert ("not at a probability of 0.5" in shown) == (said != likely)


def test_a_label_resembles_and_is_unlike() -> None:
    near = [{"label": "health", "weight": 0.89}, {"label": "hospitals", "weight": -1.87}]
    found = {"name": "flu", "n_yes": 1, "n_no": 1, "n_background": 0, "seconds": 0.1, "revision": 2, "used_past": True}
    found |= {"threshold": 0.5, "fires": None, "n_unknown_words": 0, "unknown_words": [], "clarity": {"gain": 6.25}}
    found |= {"estimate": None, "pool": "", "name_gain": 0.0}
    said = report_lines(found | {"neighbours": near})
    assert said[1] == "it resembles health (+0.89); it is unlike hospitals (-1.87)"
    assert said[2].startswith("the past was used (worth 6.2 points in trials); ")
    assert report_lines(found | {"neighbours": [], "clarity": None})[2].startswith("the past was used; ")
    assert report_lines(found | {"neighbours": []})[1] == "it resembles no label that is known"
    alone = found | {"used_past": False}
    said = report_lines(alone | {"neighbours": near})
    assert said[1] == "its answers go with health (+0.89); its answers go against hospitals (-1.87)"
    assert said[2] == "its classifier was learned from its own answers alone; yes is a score above 0.500"
    assert "resembles" not in "".join(report_lines(alone | {"neighbours": []}))
    faint = [{"label": "health", "weight": 0.01}]
    assert "go with" not in "".join(report_lines(alone | {"neighbours": faint}))
    assert "it resembles health (+0.01)" in report_lines(found | {"neighbours": faint})
    judged = found | {"neighbours": [], "pool": "fit", "n_background": 150, "fires": {"n_yes": 3, "n_looked_at": 150}}
    assert "it fires on 3 of 150 texts of fit (2.0%); 150 others stood for no" in report_lines(judged)


def test_words_that_fit_never_saw_are_told(model: Path, call: Call, ask: Ask, tmp_path: Path) -> None:
    vocabulary = set(Tagger.open(model).vectorizer_.terms_)
    known = " ".join(word for word in DATA.texts[DATA.rows["hospitals"][0]].lower().split() if word in vocabulary)
    texts = [f"Cancel Zubscription zebrafoo {known}", f"zubscription {known}", f"zubscription cancel {known}"]
    yes = write_texts(tmp_path / "yes.txt", texts)
    report = ask("add-label", model, "hospitals", "--yes", yes, "--dry-run")
    assert (report["n_unknown_words"], report["unknown_words"]) == (3, ["zubscription", "cancel", "zebrafoo"])
    printed = call("add-label", model, "hospitals", "--yes", yes).stdout
    assert "3 words of its name and yes texts are not known to the model: zubscription" in printed
    why = ask("explain", model, texts[0], "hospitals")
    assert why["unknown_words"] == ["cancel", "zubscription", "zebrafoo"]
    assert (
        "ignored  cancel, zubscription, zebrafoo: not known to the model\n"
        in call("explain", model, texts[0], "hospitals").stdout
    )
    named = ("add-label", model, "electricity-zebrafoo", "--about", "quxfoo", "--dry-run")
    found = ask(*named)
    assert (found["unknown_words"], found["words_read"]) == (["zebrafoo", "quxfoo"], ["electricity"])
    printed = call(*named).stdout
    assert "2 words of its name, description and yes texts are not known to the model: zebrafoo, quxfoo" in printed
    assert "only 'electricity' of its name and description is known to the model\n" in printed
    assert "of its name is known" not in call("add-label", model, "electricity", "--dry-run").stdout
    plain = write_texts(tmp_path / "plain.txt", [DATA.texts[i] for i in DATA.rows["hospitals"][:3]])
    assert ask("add-label", model, "hospitals", "--yes", plain, "--replace")["n_unknown_words"] == 0


def test_words_are_known_to_a_vectoriser_without_a_vocabulary() -> None:
    tagger = Tagger("hashing").fit(DATA.texts, DATA.tags)
    assert tagger.learn("football", yes=["zebrafoo in the stadium"]).n_unknown_words == 0
    assert tagger.explain("zebrafoo", "football").unknown_words == ()


def test_explain_adds_up(model: Path, ask: Ask, call: Call) -> None:
    text = DATA.texts[DATA.rows["football"][0]]
    why = ask("explain", model, text, "football", "--words", 3)
    parts = sum(one["part"] for one in why["words_for"] + why["words_against"])
    assert why["score"] == pytest.approx(why["intercept"] + parts + why["others"])
    assert ask("explain", model, text)["label"] == Tagger.open(model).suggest(text, 1)[0][0]
    assert "did you mean 'football'?" in call("explain", model, text, "Footbal", code=3).stderr
    assert "for any text" in call("explain", model, "zzz", "football").stdout


def test_labels_and_relations(model: Path, ask: Ask, call: Call) -> None:
    store = ModelStore.open(model)
    found = ask("labels", model)
    assert [one["name"] for one in found["labels"]] == list(store.label_names)
    assert found["bytes"]["total"] == store.sizes().total
    (football,) = ask("labels", model, "--match", "FOOTB")["labels"]
    assert (football["n_yes"], football["origin"]) == (8, "added")
    assert "football" not in [one["name"] for one in ask("labels", model, "--revision", 1)["labels"]]
    counts = [one["n_yes"] for one in ask("labels", model, "--sort", "yes")["labels"]]
    assert counts == sorted(counts, reverse=True)
    assert "1 label, revision 2" in call("labels", model, "--match", "footb").stdout
    neighbours = store.model().neighbours("football", 4)
    relations = ask("relations", model, "football", "-k", 4)
    assert [(one["resembles"], one["weight"]) for one in relations["relations"]] == neighbours
    if neighbours:
        lines = call("relations", model, "football").stdout.splitlines()
        word = "resembles" if neighbours[0][1] > 0 else "is unlike"
        assert any(f"{word}  {neighbours[0][0]} " in line for line in lines)
        back = ask("relations", model, neighbours[0][0])["resembled_by"]
        assert ("football", neighbours[0][1]) in [(one["label"], one["weight"]) for one in back]


def test_a_model_of_rows_grows_too(tmp_path: Path, ask: Ask, call: Call) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    rows = lambda labels: "".join(  # noqa: E731
        ",".join(map(str, np.flatnonzero(truth))) + " " + " ".join(f"{j + 1}:{v:.17g}" for j, v in enumerate(x)) + "\n"
        for truth, x in zip(labels, X, strict=True)
    )
    Y = (X[:, :3] > 0).astype(int)
    (tmp_path / "train.svm").write_text(rows(Y[:, :2]))
    (tmp_path / "new.svm").write_text(rows(Y[:, 2:]))
    model = tmp_path / "model"
    assert ask("fit", model, tmp_path / "train.svm")["n_features"] == 6
    report = ask("add-label", model, "third", "--file", tmp_path / "new.svm", "--column", "label_0")
    assert (report["n_yes"], report["n_no"]) == (int(Y[:, 2].sum()), 60 - int(Y[:, 2].sum()))
    clf = StreamingLabelClassifier().fit(X, Y[:, :2]).add_labels(X, Y[:, 2], ["third"])
    np.testing.assert_allclose(ModelStore.open(model).scores(X), clf.decision_function(X), atol=1e-5)
    assert "takes no texts" in call("suggest", model, "hello", code=1).stderr
    assert "give --file" in call("add-label", model, "x", "--yes", tmp_path / "train.svm", code=1).stderr


def test_init_and_fit_refuse_what_is_taken(tmp_path: Path, call: Call, ask: Ask) -> None:
    would = ask("init", tmp_path / "new", "--dry-run")
    assert not (tmp_path / "new").exists()
    assert ask("init", tmp_path / "new")["files"] == would["files"]
    call("init", tmp_path / "new", code=4)
    model, file = tmp_path / "new" / "model", would["files"][0]
    assert "would learn 3 labels from 6 texts" in call("fit", model, file, "--dry-run").stdout
    assert not model.exists()
    assert "guessed" in call("fit", model, file).stdout
    call("fit", model, file, code=4)
    call("fit", tmp_path / "other", tmp_path / "none.csv", code=3)
    assert "looks like tags" in call("fit", tmp_path / "other", "-", "--format", "csv", input="a,b\n", code=1).stderr
    assert not (tmp_path / "other").exists()


def test_fit_reads_standard_input(tmp_path: Path, ask: Ask) -> None:
    content = write_tagged(tmp_path / "tagged.jsonl").read_text()
    assert ask("fit", tmp_path / "model", "-", input=content)["n_rows"] == 300
    csv = "comment,tags\n" + "".join(f'"{DATA.texts[i]}",{"|".join(DATA.tags[i])}\n' for i in range(300))
    found = ask("fit", tmp_path / "from-csv", "-", input=csv)
    assert found["guessed"] == "texts in 'comment', tags in 'tags', tags parted by '|'"
    stores = [ModelStore.open(tmp_path / name) for name in ("model", "from-csv")]
    assert stores[0].label_names == stores[1].label_names


def test_every_command_says_so_when_there_is_no_model(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "none"
    for arguments in (
        ["add-label", path, "x", "--yes", "y.txt"], ["suggest", path, "x"], ["explain", path, "x"],
        ["predict", path, "x"], ["evaluate", path, "x"], ["labels", path], ["relations", path], ["history", path],
        ["diff", path, 1], ["rollback", path, 1], ["rename", path, "a", "b"], ["retire", path, "a"],
        ["merge", path, "a", "b"], ["threshold", path, "a"],
        ["export", path, "x.csv"], ["doctor", path], ["vacuum", path],
    ):  # fmt: skip
        result = call(*arguments, code=3)
        assert "there is no model" in result.stderr
        assert "Traceback" not in result.stderr


def test_a_file_of_no_known_form_asks_for_the_option(model: Path, tmp_path: Path, call: Call) -> None:
    (tmp_path / "what").write_text("words\n")
    for command in (["fit", tmp_path / "new"], ["predict", model], ["evaluate", model]):
        assert "--format" in call(*command, tmp_path / "what", code=1).stderr
    assert call("predict", model, tmp_path / "what", "--format", "lines").stdout.count("row") == 1


def test_update_learns_known_labels_again(model: Path, ask: Ask, call: Call, tmp_path: Path) -> None:
    tagged = write_tagged(tmp_path / "first.jsonl", range(200))
    ask("fit", tmp_path / "young", tagged)
    new = write_tagged(tmp_path / "new.jsonl", range(180, 300))
    would = ask("update", tmp_path / "young", new, "--dry-run")
    assert (would["n_new"], would["n_known"], would["revision"]) == (100, 20, None)
    said = call("update", tmp_path / "young", new, "--label", "health").stdout.splitlines()
    assert said[0].startswith("learned 1 label again from 200 texts of fit and 100 new ones in ")
    assert said[0].endswith("on the disk as revision 2")
    assert said[1] == "20 texts that fit or an earlier update had, left out"
    assert "did you mean 'health'" in call("update", tmp_path / "young", new, "--label", "helth", code=3).stderr
    assert "are known already" in call("update", tmp_path / "young", new, "--label", "health", code=1).stderr
    rest = ask("update", tmp_path / "young", new)  # the others were not asked about: what is unknown stays unknown
    assert "health" not in rest["labels"]
    assert (rest["n_new"], rest["n_known"]) == (100, 20)
    assert ask("history", tmp_path / "young")[0]["action"] == "update"


def test_update_of_a_model_of_rows(tmp_path: Path, ask: Ask, call: Call) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((80, 6)).round(2)
    Y = (X[:, :3] > 0.5).astype(int)
    for name, rows in (("first", range(50)), ("new", range(50, 80))):
        lines = (
            ",".join(str(j) for j in np.flatnonzero(Y[i])) + " " + " ".join(f"{j + 1}:{X[i, j]}" for j in range(6))
            for i in rows
        )
        (tmp_path / f"{name}.svm").write_text("\n".join(lines) + "\n", encoding="utf-8")
    ask("fit", tmp_path / "rows", tmp_path / "first.svm")
    found = ask("update", tmp_path / "rows", tmp_path / "new.svm")
    assert (len(found["labels"]), found["n_fit"], found["n_new"], found["revision"]) == (3, 50, 30, 2)
    with ModelStore.open(tmp_path / "rows") as store:
        assert store.model(learning=False).reports_[0].n_rows == 80


@pytest.mark.parametrize("form", ["{}\n", '{{"text": "{}"}}\n'])
def test_a_pipe_is_one_text_a_line_or_what_it_begins_as(model: Path, ask: Ask, tmp_path: Path, form: str) -> None:
    texts = [DATA.texts[i] for i in DATA.rows["hospitals"][:4]]
    os.mkfifo(tmp_path / "63")
    write = threading.Thread(target=(tmp_path / "63").write_text, args=("".join(map(form.format, texts)),))
    write.start()
    found = ask("add-label", model, "hospitals", "--yes", tmp_path / "63", "--dry-run")
    write.join()
    plain = write_texts(tmp_path / "yes.txt", texts)
    expected = ask("add-label", model, "hospitals", "--yes", plain, "--dry-run")
    assert found | {"seconds": 0} == expected | {"seconds": 0}


def test_tags_that_look_like_ids_are_told(tmp_path: Path, call: Call) -> None:
    rows = [json.dumps({"text": text, "tags": [f"row {at}"]}) for at, text in enumerate(DATA.texts[:40])]
    (tmp_path / "ids.jsonl").write_text("\n".join(rows))
    said = call("fit", tmp_path / "m", tmp_path / "ids.jsonl", "--dry-run").stderr
    assert "warning: 40 of 40 labels have one row each; are these tags, or ids? (--labels)" in said
    rows = [json.dumps({"text": text, "tags": [f"row {at // 2}"]}) for at, text in enumerate(DATA.texts[:80])]
    (tmp_path / "tags.jsonl").write_text("\n".join(rows))
    assert "one row each" not in call("fit", tmp_path / "m", tmp_path / "tags.jsonl", "--dry-run").stderr
