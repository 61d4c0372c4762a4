"""Dask: an executor on a cluster, and sums over the partitions of Dask collections, added in a tree.

The scheduler sees small tasks only. What a function holds (a factor, a Gram, classifiers) travels to every worker once,
large items go to one worker, partitions stay where they are. A worker that dies changes nothing: what it held is made
or sent again. Without the scheduler nothing goes on, and that is a `ClusterError`.
"""

from __future__ import annotations

import operator
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import numpy as np

from streamlabel.errors import ClusterError, DataError, MissingExtraError
from streamlabel.executors import SerialExecutor
from streamlabel.stats.sums import Stats

try:
    import dask
    from dask.base import is_dask_collection
    from dask.sizeof import sizeof
    from distributed import Client, Future, KilledWorker, get_worker
    from distributed.comm import CommClosedError
except ImportError as error:
    raise MissingExtraError("dask", "dask", "work on a cluster") from error

Item = TypeVar("Item")
Result = TypeVar("Result")

_WAVE = 4  # items under way for each thread of the cluster
_LARGE = 1 << 20  # bytes from which on an item does not go through the scheduler
_ATTEMPTS = 4  # sendings of an item, each after a worker was lost with it
_TIMEOUT = 10.0  # seconds in which a scheduler must answer


class DaskExecutor(SerialExecutor):
    """An `Executor` on a Dask cluster. Results come and are combined in the order of the items: bits are as in serial.

    client : a `distributed.Client`, or the address of a scheduler, such as "tcp://10.0.0.1:8786"

    Items may be Dask collections with one partition, delayed objects or futures: the function gets what they stand for,
    on a worker. Inside a task of Dask everything is done there, on the spot.
    """

    def __init__(self, client: Client | str) -> None:
        self.client: Client | None = None
        self._own = isinstance(client, str)
        with suppress(ValueError):  # this is no worker
            get_worker()
            return
        if isinstance(client, str):
            try:
                client = Client(client, timeout=_TIMEOUT, set_as_default=False)
            except (OSError, TimeoutError, ValueError) as error:
                raise ClusterError(f"{client}: no Dask scheduler answers there; start one (dask scheduler)") from error
        self.client = client

    def __repr__(self) -> str:
        return f"DaskExecutor({'here' if self.client is None else self.client.scheduler.address!r})"

    def stream(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """What `map` gives, one by one; only a few items for each worker are under way at a time."""
        if self.client is None:
            yield from map(function, items)
            return
        waiting: deque[tuple[Future, Item]] = deque()
        shared = _Shared(self.client, function)
        try:
            for item in items:
                with _explained(self.client):
                    waiting.append((shared.submit(item), item))
                    full = len(waiting) >= _WAVE * self.n_workers
                if full:
                    yield shared.result(*waiting.popleft())
            while waiting:
                yield shared.result(*waiting.popleft())
        finally:
            for future, _ in waiting:
                future.release()

    @property
    def n_workers(self) -> int:
        return 1 if self.client is None else max(sum(self.client.nthreads().values()), 1)

    def close(self) -> None:
        """End the connection, if it was made from an address."""
        if self._own and self.client is not None:
            self.client.close()

    def keep(self, partitions: Iterable[Any]) -> list[Any]:
        """The partitions as futures: read once, kept by the workers, and read again where a worker was lost."""
        return list(partitions) if self.client is None else self.client.compute(list(partitions))


class _Shared:
    """A function that all workers have, with all that it holds; and is sent again after the last that had it died."""

    def __init__(self, client: Client, function: Callable[[Any], Any]) -> None:
        self.client, self.function = client, function
        self._future: Future | None = None

    def submit(self, item: Any) -> Future:
        if self._future is None or self._future.status != "finished":
            self._future = _scatter(self.client, self.function, broadcast=True)
        return self.client.submit(_call, self._future, _sent(self.client, item), pure=False)

    def result(self, future: Future, item: Any) -> Any:
        """The result, from anew if the workers that had the function or the item were lost."""
        with _explained(self.client):
            for _ in range(_ATTEMPTS):
                try:
                    return _aligned(future.result())
                except CancelledError:
                    if self.client.status != "running":
                        raise
                    future = self.submit(item)
            return _aligned(future.result())


def stats_of(
    X: Any,
    Y: Any = None,
    *,
    labels: Sequence[str] | None = None,
    label_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    joined: bool = False,
    executor: DaskExecutor | None = None,
) -> Stats:
    """Sum the partitions where they are and add the sums in a tree; only the total comes here.

    X : a Dask array (n, d) whose blocks are arrays or SciPy sparse matrices, with Y alike; or a Dask data frame, with
        the names of its columns of labels in ``labels``; or a list of delayed blocks (X, Y) or (X, Y, label_names)
    joined : parts may have different labels, and one that a part does not name was not asked there (`Stats.joined`)
    executor : where; None: the cluster whose client is the current one, else this machine

    Neighbours are added first, then neighbouring pairs, and so on: the bits depend on the partitions, not on who was
    quicker. A sum from the left differs by rounding, and not at all if features are whole numbers.
    """
    if hasattr(X, "to_delayed") and hasattr(X, "columns"):
        names = list(labels or ())
        if not names or set(names) - set(X.columns):
            raise DataError(f"labels={names}; name the columns of the data frame that are labels")
        features = [column for column in X.columns if column not in set(names)]
        label_names, feature_names = label_names or names, feature_names or features
        blocks = [dask.delayed(_columns)(part, features, names) for part in X.to_delayed()]
    elif hasattr(X, "to_delayed"):
        if getattr(Y, "numblocks", (0,))[0] != X.numblocks[0]:
            raise DataError("X is a Dask array, and Y none with as many blocks of rows; rechunk Y as X is")
        blocks = [dask.delayed(tuple)(pair) for pair in zip(row_blocks(X), row_blocks(Y), strict=True)]
    else:
        blocks = list(X)
    if not blocks:
        raise DataError("no partitions; there is nothing to sum")
    total = in_pairs(
        dask.delayed(Stats.joined if joined else operator.add),
        [dask.delayed(_sum)(block, label_names, feature_names) for block in blocks],
    )
    client = None if executor is None else executor.client
    if client is None:
        return total.compute()
    with _explained(client):
        return _aligned(client.compute(total).result())


def row_blocks(X: Any) -> list[Any]:
    """The row blocks of a Dask array, as delayed objects; blocks of columns are put together first."""
    return list(X.rechunk({1: -1}).to_delayed().ravel())


def in_pairs(combine: Callable[[Any, Any], Any], parts: Sequence[Any]) -> Any:
    """Combine neighbours, then neighbouring results, until one is left."""
    while len(parts) > 1:
        parts = [combine(*parts[at : at + 2]) if at + 1 < len(parts) else parts[at] for at in range(0, len(parts), 2)]
    return parts[0]


def _sum(block: Any, label_names: Any, feature_names: Any) -> Stats:
    X, Y, *own = _aligned(block)
    return Stats.from_batch(X, Y, own[0] if own else label_names, feature_names)


def _columns(frame: Any, features: list[str], labels: list[str]) -> tuple[Any, Any]:
    return np.ascontiguousarray(frame[features].to_numpy()), frame[labels].to_numpy()


def _call(function: Callable[[Any], Any], item: Any) -> Any:
    return _aligned(function)(_aligned(item))


def _aligned(value: Any, depth: int = 4) -> Any:
    """The same, with arrays that begin where numbers may: those from the wire begin anywhere, and NumPy multiplies such
    arrays without BLAS, slowly and with other bits. Objects are mended in place, so that it is done once.
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    if type(value) in (tuple, list):
        return type(value)(_aligned(part, depth) for part in value)
    if isinstance(value, partial):
        args = _aligned(value.args, depth)
        if any(new is not old for new, old in zip(args, value.args, strict=True)):
            value.__setstate__((value.func, args, value.keywords, {}))  # type: ignore[attr-defined]
    elif depth and type(value).__module__.partition(".")[0] in ("streamlabel", "scipy") and hasattr(value, "__dict__"):
        held = vars(value)
        held.update({name: _aligned(part, depth - 1) for name, part in held.items()})
    return value


def _sent(client: Client, item: Any) -> Any:
    """The item as a task may carry it: large data is sent to a worker, collections are computed there."""
    if type(item) is tuple:
        return tuple(_sent(client, part) for part in item)
    if isinstance(item, Future):
        return item
    if is_dask_collection(item):
        return client.compute(item)
    return _scatter(client, item) if sizeof(item) > _LARGE else item


def _scatter(client: Client, data: Any, broadcast: bool = False) -> Future:
    """Data on one worker or on all; again if one died while it was sent."""
    for _ in range(_ATTEMPTS):
        try:
            return client.scatter([data], broadcast=broadcast, hash=False)[0]
        except OSError as error:
            if isinstance(error, TimeoutError) or client.status != "running":
                raise
            time.sleep(0.2)
    raise ClusterError(f"{client.scheduler.address}: nothing can be sent to the workers; are they all right?")


@contextmanager
def _explained(client: Client) -> Iterator[None]:
    """Errors of the cluster in words for a person; those of the function pass."""
    try:
        yield
    except KilledWorker as error:
        raise ClusterError("several workers died one after the other at the same task; is it their memory?") from error
    except (CancelledError, OSError) as error:
        if client.status != "running" or isinstance(error, CommClosedError):
            lost = "the connection to the scheduler was lost"
        elif isinstance(error, CancelledError) or not client.nthreads():
            lost = "no worker is left"
        else:
            raise  # of the function
        raise ClusterError(f"{client.scheduler.address}: {lost}; start it again, and run this again") from error
