#!/usr/bin/env python3
"""How long a job is without a rank: from a kill to the next good call, and to a full team again.

    bench/newcomers.py --ranks 4 --rounds 100                  # PYTHONPATH as for the tests
    bench/newcomers.py --ranks 2 --rounds 20 --device cuda     # CuPy's arrays, a GPU a rank

Each round is a job of its own, with a spare process that waits at its door. The last rank kills
itself. The others call `rebuild`, or `admit`. All processes are on this host. The next successful
call is an all_reduce of `--count` elements, whose values are checked.
"""

import argparse
import contextlib
import os
import signal
import statistics
import struct
import tempfile
import time

import numpy as np

import hocket

FORMAT = struct.Struct("d")


def now():
    """Returns the time of a clock that is the same in all processes of this host."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


class Arrays:
    """The arrays of one process: on the host, or on the GPU with the number of its place in the job."""

    def __init__(self, options, place):
        self.count = options.count
        self.on_gpu = options.device == "cuda"
        self.library = np
        if self.on_gpu:
            import cupy  # imported late: only a forked child may be the first to use a GPU

            cupy.cuda.Device(place % cupy.cuda.runtime.getDeviceCount()).use()
            self.library = cupy

    def values(self, rank):
        return self.library.arange(self.count, dtype="float32") % 1000 + rank

    def check_all_reduce(self, comm):
        total = comm.all_reduce(self.values(comm.rank))
        expected = sum(self.values(rank) for rank in range(comm.size))
        assert bool((total == expected).all()), (comm.rank, comm.size)


def run_spare(options, door, ready, done):
    arrays = Arrays(options, options.ranks - 1)
    arrays.values(0)
    os.write(ready, b".")
    comm = hocket.init(join=door, timeout=60)
    arrays.check_all_reduce(comm)
    os.read(done, 1)


def run_member(rank, options, address, killed, told, done):
    arrays = Arrays(options, rank)
    comm = hocket.init(rank=rank, size=options.ranks, address=address, timeout=60)
    arrays.check_all_reduce(comm)
    if rank == options.ranks - 1:
        time.sleep(options.settle)
        os.write(killed, FORMAT.pack(now()))
        os.kill(os.getpid(), signal.SIGKILL)
    with contextlib.suppress(hocket.PeerDied, hocket.Aborted):
        while True:
            comm.all_reduce(arrays.values(rank))
            if arrays.on_gpu:
                arrays.library.cuda.get_current_stream().synchronize()
    comm = comm.admit(patience=30) if options.spare else comm.rebuild()
    assert comm.size == options.ranks - (not options.spare)
    arrays.check_all_reduce(comm)
    os.write(told, FORMAT.pack(now()))
    os.read(done, 1)


def play_round(number, options, folder):
    """Returns the seconds from the kill to the next successful call of the last member."""
    address = f"unix:{folder}-{number}".replace("/", "-")
    os.environ["HOCKET_DOOR"] = f"{address}-door"
    killed, told, ready, done = (os.pipe() for _ in range(4))
    bodies = [
        lambda rank=rank: run_member(rank, options, address, killed[1], told[1], done[0])
        for rank in range(options.ranks)
    ]
    if options.spare:
        bodies.insert(0, lambda: run_spare(options, os.environ["HOCKET_DOOR"], ready[1], done[0]))
    children = []
    for number, body in enumerate(bodies):
        pid = os.fork()
        if pid == 0:
            os.close(done[1])
            code = 1
            try:
                body()
                code = 0
            finally:
                os._exit(code)
        children.append(pid)
        if options.spare and number == 0:
            os.read(ready[0], 1)
    began = FORMAT.unpack(os.read(killed[0], FORMAT.size))[0]
    ends = [FORMAT.unpack(os.read(told[0], FORMAT.size))[0] for _ in range(options.ranks - 1)]
    for pipe in (killed, told, ready, done):
        os.close(pipe[1])
        os.close(pipe[0])
    for child in children:
        os.waitpid(child, 0)
    return max(ends) - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=4, help="ranks of the job, the dead one included")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--settle", type=float, default=0.2, help="seconds before the kill")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--count", type=int, default=1, help="elements of an all_reduce")
    options = parser.parse_args()
    folder = tempfile.mktemp(prefix="hocket-newcomers-", dir="/")
    for options.spare in (False, True):
        times = sorted(
            play_round(f"{options.spare:d}-{number}", options, folder)
            for number in range(options.rounds)
        )
        what = "full team again" if options.spare else "next good call"
        print(
            f"{options.ranks} ranks, kill to {what}: median {statistics.median(times) * 1e3:.1f} ms, "
            f"99 % {times[int(len(times) * 0.99)] * 1e3:.1f} ms, {len(times)} rounds",
            flush=True,
        )


if __name__ == "__main__":
    main()
