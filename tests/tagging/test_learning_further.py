"""More answers, questions and names: what was answered stays answered, questions are new, names are read or refused."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from streamlabel.errors import ConflictError, DataError, NotFoundError
from streamlabel.tagging.questions import ALIKE, TOP, UNSURE, choose_questions
from streamlabel.tagging.tagger import Tagger
from streamlabel.tagging.text_answers import digest
from tagged_texts import NEW, tagged_texts

DATA = tagged_texts()
ALL = 1000
YES, NO = DATA.rows["football"], [i for i in range(60) if i not in DATA.rows["football"]]


@pytest.fixture(scope="module")
def fitted() -> Tagger:
    return Tagger().fit(DATA.texts, DATA.tags)


@pytest.fixture
def tagger(fitted: Tagger) -> Tagger:
    return copy.copy(fitted)


def scores(tagger: Tagger, name: str) -> list[float]:
    return [dict(row)[name] for row in tagger.suggest(DATA.unseen, k=ALL)]


def test_answers_one_after_the_other_are_those_at_once(tagger: Tagger) -> None:
    """Also where the first were given as texts, and one was corrected."""
    other = copy.copy(tagger)
    tagger.learn("football", yes=[DATA.texts[i] for i in YES[:3]], no=[YES[3]])
    report = tagger.learn_more("football", yes=YES[3:6], no=NO[:4])
    expected = other.learn("football", yes=YES[:6], no=NO[:4])
    assert (report.n_yes, report.n_no) == (expected.n_yes, expected.n_no) == (6, 4)
    assert report.n_background == expected.n_background
    assert report.threshold == pytest.approx(expected.threshold, abs=1e-9)
    np.testing.assert_allclose(scores(tagger, "football"), scores(other, "football"), atol=1e-9)


def test_what_was_answered_before_does_not_stand_for_no(tagger: Tagger) -> None:
    """In the pool of fit, and in one that is given."""
    tagger.learn("football", yes=YES[:6])
    assert tagger.learn_more("football", no=NO[:1]).fires[1] == -(-(len(DATA.texts) - 7) // 2)
    tagger.learn("railways", yes=[DATA.unseen[0]], pool=DATA.unseen)
    report = tagger.learn_more("railways", yes=[DATA.unseen[1]], pool=DATA.unseen)
    assert (report.n_background, report.fires[1]) == (149, 149)


def test_only_answers_to_questions_tell_how_often_a_label_applies(tagger: Tagger) -> None:
    """The same answers: as examples that were found they say nothing about it, as answers they say it is rare."""
    no = [text for text, is_so in zip(DATA.unseen, DATA.truth["football"], strict=True) if not is_so]
    tagger.learn("football", yes=YES[:5])
    before = tagger.estimate("football")
    most = [question.text for question in tagger.next("football", no, 20)]
    found, asked = copy.copy(tagger), copy.copy(tagger)
    found.learn_more("football", no=most)
    report = asked.learn_more("football", no=most, asked=True)
    assert (before.n_asked, found.estimate("football").n_asked, report.estimate.n_asked) == (0, 0, 20)
    assert report.estimate == asked.estimate("football")
    assert report.estimate.rate[0] < 0.7 * found.estimate("football").rate[0]
    asked.learn_more("football", yes=YES[5:6])
    assert asked.estimate("football").n_asked == 20


def test_one_answer_is_one_question_answered(tagger: Tagger) -> None:
    other = copy.copy(tagger)
    for one in (tagger, other):
        one.learn("football", yes=YES[:3])
    report = tagger.answer("football", DATA.unseen[0], yes=False)
    expected = other.learn_more("football", no=[DATA.unseen[0]], asked=True)
    assert (report.n_yes, report.n_no, report.estimate) == (3, 1, expected.estimate)
    assert scores(tagger, "football") == scores(other, "football")
    assert tagger.answer("football", DATA.unseen[0], yes=True).n_yes == 4


def test_more_answers_are_for_labels_that_arrived(tagger: Tagger) -> None:
    with pytest.raises(ConflictError, match="was learned by fit"):
        tagger.learn_more("tennis", yes=[1])
    with pytest.raises(NotFoundError):
        tagger.answer("football", "a text", yes=True)
    tagger.learn("football", yes=YES[:3])
    before = tagger.suggest(DATA.unseen[:5], k=ALL)
    new = DATA.unseen[0]
    with pytest.raises(DataError, match="no text that is not answered"):
        tagger.learn_more("football", yes=[new], pool=[new, DATA.texts[YES[0]]])
    with pytest.raises(DataError, match="a pool of 1 rows is too small"):
        tagger.learn_more("football", yes=[new], pool=[new, DATA.unseen[1]])
    with pytest.raises(DataError, match="no yes text of 'football' has a word that the tagger knows"):
        tagger.relearn("football", yes=["zzzqqq"])
    assert tagger.suggest(DATA.unseen[:5], k=ALL) == before
    assert tagger.learn_more("football", yes=["zzzqqq"]).n_yes == 4


def test_questions_are_new_different_and_as_many_as_there_are(tagger: Tagger) -> None:
    tagger.learn("football", yes=[*YES[:3], DATA.unseen[0]], no=[DATA.unseen[1]])
    pool = [*DATA.unseen[:30], DATA.unseen[2], DATA.texts[YES[0]], DATA.unseen[3] + " " + DATA.unseen[3]]
    questions = tagger.next("football", pool, 100)
    texts = [question.text for question in questions]
    assert len(set(texts)) == len(texts)
    assert not {DATA.unseen[0], DATA.unseen[1], DATA.texts[YES[0]]} & set(texts)
    rows = tagger.vectorizer_.transform(texts).toarray()
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.triu(rows @ rows.T, 1).max() < ALIKE
    assert 20 < len(texts) < 29
    assert [question.text for question in tagger.next("football", pool, 4)] == texts[:4]
    for question in questions:
        assert question.score == pytest.approx(dict(tagger.suggest(question.text, ALL))["football"])
        row = tagger.vectorizer_.transform([question.text])
        assert question.probability == pytest.approx(tagger.classifier_.predict_proba(row)[0, -1])
    assert tagger.next("football", [DATA.unseen[0]], 5) == []
    assert tagger.next("football", [], 5) == []


def test_a_label_without_yes_is_first_asked_where_it_seems_to_apply() -> None:
    values = np.array([0.1, 0.9, 0.5, 0.3, 0.7, 0.45])
    chosen = choose_questions(np.eye(6), values, 0.4, 0, 6)
    assert [at for at, _ in chosen] == [1, 5, 2, 3, 4, 0]
    assert [why for _, why in chosen] == [TOP, *[UNSURE] * 4, TOP]
    assert [at for at, _ in choose_questions(np.eye(6), values, 0.4, 5, 5)] == [5, 2, 3, 4, 1]
    assert [why for _, why in choose_questions(np.eye(6), values, 0.4, 5, 3, n_asked=4)] == [TOP, UNSURE, UNSURE]
    assert sorted(at for at, _ in choose_questions(np.eye(6), values, 0.4, 5, 60)) == list(range(6))


def test_a_tagger_in_memory_is_a_copy_that_learns_apart(tagger: Tagger) -> None:
    tagger.learn("football", yes=YES[:3])
    apart = tagger.in_memory()
    apart.learn_more("football", yes=YES[3:5])
    apart.learn("railways", yes=DATA.rows["railways"][:2])
    assert tagger.learn_more("football", no=NO[:1]).n_yes == 3
    assert "railways" not in tagger.label_names_
    assert apart.learn_more("football", no=NO[:1]).n_yes == 5


def test_names_that_say_something_are_enough(fitted: Tagger) -> None:
    """Labels of fit are taken out, and learned again by a description alone, beside those that are left."""
    out = ("health", "farming")
    tags = [[tag for tag in row if tag not in out] for row in DATA.tags]
    tagger = Tagger().fit(DATA.texts, tags)
    for name, about in (("health", "patients children hospital"), ("farming", "farmers cattle farms")):
        report = tagger.learn(name, about=about)
        assert (report.n_yes, report.n_no) == (0, 0)
        assert report.name_gain > 1
        truth = [name in row for row in DATA.tags]
        rows = [dict(row)[name] for row in tagger.suggest(DATA.texts, k=ALL)]
        assert roc_auc_score(truth, rows) > 0.6
    assert tagger.learn_more("health", yes=[0]).n_yes == 1


def test_a_name_alone_is_refused_where_it_says_nothing(tagger: Tagger) -> None:
    before = tagger.suggest(DATA.unseen[:5], k=ALL)
    with pytest.raises(DataError, match="no word of its name is known here"):
        tagger.learn("qwertz")
    codes = {name: f"L{number:04}" for number, name in enumerate(sorted({tag for row in DATA.tags for tag in row}))}
    tags = [[codes[tag] for tag in row] for row in DATA.tags]
    coded = Tagger().fit([f"{text} L0{i % 50:03}" for i, text in enumerate(DATA.texts)], tags)
    for about in ("", "L0007 hospital"):
        with pytest.raises(DataError, match="names say nothing about these rows"):
            coded.learn("L0049 new", about=about)
    assert coded.learn("L0049 new", yes=YES[:2]).name_gain == 0.0
    silent = Tagger(names=None).fit(DATA.texts, DATA.tags)
    with pytest.raises(DataError, match="its name is not used"):
        silent.learn("match")
    assert tagger.suggest(DATA.unseen[:5], k=ALL) == before


def test_labels_of_few_yes_do_not_speak_for_others(tagger: Tagger) -> None:
    tagger.learn("footballers", yes=YES[:9])
    tagger.learn("football", yes=YES)
    assert "footballers" not in dict(tagger.neighbours("football", ALL))
    tagger.relearn("footballers", yes=YES[:10])
    tagger.relearn("football", yes=YES)
    assert "footballers" in dict(tagger.neighbours("football", ALL))


def test_a_batch_is_learned_beside_the_same_labels_as_each_alone(tagger: Tagger) -> None:
    other = copy.copy(tagger)
    pool = DATA.unseen[:200]
    tagger.learn_many({name: ([DATA.texts[i] for i in DATA.rows[name][:3]], []) for name in NEW}, pool=pool)
    for name in NEW:
        alone = copy.copy(other)
        alone.learn(name, yes=DATA.rows[name][:3], pool=pool)
        assert scores(alone, name) == pytest.approx(scores(tagger, name), abs=1e-12)


@pytest.mark.parametrize("stored", [False, True])
def test_a_withdrawn_answer_leaves_nothing_behind(tagger: Tagger, stored: bool, tmp_path: Path) -> None:
    """The label is, to the last bit, what the answers that are left make of it; so it is after more of them."""
    other = copy.copy(tagger)
    if stored:
        for name, one in (("one", tagger), ("other", other)):
            one.save(tmp_path / name)
        tagger, other = (Tagger.open(tmp_path / name, "a") for name in ("one", "other"))
    unseen = DATA.unseen
    tagger.learn("football", yes=[*YES[:5], unseen[0]], no=[*NO[:5], unseen[1]])
    before = tagger.suggest(unseen[3], k=ALL)
    gone = [DATA.texts[YES[1]], digest(DATA.texts[NO[2]]), unseen[0]]
    report = tagger.learn_more("football", withdrawn=gone)
    expected = other.learn("football", yes=[YES[0], *YES[2:5]], no=[*(i for i in NO[:5] if i != NO[2]), unseen[1]])
    assert (report.n_yes, report.n_no) == (expected.n_yes, expected.n_no) == (4, 5)
    assert scores(tagger, "football") == scores(other, "football")
    assert tagger.estimate("football") == other.estimate("football")
    for one in (tagger, other):
        one.learn_more("football", yes=[unseen[0]], no=NO[5:7])
    assert scores(tagger, "football") == scores(other, "football")
    kept = {name: score for name, score in tagger.suggest(unseen[3], k=ALL) if name != "football"}
    assert kept == {name: score for name, score in before if name != "football"}
    if stored:
        tagger.close()
        again = Tagger.open(tmp_path / "one")
        assert len(again.examples("football").answers) == 12
        assert scores(again, "football") == scores(other, "football")
        other.close()


def test_what_was_not_answered_cannot_be_withdrawn(tagger: Tagger) -> None:
    tagger.learn("football", yes=YES[:5])
    with pytest.raises(DataError, match="a text that is withdrawn has no answer"):
        tagger.learn_more("football", withdrawn=["nobody was asked about this"])
    assert len(tagger.examples("football").answers) == 5
