"""One rank of a chaos job: it makes random calls with results that are known beforehand.

All ranks draw the same calls from the same seed. They report events to the runner by datagrams. A
shared file has each rank's progress, in eight bytes for each rank.
"""

import contextlib
import json
import mmap
import os
import random
import socket
import struct
import sys
import time

import numpy as np

import hocket

COUNTS = [1, 3, 100, 1000, 1000, 20_000]
LARGE = 200_000
# Stages, in the shared file: before joining, after it, after the last call.
STARTED, JOINED, LAST = 1, 2, 1 << 40


class WrongResult(Exception):
    """A call said that all was well, and it was not."""


class Teller:
    """A resource: this rank's way to the runner."""

    def __init__(self, folder, rank):
        self.rank = rank
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.connect(f"{folder}/told")
        with open(f"{folder}/stages", "r+b") as file:
            self.stages = mmap.mmap(file.fileno(), 0)

    def tell(self, **what):
        text = json.dumps({"rank": self.rank, "pid": os.getpid(), "at": time.monotonic(), **what})
        with contextlib.suppress(OSError):  # the runner may have given up
            self.socket.send(text.encode())

    def stage(self, number):
        struct.pack_into("q", self.stages, 8 * self.rank, number)


def own(rank, number, count):
    """A rank's array in call `number`: differs by rank, call and place; sums of it are exact."""
    return np.arange(count, dtype="float64") + (rank * 1000 + number % 1000) * 7


def check(what, got, expected):
    if hasattr(got, "get"):  # CuPy's
        got = got.get()
    if not np.array_equal(np.asarray(got).ravel(), np.asarray(expected).ravel()):
        raise WrongResult(f"{what}: got {np.asarray(got).ravel()[:4]}..., "
                          f"expected {np.asarray(expected).ravel()[:4]}...")


class Calls:
    """One rank's calls on one communicator; every method is a call and its check. `xp` makes its
    arrays: NumPy, or CuPy."""

    def __init__(self, comm, xp=np):
        self.comm, self.n, self.rank = comm, comm.size, comm.rank
        self.number, self.xp = 0, xp

    def call(self, name, *arguments, **options):
        """Makes a call and waits for its result."""
        if self.xp is np:
            return getattr(self.comm, name)(*arguments, **options)
        return getattr(self.comm, name + "_async")(*arguments, **options).synchronize()

    def own(self, count):
        return self.xp.asarray(own(self.rank, self.number, count))

    def total(self, count):
        return sum(own(r, self.number, count) for r in range(self.n))

    def wide(self, rank, count):
        """An array with a part for each rank."""
        return self.xp.asarray(
            np.stack([own(rank * 31 + r, self.number, count) for r in range(self.n)]))

    def all_reduce(self, count, root):
        x = self.own(count)
        self.call("all_reduce", x)
        check("all_reduce", x, self.total(count))

    def maximum(self, count, root):
        out = self.call("all_reduce", self.own(count).astype("int32"),
                        out=self.xp.empty(count, "int32"), op="max")
        check("all_reduce max", out, own(self.n - 1, self.number, count))

    def broadcast(self, count, root):
        x = self.own(count)
        self.call("broadcast", x, root=root)
        check("broadcast", x, own(root, self.number, count))

    def all_gather(self, count, root):
        out = self.call("all_gather", self.own(count))
        check("all_gather", out,
              np.concatenate([own(r, self.number, count) for r in range(self.n)]))

    def reduce(self, count, root):
        out = self.call("reduce", self.own(count),
                        out=self.xp.empty(count) if self.rank == root else None, root=root)
        if self.rank == root:
            check("reduce", out, self.total(count))

    def reduce_scatter(self, count, root):
        out = self.call("reduce_scatter", self.wide(self.rank, count))
        check("reduce_scatter", out,
              sum(own(r * 31 + self.rank, self.number, count) for r in range(self.n)))

    def all_to_all(self, count, root):
        out = self.call("all_to_all", self.wide(self.rank, count))
        check("all_to_all", out, np.concatenate(
            [own(r * 31 + self.rank, self.number, count) for r in range(self.n)]))

    def gather(self, count, root):
        out = self.call("gather", self.own(count), root=root)
        if self.rank == root:
            check("gather", out,
                  np.concatenate([own(r, self.number, count) for r in range(self.n)]))

    def scatter(self, count, root):
        x = self.wide(root, count) if self.rank == root else None
        out = self.call("scatter", x, out=self.xp.empty(count), root=root)
        check("scatter", out, own(root * 31 + self.rank, self.number, count))

    def ring(self, count, root):
        after, before = (self.rank + 1) % self.n, (self.rank - 1) % self.n
        if self.xp is np:
            out = self.comm.send_recv(self.own(count), after, out=np.empty(count), source=before)
            check("send_recv", out, own(before, self.number, count))
            return
        mine, theirs = self.own(count), self.xp.empty(count)
        # A stream may hold back a message until the calls after it, so one rank begins.
        calls = [lambda: self.comm.send_async(mine, after),
                 lambda: self.comm.recv_async(theirs, before)]
        for work in [call() for call in (calls if self.rank == 0 else calls[::-1])]:
            work.synchronize()
        check("send and recv", theirs, own(before, self.number, count))

    def many(self, count, root):
        works = [self.comm.all_reduce_async(self.xp.asarray(own(self.rank, self.number + i, count)))
                 for i in range(4)]
        for i, work in enumerate(works):
            check("all_reduce_async", work.synchronize(),
                  sum(own(r, self.number + i, count) for r in range(self.n)))

    def group(self, count, root):
        half = self.comm.split(color=self.rank % 2)
        members = range(self.rank % 2, self.n, 2)
        x = self.own(count)
        try:
            Calls(half, self.xp).call("all_reduce", x)
        except hocket.Error as error:
            error.ended = half  # and not what the other half goes on with
            raise
        check("all_reduce of half", x, sum(own(r, self.number, count) for r in members))
        half.close()

    def things(self, count, root):
        got = self.comm.all_gather_object({"rank": self.rank, "call": self.number})
        if got != [{"rank": r, "call": self.number} for r in range(self.n)]:
            raise WrongResult(f"all_gather_object: {got}")

    def refused(self, count, root):
        x = self.xp.zeros(count)
        try:
            self.comm.all_reduce(x, out=self.xp.zeros(count + (self.rank == root)))
        except hocket.InvalidArgument:
            return
        raise WrongResult("a refused call ended well")

    def barrier(self, count, root):
        self.comm.barrier()


CALLS = ["all_reduce", "all_reduce", "maximum", "broadcast", "all_gather", "reduce",
         "reduce_scatter", "all_to_all", "gather", "scatter", "ring", "many", "group", "things",
         "refused", "barrier"]


def arrays_of(spec, rank):
    """Returns the module that makes a rank's arrays."""
    if not spec.get("gpus"):
        return np
    import cupy

    cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()
    return cupy


def work(comm, spec, teller):
    """All calls of the job; returns when they have ended well."""
    draw = random.Random(spec["seed"])
    names = [name for name in CALLS if name not in spec.get("without", [])]
    calls = Calls(comm, arrays_of(spec, comm.rank))
    if spec.get("gpus"):
        calls.all_reduce(1, 0)  # messages between GPUs need that they know each other
    late = random.Random(f"{spec['seed']} {comm.rank}")  # each rank's own
    for number in range(spec["calls"]):
        calls.number = number
        if late.random() < (0.3 if number + 1 == spec["calls"] else 0.03):
            time.sleep(late.random() * 0.03)
        name = draw.choice(names)
        count = LARGE if draw.random() < 0.03 else draw.choice(COUNTS)
        teller.stage(JOINED + number)
        getattr(calls, name)(count, draw.randrange(comm.size))
    teller.stage(LAST)


def describe(error):
    status = getattr(error, "status", None)
    return {"kind": type(error).__name__, "peer": getattr(status, "peer", -1),
            "group": getattr(status, "communicator", "world"),
            "text": str(error)[:1000]}


def be_rank(spec, rank, folder):
    """Everything a rank does but ending its process; True where it ended in an allowed way."""
    teller = Teller(folder, rank)
    teller.stage(STARTED)
    comm = None
    try:
        comm = hocket.init(timeout=spec["join"], deadline=spec["deadline"], engines=spec["engines"],
                           **spec["meeting"](rank) if "meeting" in spec else {})
        teller.tell(what="joined")
        work(comm, spec, teller)
        teller.tell(what="end", kind="done")
    except hocket.Error as error:
        teller.tell(what="end", stage="join" if comm is None else "calls", **describe(error))
        if comm is not None and type(error).__name__ != "InvalidArgument":
            began = time.monotonic()
            try:
                getattr(error, "ended", comm).barrier(timeout=5)
                teller.tell(what="later", kind="done", took=0)
            except hocket.Error as later:
                teller.tell(what="later", took=time.monotonic() - began, **describe(later))
    except Exception as error:  # nothing else may leave hocket
        import traceback
        traceback.print_exc()
        teller.tell(what="end", kind=f"!{type(error).__name__}", peer=-1, text=str(error)[:1000])
    if comm is not None and spec["seed"] % 2 == 0:
        comm.close()


def be_threads(spec, folder):
    """The same by ranks that are threads of this process."""
    teller = Teller(folder, 0)
    teller.stage(STARTED)

    def rank(comm):
        comm.deadline = spec["deadline"]
        if comm.rank == 0:
            teller.tell(what="joined")
        work(comm, spec, teller)

    try:
        hocket.run_threads(rank, spec["size"])
        teller.tell(what="end", kind="done")
    except hocket.Error as error:
        teller.tell(what="end", stage="calls", **describe(error))


if __name__ == "__main__":  # under mpirun
    with open(sys.argv[1]) as file:
        started = json.load(file)
    number = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0")))
    be_rank(started, number, os.path.dirname(sys.argv[1]))
