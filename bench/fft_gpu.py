"""Fourier transforms on GPUs: how long a transform takes, and how much of it the transpose is.

``hocket run -n 2 -- python bench/fft_gpu.py [N ...]``. Complex double, N^3, from slabs to slabs of the
other axis; ranks share the GPUs that there are. Beside it the same transforms of the parts by cuFFT
alone, called by CuPy at the same time on all ranks, and a plain copy of the part. What the first takes
longer than the second is the transpose. Needs CuPy.
"""

import statistics
import sys

import cupy
import numpy as np

import hocket
from hocket.distribution import Slab
from hocket.fft import FFT

REPEATS, CALLS = 9, 10


def microseconds(comm, call):
    """The slowest rank's, a call; the median of some batches."""
    taken = []
    for _ in range(REPEATS):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        cupy.cuda.Device().synchronize()
        comm.barrier()
        begin.record()
        for _ in range(CALLS):
            call()
        end.record()
        end.synchronize()
        mine = np.array([cupy.cuda.get_elapsed_time(begin, end) * 1e3 / CALLS])
        taken.append(float(comm.all_reduce(mine, op="max")[0]))
    return statistics.median(taken)


def main():
    comm = hocket.init()
    gpu = comm.rank % cupy.cuda.runtime.getDeviceCount()
    with cupy.cuda.Device(gpu), cupy.cuda.Stream(non_blocking=True):
        for n in map(int, sys.argv[1:] or ["128", "256"]):
            rows, columns = (Slab(axis).box((n,) * 3, comm.rank, comm.size) for axis in (0, 1))
            x = cupy.ones(rows.shape, "complex128")
            y = cupy.empty(columns.shape, "complex128")
            z = cupy.empty(columns.shape, "complex128")
            plan = FFT(comm, (n,) * 3, rows, columns, gpu=gpu)
            plan(x, y)
            expected = n**3 if comm.rank == 0 else 0
            assert complex(y[0, 0, 0].get()) == expected, "the transform is wrong"
            whole = microseconds(comm, lambda: plan(x, y))
            planes = cupy.fft.fftn
            alone = microseconds(comm, lambda: (planes(x, axes=(1, 2)), planes(y, axes=(0,))))
            copy = microseconds(comm, lambda: cupy.copyto(z, y))
            if comm.rank == 0:
                transpose = whole - alone
                print(f"{n}^3: transform {whole:.0f} us, cuFFT alone {alone:.0f} us, transpose "
                      f"{transpose:.0f} us, copy of the part {copy:.0f} us "
                      f"(transpose at {100 * copy / transpose:.0f} % of the copy's rate)", flush=True)


main()
