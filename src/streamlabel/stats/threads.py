"""Limits on the number of threads of the linear algebra libraries (BLAS).

Two BLAS threads on shared cores cost 3 to 30 times the CPU of one in the small solves of an arrival (measured), so
small work runs on one. Large factorisations keep them all. A product that is cut for two threads is also rounded
differently: what runs on one has the same bits wherever it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from weakref import WeakSet

import threadpoolctl

# From this size on a second thread is worth its risk: on shared cores it can make a factorisation many times slower.
LARGE = 3000


class _Limit:
    """One BLAS thread while anybody asks for it.

    The setting is the whole process's, so the first to come makes it and the last to leave undoes it, in any order. One
    whom an interruption kept from leaving is forgotten with the frame that held it.
    """

    def __init__(self) -> None:
        self._lock, self._holders, self._undo = threading.Lock(), WeakSet[threading.Event](), ExitStack()

    def take(self, holder: threading.Event) -> None:
        with self._lock:
            if not self._holders:
                _let_anybody_set()
                self._undo.enter_context(_libraries()[0].limit(limits=1))
                _let_anybody_set()
            self._holders.add(holder)

    def give_back(self, holder: threading.Event) -> None:
        with self._lock:
            self._holders.discard(holder)
            if not self._holders:
                self._undo.close()
                _let_anybody_set()


def _let_anybody_set() -> None:
    """Let any thread set limits: threadpoolctl 3.8 lets one thread alone, and ignores others without a word."""
    clear = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@lru_cache(maxsize=1)
def _libraries() -> tuple[threadpoolctl.ThreadpoolController, threadpoolctl.ThreadpoolController]:
    """The BLAS libraries whose limit is the whole process's, and those (by OpenMP) where every thread has its own."""
    found = threadpoolctl.ThreadpoolController().select(user_api="blas")
    own = {one["filepath"] for one in found.info() if one.get("threading_layer") == "openmp"}
    shared = {one["filepath"] for one in found.info()} - own
    return found.select(filepath=sorted(shared)), found.select(filepath=sorted(own))


_LIMIT = _Limit()


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one BLAS thread inside the block, whatever other threads do. Libraries are looked up once in a process."""
    holder = threading.Event()  # any object of its own
    try:
        _LIMIT.take(holder)
        with _libraries()[1].limit(limits=1):
            yield
    finally:
        _LIMIT.give_back(holder)


@contextmanager
def one_thread_if_small(shape: tuple[int, ...]) -> Iterator[None]:
    """Use one BLAS thread if the smaller side of a matrix of rows is below `LARGE`, else as many as there are."""
    if min(shape) >= LARGE:
        yield
    else:
        with one_thread():
            yield
