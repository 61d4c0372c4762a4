"""New labels: the old ones do not move, positives alone do not fire everywhere, wrong answers change nothing."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from streamlabel.errors import ConflictError, DataError
from streamlabel.streaming.found import Pool
from streamlabel.tagging.tagger import Tagger
from tagged_texts import NEW, tagged_texts

DATA = tagged_texts()
ALL = 1000


@pytest.fixture(scope="module")
def fitted() -> Tagger:
    return Tagger().fit(DATA.texts, DATA.tags)


@pytest.fixture
def tagger(fitted: Tagger) -> Tagger:
    return copy.copy(fitted)


def without(rows: list, names: tuple[str, ...]) -> list:
    return [[pair for pair in row if pair[0] not in names] for row in rows]


def test_old_suggestions_are_bit_identical_after_every_kind_of_learning(tagger: Tagger) -> None:
    before = tagger.suggest(DATA.unseen, k=ALL)
    tagger.learn("football", yes=DATA.rows["football"][:3])
    tagger.learn("hospitals", yes=["A new hospital ward opens", *DATA.rows["hospitals"][:2]], no=["Nothing", 3, 4, 5])
    tagger.learn_many({"railways": (DATA.rows["railways"], []), "vaccination": (DATA.rows["vaccination"], [])})
    assert tagger.label_names_[-4:] == ("football", "hospitals", "railways", "vaccination")
    assert without(tagger.suggest(DATA.unseen, k=ALL), NEW) == before
    tagger.relearn("hospitals", yes=DATA.rows["hospitals"])
    tagger.learn_more("football", yes=["The football match"], no=["Nothing"], pool=DATA.unseen)
    tagger.answer("railways", DATA.unseen[0], yes=False)
    assert without(tagger.suggest(DATA.unseen, k=ALL), NEW) == before


@pytest.mark.parametrize(
    ("n_yes", "n_no", "as_texts"), [(1, 0, False), (3, 0, True), (10, 0, False), (1, 1, False), (3, 6, False)]
)
def test_found_examples_do_not_fire_everywhere(tagger: Tagger, n_yes: int, n_no: int, as_texts: bool) -> None:
    """Taken at their word, one yes and one no fire on every text."""
    quality, often = [], []
    for name in NEW:
        rows, others = DATA.rows[name][:n_yes], [i for i in range(50) if i not in DATA.rows[name]][:n_no]
        report = tagger.learn(name, yes=[DATA.texts[i] + " Indeed." for i in rows] if as_texts else rows, no=others)
        n_left = len(DATA.texts) - (0 if as_texts else len(rows) + n_no)
        assert (report.n_yes, report.n_no, report.n_background) == (len(rows), n_no, n_left // 2)
        assert (report.pool, report.fires[1]) == ("fit", n_left - n_left // 2)
        often.append(np.mean([name in labels for labels in tagger.predict(DATA.unseen)]))
        scores = [dict(row)[name] for row in tagger.suggest(DATA.unseen, k=ALL)]
        quality.append(roc_auc_score(DATA.truth[name], scores))
    assert np.mean(quality) > 0.85
    assert max(often) < 0.1
    assert np.mean(often) > 0.005


def test_a_label_of_a_batch_is_what_it_is_alone(tagger: Tagger) -> None:
    """To the bit, though the answers of its neighbours lie in the same pool; sampled answers are taken together."""
    answers = {name: (DATA.rows[name][:3], [i for i in range(9) if i not in DATA.rows[name]]) for name in NEW}
    many = copy.copy(tagger)
    reports = many.learn_many(answers, about={"railways": "trains and their tracks"})
    for name, together in zip(NEW, reports, strict=True):
        alone = copy.copy(tagger)
        about = "trains and their tracks" if name == "railways" else ""
        report = alone.learn(name, *answers[name], about=about)
        assert replace(report, seconds=0.0) == replace(together, seconds=0.0)
        here, there = (one.classifier_.state_ for one in (alone, many))
        mine, theirs = here.names.number(name), there.names.number(name)
        np.testing.assert_array_equal(here.classifiers.weights([mine]), there.classifiers.weights([theirs]))
        assert here.classifiers.intercept[mine] == there.classifiers.intercept[theirs]
        for part in ("thresholds", "slope", "offset"):
            assert getattr(here.decisions, part)[mine] == getattr(there.decisions, part)[theirs]


def test_the_report_says_how_often_it_fires_on_the_pool(tagger: Tagger) -> None:
    rest = Pool.of(np.arange(len(DATA.unseen))[:, None], tagger.classifier_.random_state).rest[:, 0]
    for name in NEW:
        report = tagger.learn(name, yes=DATA.rows[name][:4], pool=DATA.unseen)
        said = sum(name in tagger.predict([DATA.unseen[at]])[0] for at in rest.tolist())
        assert report.fires == (said, len(rest))
        assert report.estimate.fires == said / len(rest)
        assert report.pool == "given"
        assert said > 0
        assert tagger.estimate(name) == report.estimate


def test_a_sample_is_taken_at_its_word(tagger: Tagger) -> None:
    yes = DATA.rows["football"]
    no = [i for i in range(100) if i not in yes]
    report = tagger.learn("football", yes, no, sampled=True)
    assert (report.n_background, report.estimate.n_pool, report.pool, report.name_gain) == (0, 111, "", 0.0)
    assert report.fires == (sum("football" in labels for labels in tagger.predict(DATA.texts)), len(DATA.texts))
    assert tagger.estimate("football") is None
    with pytest.raises(DataError, match="negative"):
        tagger.learn("railways", yes=[1], sampled=True)
    with pytest.raises(ConflictError, match=r"answers that 'football' was learned from are not kept; relearn"):
        tagger.learn_more("football", yes=[3])


@pytest.mark.parametrize("sampled", [True, False])
def test_a_text_of_fit_and_its_number_are_the_same_answer(tagger: Tagger, sampled: bool) -> None:
    other = copy.copy(tagger)
    yes, no = DATA.rows["football"], [i for i in range(60) if i not in DATA.rows["football"]]
    one = tagger.learn("football", yes=yes, no=no, sampled=sampled)
    texts = [DATA.texts[i] for i in yes], [DATA.texts[i] for i in (*no, no[0])]
    two = other.learn("football", *texts, sampled=sampled)
    assert one.n_no == two.n_no == len(no)
    assert tagger.suggest(DATA.unseen, k=ALL) == other.suggest(DATA.unseen, k=ALL)


def test_answers_reach_the_classifier_as_they_were_given(tagger: Tagger) -> None:
    """The same label through `add_labels`, on rows made here."""
    yes, no = DATA.rows["football"], [i for i in range(60) if i not in DATA.rows["football"]]
    reference = copy.copy(tagger.classifier_)
    y = np.zeros(len(DATA.texts), dtype=int)
    y[yes] = 1
    reference.add_labels(tagger.vectorizer_.transform(DATA.texts), y, ["football"], annotated=np.array([*yes, *no]))
    tagger.learn("football", yes=yes, no=no, sampled=True)
    X = tagger.vectorizer_.transform(DATA.unseen)
    scores = [dict(row)["football"] for row in tagger.suggest(DATA.unseen, k=ALL)]
    np.testing.assert_array_equal(scores, reference.decision_function(X)[:, -1])
    assert tagger.classifier_.thresholds_[-1] == reference.thresholds_[-1]


def test_new_texts_reach_the_classifier_as_they_were_given(tagger: Tagger) -> None:
    yes = [text for text, is_so in zip(DATA.unseen, DATA.truth["railways"], strict=True) if is_so]
    no = [text for text, is_so in zip(DATA.unseen, DATA.truth["railways"], strict=True) if not is_so][:40]
    reference = copy.copy(tagger.classifier_)
    X = tagger.vectorizer_.transform([*yes, *no])
    reference.add_labels(X, [1] * len(yes) + [0] * len(no), ["railways"])
    estimate = tagger.learn("railways", yes=yes, no=no, sampled=True).estimate
    assert (estimate.rate[0], estimate.n_asked) == (len(yes) / (len(yes) + len(no)), len(yes) + len(no))
    assert estimate.precision[1] < estimate.precision[0] < estimate.precision[2]
    scores = [dict(row)["railways"] for row in tagger.suggest(DATA.texts, k=ALL)]
    expected = reference.decision_function(tagger.vectorizer_.transform(DATA.texts))[:, -1]
    np.testing.assert_allclose(scores, expected, atol=1e-12)


def test_the_order_inside_a_batch_does_not_matter(tagger: Tagger) -> None:
    answers = {name: (DATA.rows[name][:5], [0, 1, 2]) for name in NEW if not {0, 1, 2} & set(DATA.rows[name])}
    other = copy.copy(tagger)
    reports = tagger.learn_many(answers)
    other.learn_many(dict(reversed(answers.items())))
    assert [report.name for report in reports] == list(answers)
    for one, two in zip(tagger.suggest(DATA.unseen, k=ALL), other.suggest(DATA.unseen, k=ALL), strict=True):
        assert dict(one) == pytest.approx(dict(two), abs=1e-9)


def test_a_report_says_what_happened(tagger: Tagger) -> None:
    report = tagger.learn("hospitals", yes=DATA.rows["hospitals"], no=["Nothing"])
    learned = tagger.classifier_.reports_[-1]
    assert (report.name, report.n_yes, report.n_no) == ("hospitals", len(DATA.rows["hospitals"]), 1)
    assert learned.n_rows == report.n_yes + 1 + report.n_background
    assert list(report.neighbours) == tagger.neighbours("hospitals")
    assert report.used_past == bool(learned.anchored or learned.share)
    assert report.threshold == tagger.classifier_.thresholds_[-1]
    assert report.estimate == learned.estimate
    assert report.seconds > 0


@pytest.mark.parametrize(
    ("yes", "no", "problem"),
    [
        ([], [1], "no yes example, and no word of its name"),
        ([1, 2], [2], "text 2 of fit is in yes and in no"),
        (["new text"], ["new text"], "'new text' is in yes and in no"),
        ([10_000], [1], "there is no text 10000; the tagger has texts 0 to 499"),
        ([-1], [1], "there is no text -1"),
        ([None], [1], "yes of label 'x' holds something of type NoneType"),
        ([True], [1], "of type bool"),
        ("a text", [1], "single str; give a list"),
    ],
)
def test_wrong_answers_change_nothing(tagger: Tagger, yes: object, no: object, problem: str) -> None:
    before = tagger.suggest(DATA.unseen[:5], k=ALL)
    with pytest.raises(DataError, match=problem):
        tagger.learn("x", yes=yes, no=no)
    assert tagger.suggest(DATA.unseen[:5], k=ALL) == before


def test_a_batch_is_learned_whole_or_not_at_all(tagger: Tagger) -> None:
    n_labels = len(tagger.label_names_)
    with pytest.raises(DataError, match="two lists"):
        tagger.learn_many({"a": ([1], [2]), "b": [3]})
    with pytest.raises(ConflictError, match="'tennis' is known already"):
        tagger.learn_many({"a": ([1], [2]), "tennis": ([3], [])})
    with pytest.raises(DataError, match="control character"):
        tagger.learn_many({"a": ([1], [2]), "b\n": ([3], [])})
    assert len(tagger.label_names_) == n_labels
    assert tagger.learn_many({}) == []


def test_a_taken_name_is_a_conflict_that_says_what_to_do(tagger: Tagger) -> None:
    tagger.learn("football", yes=[1])
    with pytest.raises(ConflictError, match="relearn"):
        tagger.learn("football", yes=[1, 2])
    with pytest.raises(ConflictError, match="fit again"):
        tagger.relearn("tennis", yes=[1])


def test_learning_again_is_as_if_for_the_first_time(tagger: Tagger) -> None:
    other = copy.copy(tagger)
    tagger.learn("football", yes=DATA.rows["football"][:1])
    tagger.learn("railways", yes=DATA.rows["railways"])
    report = tagger.relearn("football", yes=DATA.rows["football"])
    other.learn("railways", yes=DATA.rows["railways"])
    expected = other.learn("football", yes=DATA.rows["football"])
    assert tagger.label_names_[-2:] == other.label_names_[:-3:-1] == ("football", "railways")  # it keeps its place
    assert report.threshold == pytest.approx(expected.threshold, abs=1e-9)
    ours, theirs = ([dict(row)["football"] for row in model.suggest(DATA.unseen, k=ALL)] for model in (tagger, other))
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_learning_again_leaves_the_label_when_it_fails(tagger: Tagger) -> None:
    tagger.learn("football", yes=DATA.rows["football"])
    before = tagger.suggest(DATA.unseen[:5], k=ALL)
    with pytest.raises(DataError, match="in yes and in no"):
        tagger.relearn("football", yes=[1], no=[1])
    assert tagger.suggest(DATA.unseen[:5], k=ALL) == before


def test_yes_texts_without_a_known_word_are_refused_and_change_nothing(tagger: Tagger) -> None:
    names, before = tagger.label_names_, tagger.suggest(DATA.unseen, k=ALL)
    with pytest.raises(DataError, match="'zz' has a word that the tagger knows"):
        tagger.learn("zz", yes=["zzzqqq", ""], no=[0, 1, 2])
    assert tagger.label_names_ == names
    assert tagger.suggest(DATA.unseen, k=ALL) == before
    tagger.learn("zz", yes=["zzzqqq", DATA.rows["football"][0]], no=[0, 1, 2])
    assert tagger.label_names_[-1] == "zz"


def test_an_empty_name_and_a_missing_pool_are_named(tagger: Tagger) -> None:
    with pytest.raises(DataError, match="the name of the label is empty; give it one"):
        tagger.learn("", yes=[0])
    with pytest.raises(DataError, match="give a pool"):
        tagger.next(tagger.label_names_[0])
