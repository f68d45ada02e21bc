"""argmin and argmax against NumPy."""

import numpy as np
import pytest
from helpers import COUNTS, DTYPES, RANK_COUNTS, SMALL_FLOATS, threads, values
from places import PLACES, run_at

import hocket

ORDERED = [dtype for dtype in DTYPES if dtype.kind != "c"]


def wide(x):
    return x.astype("float32") if x.dtype in SMALL_FLOATS else x


def index_of(rank, count, dtype="int64"):
    return (np.arange(count) * 3 + 1_000_003 * rank).astype(dtype)


def every_dtype(comm):
    for dtype in ORDERED:
        for count in COUNTS:
            all_ranks = np.stack([wide(values(rank, count, dtype)) for rank in range(comm.size)])
            for call, pick in [(comm.argmin, np.argmin), (comm.argmax, np.argmax)]:
                x = values(comm.rank, count, dtype)
                best = pick(all_ranks, axis=0)  # the first of equals, too
                value, rank = call(x)
                assert value.dtype == x.dtype and rank.dtype == np.int32
                assert np.array_equal(rank, best), (dtype, count)
                assert np.array_equal(wide(value), np.take_along_axis(all_ranks, best[None], 0)[0])
                assert np.array_equal(x, values(comm.rank, count, dtype))


@pytest.mark.parametrize("n", RANK_COUNTS)
def test_every_dtype(n):
    threads(n, every_dtype)


def with_an_index(comm):
    for dtype in ["int8", "uint16", "int32", "int64", "uint64"]:
        x = values(comm.rank, 100)
        all_ranks = np.stack([values(rank, 100) for rank in range(comm.size)])
        best = all_ranks.argmax(0)
        places = np.stack([index_of(rank, 100, dtype) for rank in range(comm.size)])
        mine = index_of(comm.rank, 100, dtype)
        value, rank, index = comm.argmax(x, index=mine)
        assert index.dtype == mine.dtype
        assert np.array_equal(value, all_ranks.max(0)) and np.array_equal(rank, best)
        assert np.array_equal(index, np.take_along_axis(places, best[None], 0)[0])
    # Indices below 0. They differ from the 0 of other ranks.
    _, _, index = comm.argmin(x, index=-mine.astype("int64") - 1)
    assert (index < 0).all()


def special_numbers(comm):
    """NaN of several ranks, zeros of both signs, infinities, from the lowest rank on."""
    last = comm.size - 1
    x = np.array([1.0, 0.0, np.inf, comm.rank])
    if comm.rank == last:
        x[:2] = np.nan, -0.0
    if comm.rank in (0, last):
        x[3] = -np.nan
    value, rank = comm.argmin(x)
    assert np.isnan(value[0]) and rank[0] == last
    assert value[1] == 0 and rank[1] == 0
    assert value[2] == np.inf and rank[2] == 0
    assert np.isnan(value[3]) and rank[3] == 0


def shapes(comm):
    first = np.arange(12.0).reshape(3, 4)
    for x in [first + comm.rank, np.asfortranarray(first) + comm.rank, np.float64(comm.rank),
              np.array(2.5 + comm.rank), np.empty((0, 3)), first[:1] + comm.rank]:  # fmt: skip
        index = np.full_like(x, comm.rank, dtype="int32")
        value, rank, place = comm.argmax(x, index=index)
        assert value.shape == rank.shape == place.shape == np.shape(x)
        assert np.array_equal(value, x + (comm.size - 1 - comm.rank))
        assert (rank == comm.size - 1).all() and (place == comm.size - 1).all()
    # Ranks that differ in the order of axes are not compared.
    if comm.size > 1:
        fourfold = np.array(first, order="F" if comm.rank else "C")
        other = comm.duplicate()
        with pytest.raises(hocket.Mismatch):
            other.argmin(fourfold)


def read_only_and_shared(comm):
    """Arrays that are only read may be read-only, lie at any address, and be the index as well."""
    raw = np.zeros(8 * 10 + 1, "uint8")
    x = raw[1:].view("int64")  # not aligned
    x[:] = 5 - comm.rank
    x.flags.writeable = False
    value, rank, index = comm.argmin(x, index=x)
    assert (value == 6 - comm.size).all() and (rank == comm.size - 1).all()
    assert (index == value).all()


def refusals(comm):
    x, place = np.arange(4.0), np.arange(4)
    odd = comm.rank == comm.size - 1
    for wrong, text in [
        (dict(x=x * 1j), "have no order"),
        (dict(x=np.arange(8.0)[::2]), "not contiguous"),
        (dict(x=x.astype(">f8")), "byte-swapped"),
        (dict(x=[1.0, 2.0]), "not an array"),
        (dict(x=None), "not an array"),
        (dict(index=x), "expected integers"),
        (dict(index=place[:3]), r"index is int64\[3\], expected int64\[4\]"),
        (dict(index=place == 1), "expected integers"),
        (dict(index="7"), "not an array"),
        (dict(deadline=-1), "deadline"),
    ]:
        with pytest.raises(hocket.InvalidArgument, match=text):
            comm.argmin(**{"x": x, "index": place, **(wrong if odd else {})})
    value, rank = comm.argmin(x + comm.rank)
    assert np.array_equal(value, x) and not rank.any()


def started_and_prepared(comm):
    n, me = comm.size, comm.rank
    x = values(me, 1000)
    place = index_of(me, 1000)
    all_ranks = np.stack([values(rank, 1000) for rank in range(n)])
    places = np.stack([index_of(rank, 1000) for rank in range(n)])
    works = [comm.argmin_async(x), comm.all_reduce_async(np.ones(3)), comm.argmax_async(x, index=place)]
    prepared = comm.prepare_argmax(x, index=place)
    for found in [works[2].wait(), prepared(), prepared.start().wait()]:
        best = all_ranks.argmax(0)
        assert np.array_equal(found[0], all_ranks.max(0)) and np.array_equal(found[1], best)
        assert np.array_equal(found[2], np.take_along_axis(places, best[None], 0)[0])
    value, rank = works[0].wait()
    assert np.array_equal(value, all_ranks.min(0)) and np.array_equal(rank, all_ranks.argmin(0))
    assert (works[1].wait() == n).all()
    x[:] = me  # which the prepared one reads again
    value, rank, index = prepared()
    assert (value == n - 1).all() and (rank == n - 1).all()
    assert np.array_equal(index, index_of(n - 1, 1000))


class jax_Array:  # hocket knows JAX's arrays by the name of their type
    __module__ = "jaxlib"

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


def prepared_with_an_index_that_never_changes(comm):
    x, place = np.arange(4.0), np.arange(4)
    with pytest.raises(hocket.InvalidArgument, match="index is an array of JAX, which never"):
        comm.prepare_argmin(x, index=jax_Array(place))


def everything(comm):
    for part in [every_dtype, with_an_index, special_numbers, read_only_and_shared, refusals,
                 started_and_prepared, prepared_with_an_index_that_never_changes]:  # fmt: skip
        part(comm)


@pytest.mark.parametrize("place", PLACES)
def test_everywhere(place):
    run_at(place, 3, everything)


@pytest.mark.parametrize("n", RANK_COUNTS)
@pytest.mark.parametrize(
    "body",
    [with_an_index, special_numbers, shapes, read_only_and_shared, refusals, started_and_prepared],
)
def test_threads(n, body):
    threads(n, body)


def test_large():
    def body(comm):
        x = np.full(3_000_000, comm.rank, "float32")
        x[comm.rank :: comm.size] = -1
        value, rank = comm.argmin(x)
        assert (value == -1).all() and np.array_equal(rank, np.arange(x.size) % comm.size)

    threads(3, body)


def test_index_on_one_rank_alone():
    def body(comm):
        with pytest.raises(hocket.Mismatch):
            comm.argmin(np.arange(3.0), index=np.arange(3) if comm.rank else None)

    threads(2, body)


def test_torch():
    torch = pytest.importorskip("torch")

    def body(comm):
        value, rank = comm.argmax(torch.arange(3.0) * (1 - 2 * comm.rank))
        assert torch.equal(value, torch.arange(3.0)) and not rank.any()

    threads(2, body)


def test_a_group_of_one_s_own():
    def body(comm):
        group = comm.split(comm.rank % 2)
        value, rank = group.argmax(np.array([comm.rank]))
        assert value == 4 + comm.rank % 2 if comm.rank % 2 == 0 else value == 3
        assert rank == group.size - 1

    threads(5, body)
