"""hocket's Fourier transforms beside mpi4py-fft's, in turns within one run.

    mpirun -n 2 python bench/fft_mpi4py.py [--rounds 9] [N ...]

Complex double, N^3 (128 and 256), forward, from slabs of the first axis to slabs of the second, as
mpi4py-fft leaves its result. Both let FFTW measure when it plans. Prints milliseconds a transform:
the median of the rounds with their middle half. In a round each of them makes as many transforms as
take some tenths of a second, and the time is the slowest rank's. Ends with an error if the results
differ. Needs mpi4py-fft (``apt install libfftw3-dev libopenmpi-dev; pip install mpi4py mpi4py-fft``).
"""

import argparse
import statistics
import time

import numpy as np
from mpi4py import MPI
from mpi4py_fft import PFFT, newDistArray

import hocket
from hocket.distribution import Slab
from hocket.fft import FFT

WORLD = MPI.COMM_WORLD
ROUND_SECONDS = 0.3


def slowest(seconds):
    return WORLD.allreduce(seconds, MPI.MAX)


def a_call(call, calls):
    """Returns the seconds of a call on the slowest rank. A barrier starts all ranks together."""
    WORLD.Barrier()
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return slowest((time.perf_counter() - begin) / calls)


def transforms_of(comm, n):
    """Maps each library's name to its transform. Both work on the same data."""
    theirs = PFFT(WORLD, (n,) * 3, axes=(0, 1, 2), dtype=complex, slab=True)
    given, made = newDistArray(theirs, False), newDistArray(theirs, True)
    rows, columns = (Slab(axis).box((n,) * 3, comm.rank, comm.size) for axis in (0, 1))
    assert (given.shape, made.shape) == (rows.shape, columns.shape), "other slabs than wanted"
    draw = np.random.default_rng(comm.rank)
    given[:] = draw.standard_normal(rows.shape) + 1j * draw.standard_normal(rows.shape)
    x, y = np.array(given), np.empty(columns.shape, complex)
    ours = FFT(comm, (n,) * 3, rows, columns)
    return {"hocket": (lambda: ours(x, y), y),
            "mpi4py-fft": (lambda: theirs.forward(given, made, normalize=False), made)}


def measure(comm, n, rounds):
    both = transforms_of(comm, n)
    for call, _ in both.values():
        call()
    (ours, theirs) = (np.asarray(result) for _, result in both.values())
    error = slowest(float(abs(ours - theirs).max() / abs(theirs).max()))
    assert error < 1e-12, f"the results differ by {error}"
    calls = {name: max(1, int(ROUND_SECONDS / a_call(call, 3))) for name, (call, _) in both.items()}
    taken = {name: [] for name in both}
    for _ in range(rounds):
        for name, (call, _) in both.items():
            taken[name].append(1e3 * a_call(call, calls[name]))
    ratios = [a / b for a, b in zip(*taken.values(), strict=True)]
    if comm.rank == 0:
        said = ", ".join(f"{name} {statistics.median(times):.2f} ms" for name, times in taken.items())
        low, _, high = statistics.quantiles(ratios, n=4)
        print(f"{n}^3, {comm.size} ranks: {said}; ratio {statistics.median(ratios):.2f} ({low:.2f} to {high:.2f})",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("sizes", nargs="*", type=int, default=[128, 256])
    arguments = parser.parse_args()
    with hocket.init() as comm:
        for n in arguments.sizes:
            measure(comm, n, arguments.rounds)


if __name__ == "__main__":
    main()
