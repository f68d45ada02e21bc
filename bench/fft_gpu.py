"""Fourier transforms on a GPU that ranks share, or on a GPU a rank.

``python bench/fft_gpu.py [--ranks 2] [--gpus 1] [--threads] [N ...]``. Complex double, N^3, from
slabs of one axis to slabs of another. First one rank transforms the whole array alone, then all
ranks transform it together. On one GPU the extra time is the transpose; it is compared with a plain
copy of the whole array. On several GPUs it prints the speedup over one. Ranks are processes, or with
--threads threads of one process. Needs CuPy.
"""

import argparse
import statistics
import subprocess
import sys

import cupy
import numpy as np

import hocket
from hocket._command import find_command
from hocket.distribution import Box, Slab
from hocket.fft import FFT

REPEATS, CALLS = 9, 10


def microseconds(comm, call):
    """Returns the microseconds of a call on the slowest rank: the median of some batches."""
    taken = []
    for _ in range(REPEATS):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        cupy.cuda.get_current_stream().synchronize()
        comm.barrier()
        begin.record()
        for _ in range(CALLS):
            call()
        end.record()
        end.synchronize()
        mine = np.array([cupy.cuda.get_elapsed_time(begin, end) * 1e3 / CALLS])
        taken.append(float(comm.all_reduce(mine, op="max")[0]))
    return statistics.median(taken)


def alone(comm, n):
    """Returns one rank's times of the whole transform and of a copy, while the other ranks wait."""
    own = comm.split(comm.rank)
    times = [0.0, 0.0]
    if comm.rank == 0:
        x, y = cupy.ones((n,) * 3, "complex128"), cupy.empty((n,) * 3, "complex128")
        plan = FFT(own, (n,) * 3, Box((0,) * 3, (n,) * 3), gpu=0)
        times = [microseconds(own, lambda: plan(x, y)), microseconds(own, lambda: cupy.copyto(y, x))]
        del x, y, plan
        cupy.get_default_memory_pool().free_all_blocks()
    return comm.broadcast_object(times)


def rank(comm, sizes, gpus):
    gpu = comm.rank % gpus
    with cupy.cuda.Device(gpu), cupy.cuda.Stream(non_blocking=True):
        for n in sizes:
            whole, copy = alone(comm, n)
            rows, columns = (Slab(axis).box((n,) * 3, comm.rank, comm.size) for axis in (0, 1))
            x, y = cupy.ones(rows.shape, "complex128"), cupy.empty(columns.shape, "complex128")
            plan = FFT(comm, (n,) * 3, rows, columns, gpu=gpu)
            plan(x, y)
            assert abs(y[0, 0, 0].get() - (n**3 if comm.rank == 0 else 0)) < 1e-6 * n**3
            together = microseconds(comm, lambda: plan(x, y))
            if comm.rank != 0:
                continue
            transpose = together - whole
            what = (f"{whole / together:.2f} times as quick" if gpus > 1 else
                    f"transpose {transpose:.0f} us, a copy {copy:.0f} us ({100 * copy / transpose:.0f} %)")
            print(f"{n}^3: {comm.size} ranks {together:.0f} us, one {whole:.0f} us, {what}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--threads", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("sizes", nargs="*", type=int, default=[128, 256])
    options = parser.parse_args()
    if options.threads:
        hocket.run_threads(lambda comm: rank(comm, options.sizes, options.gpus), options.ranks)
    elif options.inside:
        rank(hocket.init(), options.sizes, options.gpus)
    else:
        words = [find_command(), "run", "-n", str(options.ranks), "--", sys.executable, __file__,
                 "--inside", "--gpus", str(options.gpus)]
        sys.exit(subprocess.run([*words, *map(str, options.sizes)]).returncode)


if __name__ == "__main__":
    main()
