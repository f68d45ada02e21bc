"""Calls in CUDA graphs by ranks that are threads: several to a GPU, or beside NCCL's ways.

``python bench/gpu_ranks.py --ranks 4`` on two GPUs puts two ranks on each. This shows the time that
four GPUs would need, except that ranks of one GPU share its links. ``--nccl``, with one GPU for each
rank, also measures NCCL: on plain memory, on memory registered with it, and in windows (NCCL's
symmetric memory, 2.27 and later). Sizes are bytes of the larger of a rank's arrays, float32. All
cases alternate. The table has the median of a case's batches, and a batch counts the slowest rank.
Outputs are filled with a wrong value first, and all results are checked. Needs CuPy.
"""

import argparse
import ctypes
import os
import statistics
import sys
import threading

import cupy
import numpy as np

import hocket

OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "ring", "barrier")


class Nccl:
    """The functions of NCCL's library that this benchmark calls."""

    FLOAT32, SUM, COLLECTIVES_SYMMETRIC = 7, 0, 1

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.id = (ctypes.c_char * 128)()
        self("ncclGetUniqueId", self.id)

    def __call__(self, name, *args):
        code = getattr(self.library, name)(*args)
        if code != 0:
            raise RuntimeError(f"{name} failed with {code}")

    def communicator(self, size, rank):
        class Id(ctypes.Structure):
            _fields_ = [("bytes", ctypes.c_char * 128)]

        comm = ctypes.c_void_p()
        self("ncclCommInitRank", ctypes.byref(comm), size, Id.from_buffer(self.id), rank)
        return comm

    def empty(self, count):
        """Returns an array of float32 in memory of ncclMemAlloc."""
        address = ctypes.c_void_p()
        self("ncclMemAlloc", ctypes.byref(address), ctypes.c_size_t(4 * count))
        memory = cupy.cuda.UnownedMemory(address.value, 4 * count, self)
        return cupy.ndarray(count, "float32", cupy.cuda.MemoryPointer(memory, 0))

    def register(self, comm, array):
        handle = ctypes.c_void_p()
        self("ncclCommRegister", comm, ctypes.c_void_p(array.data.ptr),
             ctypes.c_size_t(array.nbytes), ctypes.byref(handle))

    def window(self, comm, array):
        handle = ctypes.c_void_p()
        self("ncclCommWindowRegister", comm, ctypes.c_void_p(array.data.ptr),
             ctypes.c_size_t(array.nbytes), ctypes.byref(handle), self.COLLECTIVES_SYMMETRIC)

    def collective(self, op, comm, x, out, stream):
        """Returns a function that enqueues `op` on the stream; None if NCCL has no single call for it."""
        a, b = ctypes.c_void_p(x.data.ptr), ctypes.c_void_p(out.data.ptr)
        count = ctypes.c_size_t(min(x.size, out.size))
        add, at = self.SUM, ctypes.c_void_p(stream.ptr)
        name, args = {
            "all_reduce": ("ncclAllReduce", (a, b, count, self.FLOAT32, add, comm, at)),
            "all_gather": ("ncclAllGather", (a, b, count, self.FLOAT32, comm, at)),
            "reduce_scatter": ("ncclReduceScatter", (a, b, count, self.FLOAT32, add, comm, at)),
        }.get(op, (None, None))
        return name and (lambda: self(name, *args))


def data(op, size, rank, count):
    """Returns the input of a rank: whole numbers, whose sums are exact."""
    return np.random.default_rng([size, rank, count, OPS.index(op)]).integers(
        0, 1000, count).astype("float32")


def counts(op, size, count):
    """Returns the elements of a rank's input and output; the larger has about `count`."""
    part = max(count // size, 1)
    return {"all_gather": (part, part * size), "reduce_scatter": (part * size, part),
            "all_to_all": (part * size, part * size)}.get(op, (count, count))


def wanted(op, size, rank, n_in):
    """Returns the expected output of a rank, computed on the host."""
    inputs = [data(op, size, r, n_in) for r in range(size)]
    if op == "ring":
        return inputs[rank - 1]
    if op == "all_gather":
        return np.concatenate(inputs)
    if op == "all_to_all":
        return np.concatenate([x.reshape(size, -1)[rank] for x in inputs])
    total = sum(inputs[1:], inputs[0].copy())
    return total if op == "all_reduce" else total.reshape(size, -1)[rank]


def own_call(op, comm, x, out, stream):
    """Returns a function that enqueues `op` of hocket on the stream."""
    if op == "barrier":
        return lambda: comm.barrier(stream=stream)
    if op == "ring":
        to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        return lambda: comm.send_recv(x, to, out, source, stream=stream)
    return lambda: getattr(comm, op)(x, out, stream=stream)


class Ways:
    """The arrays of one rank for each case: hocket or NCCL, in each kind of memory."""

    def __init__(self, comm, stream, most, nccl):
        self.comm, self.stream, self.nccl = comm, stream, nccl
        self.arrays = {
            "hocket": [cupy.empty(most, "float32") for _ in range(2)],
            "hocket symmetric": [
                cupy.from_dlpack(comm.symmetric.empty(most, "float32", memory="cuda"))
                for _ in range(2)],
        }
        if nccl is None:
            return
        self.nccl_comm = nccl.communicator(comm.size, comm.rank)
        self.arrays["NCCL"] = self.arrays["hocket"]
        for name, register in (("NCCL registered", nccl.register), ("NCCL window", nccl.window)):
            self.arrays[name] = [nccl.empty(most) for _ in range(2)]
            for array in self.arrays[name]:
                register(self.nccl_comm, array)

    def case(self, name, op, n_in, n_out):
        """Returns the call and its arrays. The call is None if this case has no such call."""
        x, out = self.arrays[name][0][:n_in], self.arrays[name][1][:n_out]
        if not name.startswith("NCCL"):
            return own_call(op, self.comm, x, out, self.stream), x, out
        return self.nccl.collective(op, self.nccl_comm, x, out, self.stream), x, out


class Turns:
    """State that the ranks share: a meeting point, and times."""

    def __init__(self, size):
        self.barrier = threading.Barrier(size)
        self.times = [0.0] * size

    def meet(self):
        self.barrier.wait(120)

    def slowest(self, rank, microseconds):
        self.times[rank] = microseconds
        self.meet()
        slowest = max(self.times)
        self.meet()
        return slowest


def capture(stream, call, calls):
    stream.begin_capture(cupy.cuda.runtime.streamCaptureModeThreadLocal)
    for _ in range(calls):
        call()
    return stream.end_capture()


def measure(turns, comm, stream, graph, calls):
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    turns.meet()
    comm.barrier(stream=stream)  # the first rank to launch waits here for the others
    begin.record(stream)
    graph.launch(stream)
    end.record(stream)
    stream.synchronize()
    return turns.slowest(comm.rank, cupy.cuda.get_elapsed_time(begin, end) * 1000 / calls)


def run_case(op, count, ways, turns, options):
    """Returns microseconds a call: maps the name of each case to the median of its batches."""
    comm, stream, rank = ways.comm, ways.stream, ways.comm.rank
    n_in, n_out = counts(op, comm.size, count)
    calls = 1000 if count <= 1 << 16 else 200 if count <= 1 << 20 else 50
    ready, expected = {}, None if op == "barrier" else wanted(op, comm.size, rank, n_in)
    for name in ways.arrays:
        call, x, out = ways.case(name, op, n_in, n_out)
        if call is None or (op == "barrier" and name != "hocket"):
            continue
        if expected is not None:
            x.set(data(op, comm.size, rank, n_in))
            out.fill(np.nan)
        cupy.cuda.Device().synchronize()
        turns.meet()
        call()
        stream.synchronize()
        graph = capture(stream, call, calls)
        turns.meet()
        out.fill(np.nan)
        cupy.cuda.Device().synchronize()
        measure(turns, comm, stream, graph, calls)
        if expected is not None and not np.array_equal(out.get(), expected):
            raise AssertionError(f"{name}: {op} of {4 * count} bytes is wrong on rank {rank}")
        turns.meet()
        ready[name] = graph
    batches = {name: [] for name in ready}
    for _ in range(options.repeats):
        for name, graph in ready.items():
            batches[name].append(measure(turns, comm, stream, graph, calls))
    return {name: statistics.median(times) for name, times in batches.items()}


def run_rank(comm, turns, nccl, options):
    gpus = cupy.cuda.runtime.getDeviceCount()
    with cupy.cuda.Device(comm.rank % gpus):
        cupy.cuda.set_allocator(None)  # CuPy's pool would share freed memory between streams
        stream = cupy.cuda.Stream(non_blocking=True)
        try:
            ways = Ways(comm, stream, max(options.sizes) // 4, nccl)
            if comm.rank == 0:
                names = list(ways.arrays)
                print(f"{comm.size} ranks on {min(gpus, comm.size)} GPUs, microseconds a call\n"
                      f"{'':14}{'bytes':>11}" + "".join(f"{n:>18}" for n in names), flush=True)
            for op in options.ops:
                for size in options.sizes if op != "barrier" else options.sizes[:1]:
                    times = run_case(op, size // 4, ways, turns, options)
                    if comm.rank == 0:
                        cells = (f"{times[n]:18.2f}" if n in times else " " * 18 for n in names)
                        print(f"{op:14}{size if op != 'barrier' else '':>11}" + "".join(cells),
                              flush=True)
        except BaseException:
            turns.barrier.abort()
            raise
        cupy.cuda.Device().synchronize()
        turns.meet()


def byte_sizes(text):
    units = {"K": 10, "M": 20, "G": 30}
    return [int(s[:-1]) << units[s[-1]] if s[-1] in units else int(s) for s in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--ops", type=lambda s: s.split(","), default=OPS, help=",".join(OPS))
    parser.add_argument("--sizes", type=byte_sizes, default=byte_sizes("8,4K,64K,256K,1M,4M,16M,64M"))
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--nccl", nargs="?", const="libnccl.so.2", metavar="LIBRARY")
    options = parser.parse_args()
    gpus = cupy.cuda.runtime.getDeviceCount()
    if options.nccl and options.ranks > gpus:
        sys.exit(f"NCCL wants a GPU a rank: {options.ranks} ranks, {gpus} GPUs")
    os.environ["NCCL_NVLS_ENABLE"] = "0"
    nccl = Nccl(options.nccl) if options.nccl else None
    hocket.run_threads(run_rank, options.ranks, Turns(options.ranks), nccl, options)


if __name__ == "__main__":
    main()
