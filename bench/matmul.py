"""Products of matrices beside ScaLAPACK's pdgemm, in turns.

``python bench/matmul.py [--ranks 2] [--sizes 2048,4096] [--rows 1] [--block 64] [--turns 5] [--calls 3]``.
Doubles, N x N, in square blocks that are dealt out over a grid of `rows`. Both use the BLAS that
HOCKET_BLAS_LIBRARY and the system's alternatives name, one thread a rank. Each turn is a job of its own,
and its result is checked. The table has the medians of the turns' medians, the middle half of the ratios
of neighbouring turns, and how much of the speed is reached that the ranks have when each multiplies by
itself. Needs the programs matmul_hocket and matmul_scalapack in the build folder's bin/, which has to be
in PATH: the second is built where Open MPI and libscalapack-openmpi-dev are.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys


def seconds(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600,
                          env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMP_NUM_THREADS": "1",
                               "OPENBLAS_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return statistics.median(float(s) for s in re.findall(r"seconds ([\d.]+)", done.stdout))


def spread_of(values):
    values = sorted(values)
    low, high = values[len(values) // 4], values[-1 - len(values) // 4]
    return f"{statistics.median(values):.2f} ({low:.2f} to {high:.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", default="2048,4096")
    parser.add_argument("--rows", type=int, help="the grid's; by default 2 of four ranks, else 1")
    parser.add_argument("--block", type=int, default=64)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--calls", type=int, default=3)
    options = parser.parse_args()
    ours, theirs = shutil.which("matmul_hocket"), shutil.which("matmul_scalapack")
    if ours is None:
        sys.exit("matmul_hocket is not in PATH; build it, and put the build folder's bin/ there")
    ranks, rows = str(options.ranks), options.rows or (2 if options.ranks == 4 else 1)
    mpirun = shutil.which("mpirun.openmpi") or "mpirun"
    print(f"{ranks} ranks, a grid of {rows} rows, blocks of {options.block}")
    print(f"{'N':>5} {'hocket ms':>10} {'pdgemm ms':>10}  {'ratio':22} speed beside ranks alone")
    for size in options.sizes.split(","):
        words = [size, str(rows), str(options.block), str(options.calls)]
        mine, other, alone = [], [], []
        for _ in range(options.turns):
            mine.append(seconds(["hocket", "run", "-n", ranks, "--", ours, *words]))
            if theirs is not None:
                other.append(seconds([mpirun, "-n", ranks, "--oversubscribe", theirs, *words]))
            alone.append(seconds(["hocket", "run", "-n", ranks, "--", ours, *words, "alone"]))
        line = f"{size:>5} {statistics.median(mine) * 1e3:10.1f} "
        line += f"{statistics.median(other) * 1e3:10.1f}  " if other else f"{'':10}  "
        line += f"{spread_of(a / b for a, b in zip(mine, other)) if other else '':22} "
        print(line + spread_of(a / b for a, b in zip(alone, mine)), flush=True)


if __name__ == "__main__":
    main()
