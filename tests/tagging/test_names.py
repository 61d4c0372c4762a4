"""Names of labels: what reads them, what it says about texts, and that a stored tagger keeps its reader."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from streamlabel.data.text import TextVectorizer
from streamlabel.errors import DataError, MissingExtraError
from streamlabel.tagging.names import StaticEncoder, TextDirections, spelled
from streamlabel.tagging.tagger import Tagger
from tagged_texts import tagged_texts

DATA = tagged_texts()
TEXTS, TAGS = DATA.texts[:300], DATA.tags[:300]


class Letters:
    """Vectors that count letters."""

    version = "letters 1"

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.array([[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])


def test_marks_and_capitals_part_the_words_of_a_name():
    assert spelled("bird_flu-H5N1") == "bird flu H5N1"
    assert spelled("#BirdFlu/poultry") == "Bird Flu poultry"


def test_the_facet_of_a_name_is_not_read():
    assert spelled("works-with::image:raster in C++ std::vector") == "image raster in C++ std vector"
    assert spelled("use::") == "use"


def test_the_directions_of_a_name_by_hand():
    vectorizer = TextVectorizer(min_df=1).fit(["abc cab xyz", "abc uvw"])
    reader = TextDirections(vectorizer, Letters())
    assert vectorizer.terms_ == ("abc", "cab", "uvw", "xyz")
    words, likeness = reader(["cab", "nothing", ""])[:, :, [0, 2]].transpose(0, 2, 1)
    np.testing.assert_allclose(words, [[0, 1, 0, 0], [0, 0, 0, 0]])
    # unit vectors e(abc) = e(cab), e(uvw), e(xyz), at right angles; less their mean, half and two quarters:
    # cosine of abc with cab is 1, with the others negative
    np.testing.assert_allclose(likeness, [[1, 1, 0, 0], [0, 0, 0, 0]], atol=1e-6)
    assert TextDirections(vectorizer)(["cab"]).shape == (1, 4, 1)
    assert (reader.version, TextDirections(vectorizer).version) == ("words, letters 1", "words")


@pytest.mark.parametrize("names", ["word", 7, object(), Letters.encode])
def test_what_cannot_read_names_is_refused_before_anything_is_learned(names):
    with pytest.raises(DataError, match=r'^names is .*; it must be "words", "static"'):
        Tagger(names=names).fit(TEXTS, TAGS)


def test_an_encoder_needs_a_vocabulary_and_one_finite_vector_a_text():
    with pytest.raises(DataError, match="needs a vectoriser with a vocabulary"):
        Tagger("hashing", names=Letters()).fit(TEXTS, TAGS)
    wrong = Letters()
    wrong.encode = lambda texts: np.ones(len(texts))
    with pytest.raises(DataError, match="gave shape"):
        Tagger(names=wrong).fit(TEXTS, TAGS).learn("football")


def test_a_stored_tagger_goes_on_with_the_reader_that_it_had(tmp_path):
    for place, names in (("words", "words"), ("none", None)):
        Tagger(names=names).fit(TEXTS, TAGS).save(tmp_path / place)
        with Tagger.open(tmp_path / place, "a") as tagger:
            assert tagger.names == names
    with pytest.raises(DataError, match="names were not read when this tagger was saved"):
        Tagger.open(tmp_path / "none", "a", names="words")
    Tagger(names=Letters()).fit(TEXTS, TAGS).save(tmp_path / "own")
    assert Tagger.open(tmp_path / "own").suggest(TEXTS[0])
    with pytest.raises(DataError, match="read by 'words, letters 1' when this tagger was saved; open it with the same"):
        Tagger.open(tmp_path / "own", "a")
    with pytest.raises(DataError, match="open it with the same"):
        Tagger.open(tmp_path / "own").save(tmp_path / "copy")
    with Tagger.open(tmp_path / "own", "a", names=Letters()) as tagger:
        assert tagger.learn("football", yes=DATA.rows["football"][:2]).n_yes == 2


def test_static_vectors_are_means_of_the_table():
    pytest.importorskip("wordllama")
    encoder = StaticEncoder()
    assert encoder.version.startswith("wordllama 0.")
    vectors = encoder.encode(["poultry", "chickens", "interest rate", "interest", "rate", ""])
    assert vectors.shape == (6, 256)
    np.testing.assert_allclose(vectors[2], 0.5 * (vectors[3] + vectors[4]), rtol=1e-5)
    assert not vectors[5].any()
    likeness = vectors[:3] @ vectors[0] / np.linalg.norm(vectors[:3], axis=1)
    assert likeness[1] > 2 * likeness[2]


def test_static_reads_names_that_share_no_word_with_the_texts(tmp_path):
    pytest.importorskip("wordllama")
    tagger = Tagger(names="static").fit(TEXTS, TAGS)
    tagger.learn("soccer")
    scores = np.array([dict(row)["soccer"] for row in tagger.suggest(DATA.unseen, k=1000)])
    assert scores[DATA.truth["football"]].mean() > scores[~DATA.truth["football"]].mean() + scores.std()
    tagger.save(tmp_path / "model")
    with Tagger.open(tmp_path / "model", "a") as again:
        assert again.names == "static"
        assert again.learn("train lines").n_yes == 0


def test_without_the_package_a_model_is_read_and_learning_says_what_is_missing(tmp_path, monkeypatch):
    tagger = Tagger().fit(TEXTS, TAGS)
    monkeypatch.setattr(tagger, "_reader_version", lambda: "words, wordllama 0.4.0")
    tagger.save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "wordllama", None)
    assert Tagger.open(tmp_path / "model").suggest(TEXTS[0]) == Tagger.open(tmp_path / "model", "a").suggest(TEXTS[0])
    with (
        Tagger.open(tmp_path / "model", "a") as again,
        pytest.raises(MissingExtraError, match=r"needs the package wordllama: .*pip install -e '\.\[names\]'"),
    ):
        again.learn("football", yes=DATA.rows["football"][:2])
    with pytest.raises(MissingExtraError):
        Tagger(names="static").fit(TEXTS, TAGS)
