"""What the face of cupyx.distributed adds to hocket's own calls, in host time.

``hocket run -n 2 -- python bench/face_overhead.py``: microseconds a call on NumPy arrays of 8 bytes
(with ``--cupy``: on CuPy arrays), the least of many rounds, the two measured in turn. It prints a
table on rank 0, and fails where results are wrong.
"""

import sys
import time

import numpy as np

import hocket
from hocket.compat.cupyx_distributed import NCCLBackend

CALLS, ROUNDS = 500, 60


def time_each(calls, comm, synchronize):
    """Seconds a call of each, least of many rounds."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for i, call in enumerate(calls):
            comm.barrier()
            begin = time.perf_counter()
            for _ in range(CALLS):
                call()
            elapsed = time.perf_counter() - begin
            synchronize()
            best[i] = min(best[i], elapsed / CALLS)
    return best


def main():
    comm = hocket.init()
    face = NCCLBackend.over(comm.duplicate())
    xp, synchronize = np, lambda: None
    if "--cupy" in sys.argv:
        import cupy

        cupy.cuda.Device(comm.rank % cupy.cuda.runtime.getDeviceCount()).use()
        xp, synchronize = cupy, lambda: cupy.cuda.Device().synchronize()
    n, rank = comm.size, comm.rank
    x, out = xp.ones(1), xp.zeros(1)
    table, parts = xp.ones((n, 1)), xp.zeros((n, 1))
    pairs = {
        "all_reduce": (lambda: comm.all_reduce(x, out), lambda: face.all_reduce(x, out)),
        "reduce": (lambda: comm.reduce(x, out), lambda: face.reduce(x, out)),
        "broadcast": (lambda: comm.broadcast(x), lambda: face.broadcast(x)),
        "reduce_scatter": (
            lambda: comm.reduce_scatter(table, out),
            lambda: face.reduce_scatter(table, out, 1),
        ),
        "all_gather": (
            lambda: comm.all_gather(x, parts),
            lambda: face.all_gather(x, parts, 1),
        ),
        "gather": (lambda: comm.gather(x, parts), lambda: face.gather(x, parts)),
        "scatter": (lambda: comm.scatter(table, out), lambda: face.scatter(table, out)),
        "all_to_all": (
            lambda: comm.all_to_all(table, parts),
            lambda: face.all_to_all(table, parts),
        ),
        "send_recv": (
            lambda: comm.send_recv(x, rank, out, rank),
            lambda: face.send_recv(x, out, rank),
        ),
        "barrier": (comm.barrier, face.barrier),
    }
    rows = {name: time_each(pair, comm, synchronize) for name, pair in pairs.items()}
    comm.all_reduce(x, out)
    assert float(out[0]) == n, out
    if rank == 0:
        print(f"{'call':16}{'hocket':>10}{'face':>10}{'more':>10}   microseconds, {n} ranks")
        for name, (own, through) in rows.items():
            more = (through - own) * 1e6
            print(f"{name:16}{own * 1e6:10.2f}{through * 1e6:10.2f}{more:10.2f}")


main()
