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
