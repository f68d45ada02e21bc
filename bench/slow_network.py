"""Measures the time that 8 bits an element save on a slow network.

Run on rank R of two hosts: ``python bench/slow_network.py R HOST:PORT KEYFILE``. The hosts may be
network namespaces; with one kernel set UCX_TLS=tcp,self. Rank 0 is on HOST, and ``hocket key`` made
the key file. Prints milliseconds for the mean of 16 MiB of float32: the least of several rounds. Also
prints the largest error of the compressed mean beside its bound.
"""

import sys
import time

import numpy as np

import hocket

COUNT, ROUNDS = 1 << 22, 5


def least_time(comm, call):
    """Returns the seconds of `call`, from barrier to barrier: the least of several rounds."""
    times = []
    for _ in range(ROUNDS):
        comm.barrier()
        begin = time.perf_counter()
        call()
        comm.barrier()
        times.append(time.perf_counter() - begin)
    return min(times)


def main(rank, address, key):
    comm = hocket.init(rank=rank, size=2, address=address, key=key)
    mine = np.random.default_rng(rank).normal(size=COUNT).astype("float32")
    exact, compressed = mine.copy(), mine.copy()
    comm.all_reduce(exact, op="avg")
    comm.compressed_all_reduce(compressed, op="avg")
    error = float(np.abs(exact - compressed).max())
    ranges = np.array([np.ptp(mine)])  # range of the whole array, which bounds the range of each block
    comm.all_reduce(ranges)
    bound = float(ranges[0]) / 254 / comm.size + 1e-5
    assert error <= bound, (error, bound)
    scratch = mine.copy()
    plain = least_time(comm, lambda: comm.all_reduce(scratch, op="avg"))
    small = least_time(comm, lambda: comm.compressed_all_reduce(scratch, op="avg"))
    if rank == 0:
        print(f"all_reduce {plain * 1e3:.0f} ms, compressed_all_reduce {small * 1e3:.0f} ms; "
              f"error {error:.4f}, bound {bound:.4f}")


main(int(sys.argv[1]), *sys.argv[2:])
