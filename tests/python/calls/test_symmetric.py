"""Symmetric memory as NumPy arrays."""

import gc

import ml_dtypes
import numpy as np
import pytest
from helpers import threads, values

import hocket


def job(comm):
    """Runs on threads and on processes."""
    n, rank = comm.size, comm.rank
    a = comm.symmetric.empty((4, 5), "float32")
    assert isinstance(a, np.ndarray) and a.shape == (4, 5) and a.dtype == np.float32
    assert not a.any()
    a[:] = values(rank, (4, 5), "float32")
    comm.barrier()
    after = (rank + 1) % n
    assert np.array_equal(comm.symmetric.peer(a, after), values(after, (4, 5), "float32"))
    assert np.array_equal(comm.symmetric.peer(a[1:3], after), values(after, (4, 5), "float32")[1:3])
    comm.barrier()
    comm.all_reduce(a)
    assert np.array_equal(a, sum(values(r, (4, 5), "float32") for r in range(n)))
    comm.all_reduce(a[1:3])
    b = comm.symmetric.empty(7, ml_dtypes.bfloat16)
    b[:] = rank
    comm.broadcast(b, root=n - 1)
    assert (b == n - 1).all()
    comm.barrier()
    comm.symmetric.peer(b, after)[0] = 10 + rank
    comm.barrier()
    assert b[0] == 10 + (rank - 1) % n
    backwards = comm.split(color=0, key=-rank)  # where ranks have other numbers
    for i in range(n):
        assert backwards.symmetric.peer(b, i)[0] == 10 + (n - 1 - i - 1) % n
    with pytest.raises(hocket.InvalidArgument, match="rank is 9, expected a rank from 0"):
        comm.symmetric.peer(b, 9)
    alone = comm.split(color=rank)
    c = alone.symmetric.empty(3)
    if n > 1:
        with pytest.raises(hocket.InvalidArgument, match=f"rank {after} has no part of the array"):
            comm.symmetric.peer(c, after)
    comm.barrier()
    view = a[2]
    kept = view.copy()
    del a
    gc.collect()
    assert np.array_equal(view, kept)  # a view keeps the memory
    if n > 1:
        with pytest.raises(hocket.InvalidArgument, match="not symmetric"):
            comm.symmetric.peer(np.zeros(3), 0)
        comm.barrier()
    return True


def test_threads():
    assert all(threads(3, job))


def test_processes():
    assert all(hocket.spawn(job, 3))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_reduce_scatter_in_place_at_the_front_and_at_the_own_part(n):
    def ranks(comm):
        rank = comm.rank
        for count in (1, 7, 40_000, 300_000):
            brought = [(np.arange(n * count) % 7 + r).astype("float64") for r in range(n)]
            mine = slice(rank * count, (rank + 1) * count)
            wanted = sum(brought)[mine]
            arrays = (np.empty(n * count), comm.symmetric.empty(n * count, "float64"))
            for x in arrays:
                x[:] = brought[rank]
                comm.barrier()
                comm.reduce_scatter(x, out=x[mine])
                assert np.array_equal(x[mine], wanted)
                x[mine] = brought[rank][mine]
                assert np.array_equal(x, brought[rank])
                # Some at the front, some at their own part.
                to = slice(0, count) if rank % 2 else mine
                comm.reduce_scatter(x, out=x[to])
                assert np.array_equal(x[to], wanted)
                if n > 1:
                    another = slice(count, 2 * count)
                    with pytest.raises(hocket.InvalidArgument, match="overlap"):
                        comm.reduce_scatter(x, out=x[another if rank == 0 else mine])

    threads(n, ranks)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_all_to_all_in_place_on_some_ranks(n):
    def ranks(comm):
        # The last one goes in more than one round.
        for count in (1, 1000, 40_000, (20 << 20) // 8 // n):
            x, other = (comm.symmetric.empty(n * count, "float64") for _ in range(2))
            brought = [np.arange(n * count) + 0.25 * r for r in range(n)]
            mine = slice(comm.rank * count, (comm.rank + 1) * count)
            wanted = np.concatenate([b[mine] for b in brought])
            for those in ([], [0], [n - 1], range(0, n, 2), range(n)):
                x[:] = brought[comm.rank]
                out = x if comm.rank in those else other
                comm.all_to_all(x, out=out)
                assert np.array_equal(out, wanted)
                if out is other:
                    assert np.array_equal(x, brought[comm.rank])

    threads(n, ranks)
