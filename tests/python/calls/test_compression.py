"""Reductions for slow networks."""

import numpy as np
import pytest
from helpers import threads
from places import run_at

import hocket


def values(rank, count=5000):
    return np.random.default_rng(rank).normal(size=count).astype("float32") * (1 + rank)


def compressed(comm, op):
    x = values(comm.rank)
    assert comm.compressed_all_reduce(x, op) is x
    return x


@pytest.mark.parametrize("op", ["sum", "avg"])
def test_compressed_is_within_its_bound(op):
    n = 3
    results = threads(n, compressed, op)
    every = np.stack([values(rank) for rank in range(n)]).astype("float64")
    divisor = n if op == "avg" else 1
    bound = sum(np.ptp(x) for x in every) / 254 / divisor + 1e-5
    for result in results:
        assert np.array_equal(result, results[0])
        error = np.abs(result - every.sum(0) / divisor)
        assert 0 < error.max() <= bound


def hierarchical(comm, compress):
    x = values(comm.rank, 100)
    comm.hierarchical_all_reduce(x, "avg", compressed=compress)
    return x


@pytest.mark.parametrize("compress", [False, True])
def test_hierarchical(compress):
    mean = sum(values(rank, 100).astype("float64") for rank in range(3)) / 3
    for result in threads(3, hierarchical, compress):
        assert np.allclose(result, mean, atol=0.2 if compress else 1e-6)


def refused(comm):
    for call in (
        lambda: comm.compressed_all_reduce(np.zeros(3, "int32")),
        lambda: comm.compressed_all_reduce(np.zeros(3), "max" if comm.rank == 1 else "sum"),
        lambda: comm.hierarchical_all_reduce(np.zeros(3), "bor"),
        lambda: comm.hierarchical_all_reduce(3 if comm.rank == 0 else np.zeros(3)),
    ):
        with pytest.raises(hocket.InvalidArgument):
            call()
    return comm.all_reduce(np.ones(1))[0]


def test_refusals():
    assert threads(2, refused) == [2.0, 2.0]


def refused_by_one(comm):
    for refuser in range(comm.size):
        op = "bor" if comm.rank == refuser else "sum"
        with pytest.raises(hocket.InvalidArgument) as caught:
            comm.hierarchical_all_reduce(np.zeros(3), op)
        text, status = str(caught.value), caught.value.status
        assert text.count("hierarchical_all_reduce") == 1, text
        assert text.count("op bor has no meaning on float64") == 1, text
        assert status.reason.endswith("op bor has no meaning on float64"), status
        assert status.reason in text.replace("\n", " "), (status, text)
        assert "#" not in status.reason, status
    assert comm.all_reduce(np.ones(1))[0] == comm.size


@pytest.mark.parametrize("place", ["threads", "processes", "hosts"])
def test_a_refusal_names_the_call_once(place):
    run_at(place, 4, refused_by_one)
