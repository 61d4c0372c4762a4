"""One behaviour suite for every executor; the serial one is the reference."""

from __future__ import annotations

import operator
import threading
from functools import partial

import numpy as np
import pytest

from local_cluster import dask_engine, local_cluster
from streamlabel.errors import DataError, MissingExtraError
from streamlabel.executors import Executor, JoblibExecutor, SerialExecutor

BACK_ENDS = {
    "serial": lambda: SerialExecutor,
    "threads": lambda: partial(JoblibExecutor, 2, prefer="threads"),
    "processes": lambda: partial(JoblibExecutor, 2, prefer="processes"),
    "dask": lambda: partial(dask_engine().DaskExecutor, local_cluster().address),
}


@pytest.fixture(params=BACK_ENDS)
def executor(request):
    made = BACK_ENDS[request.param]()()
    yield made
    if request.param == "dask":
        made.close()


def square(number):
    return number * number


def refuse_odd(number):
    if number % 2:
        raise DataError("odd", source="items", line=number)
    return number


def refuse_for_want_of_a_package(_):
    raise MissingExtraError("parquetry", "arrow", "reading")


def partial_gram(rows):
    return rows.T @ rows


def joined(left, right):
    return left + right


class TestMap:
    def test_is_an_executor(self, executor):
        assert isinstance(executor, Executor)

    @pytest.mark.parametrize("n_items", [0, 1, 2, 100])
    def test_gives_what_a_loop_gives_in_order(self, executor, n_items):
        assert executor.map(square, range(n_items)) == [number * number for number in range(n_items)]

    def test_takes_a_generator(self, executor):
        assert executor.map(square, (number for number in (3, 1, 2))) == [9, 1, 4]

    def test_takes_closures(self, executor):
        offset = 7
        assert executor.map(lambda number: number + offset, [1, 2]) == [8, 9]

    def test_results_may_be_none(self, executor):
        assert executor.map(lambda number: None, [1, 2]) == [None, None]

    def test_arrays_come_back_bit_for_bit(self, executor, rng):
        blocks = [rng.standard_normal((50, 8)) for _ in range(5)]
        for got, block in zip(executor.map(partial_gram, blocks), blocks, strict=True):
            assert np.array_equal(got, block.T @ block)

    def test_can_be_used_again(self, executor):
        assert executor.map(square, [2]) == executor.map(square, [2]) == [4]


class TestErrors:
    def test_an_exception_keeps_its_type_and_what_it_carries(self, executor):
        with pytest.raises(DataError, match="items, line 3: odd") as caught:
            executor.map(refuse_odd, [0, 2, 3, 4])
        assert (caught.value.source, caught.value.line) == ("items", 3)

    def test_one_that_is_made_from_several_arguments_too(self, executor):
        with pytest.raises(MissingExtraError, match=r"reading needs the package parquetry: .*\[arrow\]"):
            executor.map(refuse_for_want_of_a_package, [1])

    def test_an_exception_of_another_library_too(self, executor):
        with pytest.raises(ZeroDivisionError):
            executor.map(lambda number: 1 // number, [1, 0])

    def test_map_reduce_passes_them_on_as_well(self, executor):
        with pytest.raises(DataError, match="odd"):
            executor.map_reduce(refuse_odd, range(100), operator.add)

    def test_an_error_of_the_source_of_items_reaches_the_caller(self, executor):
        def items():
            yield 2
            raise KeyError("no more")

        with pytest.raises(KeyError):
            executor.map(square, items())
        with pytest.raises(KeyError):
            executor.map_reduce(square, items(), operator.add)

    def test_works_after_an_error(self, executor):
        with pytest.raises(DataError):
            executor.map(refuse_odd, [1])
        assert executor.map(square, [3]) == [9]


class TestMapReduce:
    @pytest.mark.parametrize("n_items", [1, 2, 7, 100])
    def test_sums(self, executor, n_items):
        assert executor.map_reduce(square, range(n_items), operator.add) == sum(i * i for i in range(n_items))

    def test_combines_from_the_left_in_order(self, executor):
        assert executor.map_reduce(str, range(40), joined) == "".join(map(str, range(40)))

    def test_partial_grams_add_up(self, executor, rng):
        X = rng.standard_normal((300, 6))
        got = executor.map_reduce(partial_gram, (X[i : i + 20] for i in range(0, 300, 20)), operator.add)
        reference = SerialExecutor().map_reduce(partial_gram, (X[i : i + 20] for i in range(0, 300, 20)), operator.add)
        assert np.array_equal(got, reference)
        np.testing.assert_allclose(got, X.T @ X, rtol=1e-12)

    def test_a_result_may_be_empty(self, executor):
        assert executor.map_reduce(lambda number: [], range(30), operator.add) == []

    def test_no_items_are_refused(self, executor):
        with pytest.raises(DataError, match="nothing to combine"):
            executor.map_reduce(square, [], operator.add)

    def test_items_are_drawn_as_they_are_needed(self, executor):
        """A failure early on leaves most of the source unread."""
        drawn = []

        def items():
            for number in range(10_000):
                drawn.append(number)
                yield number

        with pytest.raises(DataError):
            executor.map_reduce(refuse_odd, items(), operator.add)
        assert len(drawn) < 1000


@pytest.mark.parametrize("inner", BACK_ENDS)
def test_nested_use_does_not_deadlock(executor, inner):
    make = BACK_ENDS[inner]()

    def outer(number):
        return sum(make().map(square, range(number)))

    answers = []
    worker = threading.Thread(target=lambda: answers.append(executor.map(outer, [2, 3, 4])), daemon=True)
    worker.start()
    worker.join(timeout=600)
    assert answers == [[1, 5, 14]]
