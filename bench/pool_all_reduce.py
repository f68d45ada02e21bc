"""all_reduce over the workers of a pool, against tike's scheme written with NumPy, in one run.

In tike each worker fetches every array and adds them up: n * n arrays move. In hocket each worker
reduces one part for all. Both alternate; prints medians and quartiles of the seconds of a call.

    python bench/pool_all_reduce.py [--workers 4] [--mib 64] [--repeats 11]
"""

import argparse
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from hocket.compat.tike_communicators import ThreadPool


def scheme(executor, x):
    """Does the work of all of tike's workers in the executor's threads."""

    def worker(_):
        total = 0
        for part in x:
            total += np.array(part)  # the copy to the worker
        return total

    return list(executor.map(worker, x))


def seconds(call, *args):
    start = time.perf_counter()
    result = call(*args)
    return time.perf_counter() - start, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--mib", type=int, default=64, help="of each worker's array")
    parser.add_argument("--repeats", type=int, default=11)
    options = parser.parse_args()
    count = options.mib * 2**20 // 4
    rng = np.random.default_rng(1)
    x = [rng.integers(0, 100, count).astype("float32") for _ in range(options.workers)]
    wanted = sum(x[1:], x[0].copy())
    times = {"tike's scheme": [], "hocket": []}
    with ThreadPool(options.workers, xp=np) as pool, ThreadPoolExecutor(options.workers) as theirs:
        for _ in range(options.repeats):
            for name, call in (("tike's scheme", lambda: scheme(theirs, x)),
                               ("hocket", lambda: pool.allreduce(x))):
                taken, result = seconds(call)
                assert all(np.array_equal(r, wanted) for r in result), name
                del result
                times[name].append(taken)
    for name, taken in times.items():
        low, middle, high = statistics.quantiles(taken, n=4)
        print(f"{name:14} {middle * 1e3:8.1f} ms  ({low * 1e3:.1f} to {high * 1e3:.1f})")
    ratios = [a / b for a, b in zip(times["hocket"], times["tike's scheme"])]
    print(f"hocket takes {statistics.median(ratios):.2f} of the time")


if __name__ == "__main__":
    main()
