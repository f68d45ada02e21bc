"""Products of matrices on GPUs, a rank each, beside ranks that multiply as much each by itself.

``python bench/matmul_gpu.py [--ranks 2] [--dtype float64 ...] [N ...]``. N x N by N x N, in three
distributions: all by rows, all by columns, and A by columns with B by rows. The last column is the
speed relative to ranks that multiply a share of the same size with PyTorch and do not communicate.
Results are checked against rows of the whole product. Needs PyTorch.
"""

import argparse
import statistics
import subprocess
import sys

import torch

import hocket
from hocket._command import find_command
from hocket.distribution import Slab
from hocket.linalg import Matmul

REPEATS = 7
SPREADS = {
    "by rows": (Slab(0), Slab(0), Slab(0)),
    "by columns": (Slab(1), Slab(1), Slab(1)),
    "A by columns, B and D by rows": (Slab(1), Slab(0), Slab(0)),
}


def milliseconds(comm, call, calls):
    """Returns the milliseconds of a call on the slowest rank: the median of some batches."""
    taken = []
    for _ in range(REPEATS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        comm.barrier()
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        taken.append(max(comm.all_gather_object(begin.elapsed_time(end) / calls)))
    return statistics.median(taken)


def part(x, spread, comm):
    lower, upper = spread.box(tuple(x.shape), comm.rank, comm.size)
    return x[lower[0]:upper[0], lower[1]:upper[1]].contiguous()


def check(got, a, b, spread, comm):
    wanted = part(a.double() @ b.double(), spread, comm)
    error = ((got.double() - wanted).norm() / wanted.norm()).item()
    limit = {torch.float64: 1e-13, torch.float32: 1e-5}.get(got.dtype, 1e-2)
    if not error < limit:
        sys.exit(f"rank {comm.rank}: off by {error}, of at most {limit}")


def rank(comm, sizes, dtypes):
    gpu = comm.rank % torch.cuda.device_count()
    torch.cuda.set_device(gpu)
    for name in dtypes:
        dtype = getattr(torch, name)
        for n in sizes:
            torch.manual_seed(5)
            a, b = (torch.randn(n, n, device="cuda", dtype=dtype) for _ in range(2))
            share, out = part(a, Slab(0), comm), torch.empty_like(part(a, Slab(0), comm))
            calls = max(3, 40 * 1024 // n // 8)
            for how, spreads in SPREADS.items():
                plan = Matmul(comm, (n, n, n), *spreads, dtype=name, gpu=gpu)
                mine = [part(x, spread, comm) for x, spread in zip((a, b), spreads)]
                d = plan(*mine)
                check(d, a, b, spreads[2], comm)
                own = milliseconds(comm, lambda: torch.mm(share, b, out=out), calls)
                both = milliseconds(comm, lambda: plan(*mine, out=d), calls)
                if comm.rank == 0:
                    speed = 2 * n**3 / both / 1e9
                    print(f"{name:9} {n:6} {how:30} {plan.form:9} {both:9.3f} ms {speed:8.1f} TFLOP/s  "
                          f"{own / both:5.2f} of alone", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sizes", type=int, nargs="*", default=[2048, 4096, 8192])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--dtype", nargs="+", default=["float64", "float32", "bfloat16"])
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        rank(hocket.init(), given.sizes, given.dtype)
        return 0
    return subprocess.call([find_command(), "run", "-n", str(given.ranks), "--", sys.executable, __file__,
                            "--inside", "--dtype", *given.dtype, "--", *map(str, given.sizes)])


if __name__ == "__main__":
    sys.exit(main())
