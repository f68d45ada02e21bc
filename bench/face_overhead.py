"""Host time of calls from Python: hocket's, prepared ones, and through cupyx.distributed's face.

``hocket run -n 2 -- python bench/face_overhead.py [--arrays numpy|cupy|torch] [--original PORT]``.
Prints microseconds a call on arrays of 8 bytes (PyTorch's on GPUs): the least of many rounds. All
cases alternate. hocket's cupyx.distributed takes no tensors of PyTorch. ``--original``: on CuPy's
arrays, also measures CuPy's own communicator, whose ranks meet at this port. Rank 0 prints a table.
The program fails if results are wrong.
"""

import argparse
import time

import numpy as np

import hocket

COLUMNS = ("hocket", "prepared", "face", "original")


def time_each(calls, comm, synchronize, options):
    """Returns the seconds of one call for each of `calls`: the least of many rounds."""
    best = [float("inf")] * len(calls)
    for _ in range(options.rounds):
        for i, call in enumerate(calls):
            synchronize()
            comm.barrier()
            begin = time.perf_counter()
            for _ in range(options.calls):
                call()
            best[i] = min(best[i], (time.perf_counter() - begin) / options.calls)
    synchronize()
    return best


def own_calls(comm, arrays):
    """Maps the name of each call to two functions: one makes it, the other prepares it or is None."""
    x, out, table, parts = arrays
    n, rank = comm.size, comm.rank
    collectives = {
        "all_reduce": (x, out),
        "reduce": (x, out),
        "broadcast": (x,),
        "reduce_scatter": (table, out),
        "all_gather": (x, parts),
        "gather": (x, parts),
        "scatter": (table, out),
        "all_to_all": (table, parts),
    }
    calls = {}
    for name, args in collectives.items():
        method, prepare = getattr(comm, name), getattr(comm, f"prepare_{name}")
        calls[name] = {"hocket": lambda f=method, a=args: f(*a), "prepared": prepare(*args)}
    peer = rank ^ 1
    calls["send, recv"] = {"hocket": lambda: None}
    if peer < n:
        calls["send, recv"]["hocket"] = (
            (lambda: comm.send(x, peer)) if rank < peer else (lambda: comm.recv(out, peer))
        )
    calls["send_recv"] = {"hocket": lambda: comm.send_recv(x, rank, out, rank)}
    calls["barrier"] = {"hocket": comm.barrier}
    return calls


def face_calls(face, arrays, n, rank):
    """Returns the same calls, made through a communicator of hocket's cupyx.distributed."""
    x, out, table, parts = arrays
    peer = rank ^ 1
    message = lambda: None  # noqa: E731
    if peer < n:
        message = (lambda: face.send(x, peer)) if rank < peer else (lambda: face.recv(out, peer))
    return {
        "all_reduce": lambda: face.all_reduce(x, out),
        "reduce": lambda: face.reduce(x, out),
        "broadcast": lambda: face.broadcast(x),
        "reduce_scatter": lambda: face.reduce_scatter(table, out, 1),
        "all_gather": lambda: face.all_gather(x, parts, 1),
        "gather": lambda: face.gather(x, parts),
        "scatter": lambda: face.scatter(table, out),
        "all_to_all": lambda: face.all_to_all(table, parts),
        "send, recv": message,
        "send_recv": lambda: face.send_recv(x, out, rank),
        "barrier": face.barrier,
    }


def make_arrays(kind, n, rank):
    """Returns arrays of one element and of n, and a function that waits until the GPU is idle."""
    if kind == "numpy":
        return (np.ones(1), np.zeros(1), np.ones((n, 1)), np.zeros((n, 1))), lambda: None
    if kind == "cupy":
        import cupy

        cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()
        arrays = cupy.ones(1), cupy.zeros(1), cupy.ones((n, 1)), cupy.zeros((n, 1))
        return arrays, lambda: cupy.cuda.Device().synchronize()
    import torch

    torch.cuda.set_device(rank % torch.cuda.device_count())
    how = {"dtype": torch.float64, "device": "cuda"}
    arrays = torch.ones(1, **how), torch.zeros(1, **how), torch.ones(n, 1, **how)
    return (*arrays, torch.zeros(n, 1, **how)), torch.cuda.synchronize


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arrays", choices=["numpy", "cupy", "torch"], default="numpy")
    parser.add_argument("--original", type=int, metavar="PORT")
    parser.add_argument("--calls", type=int, default=500, help="calls a round")
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    comm = hocket.init()
    n, rank = comm.size, comm.rank
    arrays, synchronize = make_arrays(options.arrays, n, rank)
    comm.all_reduce(arrays[0], arrays[1])  # messages between GPUs come after a collective call
    synchronize()
    rows = own_calls(comm, arrays)
    faces = {}
    if options.arrays != "torch":
        from hocket.compat.cupyx_distributed import NCCLBackend

        faces["face"] = NCCLBackend.over(comm.duplicate())
        faces["face"].all_reduce(arrays[0], arrays[1])
    if options.original is not None:
        from cupyx.distributed import NCCLBackend as Original

        faces["original"] = Original(n, rank, port=options.original)
    for column, face in faces.items():
        for name, call in face_calls(face, arrays, n, rank).items():
            if (column, name) != ("original", "barrier"):  # it deadlocks after a few calls
                rows[name][column] = call
    columns = [column for column in COLUMNS if any(column in row for row in rows.values())]
    if rank == 0:
        print(f"{options.arrays:16}" + "".join(f"{column:>10}" for column in columns)
              + f"   microseconds, {n} ranks")
    for name, row in rows.items():
        times = dict(zip(row, time_each(row.values(), comm, synchronize, options)))
        if rank == 0:
            cells = (f"{times[c] * 1e6:10.2f}" if c in times else " " * 10 for c in columns)
            print(f"{name:16}" + "".join(cells), flush=True)
    comm.all_reduce(arrays[0], arrays[1])
    assert float(arrays[1][0]) == n, arrays[1]


main()
