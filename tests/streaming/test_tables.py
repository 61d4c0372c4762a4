"""Data frames and series as answers: their names become the labels' names."""

from __future__ import annotations

import numpy as np
import pytest

from streamlabel import StreamingLabelClassifier
from streamlabel.errors import ConflictError, DataError

pandas = pytest.importorskip("pandas", reason="pandas is not installed")


class Table:
    """Another library's data frame: columns, and an array."""

    def __init__(self, values, columns):
        self.values, self.columns, self.shape = values, columns, values.shape

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)

    def __len__(self):
        return len(self.values)


@pytest.fixture
def case(rng):
    X = rng.standard_normal((120, 8))
    return X, (X @ rng.standard_normal((8, 5)) > 0.5).astype(int)


@pytest.mark.parametrize("frame", [lambda values, names: pandas.DataFrame(values, columns=names), Table])
def test_columns_name_the_labels(case, frame):
    X, Y = case
    model = StreamingLabelClassifier().fit(X, frame(Y[:, :3], ["a", "b", "c"]))
    assert model.label_names_ == ("a", "b", "c")
    model.add_labels(X, frame(Y[:, 3:], ["d", "e"]))
    assert model.label_names_ == ("a", "b", "c", "d", "e")
    plain = StreamingLabelClassifier().fit(X, Y[:, :3]).add_labels(X, Y[:, 3:])
    assert plain.label_names_ == tuple(f"label_{j}" for j in range(5))
    assert np.array_equal(model.decision_function(X), plain.decision_function(X))


def test_a_series_names_its_label(case):
    X, Y = case
    model = StreamingLabelClassifier().fit(X, pandas.DataFrame(Y[:, :1], columns=["only"]))
    model.add_labels(X, pandas.Series(Y[:, 1], name="new")).add_labels(X, pandas.Series(Y[:, 2]))
    assert model.label_names_ == ("only", "new", "label_2")
    with pytest.raises(ConflictError, match="'new' is taken"):
        model.add_labels(X, pandas.Series(Y[:, 3], name="new"))


def test_names_that_are_given_come_first(case):
    X, Y = case
    model = StreamingLabelClassifier().fit(X, pandas.DataFrame(Y[:, :2], columns=["a", "b"]), label_names=["c", "d"])
    model.add_labels(X, pandas.Series(Y[:, 2], name="new"), ["e"])
    assert model.label_names_ == ("c", "d", "e")


@pytest.mark.parametrize("columns", [[0, 1], ["a", 1]])
def test_columns_that_are_not_all_strings_name_nothing(case, columns):
    X, Y = case
    model = StreamingLabelClassifier().fit(X, pandas.DataFrame(Y[:, :2], columns=columns))
    assert model.label_names_ == ("label_0", "label_1")


def test_classes_keep_their_own_names(case):
    X, Y = case
    model = StreamingLabelClassifier().fit(X, pandas.Series(np.array(["x", "y"])[Y[:, 0]], name="colour"))
    assert model.label_names_ == ("x", "y")


def test_columns_of_the_same_name_are_refused(case):
    X, Y = case
    twice = pandas.DataFrame(Y[:, :2], columns=["a", "a"])
    with pytest.raises(DataError, match="y has more than one column called 'a'"):
        StreamingLabelClassifier().fit(X, twice)
    with pytest.raises(DataError, match="X has more than one column called 'a'"):
        StreamingLabelClassifier().fit(pandas.DataFrame(X[:, :2], columns=["a", "a"]), Y)
    model = StreamingLabelClassifier().fit(X, Y[:, 2:])
    with pytest.raises(DataError, match="'a' occurs twice"):
        model.add_labels(X, twice)
    assert len(model.label_names_) == 3


ROWS = np.random.default_rng(0).standard_normal((6, 3))
NAMED = [["b", "a"], [], ["a"], {"c"}, ("b", "c", "c"), ["a"]]
MATRIX = [[1, 1, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [0, 1, 0]]


def test_lists_of_names_are_a_matrix_with_names():
    found = StreamingLabelClassifier(beta=0.1).fit(ROWS, NAMED)
    expected = StreamingLabelClassifier(beta=0.1).fit(ROWS, MATRIX, label_names=["b", "a", "c"])
    assert found.label_names_ == ("b", "a", "c")
    assert np.array_equal(found.decision_function(ROWS), expected.decision_function(ROWS))
    other = StreamingLabelClassifier(beta=0.1).fit(ROWS, NAMED, label_names=["a", "b", "c"])
    assert other.label_names_ == ("a", "b", "c")
    assert np.array_equal(other.decision_function(ROWS)[:, [1, 0, 2]], expected.decision_function(ROWS))


@pytest.mark.parametrize(
    ("y", "names", "says"),
    [
        (NAMED, ["a", "b"], "labels of row 3: label 'c' is not among the 2 label_names"),
        (NAMED[:5], None, "y has 5 rows and X has 6"),
        ([["a"], None, ["b"], [], [], []], None, "labels of row 1: a NoneType where a list of names"),
        ([["a"], ["b", 3], [], [], [], []], None, "labels of row 1: a label of type int"),
        ([["1", "0"]] * 6, None, "it holds '1'"),
        ([[1, "a"]] * 6, None, "cannot be read as numbers"),
    ],
)
def test_mistakes_in_lists_of_names(y, names, says):
    with pytest.raises(DataError, match=says):
        StreamingLabelClassifier().fit(ROWS, y, label_names=names)
