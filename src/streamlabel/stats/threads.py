"""How many threads the linear algebra underneath may use.

Two BLAS threads on shared cores cost 3 to 30 times the CPU of one in the small solves of an arrival (measured), so
small work runs on one. Large factorisations keep them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """One BLAS thread inside the block. The libraries are looked up once in the life of the process."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
