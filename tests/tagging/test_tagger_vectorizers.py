"""The ways from texts to rows: against scikit-learn, through plain data and back, and those that users bring."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer

from streamlabel import StreamingLabelClassifier
from streamlabel.data.text import TextVectorizer
from streamlabel.errors import DataError
from streamlabel.tagging.tagger import Tagger
from streamlabel.tagging.vectorizers import HashedTextVectorizer, VectorizerState, restore_vectorizer, vectorizer_state
from tagged_texts import tagged_texts

DATA = tagged_texts()
TEXTS, TAGS = DATA.texts[:150], DATA.tags[:150]
PLANE = np.random.default_rng(0).standard_normal((256, 12))


def embed(texts: list[str]) -> np.ndarray:
    """Letters, seen through a fixed random plane."""
    counts = np.array([np.bincount(np.frombuffer(text.encode(), np.uint8), minlength=256) for text in texts])
    return (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)) @ PLANE


@pytest.mark.parametrize("longest", [1, 2])
def test_hashing_is_that_of_scikit_learn(longest: int) -> None:
    counter = HashingVectorizer(
        n_features=512, ngram_range=(1, longest), norm=None, alternate_sign=False, strip_accents="unicode"
    )
    weigher = TfidfTransformer(sublinear_tf=True)
    ours = HashedTextVectorizer(n_columns=512, longest=longest, numbers=True)
    np.testing.assert_allclose(
        ours.fit_transform(TEXTS).toarray(), weigher.fit_transform(counter.transform(TEXTS)).toarray(), rtol=1e-12
    )
    unseen = weigher.transform(counter.transform(DATA.unseen))
    np.testing.assert_allclose(ours.transform(DATA.unseen).toarray(), unseen.toarray(), rtol=1e-12)


def test_hashing_leaves_numbers_out_unless_wanted() -> None:
    texts = ["law 32009r0123 of 2009", "h5n1 in 2009"]
    alone = HashedTextVectorizer().fit(texts)
    assert (alone.transform(texts) != alone.transform(["law of", "h5n1 in"])).nnz == 0
    both = HashedTextVectorizer(numbers=True).fit(texts)
    assert np.diff(both.transform(texts).indptr).tolist() == [4, 3]
    older = both.to_document()
    del older["parameters"]["numbers"]
    assert HashedTextVectorizer.from_document(older).to_document() == both.to_document()
    with pytest.raises(DataError, match=r"^numbers is 1; it must be"):
        HashedTextVectorizer(numbers=1).fit(texts)


def test_the_words_behind_hashed_columns() -> None:
    vectorizer = HashedTextVectorizer(n_columns=16).fit(TEXTS)
    text = "storm, flood and drought; storm and rain, hail and snow, wind and thunder"
    columns = vectorizer.transform([text]).indices
    assert len(columns) < 9  # some share a column
    groups = vectorizer.words_at(text, columns)
    assert sorted(word for group in groups for word in group.split(" / ")) == sorted(
        ["storm", "flood", "and", "drought", "rain", "hail", "snow", "wind", "thunder"]
    )
    for column, group in zip(columns, groups, strict=True):
        for word in group.split(" / "):
            assert vectorizer.transform([word]).indices.tolist() == [column]


@pytest.mark.parametrize("vectorizer", [TextVectorizer(), TextVectorizer(ngram_range=(1, 2)), HashedTextVectorizer()])
def test_plain_data_gives_the_same_bits_back(vectorizer: TextVectorizer | HashedTextVectorizer) -> None:
    vectorizer.fit(TEXTS)
    state = vectorizer_state(vectorizer)
    assert all(array.dtype.kind in "fiu" for array in state.arrays.values())
    again = restore_vectorizer(VectorizerState(json.loads(json.dumps(state.content)), state.arrays))
    before, after = vectorizer.transform(DATA.unseen), again.transform(DATA.unseen)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(before, part), getattr(after, part))


@pytest.mark.parametrize(
    ("content", "arrays"),
    [
        ({"n_columns": 4}, {}),
        ({"kind": "x"}, {"idf": np.ones(4)}),
        ([], {"idf": np.ones(4)}),
        ({"kind": "streamlabel hashed text vectorizer", "format": 1, "parameters": {}}, {"idf": np.ones(4)}),
        ({"parameters": {"n_columns": 2**40, "longest": 1}}, {"idf": np.ones(4)}),
        ({"parameters": {"n_columns": 5, "longest": 1}}, {"idf": np.ones(4)}),
        ({"parameters": {"n_columns": 4, "longest": 1}}, {"idf": np.array([1.0, 1.0, np.nan, 1.0])}),
        ({"terms": ["a"], "parameters": {}}, {"idf": np.ones(1)}),
    ],
)
def test_damaged_states_are_refused(content: object, arrays: dict) -> None:
    if isinstance(content, dict) and "kind" not in content:
        content = {"kind": "streamlabel hashed text vectorizer", "format": 1, **content}
    with pytest.raises(DataError):
        restore_vectorizer(VectorizerState(content, arrays))


def test_hashing_explains_with_words_that_sum_to_the_score() -> None:
    tagger = Tagger("hashing").fit(TEXTS, TAGS)
    for text in DATA.unseen[:10]:
        found = tagger.explain(text, "health", n_words=1000)
        words = (*found.words_for, *found.words_against)
        assert found.score == pytest.approx(found.intercept + sum(value for _, value in words), abs=1e-12)
        assert all(word in text.lower() for group, _ in words for word in group.split(" / "))
        assert not found.note


def test_a_function_gives_neighbours_only_and_says_so() -> None:
    tagger = Tagger(embed).fit(TEXTS, TAGS)
    before = tagger.suggest(DATA.unseen, k=1000)
    tagger.learn("hospitals", yes=[i for i in DATA.rows["hospitals"] if i < 150] or [0], no=["Another text altogether"])
    after = [[pair for pair in row if pair[0] != "hospitals"] for row in tagger.suggest(DATA.unseen, k=1000)]
    assert after == before
    found = tagger.explain(DATA.unseen[0], "hospitals")
    assert found.words_for == found.words_against == ()
    assert found.note == "the vectoriser has no words for its columns; only the neighbours can be told"
    assert found.intercept + found.others == pytest.approx(found.score, abs=1e-12)


def test_a_function_gives_the_same_as_its_rows() -> None:
    tagger = Tagger(embed).fit(TEXTS, TAGS)
    Y = np.array([[name in tags for name in tagger.label_names_] for tags in TAGS]).astype(int)
    classifier = StreamingLabelClassifier().fit(embed(TEXTS), Y)
    scores = classifier.decision_function(embed(DATA.unseen[:1]))[0]
    found = dict(tagger.suggest(DATA.unseen[0], k=1000))
    np.testing.assert_array_equal([found[name] for name in tagger.label_names_], scores)


def test_a_vectoriser_of_scikit_learn_is_used_as_it_is() -> None:
    theirs = TfidfVectorizer(stop_words="english", max_features=300)
    tagger = Tagger(theirs).fit(TEXTS, TAGS)
    assert not hasattr(theirs, "vocabulary_")
    X = theirs.fit_transform(TEXTS)
    np.testing.assert_allclose(tagger.vectorizer_.transform(TEXTS).toarray(), X.toarray(), rtol=1e-12)
    assert {word for word, _ in tagger.explain(TEXTS[0], "health").words_for} <= set(theirs.get_feature_names_out())
    fitted = Tagger(theirs.transform).fit(TEXTS, TAGS)
    assert dict(fitted.suggest(DATA.unseen[0])) == pytest.approx(dict(tagger.suggest(DATA.unseen[0])), abs=1e-9)


def test_one_that_was_brought_along_must_be_brought_again() -> None:
    for vectorizer, name in ((TfidfVectorizer(), "TfidfVectorizer"), (embed, "embed")):
        tagger = Tagger(vectorizer).fit(TEXTS, TAGS)
        state = tagger.vectorizer_state()
        assert not state.arrays
        for missing in (None, "tfidf"):
            with pytest.raises(DataError, match=rf"own \({name}\), which is not stored; pass it again, fitted"):
                Tagger.from_parts(state, tagger.classifier_, brought=missing)
        brought = embed if vectorizer is embed else tagger.vectorizer_
        again = Tagger.from_parts(state, tagger.classifier_, brought=brought)
        assert again.suggest(DATA.unseen[:3]) == tagger.suggest(DATA.unseen[:3])


def test_a_tagger_of_its_parts_is_the_same_tagger() -> None:
    tagger = Tagger().fit(TEXTS, TAGS)
    state = tagger.vectorizer_state()
    again = Tagger.from_parts(state, tagger.classifier_, digests=tagger.text_digests_)
    assert again.suggest(DATA.unseen[:5]) == tagger.suggest(DATA.unseen[:5])
    again.learn("x", yes=TEXTS[:2])
    assert again.classifier_.reports_[-1].n_rows == 2 + (len(TEXTS) - 2) // 2
    with pytest.raises(DataError, match="do not pass another one"):
        Tagger.from_parts(state, tagger.classifier_, brought=embed)
    with pytest.raises(DataError, match="do not belong together"):
        Tagger.from_parts(state, tagger.classifier_, digests=tagger.text_digests_[:3])
    with pytest.raises(DataError, match="do not belong together"):
        Tagger.from_parts(TextVectorizer().fit(TEXTS[:50]), tagger.classifier_)
    with pytest.raises(DataError, match="not fitted"):
        Tagger.from_parts(state, StreamingLabelClassifier())


@pytest.mark.parametrize("rows", [lambda texts: np.zeros(3), lambda texts: sparse.csr_array((1, 4))])
def test_a_function_that_makes_no_row_a_text_is_refused(rows: object) -> None:
    with pytest.raises(DataError, match="it must give one row a text"):
        Tagger(rows).fit(TEXTS, TAGS)


def test_parameters_of_hashing_are_checked() -> None:
    for parameters in ({"n_columns": 1}, {"n_columns": 2.0}, {"n_columns": 2**40}, {"longest": 0}, {"longest": True}):
        with pytest.raises(DataError, match=next(iter(parameters))):
            HashedTextVectorizer(**parameters).fit(TEXTS)
    with pytest.raises(DataError, match="no texts"):
        HashedTextVectorizer().fit([])
    with pytest.raises(NotFittedError):
        HashedTextVectorizer().transform(TEXTS)
