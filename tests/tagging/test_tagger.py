"""Texts to label names: what comes out is what the classifier says about what the vectoriser made of them."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer

from streamlabel import StreamingLabelClassifier
from streamlabel.data.text import TextVectorizer
from streamlabel.errors import ConflictError, DataError, NotFoundError
from streamlabel.tagging.tagger import Tagger
from tagged_texts import tagged_texts

DATA = tagged_texts()


@pytest.fixture(scope="module")
def fitted() -> Tagger:
    return Tagger().fit(DATA.texts, DATA.tags)


def test_scores_are_those_of_scikit_learns_tfidf_and_the_classifier(fitted: Tagger) -> None:
    words = r"(?u)\b[^\W\d]\w+\b"  # none that begins with a digit
    theirs = TfidfVectorizer(sublinear_tf=True, strip_accents="unicode", min_df=2, token_pattern=words)
    X = theirs.fit_transform(DATA.texts)
    names = fitted.label_names_
    Y = np.array([[name in tags for name in names] for tags in DATA.tags]).astype(int)
    classifier = StreamingLabelClassifier().fit(X, Y, label_names=names)
    expected = classifier.decision_function(theirs.transform(DATA.unseen))
    for k, row in enumerate(fitted.suggest(DATA.unseen, k=len(names))):
        found = dict(row)
        assert list(found.values()) == sorted(found.values(), reverse=True)
        np.testing.assert_allclose([found[name] for name in names], expected[k], atol=1e-5)


def test_predict_gives_the_labels_above_their_threshold(fitted: Tagger) -> None:
    thresholds = dict(zip(fitted.label_names_, fitted.classifier_.thresholds_, strict=True))
    scores = fitted.suggest(DATA.unseen, k=len(thresholds))
    for predicted, row in zip(fitted.predict(DATA.unseen), scores, strict=True):
        assert set(predicted) == {name for name, score in row if score > thresholds[name]}


def test_many_texts_are_scored_as_few_are(fitted: Tagger, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fitted.suggest(DATA.unseen)
    monkeypatch.setattr("streamlabel.tagging.tagger.AT_ONCE", 7)
    assert fitted.suggest(DATA.unseen) == whole
    assert fitted.suggest(DATA.unseen[3]) == whole[3]
    assert fitted.suggest([]) == []
    assert fitted.predict([]) == []


def test_a_matrix_with_names_is_the_same_as_lists(fitted: Tagger) -> None:
    names = fitted.label_names_
    Y = np.array([[name in tags for name in names] for tags in DATA.tags]).astype(int)
    other = Tagger().fit(DATA.texts, Y, label_names=names)
    assert other.suggest(DATA.unseen[:5]) == fitted.suggest(DATA.unseen[:5])


def test_odd_texts(fitted: Tagger) -> None:
    intercepts = sorted(fitted.classifier_.intercept_, reverse=True)
    for text in ("", "   ", "zzyzx qwxv", "\x00\ud800", "日本語だけ"):
        assert [score for _, score in fitted.suggest(text, k=3)] == pytest.approx(intercepts[:3])
    once, often = dict(fitted.suggest("tennis", k=1000)), dict(fitted.suggest("tennis " * 300_000, k=1000))
    assert often == pytest.approx(once, abs=1e-6)
    assert len(fitted.suggest("tennis", k=10_000)) == len(fitted.label_names_)


@pytest.mark.parametrize("weird", [[None], [3], [b"text"], ["good", ["bad"]]])
def test_what_is_no_text_is_refused(fitted: Tagger, weird: list) -> None:
    for method in (fitted.suggest, fitted.predict):
        with pytest.raises(DataError, match="texts must be strings"):
            method(weird)


def test_wrong_questions_are_refused(fitted: Tagger) -> None:
    with pytest.raises(DataError, match="k is 0"):
        fitted.suggest("tennis", k=0)
    with pytest.raises(DataError, match="one text was given"):
        fitted.predict("tennis")
    with pytest.raises(NotFoundError, match="no label is called 'tenis'"):
        fitted.explain("tennis", "tenis")
    with pytest.raises(DataError, match="must be a string"):
        fitted.explain(3, "tennis")
    for call in (lambda t: t.suggest("x"), lambda t: t.learn("x", yes=["y"]), lambda t: t.label_names_):
        with pytest.raises(NotFittedError, match="call fit first"):
            call(Tagger())


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        (["a", "b", "c"], "labels of text 0: a str where a list"),
        ([["a"], ["b"], [3]], "labels of text 2: a label of type int"),
        ([["a"], None, []], "labels of text 1: a NoneType"),
        ([["a"], ["b"]], "2 lists of labels for 3 texts"),
        ([[], [], []], "no text has a label"),
        ([["a"], ["b\n"], []], "labels of text 1: .*control character"),
        (np.array([1, 0, 1]), "labels of text 0: a int64 where a list"),
        (np.zeros((2, 2)), "2 lists of labels for 3 texts"),
        (np.full((3, 2), 7), "label matrices hold 0 and 1 only"),
    ],
)
def test_labels_that_cannot_be_read(labels: object, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        Tagger().fit(["one", "two", "three"], labels)


def test_other_parameters_are_refused() -> None:
    texts, labels = ["one two", "two three", "three one"], [["a"], ["b"], ["a"]]
    for vectorizer in ("tf-idf", 3, TextVectorizer):
        with pytest.raises(DataError, match="vectorizer is"):
            Tagger(vectorizer).fit(texts, labels)
    with pytest.raises(DataError, match="give a StreamingLabelClassifier"):
        Tagger(classifier="ridge").fit(texts, labels)


def test_what_was_passed_in_is_left_alone() -> None:
    vectorizer, classifier = TextVectorizer(min_df=1), StreamingLabelClassifier(beta=1.0)
    tagger = Tagger(vectorizer, classifier)
    tagger.fit(["one two", "two three", "three one"], [["a"], ["b"], ["a"]])
    assert not hasattr(vectorizer, "terms_")
    assert not hasattr(classifier, "label_names_") or not classifier.__sklearn_is_fitted__()
    assert tagger.classifier_.beta_ == 1.0


def by_hand(tagger: Tagger, text: str, label: str) -> dict[str, float]:
    row = tagger.vectorizer_.transform([text]).toarray()[0]
    weights = tagger.classifier_.coef_[tagger.label_names_.index(label)]
    return {tagger.vectorizer_.terms_[j]: row[j] * weights[j] for j in np.flatnonzero(row)}


def test_an_explanation_is_weight_times_value_and_sums_to_the_score(fitted: Tagger) -> None:
    for text in DATA.unseen[:20]:
        for label in ("health", "tennis"):
            found = fitted.explain(text, label, n_words=1000)
            score = dict(fitted.suggest(text, k=1000))[label]
            words = dict((*found.words_for, *found.words_against))
            assert found.score == score
            assert found.intercept + sum(words.values()) == pytest.approx(score, abs=1e-12)
            assert found.others == pytest.approx(0.0, abs=1e-12)
            expected = {word: value for word, value in by_hand(fitted, text, label).items() if value}
            assert words == pytest.approx(expected)
            assert all(value > 0 for _, value in found.words_for)
            assert all(value < 0 for _, value in found.words_against)


def test_a_short_explanation_lists_the_strongest(fitted: Tagger) -> None:
    text = DATA.unseen[0]
    found = fitted.explain(text, "health", n_words=3)
    values = sorted(by_hand(fitted, text, "health").values())
    assert [value for _, value in found.words_for] == pytest.approx(values[:-4:-1])
    assert [value for _, value in found.words_against] == pytest.approx(values[:3])
    shown = sum(value for _, value in (*found.words_for, *found.words_against))
    assert found.intercept + shown + found.others == pytest.approx(found.score, abs=1e-12)
    assert found.probability == pytest.approx(
        fitted.classifier_.predict_proba(fitted.vectorizer_.transform([text]))[0, fitted.label_names_.index("health")]
    )


def test_an_explanation_without_words(fitted: Tagger) -> None:
    found = fitted.explain("zzyzx", "health")
    assert found.words_for == found.words_against == ()
    assert found.score == pytest.approx(found.intercept)
    assert "no word that the tagger knows" in found.note


def test_the_neighbours_say_what_they_score(fitted: Tagger) -> None:
    tagger = copy.copy(fitted)
    tagger.learn("hospitals", yes=DATA.rows["hospitals"])
    text = DATA.unseen[1]
    scores = dict(tagger.suggest(text, k=1000))
    found = tagger.explain(text, "hospitals", n_words=4)
    assert [(label, weight) for label, weight, _ in found.neighbours] == tagger.neighbours("hospitals", k=4)
    assert found.neighbours
    assert all(score == scores[label] for label, _, score in found.neighbours)


def test_a_label_with_a_typo_is_answered_with_the_one_that_was_meant(tmp_path: Path) -> None:
    texts = ["bird flu found on a farm", "flu vaccine tested", "farm prices fall", "prices rise again"]
    tagger = Tagger().fit(texts, [["health", "farming"], ["health"], ["farming", "economy"], ["economy"]])
    tagger.save(tmp_path / "model")
    with Tagger.open(tmp_path / "model", "a") as living:
        for ask in (
            lambda: tagger.neighbours("helth"),
            lambda: tagger.explain("a text", "helth"),
            lambda: tagger.relearn("helth", texts[:1]),
            lambda: living.store.rename("helth", "medicine"),
            lambda: living.store.retire("helth"),
        ):
            with pytest.raises(NotFoundError, match=r"no label is called 'helth'.*; did you mean 'health'\?"):
                ask()


def test_errors_of_a_tagger_speak_of_taggers(tmp_path: Path) -> None:
    tagger = Tagger().fit(["some words", "other words"], [["a"], ["b"]])
    tagger.save(tmp_path / "model")
    with pytest.raises(ConflictError) as taken:
        tagger.save(tmp_path / "model")
    with pytest.raises(NotFoundError) as missing:
        Tagger.open(tmp_path / "nothing")
    assert "ModelStore" not in f"{taken.value} {missing.value}"
