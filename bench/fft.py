"""Fourier transforms beside FFTW's own over MPI, in turns.

``python bench/fft.py [--ranks 2] [--sizes 128,256] [--turns 5] [--calls 10]``. Complex double, N^3, from
slabs to slabs of the other axis ("transposed") and back to the same. Both measure their plans, and both
use FFTW within a rank. Each turn is a job of its own, and its result is checked. The table has the
medians of the turns' medians, and the middle half of the ratios of neighbouring turns. Needs the
programs fft_hocket and fft_fftw in the build folder's bin/, which has to be in PATH: the second is built
where Open MPI and libfftw3-mpi-dev are.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys


def seconds(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=600,
                          env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    return statistics.median(float(s) for s in re.findall(r"seconds ([\d.]+)", done.stdout))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", default="128,256")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--calls", type=int, default=10)
    options = parser.parse_args()
    ours, theirs = shutil.which("fft_hocket"), shutil.which("fft_fftw")
    if ours is None:
        sys.exit("fft_hocket is not in PATH; build it, and put the build folder's bin/ there")
    ranks = str(options.ranks)
    mpirun = shutil.which("mpirun.openmpi") or "mpirun"
    print(f"{'N':>4} {'result':>10} {'hocket ms':>10} {'FFTW ms':>10}  ratio")
    for size in options.sizes.split(","):
        for transposed in (1, 0):
            words = [size, str(transposed), str(options.calls)]
            mine, other = [], []
            for _ in range(options.turns):
                mine.append(seconds(["hocket", "run", "-n", ranks, "--", ours, *words]))
                if theirs is not None:
                    other.append(seconds([mpirun, "-n", ranks, "--oversubscribe", theirs, *words]))
            line = f"{size:>4} {'transposed' if transposed else 'same':>10} "
            line += f"{statistics.median(mine) * 1e3:10.2f}"
            if other:
                ratios = sorted(a / b for a, b in zip(mine, other))
                low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
                line += f" {statistics.median(other) * 1e3:10.2f}  "
                line += f"{statistics.median(ratios):.2f} ({low:.2f} to {high:.2f})"
            print(line, flush=True)


if __name__ == "__main__":
    main()
