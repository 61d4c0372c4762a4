"""One BLAS thread means one, whichever threads of the process ask for it and in whatever order they leave."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from streamlabel.stats import threads
from streamlabel.stats.threads import LARGE, one_thread, one_thread_if_small


def blas_threads() -> set[int]:
    np.ones((2, 2)) @ np.ones((2, 2))
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this BLAS has one thread only")
        threads._let_anybody_set()
        yield


def test_it_holds_inside_and_nested_and_ends():
    with one_thread():
        assert blas_threads() == {1}
        with one_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


@pytest.mark.parametrize("place", ["take", "give_back"])
def test_one_who_is_interrupted_on_the_way_in_or_out_does_not_keep_it(monkeypatch, place):
    def interrupted(*_: object) -> None:
        if place == "take":
            take(*_)
        raise KeyboardInterrupt

    take = threads._LIMIT.take
    with monkeypatch.context() as patch:
        patch.setattr(threads._LIMIT, place, interrupted)
        with pytest.raises(KeyboardInterrupt), one_thread():
            pass
    gc.collect()
    with one_thread():
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_the_first_to_leave_does_not_end_it_for_the_others():
    entered, may_leave, found = threading.Event(), threading.Event(), []

    def other() -> None:
        with one_thread():
            entered.set()
            may_leave.wait(30)
            found.append(blas_threads())

    thread = threading.Thread(target=other)
    with one_thread():
        thread.start()
        assert entered.wait(30)
    assert blas_threads() == {1}
    may_leave.set()
    thread.join(30)
    assert found == [{1}]
    assert blas_threads() == {2}


def test_it_holds_in_a_thread_while_another_has_set_the_limits_itself():
    """As scikit-learn does: threadpoolctl 3.8 then ignores all other threads without a word."""
    found = []

    def learn() -> None:
        with one_thread():
            found.append(blas_threads())

    with threadpool_limits(2, user_api="blas"):
        thread = threading.Thread(target=learn)
        thread.start()
        thread.join(30)
    assert found == [{1}]
    assert blas_threads() == {2}


def test_many_threads_end_where_they_began():
    def learn() -> None:
        for _ in range(50):
            with one_thread():
                assert blas_threads() == {1}

    failures: list[object] = []
    hook, threading.excepthook = threading.excepthook, failures.append
    try:
        everybody = [threading.Thread(target=learn) for _ in range(4)]
        for one in everybody:
            one.start()
        for one in everybody:
            one.join(60)
    finally:
        threading.excepthook = hook
    assert not failures
    assert blas_threads() == {2}


@pytest.mark.parametrize(("shape", "expected"), [((LARGE, LARGE), 2), ((LARGE - 1, 10**6), 1), ((10**6, 3), 1)])
def test_large_work_keeps_its_threads(shape, expected):
    with one_thread_if_small(shape):
        assert blas_threads() == {expected}
