"""New texts with known tags: labels of fit learned again, the others left alone, in memory and on the disk."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from streamlabel import StreamingLabelClassifier
from streamlabel.errors import ConflictError, DataError, NotFoundError
from streamlabel.tagging.tagger import Tagger
from tagged_texts import tagged_texts

DATA = tagged_texts()
TEXTS, TAGS = DATA.texts[:300], DATA.tags[:300]
NEW, NEW_TAGS = DATA.texts[300:400], DATA.tags[300:400]


def scores(tagger: Tagger, *labels: str) -> np.ndarray:
    found = [dict(row) for row in tagger.suggest(DATA.unseen[:50], k=1000)]
    return np.array([[row[label] for label in labels or tagger.label_names_] for row in found])


def test_an_update_is_a_fit_on_all_texts_with_the_first_vocabulary():
    tagger = Tagger().fit(TEXTS, TAGS)
    others = [name for name in tagger.label_names_ if name != "health"]
    before = scores(tagger, *others)
    report = tagger.update(NEW, NEW_TAGS, labels=["health"])
    assert (report.labels, report.n_fit, report.n_new, report.n_known) == (("health",), 300, 100, 0)
    assert np.array_equal(scores(tagger, *others), before)
    whole = tagger.vectorizer_.transform([*TEXTS, *NEW])
    learned = tagger.classifier_.reports_[tagger.label_names_.index("health")]
    Y = np.array([["health" in tags] for tags in (*TAGS, *NEW_TAGS)]).astype(int)
    fresh = StreamingLabelClassifier(beta=learned.beta).fit(whole, Y)
    there = fresh.decision_function(tagger.vectorizer_.transform(DATA.unseen[:50]))
    np.testing.assert_allclose(scores(tagger, "health"), there, atol=1e-8)


def test_by_default_the_labels_among_the_tags_are_learned_again():
    tagger = Tagger().fit(TEXTS, TAGS)
    tagger.learn("football", yes=DATA.rows["football"][:3])
    tags = [["health", "football"], ["never heard of"], ["health"]]
    report = tagger.update(NEW[:3], tags)
    assert (report.labels, report.later, report.unknown) == (("health",), ("football",), ("never heard of",))
    with pytest.raises(ConflictError, match="'football' was added after fit"):
        tagger.update(NEW[3:6], tags, labels=["football"])
    with pytest.raises(NotFoundError, match="no label is called 'helth'; did you mean 'health'"):
        tagger.update(NEW[3:6], tags, labels=["helth"])
    with pytest.raises(DataError, match="no label of fit is among the tags"):
        tagger.update(NEW[3:4], [["never heard of"]])


def test_on_the_disk_it_is_one_revision_and_texts_count_once(tmp_path):
    tagger = Tagger().fit(TEXTS, TAGS)
    tagger.save(tmp_path / "model")
    with Tagger.open(tmp_path / "model", "a") as living:
        assert living.in_memory().update(NEW[:50], NEW_TAGS[:50]).n_new == 50
        report = living.update([*TEXTS[:10], *NEW[:50]], [*TAGS[:10], *NEW_TAGS[:50]])
        assert (report.n_new, report.n_known) == (50, 10)
    tagger.update(NEW[:50], NEW_TAGS[:50])
    with Tagger.open(tmp_path / "model", "a") as living:
        np.testing.assert_allclose(scores(living), scores(tagger), atol=1e-5)
        with pytest.raises(DataError, match="all 50 texts are known already"):
            living.update(NEW[:50], NEW_TAGS[:50])
        assert living.update(NEW, NEW_TAGS, labels=report.labels).n_new == 50
        assert [one.action for one in living.store.history()] == ["update", "update", "create"]
        assert living.learn("football", yes=DATA.rows["football"][:3]).n_yes == 3
        living.save(tmp_path / "copy")
    with Tagger.open(tmp_path / "copy", "a") as copied, pytest.raises(DataError, match="known already"):
        copied.update(NEW[:60], NEW_TAGS[:60], labels=report.labels)
    with pytest.raises(ConflictError, match="reading only"):
        Tagger.open(tmp_path / "model").update(NEW, NEW_TAGS)


def test_labels_one_after_the_other_are_labels_together():
    one, both = Tagger().fit(TEXTS, TAGS), Tagger().fit(TEXTS, TAGS)
    one.update(NEW, NEW_TAGS, labels=["health"])
    assert one.update(NEW, NEW_TAGS, labels=["health", "farming"]).n_new == 100
    with pytest.raises(DataError, match="all 100 texts are known already"):
        one.update(NEW, NEW_TAGS, labels=["farming"])
    both.update(NEW, NEW_TAGS, labels=["health", "farming"])
    np.testing.assert_allclose(scores(one), scores(both), atol=1e-10)


def test_without_rows_it_is_refused(tmp_path):
    Tagger().fit(TEXTS, TAGS).save(tmp_path / "bare", keep_rows=False)
    with Tagger.open(tmp_path / "bare", "a") as tagger, pytest.raises(DataError, match="the rows of fit are not kept"):
        tagger.update(NEW, NEW_TAGS)


def test_a_text_twice_is_refused_and_nothing_changes():
    tagger = Tagger().fit(TEXTS, TAGS)
    before = scores(tagger)
    with pytest.raises(DataError, match="is given twice; keep one of the two"):
        tagger.update([NEW[0], NEW[1], NEW[0]], [["health"], [], []], labels=["health"])
    np.testing.assert_array_equal(scores(tagger), before)


def test_a_copy_of_a_stored_tagger_knows_its_updates(tmp_path):
    Tagger().fit(TEXTS, TAGS).save(tmp_path / "model")
    with Tagger.open(tmp_path / "model", "a") as tagger:
        tagger.update(NEW, NEW_TAGS, labels=["health"])
        copied = copy.copy(tagger)
    with pytest.raises(DataError, match="all 100 texts are known already"):
        copied.update(NEW, NEW_TAGS, labels=["health"])
    bare = Tagger.from_parts(copied.vectorizer_, copied.classifier_, digests=copied.text_digests_)
    with pytest.raises(DataError, match="texts of earlier updates are not known here"):
        bare.update(NEW, NEW_TAGS, labels=["health"])
