"""cupyx.distributed's face on CuPy's arrays: ``python cupyx_on_gpus.py NAME RANK PORT``,
or by_mpi alone.

With HOCKET_TEST_DEVICE=cpu on NumPy's, to try it without GPUs.
"""

import os
import signal
import sys

import numpy as np

from hocket.compat.cupyx_distributed import NCCLBackend

ON_GPU = os.environ.get("HOCKET_TEST_DEVICE", "cuda") == "cuda"
if ON_GPU:
    import cupy as xp
else:
    xp = np
N = 2
COUNT = 1000
OPS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def values(rank, shape, dtype):
    """Small whole numbers that differ by rank and place, in host memory."""
    count = int(np.prod(shape))
    return ((np.arange(count) * 3 + rank * 5 + 1) % 4).reshape(shape).astype(dtype)


def expect(got, wanted, what):
    got = xp.asnumpy(got) if ON_GPU else got
    assert got.dtype == wanted.dtype and np.array_equal(got, wanted), (what, got, wanted)


def put(x):
    return xp.array(x, order="K")


def every_call(face):
    rank, other = face.rank, 1 - face.rank
    for dtype in "?bBhHiIlLqQefdFD":
        mine, theirs = (values(r, COUNT, dtype) for r in (rank, other))
        table = values(rank, (N, COUNT), dtype)
        tables = [values(r, (N, COUNT), dtype) for r in range(N)]
        for op in OPS if dtype not in "FD" else ["sum"]:
            wanted = OPS[op](mine, theirs).astype(dtype)
            out = put(np.zeros(COUNT, dtype))
            assert face.all_reduce(put(mine), out, op) is None
            expect(out, wanted, f"all_reduce {dtype} {op}")
            x = put(mine)
            face.all_reduce(x, x, op)
            expect(x, wanted, f"all_reduce in place {dtype} {op}")
            share = put(np.zeros(COUNT, dtype))
            face.reduce_scatter(put(table), share, COUNT, op)
            wanted_share = OPS[op](tables[0], tables[1]).astype(dtype)[rank]
            expect(share, wanted_share, f"reduce_scatter {dtype} {op}")
            for root in range(N):
                out = put(np.zeros(COUNT, dtype)) if rank == root else None
                face.reduce(put(mine), out, root, op)
                if rank == root:
                    expect(out, wanted, f"reduce {dtype} {op}")
        gathered = np.stack([values(r, COUNT, dtype) for r in range(N)])
        out = put(np.zeros((N, COUNT), dtype))
        face.all_gather(put(mine), out, COUNT)
        expect(out, gathered, f"all_gather {dtype}")
        face.all_to_all(put(table), out)
        expect(out, np.stack([t[rank] for t in tables]), f"all_to_all {dtype}")
        for root in range(N):
            x = put(mine)
            face.broadcast(x, root)
            expect(x, values(root, COUNT, dtype), f"broadcast {dtype}")
            out = put(np.zeros((N, COUNT), dtype)) if rank == root else None
            face.gather(put(mine), out, root)
            if rank == root:
                expect(out, gathered, f"gather {dtype}")
            share = put(np.zeros(COUNT, dtype))
            face.scatter(put(table), share, root)
            expect(share, tables[root][rank], f"scatter {dtype}")
        got = put(np.zeros(COUNT, dtype))
        if rank == 0:
            face.send(put(mine), other)
            face.recv(got, other)
        else:
            face.recv(got, other)
            face.send(put(mine), other)
        expect(got, theirs, f"recv {dtype}")
        face.send_recv(put(mine), got, other)
        expect(got, theirs, f"send_recv {dtype}")
    x = put(np.asfortranarray(values(rank, (2, 3), "d")))
    out = xp.zeros((2, 3), order="F")
    face.all_reduce(x, out)
    expect(out, values(0, (2, 3), "d") + values(1, (2, 3), "d"), "Fortran order")
    for _ in range(1000):
        face.barrier()
    if ON_GPU:  # on the stream that is given, behind what it has
        stream = xp.cuda.Stream(non_blocking=True)
        with stream:
            x = xp.zeros(1 << 20)
            for _ in range(50):
                x += 1
        out = xp.zeros(1 << 20)
        xp.cuda.get_current_stream().synchronize()
        face.all_reduce(x, out, "sum", stream)
        stream.synchronize()
        expect(out, np.full(1 << 20, 100.0), "a stream")


def dead_peer(face):
    x = put(np.ones(COUNT))
    face.all_reduce(x, x)
    face.barrier()
    if face.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        for _ in range(1_000_000):  # a stream goes on by itself: the next call says it
            face.all_reduce(x, x)
            if ON_GPU:
                xp.cuda.get_current_stream().synchronize()
    except ConnectionError as error:
        assert "rank 1" in str(error), error
        print("rank 1 died")


def by_mpi(face):
    x = put(np.full(3, face.rank + 1.0))
    face.broadcast(x, 1)
    assert (x == 2).all()
    print("met")


if __name__ == "__main__":
    name, meets_by_mpi = sys.argv[1], sys.argv[1] == "by_mpi"
    if meets_by_mpi:
        from mpi4py import MPI

        rank, port = MPI.COMM_WORLD.rank, None
    else:
        rank, port = int(sys.argv[2]), int(sys.argv[3])
    if ON_GPU:
        xp.cuda.Device(rank).use()
    globals()[name](NCCLBackend(N, rank, port=port, use_mpi=meets_by_mpi))
