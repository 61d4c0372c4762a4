"""Guessing columns: usual names, contents of the first rows, and what is said about it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from streamlabel.data.files import HEAD, replayable
from streamlabel.data.load import (
    TextColumns,
    begins_as_table,
    guess_columns,
    load_dataset,
    read_one_label_rows,
    read_text_lines,
    read_text_rows,
)
from streamlabel.errors import DataError
from streamlabel.scale.row_files import RowFiles


def guess(path: Path, content: str, **options: object) -> TextColumns:
    path.write_text(content, encoding="utf-8")
    source, head = replayable(str(path))
    found = guess_columns(source, head, **options)  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("record", "text", "labels"),
    [
        ({"text": "a b", "labels": ["x"]}, "text", "labels"),
        ({"id": 7, "Title": "hello", "TAGS": []}, "Title", "TAGS"),
        ({"title": "short", "body": "a longer text", "topics": ["x"]}, "body", "topics"),
        ({"nr": "17", "words": "what was said", "marks": ["x"], "n": 3}, "words", "marks"),
    ],
)
def test_fields_of_json_lines(tmp_path: Path, record: dict[str, object], text: str, labels: str) -> None:
    found = guess(tmp_path / "a.jsonl", json.dumps(record) + "\n")
    assert (found.text, found.labels) == (text, labels)
    assert found.guessed == f"texts in {text!r}, tags in {labels!r}"


@pytest.mark.parametrize(
    ("tags", "given", "read", "doubt"),
    [
        (["a, b", "b,c", ""], None, [["a, b"], ["b,c"], []], "2 of 2 cells have ',', each one tag"),
        (["a, b", "b,c", ""], ",", [["a", "b"], ["b", "c"], []], ""),
        ([None, "b, c", "c", "d", "e"], None, [[], ["b, c"], ["c"], ["d"], ["e"]], ""),
        (["a|b,c", "b,|b", "x"], "|", [["a", "b,c"], ["b,", "b"], ["x"]], ""),
        (
            ["a|b", "b|c"],
            ";",
            [["a|b"], ["b|c"]],
            "no tags of the first rows are parted by ';', and 2 of 2 cells have '|'",
        ),
    ],
)
def test_tags_in_one_string(
    tmp_path: Path, tags: list[str | None], given: str | None, read: list[list[str]], doubt: str
) -> None:
    content = "".join(json.dumps({"text": "t", "labels": one}) + "\n" for one in tags)
    found = guess(tmp_path / "a.jsonl", content, tag_delimiter=given)
    assert (found.one_label, found.doubt) == (True, doubt)
    data = read_one_label_rows(str(tmp_path / "a.jsonl"), found)
    found_tags = [{data.label_names[column] for column in np.flatnonzero(row)} for row in data.Y.toarray()]
    assert found_tags == [set(one) for one in read]
    assert set(RowFiles(tmp_path / "a.jsonl", tag_delimiter=given).scan().label_names or ()) == set().union(*read)


@pytest.mark.parametrize(
    ("content", "table"),
    [
        ("id,text\n1,a flu\n", True),
        ("\ufefftext;tags\n", True),
        ('text\n"one, two"\nthree\n', True),
        ("nr\twords\n1\ta flu\n2\tno flu\n", True),
        ('id,text\n1,a quote" that, is broken, here\n', True),
        ("text\nwith, parts\nof, sentences\n", False),
        ("a text, another\nmore text, here\nlast, words\n", False),
        ("Hello\nworld\n", False),
        ("a,b\nc\nd\n", False),
        ("flu,flu\n1,2\n3,4\n", False),
        ("", False),
    ],
)
def test_tables_are_told_from_lines(content: str, table: bool) -> None:
    assert begins_as_table(content.encode()) is table


def test_given_columns_are_not_guessed(tmp_path: Path) -> None:
    found = guess(tmp_path / "a.jsonl", '{"text": "x", "labels": [], "t": "y", "l": []}\n', text="t", labels="l")
    assert (found.text, found.labels, found.guessed) == ("t", "l", "")


@pytest.mark.parametrize(
    ("name", "content", "delimiter", "mark"),
    [
        ("a.csv", 'text,tags\n"one, two",a;b\n', ",", ";"),
        ("a.csv", "text;tags\neins;a|b\n", ";", "|"),
        ("a.csv", 'text,tags\none,"a,b"\n', ",", ","),
        ("a.tsv", "text\ttags\none\ta;b\n", "\t", ";"),
        ("a.csv", "text\ttags\none\ta\n", "\t", ";"),
    ],
)
def test_delimiters_of_csv(tmp_path: Path, name: str, content: str, delimiter: str, mark: str) -> None:
    found = guess(tmp_path / name, content)
    assert (found.delimiter, found.tag_delimiter) == (delimiter, mark)
    data = load_dataset(tmp_path / name, "csv", **found.options())
    assert data.label_names == (("a",) if content.endswith("\ta\n") else ("a", "b"))


def test_columns_of_zeros_and_ones_are_labels(tmp_path: Path) -> None:
    found = guess(tmp_path / "a.csv", "id,comment,toxic,rude,length\n1,hello,0,1,12\n2,oh,1,1,4\n")
    assert (found.text, found.labels, found.label_columns) == ("comment", None, ("toxic", "rude"))
    data = load_dataset(tmp_path / "a.csv", "csv", **found.options())
    assert data.Y.toarray().tolist() == [[0, 1], [1, 1]]


def test_dates_and_ids_of_any_form_do_not_matter(tmp_path: Path) -> None:
    found = guess(tmp_path / "a.csv", "id,date,text,tags\n1,3/4/2021,hello,a\n")
    assert load_dataset(tmp_path / "a.csv", "csv", **found.options()).n_rows == 1
    found = guess(tmp_path / "a.jsonl", '{"id": 1.5, "date": "yesterday", "text": "x", "labels": ["a"]}\n')
    assert load_dataset(tmp_path / "a.jsonl", "jsonl", **found.options()).n_rows == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [('{"n": 1, "labels": ["a"]}\n', "no column looks like texts"), ('{"text": "a", "n": 1}\n', "looks like tags")],
)
def test_what_cannot_be_guessed_is_asked_for(tmp_path: Path, content: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        guess(tmp_path / "a.jsonl", content)


def test_rows_of_numbers_have_no_text_columns(tmp_path: Path) -> None:
    for name, content in (("a.jsonl", '{"features": [1], "labels": []}\n'), ("a.svm", "0 1:2\n")):
        (tmp_path / name).write_text(content)
        source, head = replayable(str(tmp_path / name))
        assert guess_columns(source, head) is None


@pytest.mark.parametrize("n_rows", [3, 20_000])
def test_a_stream_is_looked_at_and_read_whole(n_rows: int) -> None:
    content = "".join(f'{{"text": "number {i}", "labels": ["a"]}}\n' for i in range(n_rows)).encode()
    assert (len(content) > HEAD) == (n_rows > 3)
    source, head = replayable(io.BytesIO(content))
    found = guess_columns(source, head)
    assert found is not None
    assert [row.text for row in read_text_rows(source, found)] == [f"number {i}" for i in range(n_rows)]


def test_texts_come_with_ids_and_another_column(tmp_path: Path) -> None:
    found = guess(tmp_path / "a.csv", "id,text,tags,ok\n7,hello,a,yes\n", need_labels=False)
    (row,) = read_text_rows(str(tmp_path / "a.csv"), found, "ok")
    assert row == ("7", "hello", 2, "yes")
    with pytest.raises(DataError, match="no column 'none'"):
        list(read_text_rows(str(tmp_path / "a.csv"), found, "none"))


def test_lines_are_texts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\n  two \n")
    assert [(row.text, row.line) for row in read_text_lines(str(tmp_path / "a.txt"))] == [("one", 1), ("two", 3)]


@pytest.mark.parametrize("line", ["nonsense", "[1]", '{"other": "x"}', '{"text": 3}'])
def test_a_line_without_a_text_is_an_error_with_its_number(tmp_path: Path, line: str) -> None:
    found = guess(tmp_path / "a.jsonl", f'{{"text": "x"}}\n{line}\n', need_labels=False)
    with pytest.raises(DataError, match="line 2"):
        list(read_text_rows(str(tmp_path / "a.jsonl"), found))


def test_one_label_a_record_may_be_a_string(tmp_path: Path) -> None:
    content = '{"text": "x", "label": "a"}\n{"text": "y", "label": ""}\n{"text": "z", "label": null}\n'
    found = guess(tmp_path / "a.jsonl", content)
    assert found.one_label
    data = read_one_label_rows(str(tmp_path / "a.jsonl"), found)
    assert (data.label_names, data.Y.toarray().tolist()) == (("a",), [[1], [0], [0]])
    (tmp_path / "a.jsonl").write_text(content + '{"text": "z", "label": ["b"]}\n')
    with pytest.raises(DataError, match="line 4"):
        read_one_label_rows(str(tmp_path / "a.jsonl"), found)
