"""Exports of annotation tools: small files as the tools write them, with the answers worked out by hand."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile

import numpy as np
import pytest

from streamlabel.data.annotations import load_annotations
from streamlabel.errors import DataError, NotFoundError

YES, NO, UNKNOWN = 1, 0, -1


def table(annotations):
    """(n, m): yes, no or unknown."""
    cells = annotations.dataset.Y.toarray().astype(int)
    return np.where(annotations.annotated(), cells, UNKNOWN).tolist()


def write(path, records, *, array=False, indent=None):
    if array:
        path.write_text(json.dumps(records, indent=indent, ensure_ascii=False), encoding="utf-8")
    else:
        path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


# -------------------------------------------------------------------------------------------------------- doccano

DOCCANO = [
    {"id": 1, "text": "a cow", "source": "web", "label": ["animal"], "Comments": []},
    {"id": 2, "text": "milk of a cow", "label": ["animal", "food"], "Comments": ["ok?"]},
    {"id": 3, "text": "not looked at", "label": [], "Comments": []},
]


@pytest.mark.parametrize("form", ["jsonl", "json", "json indented"])
def test_doccano(tmp_path, form):
    path = write(
        tmp_path / f"all.{form[:5].rstrip()}", DOCCANO, array="json " in f"{form} ", indent=2 if " " in form else None
    )
    read = load_annotations(path)
    assert read.dataset.label_names == ("animal", "food")
    assert list(read.dataset.texts) == ["a cow", "milk of a cow", "not looked at"]
    assert read.dataset.row_ids == ("1", "2", "3")
    assert table(read) == [[YES, NO], [YES, YES], [UNKNOWN, UNKNOWN]]
    assert read.unanswered.tolist() == [2]
    assert table(load_annotations(path, "doccano", empty="no"))[2] == [NO, NO]


def test_doccano_csv_and_fast_text(tmp_path):
    path = tmp_path / "all.csv"
    with open(path, "w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerows(
            [
                ["id", "text", "label", "Comments"],
                [1, "a, b", "animal", ""],
                [2, "=x", "animal#food", ""],
                [3, "", "", ""],
            ]
        )
    read = load_annotations(path)
    assert list(read.dataset.texts) == ["a, b", "=x", ""]
    assert table(read) == [[YES, NO], [YES, YES], [UNKNOWN, UNKNOWN]]
    lines = tmp_path / "all.txt"
    lines.write_text(
        '__label__animal a cow \n"__label__animal __label__food milk, ""fresh""\nand cold  __comment__hm"\n'
    )
    read = load_annotations(lines)
    assert list(read.dataset.texts) == ["a cow", 'milk, "fresh"\nand cold']
    assert table(read) == [[YES, NO], [YES, YES]]


def test_one_file_a_person_is_a_vote(tmp_path):
    """Two say animal, one says food: the majority; two against two: a tie, which is unknown."""
    said = {
        "ann": [["animal"], ["food"], []],
        "bob": [["animal"], ["animal"], []],
        "eve": [["food"], [], ["food"]],
    }
    paths = []
    for person, labels in said.items():
        records = [{"id": i, "text": f"text {i}", "label": chosen} for i, chosen in enumerate(labels)]
        paths.append(write(tmp_path / f"{person}.jsonl", records))
    read = load_annotations(paths)
    assert read.dataset.label_names == ("animal", "food")
    assert table(read) == [[YES, NO], [UNKNOWN, UNKNOWN], [NO, YES]]
    assert read.n_ties == 2
    assert read.unanswered.tolist() == [1]


# -------------------------------------------------------------------------------------------------------- Prodigy

OPTIONS = [{"id": "animal", "text": "Animal"}, {"id": "food", "text": "Food"}]


def choice(text, accept, answer="accept", **more):
    return {"text": text, "options": OPTIONS, "accept": accept, "answer": answer, "_view_id": "choice", **more}


def test_prodigy_choice(tmp_path):
    records = [
        choice("a cow", ["animal"], _input_hash=-5, _task_hash=7, _timestamp=1_700_000_000, _annotator_id="ann"),
        choice("stone", [], _input_hash=6),
        choice("rejected", ["food"], "reject", _input_hash=7),
        choice("ignored", [], "ignore", _input_hash=8),
        {**choice("later", ["new"], _input_hash=9), "options": [{"id": "new", "text": "New"}]},
    ]
    read = load_annotations(write(tmp_path / "db.jsonl", records))
    assert read.dataset.label_names == ("animal", "food", "new")
    assert read.dataset.row_ids == ("-5", "6", "7", "8", "9")
    unasked = [UNKNOWN] * 3
    assert table(read) == [[YES, NO, UNKNOWN], [NO, NO, UNKNOWN], unasked, unasked, [UNKNOWN, UNKNOWN, YES]]
    assert read.unanswered.tolist() == [2, 3]


def test_prodigy_yes_no_questions(tmp_path):
    """textcat.teach asks for one label at a time; here rejecting is an answer."""
    records = [
        {"text": "a cow", "label": "animal", "answer": "accept", "_input_hash": 1, "spans": []},
        {"text": "a cow", "label": "food", "answer": "reject", "_input_hash": 1},
        {"text": "a stone", "label": "food", "answer": "ignore", "_input_hash": 2},
    ]
    read = load_annotations(write(tmp_path / "db.jsonl", records))
    assert list(read.dataset.texts) == ["a cow", "a stone"]
    assert table(read) == [[YES, NO], [UNKNOWN, UNKNOWN]]
    assert read.answers("animal") == (["a cow"], [])
    assert read.answers("food") == ([], ["a cow"])


def test_the_last_word_of_a_person_counts(tmp_path):
    records = [
        choice("a cow", ["food"], _input_hash=1, _annotator_id="ann"),
        choice("a cow", ["food"], _input_hash=1, _annotator_id="bob"),
        choice("a cow", ["animal"], _input_hash=1, _annotator_id="ann"),
        choice("a cow", ["animal"], _input_hash=1, _annotator_id="eve"),
    ]
    assert table(load_annotations(write(tmp_path / "db.jsonl", records))) == [[YES, NO]]


# --------------------------------------------------------------------------------------------------- Label Studio


def result(choices, name="topic", kind="choices", **value):
    return {"id": "x1", "from_name": name, "to_name": "text", "type": kind, "value": {kind: choices, **value}}


def annotation(results, by=1, **more):
    return {"id": 10, "completed_by": by, "result": results, "was_cancelled": False, "ground_truth": False, **more}


def task(id_, annotations, **data):
    return {
        "id": id_, "data": data or {"text": f"text {id_}"}, "annotations": annotations, "drafts": [],
        "predictions": [{"result": [result(["wrong"])]}], "project": 3, "meta": {},
    }  # fmt: skip


def test_label_studio(tmp_path):
    tasks = [
        task(1, [annotation([result(["animal", "food"])])]),
        task(2, [annotation([])]),
        task(3, [annotation([result(["food"])], was_cancelled=True)]),
        task(4, []),
        task(5, [annotation([result(["animal"])], by=1), annotation([result(["food"])], by={"id": 2, "email": "b@c"})]),
        task(6, [annotation([result(["animal"])], by=1), annotation([result(["food"])], by=2, ground_truth=True)]),
    ]
    for indent in (None, 1):
        read = load_annotations(write(tmp_path / "project.json", tasks, array=True, indent=indent))
        assert read.dataset.label_names == ("animal", "food")
        unasked = [UNKNOWN, UNKNOWN]
        assert table(read) == [[YES, YES], [NO, NO], unasked, unasked, unasked, [NO, YES]]


def test_label_studio_flat(tmp_path):
    common = {"annotator": 1, "annotation_id": 4, "created_at": "2026-01-01T00:00:00Z", "lead_time": 1.5}
    rows = [
        {"text": "a cow", "id": 1, "topic": "animal", **common},
        {"text": "milk", "id": 2, "topic": {"choices": ["animal", "food"]}, **common},
        {"text": "stone", "id": 3, **common},
        {"text": "unseen", "id": 4, "annotator": "{}", "annotation_id": None},
    ]
    expected = [[YES, NO], [YES, YES], [NO, NO], [UNKNOWN, UNKNOWN]]
    assert table(load_annotations(write(tmp_path / "min.json", rows, array=True))) == expected
    path = tmp_path / "project.csv"
    columns = ["annotation_id", "annotator", "created_at", "id", "lead_time", "text", "topic"]
    with open(path, "w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, columns, quoting=csv.QUOTE_NONNUMERIC)
        writer.writeheader()
        for row in rows:
            topic = row.get("topic", "")
            writer.writerow({**row, "topic": topic if isinstance(topic, str) else json.dumps(topic)})
    assert table(load_annotations(path)) == expected


def test_label_studio_taxonomy_and_several_controls(tmp_path):
    both = [result([["plant"], ["plant", "tree"]], name="kind", kind="taxonomy"), result(["good"], name="mood")]
    path = write(tmp_path / "p.json", [task(1, [annotation(both)], title="t", body="b")], array=True)
    with pytest.raises(DataError, match=r"record 1 \(id 1\): .*text_field"):
        load_annotations(path, question="kind")
    with pytest.raises(DataError, match=r"answers \['kind', 'mood'\]; pass question="):
        load_annotations(path, text_field="body")
    read = load_annotations(path, text_field="body", question="kind")
    assert read.dataset.label_names == ("plant", "plant / tree")
    assert load_annotations(path, text_field="body", question="mood").dataset.label_names == ("good",)


def test_answers_older_than_a_label_did_not_see_it(tmp_path):
    tasks = [
        task(1, [annotation([result(["animal"])], created_at="2026-01-01T10:00:00.5Z")]),
        task(2, [annotation([result(["new"])], created_at="2026-03-01T10:00:00Z")]),
        task(3, [annotation([], created_at="2026-01-01T10:00:00Z", updated_at="2026-04-01T10:00:00Z")]),
    ]
    path = write(tmp_path / "p.json", tasks, array=True)
    assert table(load_annotations(path)) == [[YES, NO], [NO, YES], [NO, NO]]
    assert table(load_annotations(path, born={"new": "2026-02-01"})) == [[YES, UNKNOWN], [NO, YES], [NO, NO]]
    with pytest.raises(DataError, match="born, label 'new': 'soon' is not a date"):
        load_annotations(path, born={"new": "soon"})


# -------------------------------------------------------------------------------------------------------- Argilla


def argilla_record(id_, responses, status="completed"):
    return {
        "id": id_, "fields": {"text": f"text {id_}"}, "metadata": {}, "vectors": {}, "status": status,
        "suggestions": {"topic": {"value": ["wrong"], "score": None, "agent": None}}, "responses": responses,
        "_server_id": "s",
    }  # fmt: skip


def test_argilla(tmp_path):
    records = [
        argilla_record("a", {"topic": [{"value": ["animal", "food"], "user_id": "u"}]}),
        argilla_record("b", {"topic": [{"value": ["animal"], "user_id": "u"}, {"value": None, "user_id": "v"}]}),
        argilla_record("c", {}, "pending"),
        argilla_record("d", {"topic": [{"value": ["food"], "user_id": "u"}]}, "pending"),
    ]
    read = load_annotations(write(tmp_path / "records.json", records, array=True))
    assert read.dataset.label_names == ("animal", "food")
    assert table(read) == [[YES, YES], [YES, NO], [UNKNOWN, UNKNOWN], [UNKNOWN, UNKNOWN]]


def test_argilla_with_the_state_of_responses(tmp_path):
    column = "topic.responses"
    flat = [
        {"id": "a", "status": "completed", "text": "t", column: [["x"], ["y"]], f"{column}.users": ["u", "v"],
         f"{column}.status": ["submitted", "discarded"], "topic.suggestion": ["z"]},
        {"id": "b", "status": "pending", "text": "s", column: None, f"{column}.users": None, f"{column}.status": None},
    ]  # fmt: skip
    assert table(load_annotations(write(tmp_path / "flat.json", flat, array=True))) == [[YES], [UNKNOWN]]
    server = [
        {"id": "a", "fields": {"text": "t"}, "responses": [
            {"values": {"topic": {"value": ["x"]}}, "status": "submitted", "user_id": "u"},
            {"values": {"topic": {"value": ["y"]}}, "status": "draft", "user_id": "v"},
            {"values": None, "status": "discarded", "user_id": "w"}]},
        {"id": "b", "fields": {"text": "s"}, "responses": []},
    ]  # fmt: skip
    assert table(load_annotations(write(tmp_path / "server.jsonl", server))) == [[YES], [UNKNOWN]]


# ---------------------------------------------------------------------------------------------------------- Annif


def test_annif(tmp_path):
    records = [
        {"document_id": "d1", "text": "cow", "subjects": [{"uri": "http://x/1", "label": "animal"}]},
        {"document_id": "d2", "text": "milk", "metadata": {"title": "T"},
         "subjects": [{"uri": "http://x/1", "label": "animal"}, {"uri": "http://x/2", "label": "food"}]},
        {"document_id": "d3", "text": "none", "subjects": []},
    ]  # fmt: skip
    path = write(tmp_path / "docs.jsonl", records)
    read = load_annotations(path)
    assert read.dataset.row_ids == ("d1", "d2", "d3")
    assert table(read) == [[YES, NO], [YES, YES], [UNKNOWN, UNKNOWN]]
    assert load_annotations(path, names="uri").dataset.label_names == ("http://x/1", "http://x/2")

    (tmp_path / "docs.csv").write_text(
        "document_id,text,subject_uris\nd1,cow,<http://x/1>\nd2,milk,http://x/1 http://x/2\n"
    )
    with gzip.open(tmp_path / "docs.tsv.gz", "wt") as handle:
        handle.write("cow\t<http://x/1>\nmilk\t<http://x/1> <http://x/2>\n")
    for name in ("docs.csv", "docs.tsv.gz"):
        read = load_annotations(tmp_path / name)
        assert read.dataset.label_names == ("http://x/1", "http://x/2")
        assert table(read) == [[YES, NO], [YES, YES]]


def test_annif_folder(tmp_path):
    (tmp_path / "a.txt").write_text("cow")
    (tmp_path / "a.tsv").write_text("<http://x/1>\tanimal\n<http://x/9>\t\n")
    (tmp_path / "b.txt").write_text("milk")
    (tmp_path / "b.key").write_text("animal\nfood\n")
    (tmp_path / "c.txt").write_text("no subjects")
    (tmp_path / "d.json").write_text(json.dumps({"text": "dog", "subjects": [{"label": "animal"}]}, indent=1))
    read = load_annotations(tmp_path)
    assert read.dataset.label_names == ("animal", "http://x/9", "food")
    assert table(read) == [[YES, YES, NO], [YES, NO, YES], [UNKNOWN] * 3, [YES, NO, NO]]


# --------------------------------------------------------------------------------------------------- what is wrong

SPANS = [
    ({"id": 7, "text": "Ann", "label": [[0, 3, "PER"]]}, "spans"),
    ({"id": 7, "text": "Ann", "label": ["x"], "entities": [[0, 3, "PER"]]}, "not text classification"),
    (
        {"text": "Ann", "_input_hash": 7, "spans": [{"start": 0, "end": 3, "label": "PER"}], "answer": "accept"},
        "neither",
    ),
    (task(7, [annotation([result(["PER"], kind="labels", start=0, end=3)])]), "type 'labels'"),
    (task(7, [annotation([result(["x"], start=0, end=3)])]), "perRegion"),
    (argilla_record("7", {"q": [{"value": [{"label": "PER", "start": 0}], "user_id": "u"}]}), "spans"),
    (argilla_record("7", {"q": [{"value": 4, "user_id": "u"}]}), "no list of labels"),
    ({"image": "a.jpg", "_input_hash": 7, "options": [], "accept": [], "answer": "accept"}, "."),
    ({"text": "a", "options": OPTIONS, "accept": ["other"], "answer": "accept"}, "not among its options"),
    ({"text": "a", "label": "x", "answer": "maybe", "_input_hash": 1}, "accept, reject or ignore"),
    ({"text": "a", "subjects": ["x"]}, "list of objects"),
    ({"text": "a", "subjects": [{"label": "x" * 300}]}, "label"),
    ({"words": "a"}, "of no tool"),
]


@pytest.mark.parametrize(("record", "problem"), SPANS)
def test_other_tasks_are_refused_by_name(tmp_path, record, problem):
    path = write(tmp_path / "a.jsonl", [record])
    with pytest.raises(DataError, match=problem) as caught:
        load_annotations(path)
    assert str(caught.value).startswith(f"{path}, line 1: record 1")
    assert caught.value.line == 1


@pytest.mark.parametrize(
    ("content", "problem", "line"),
    [
        ('[\n{"id": 1, "text": "a", "label": []},\n{"id": 2, "text"', "not closed", 3),
        ('[\n{"id": 1, "text": "a", "label": []}\n{"id": 2}]', "separated by commas", 3),
        ('[{"id": 1, "text": "a", "label": []}] x', "follows the end", 1),
        ("[1, 2]", "no object", 1),
        ('[{"id": 1, "text": "a", "label": []},\n\n{"id": 1, "text": "b", "label": []}]', "another text", 3),
        ('[{"id": 1, "id": 2, "text": "a", "label": []}]', "stands twice", 1),
        ('[{"id": 1, "text": "' + "a" * 3000 + '", "label": []}]', "longer than 1000", 1),
        ('{"id": 1, "text": "' + "a" * 3000 + '", "label": []}', "longer than 1000", 1),
        ("[]", "no records", None),
        ("", "no records", None),
    ],
)
def test_damage_is_found_where_it_is(tmp_path, content, problem, line):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(DataError, match=problem) as caught:
        load_annotations(path, "doccano", max_record_bytes=1000)
    assert caught.value.line == line


def test_long_arrays_are_read_record_by_record():
    """More than many chunks, with strings full of brackets, quotes and escapes; one record is held at a time."""
    texts = [f'{i} [{{"\\\\ ü \u2028 ' + '}]\\"' * (i % 7) + "x" * (i % 1000) for i in range(3000)]
    content = json.dumps([{"id": i, "text": text, "label": ["a"]} for i, text in enumerate(texts)]).encode()
    assert len(content) > 1_000_000
    read = load_annotations(io.BytesIO(content), "doccano", max_record_bytes=5000)
    assert list(read.dataset.texts) == texts


def test_arguments_are_checked(tmp_path):
    path = write(tmp_path / "a.jsonl", DOCCANO)
    with pytest.raises(NotFoundError, match="no such file"):
        load_annotations(tmp_path / "b.jsonl")
    with pytest.raises(DataError, match="use 'auto' or one of"):
        load_annotations(path, "brat")
    with pytest.raises(DataError, match="empty is 'yes'"):
        load_annotations(path, empty="yes")
    with pytest.raises(DataError, match="give the format of a stream"):
        load_annotations(io.BytesIO(b"{}"))
    with pytest.raises(DataError, match="label 'animal' is not among the 1 label_names"):
        load_annotations(path, label_names=["food"])
    with pytest.raises(NotFoundError, match="no label is called 'x'"):
        load_annotations(path).answers("x")
    assert load_annotations(path, label_names=["zoo", "food", "animal"]).dataset.label_names == (
        "zoo",
        "food",
        "animal",
    )


def test_what_was_asked_is_what_the_learner_takes(tmp_path, rng):
    """A label asked of some texts only: the learner must see the same rows as when they are given alone."""
    from streamlabel import StreamingLabelClassifier

    records = []
    for i in range(40):
        records.append({**choice(f"t{i}", ["old"] if i % 2 else [], _input_hash=i), "options": [{"id": "old"}]})
        if i < 30:
            records.append(
                {"text": f"t{i}", "label": "new", "answer": "accept" if i % 3 else "reject", "_input_hash": i}
            )
    read = load_annotations(write(tmp_path / "db.jsonl", records))
    X = rng.normal(size=(40, 5))
    Y, mask = read.dataset.Y.toarray(), read.annotated()
    assert mask[:, 0].all()
    assert mask[:, 1].sum() == 30
    clf = StreamingLabelClassifier(lam=None, metric=None, beta=1.0)
    masked = clf.fit(X, Y[:, :1]).add_labels(X, Y[:, 1:], ["new"], annotated=mask[:, 1:]).coef_
    alone = clf.fit(X, Y[:, :1]).add_labels(X[:30], Y[:30, 1:], ["new"]).coef_
    np.testing.assert_allclose(masked, alone, rtol=1e-10)


def test_a_label_with_a_blank_is_refused_in_fast_text(tmp_path):
    path = tmp_path / "all.txt"
    path.write_text("__label__farming a cow\n__label__bird flu __label__farming hens culled\n")
    with pytest.raises(DataError, match=r"line 2: record 2: __label__ is left in the text.*export JSONL"):
        load_annotations(path)


def test_a_zip_is_read_as_its_files(tmp_path):
    """As doccano downloads: one file, or one a person, whose answers are votes."""
    lines = ['{"id": 1, "text": "a cow", "label": ["animal"]}\n', '{"id": 1, "text": "a cow", "label": ["food"]}\n']
    files = [tmp_path / f"{person}.jsonl" for person in ("ann", "bob", "eve")]
    for file, line in zip(files, (lines[0], lines[0], lines[1]), strict=True):
        file.write_text(line)
    zipped(tmp_path / "download.zip", {path.name: path.read_text() for path in files})
    one, other = load_annotations(tmp_path / "download.zip"), load_annotations(files)
    assert (
        (list(one.dataset.texts), table(one)) == (list(other.dataset.texts), table(other)) == (["a cow"], [[YES, NO]])
    )
    zipped(tmp_path / "one.zip", {"all.jsonl": lines[0]})
    assert table(load_annotations(tmp_path / "one.zip")) == [[YES]]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"all.jsonl": '{"id": 1, "text": "a", "label": [1]}'}, r"bad.zip/all.jsonl, line 1: record 1 .*no label name"),
        ({"inner.zip": "PK\x03\x04"}, r"bad.zip: holds an archive, 'inner.zip'; unpack it by hand"),
        ({"../all.jsonl": "{}"}, "points out of the archive"),
        ({}, "is called a zip and is none"),
        ({"all.jsonl": " " * 3000}, "inflates to more than a data set may have"),
    ],
)
def test_a_bad_zip_is_one_message(content, problem, tmp_path, monkeypatch):
    monkeypatch.setattr("streamlabel.data.annotations.MOST_UNPACKED", 2000)
    if content:
        zipped(tmp_path / "bad.zip", content)
    else:
        (tmp_path / "bad.zip").write_text("nothing")
    with pytest.raises(DataError, match=problem):
        load_annotations(tmp_path / "bad.zip", "doccano")


def zipped(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
