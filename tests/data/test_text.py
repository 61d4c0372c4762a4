"""tf-idf text: the same numbers as scikit-learn, the same bits after saving, hostile files refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer

from streamlabel.data.news import make_news_corpus
from streamlabel.data.terms import TermRows
from streamlabel.data.text import TextVectorizer, vectorise
from streamlabel.errors import DataError, NotFoundError
from streamlabel.types import TextDataset

TEXTS = [
    "The cat sat on the mat.",
    "Café cats: a cat, a mat, a café!",
    "Dogs chase cats; the dog sat.",
    "",
    "The café dog and the café cat",
]


def test_the_numbers_are_those_of_scikit_learn() -> None:
    ours = TextVectorizer(min_df=1, ngram_range=(1, 2), stop_words="english", dtype="float64").fit_transform(TEXTS)
    theirs = TfidfVectorizer(
        ngram_range=(1, 2), stop_words="english", sublinear_tf=True, strip_accents="unicode", dtype=np.float64
    ).fit_transform(TEXTS)
    assert isinstance(ours, sparse.csr_array)
    np.testing.assert_allclose(ours.toarray(), theirs.toarray(), rtol=1e-15)


def test_a_weight_by_hand() -> None:
    vectorizer = TextVectorizer(min_df=1, dtype="float64").fit(["cat", "cat cat dog"])
    assert vectorizer.terms_ == ("cat", "dog")
    idf = np.array([1.0, 1.0 + np.log(3 / 2)])  # 1 + log((1 + n) / (1 + df)), n = 2
    np.testing.assert_allclose(vectorizer.idf_, idf)
    row = np.array([1.0 + np.log(2.0), 1.0]) * idf
    np.testing.assert_allclose(vectorizer.transform(["dog cat cat"]).toarray()[0], row / np.linalg.norm(row))


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"dtype": "float64", "min_df": 1, "ngram_range": (1, 3)},
        {"analyzer": "char_wb", "ngram_range": (2, 4), "max_features": 30, "lowercase": False},
        {"min_df": 0.2, "max_df": 0.9, "strip_accents": None, "sublinear_tf": False},
        {"min_df": 1, "stop_words": ["the", "on"]},
    ],
)
def test_saved_and_loaded_to_the_last_bit(tmp_path: Path, parameters: dict) -> None:
    vectorizer = TextVectorizer(**parameters)
    before = vectorizer.fit_transform(TEXTS)
    vectorizer.save(tmp_path / "vocabulary.json")
    loaded = TextVectorizer.load(tmp_path / "vocabulary.json")
    for after in (loaded.transform(TEXTS), vectorizer.transform(TEXTS)):
        assert after.dtype == before.dtype
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(after, part), getattr(before, part))
    assert loaded.terms_ == vectorizer.terms_
    new = ["an unseen dog sat", "\U0001f600"]
    assert (loaded.transform(new) != vectorizer.transform(new)).nnz == 0
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "vocabulary.json").read_bytes()


def test_the_document_is_plain_json(tmp_path: Path) -> None:
    TextVectorizer().fit(TEXTS).save(tmp_path / "v.json")
    document = json.loads((tmp_path / "v.json").read_text(encoding="utf-8"))
    assert document["format"] == 1
    assert "cafe" in document["terms"]
    assert len(document["idf"]) == len(document["terms"])
    assert [entry.name for entry in tmp_path.iterdir()] == ["v.json"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"analyzer": str.split},
        {"analyzer": "char"},
        {"ngram_range": (2, 1)},
        {"ngram_range": (1, 11)},
        {"ngram_range": (1, 2, 3)},
        {"min_df": 0},
        {"min_df": -0.1},
        {"max_df": True},
        {"max_df": float("nan")},
        {"max_features": 0},
        {"sublinear_tf": 1},
        {"numbers": 1},
        {"strip_accents": str.lower},
        {"stop_words": "german"},
        {"stop_words": [1]},
        {"stop_words": {"a", "b"}},
        {"dtype": "int32"},
    ],
)
def test_parameters_that_json_cannot_hold_are_refused(parameters: dict) -> None:
    (name,) = parameters
    with pytest.raises(DataError, match=f"^{name} is .*must be") as caught:
        TextVectorizer(**parameters).fit(TEXTS)
    assert ("functions cannot be saved" in str(caught.value)) == callable(parameters[name])


def test_texts_that_cannot_be_used() -> None:
    for texts, says in (
        ("one text", "a list of texts"),
        (["a", None], "text 1 is of type NoneType"),
        ([], "no texts"),
        (["a b", "c d"], "lower min_df"),
    ):
        with pytest.raises(DataError, match=says):
            TextVectorizer().fit(texts)
    with pytest.raises(NotFittedError):
        TextVectorizer().transform(["a"])
    with pytest.raises(NotFittedError):
        TextVectorizer().save("nowhere.json")


def test_it_is_a_scikit_learn_transformer() -> None:
    vectorizer = TextVectorizer(min_df=1, stop_words=["the"])
    assert clone(vectorizer).get_params() == vectorizer.get_params()
    assert vectorizer.fit(TEXTS) is vectorizer
    assert vectorizer.get_feature_names_out().tolist() == list(vectorizer.terms_)


def changed(document: dict, *path_and_value) -> dict:
    *path, key, value = path_and_value
    copy = json.loads(json.dumps(document))
    place = copy
    for step in path:
        place = place[step]
    if value is None:
        del place[key]
    else:
        place[key] = value
    return copy


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("kind", "other"), "another document"),
        (("format", 2), "reads format 1"),
        (("format", True), "reads format 1"),
        (("terms", None), "fields"),
        (("extra", 1), "fields"),
        (("parameters", "dtype", None), "parameters"),
        (("parameters", "token_pattern", "(a+)+$"), "parameters"),
        (("parameters", "dtype", "object"), "dtype is"),
        (("parameters", "analyzer", ["word"]), "analyzer is"),
        (("parameters", "ngram_range", [1, 10**9]), "ngram_range is"),
        (("terms", 0, 7), "terms"),
        (("terms", 0, ""), "terms"),
        (("terms", 0, "cat"), "terms"),
        (("terms", "cat"), "terms"),
        (("terms", []), "terms"),
        (("idf", 0, "1"), "idf"),
        (("idf", 0, -1.0), "idf"),
        (("idf", 0, 1e300), "idf"),
        (("idf", [1.0]), "idf"),
    ],
)
def test_hostile_documents_are_refused(tmp_path: Path, change: tuple, says: str) -> None:
    path = tmp_path / "v.json"
    TextVectorizer().fit(TEXTS).save(path)
    path.write_text(json.dumps(changed(json.loads(path.read_text(encoding="utf-8")), *change)), encoding="utf-8")
    with pytest.raises(DataError, match=says) as caught:
        TextVectorizer.load(path)
    assert caught.value.source == str(path)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[" * 200_000, b"\xff", b"null", b'{"kind": NaN}', b'{"kind": 1, "kind": 2}', b"\x80\x04."]
)
def test_files_that_are_no_document(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "v.json").write_bytes(content)
    with pytest.raises(DataError, match="not a saved text vectorizer"):
        TextVectorizer.load(tmp_path / "v.json")
    with pytest.raises(NotFoundError):
        TextVectorizer.load(tmp_path / "absent.json")


def test_a_text_set_becomes_a_data_set() -> None:
    dataset = TextDataset(
        texts=TEXTS,
        Y=sparse.csr_array(np.eye(5, 2, dtype=np.int8)),
        label_names=("a", "b"),
        row_ids=tuple("12345"),
        row_dates=np.array(["2020-01-01"] * 5, dtype="datetime64[D]"),
        source="here",
    )
    vectorizer = TextVectorizer(min_df=1)
    result = vectorise(dataset, vectorizer)
    assert result.feature_names == vectorizer.terms_
    assert (result.label_names, result.row_ids, result.source) == (("a", "b"), tuple("12345"), "here")
    assert result.Y is dataset.Y
    later = vectorise(TextDataset(texts=["cat zebra"], Y=dataset.Y[:1], label_names=("a", "b")), vectorizer)
    assert later.feature_names == result.feature_names
    assert vectorise(dataset).n_rows == 5


def test_of_equally_frequent_terms_the_first_in_the_alphabet_stay() -> None:
    """Also beside many ties, where an unstable sort keeps other ones on other processors."""
    words = [f"word{j:03}" for j in range(200)]
    texts = [" ".join(words), " ".join(reversed(words)), "word150 word190"]
    vectorizer = TextVectorizer(max_features=10, min_df=1).fit(texts)
    assert vectorizer.terms_ == (*words[:8], "word150", "word190")
    assert np.array_equal(vectorizer.transform(texts).toarray(), vectorizer.fit_transform(texts).toarray())


STRANGE = [
    "Crème brûlée, ÉTÉ; naïve façade x y zz", "ﬁne ① Ⅷ ǅ ß İstanbul", "a\u0301bc  \u00a0\t tabs\nlines", "", "a b c",
    "the bird and the flu of the bird", "it's well-known_words 123 4", "日本語 テキスト 中文",
    "😀😀 emoji 😀", "one", "\ud800 x\udfffyz", "Regulation 2009 32009R0123 h5n1 covid19 ²x 4th ٣٤ _12 1st-rate",
]  # fmt: skip


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"ngram_range": (1, 3)},
        {"ngram_range": (2, 3), "sublinear_tf": False},
        {"analyzer": "char_wb", "ngram_range": (2, 4)},
        {"analyzer": "char_wb", "ngram_range": (5, 5), "strip_accents": None},
        {"strip_accents": "ascii", "lowercase": False},
        {"strip_accents": None, "stop_words": "english"},
        {"stop_words": ["bird", "flu"]},
        {"numbers": True, "ngram_range": (1, 2)},
        {"dtype": "float64"},
    ],
)
def test_terms_and_rows_of_strange_texts_are_those_of_scikit_learn(parameters: dict) -> None:
    texts = [*make_news_corpus(100).texts, *STRANGE]
    ours = TextVectorizer(min_df=1, **parameters)
    X = ours.fit_transform(texts)
    theirs = {name: value for name, value in ours.get_params().items() if name not in ("max_features", "numbers")}
    if ours.analyzer == "word" and not ours.numbers:
        theirs["token_pattern"] = r"(?u)\b(?!\d)\w\w+\b"
    theirs["dtype"] = np.dtype(theirs["dtype"]).type
    reference = TfidfVectorizer(**theirs).fit(texts)
    assert ours.terms_ == tuple(reference.get_feature_names_out())
    expected = reference.transform(texts)
    expected.sort_indices()
    for found in (X, ours.transform(texts)):
        assert found.indices.dtype == found.indptr.dtype == np.int32  # of others, scikit-learn's solvers refuse some
        assert np.array_equal(found.indptr, expected.indptr)
        assert np.array_equal(found.indices, expected.indices)
        np.testing.assert_allclose(found.data, expected.data, rtol=1e-6 if found.dtype == np.float32 else 1e-14)
    assert (ours.transform(texts) != X).nnz == 0
    analyse = reference.build_analyzer()
    assert all(sorted(ours.build_analyzer()(text)) == sorted(analyse(text)) for text in texts)


def test_words_that_begin_with_a_digit_are_no_terms_unless_wanted() -> None:
    texts = ["Of 2009: h5n1, covid19, 32009R0123 and 4th", "2009"]
    assert TextVectorizer(min_df=1).fit(texts).terms_ == ("and", "covid19", "h5n1", "of")
    everything = ("2009", "32009r0123", "4th", "and", "covid19", "h5n1", "of")
    assert TextVectorizer(min_df=1, numbers=True).fit(texts).terms_ == everything
    assert TextVectorizer(min_df=1, ngram_range=(2, 2)).fit(texts).terms_ == ("covid19 and", "h5n1 covid19", "of h5n1")
    with pytest.raises(DataError, match="no vocabulary"):
        TextVectorizer(min_df=1).fit(["2009", "1 22"])


def test_a_document_that_does_not_speak_of_numbers_has_them() -> None:
    texts = ["law 32009r0123 of 2009", "law 2009"]
    vectorizer = TextVectorizer(min_df=1, numbers=True)
    X = vectorizer.fit_transform(texts)
    older = vectorizer.to_document()
    del older["parameters"]["numbers"]
    for reader in (TextVectorizer.from_document(older), TermRows.from_document(older)):
        found = reader.transform(texts)
        assert (found.data.tobytes(), found.indices.tobytes()) == (X.data.tobytes(), X.indices.tobytes())
    assert TextVectorizer.from_document(older).to_document() == vectorizer.to_document()
