"""ONNX graphs, run by onnxruntime."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest

from streamlabel.data.text import TextVectorizer
from streamlabel.errors import DataError
from streamlabel.exchange import onnx_export
from streamlabel.exchange.export import export
from streamlabel.tagging.tagger import Tagger

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is a development tool")


def run(path, **inputs):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs), strict=True))


def fold(text):
    """What a caller does to a text before the graph sees it."""
    return "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))


def test_features_to_names(classifier, rows, tmp_path):
    path = export(classifier, tmp_path / "model.onnx", k=3)
    onnx.checker.check_model(onnx.load(path), full_check=True)
    found = run(path, features=rows.astype(np.float32))
    columns, scores = classifier.predict_top_k(rows, 3)
    assert found["label_names"].tolist() == np.array(classifier.label_names_, dtype=object)[columns].tolist()
    np.testing.assert_allclose(found["label_scores"], scores, atol=1e-5)
    np.testing.assert_allclose(found["scores"], classifier.decision_function(rows), atol=1e-5)
    clear = np.abs(classifier.decision_function(rows) - classifier.thresholds_) > 1e-5
    np.testing.assert_array_equal(found["decisions"][clear], classifier.predict(rows)[clear] > 0)


def test_more_names_than_labels_are_all_labels(classifier, rows, tmp_path):
    found = run(export(classifier, tmp_path / "model.onnx", k=100), features=rows.astype(np.float32))
    assert found["label_names"].shape == (60, len(classifier.label_names_))


def test_large_weights_go_into_a_file_beside(classifier, rows, tmp_path, monkeypatch):
    inside = run(export(classifier, tmp_path / "inside.onnx"), features=rows.astype(np.float32))
    monkeypatch.setattr(onnx_export, "MOST_INSIDE", 0)
    path = export(classifier, tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx.data").stat().st_size == 4 * classifier.coef_.size
    np.testing.assert_array_equal(run(path, features=rows.astype(np.float32))["scores"], inside["scores"])


def test_texts_to_names(tagger, news, tmp_path):
    texts = [*news.texts[300:], "", "a b c", "PRICES rise, prices: FALL!"]
    found = run(export(tagger, tmp_path / "tagger.onnx", k=3), texts=np.array(texts, dtype=object))
    ours = tagger.classifier_.decision_function(tagger.vectorizer_.transform(texts))
    np.testing.assert_allclose(found["scores"], ours, atol=1e-5)
    for names, best in zip(found["label_names"].tolist(), tagger.suggest(texts, 3), strict=True):
        if np.diff([score for _, score in best]).max() < -1e-5:
            assert names == [name for name, _ in best]


@pytest.mark.parametrize(
    "options",
    [
        {"ngram_range": (1, 3), "numbers": True},
        {"ngram_range": (2, 2), "sublinear_tf": False, "numbers": True},
        {"numbers": False},
        {"stop_words": "english"},
        {"lowercase": False, "strip_accents": None},
    ],
)
def test_the_options_of_the_vectoriser(news, tmp_path, options):
    tagger = Tagger(TextVectorizer(min_df=1, **options)).fit(news.texts[:60], news.Y[:60], label_names=news.label_names)
    texts = [fold(text) for text in news.texts[60:100]]
    found = run(export(tagger, tmp_path / "tagger.onnx"), texts=np.array(texts, dtype=object))
    ours = tagger.classifier_.decision_function(tagger.vectorizer_.transform(texts))
    np.testing.assert_allclose(found["scores"], ours, atol=1e-5)


def test_folded_texts_of_any_script_agree(tmp_path):
    texts = ["L'ÉTÉ à Ångström", "Straße und Übermut", "日本語 テキスト", "кошка и СОБАКА ½ ²³", "Ⅷ x_y 1_000 naïve"]
    tagger = Tagger().fit(texts, [["a"], ["b"], ["a", "c"], ["c"], ["b"]])
    folded = np.array([fold(text) for text in texts], dtype=object)
    found = run(export(tagger, tmp_path / "tagger.onnx"), texts=folded)
    expected = np.vstack([scores for _, scores, _ in tagger._scores(texts)])
    np.testing.assert_allclose(found["scores"], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("vectorizer", "problem"),
    [
        ("hashing", "HashedTextVectorizer has no form in ONNX"),
        (TextVectorizer(min_df=1, analyzer="char_wb"), "not 'char_wb'"),
        (TextVectorizer(min_df=1, ngram_range=(1, 2), stop_words="english"), "stop words"),
        (TextVectorizer(min_df=1, ngram_range=(1, 2)), "numbers=True keeps them"),
    ],
)
def test_what_onnx_cannot_say_is_refused(news, tmp_path, vectorizer, problem):
    tagger = Tagger(vectorizer).fit(news.texts[:30], news.Y[:30], label_names=news.label_names)
    with pytest.raises(DataError, match=problem):
        export(tagger, tmp_path / "tagger.onnx")
    assert not list(tmp_path.iterdir())


def test_k_is_checked(classifier, tmp_path):
    with pytest.raises(DataError, match="k is 0"):
        export(classifier, tmp_path / "model.onnx", k=0)
