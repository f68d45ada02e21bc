"""Small tasks, uneven tasks and arrays: hocket.futures beside ProcessPoolExecutor and mpi4py.futures.

    PYTHONPATH=build/release/python python bench/futures.py --workers 2 --mpi

The executors exist at the same time and are measured alternately. Tables have the median of the
rounds, followed by the quickest and the slowest round. mpi4py is measured only with --mpi, because
idle workers of MPI may keep processors busy. It must be importable, and its workers must start.
"""

import argparse
import concurrent.futures
import functools
import importlib.util
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import futures_tasks as tasks  # noqa: E402: a module that all workers can import


def submit_all(pool, n):
    futures = [pool.submit(tasks.square, i) for i in range(n)]
    assert [future.result() for future in futures] == [i * i for i in range(n)]


def map_all(pool, n):
    assert list(pool.map(tasks.square, range(n))) == [i * i for i in range(n)]


def one_by_one(pool, n):
    for i in range(n):
        assert pool.submit(tasks.square, i).result() == i * i


def arrays(pool, n, count):
    x = np.arange(count, dtype="float64")
    for result in pool.map(tasks.add_one, [x] * n):
        assert result[-1] == count


def uneven(pool, n):
    """Runs tasks of 1 ms; one task in ten takes 10 ms."""
    milliseconds = [10 if i % 10 == 0 else 1 for i in range(n)]
    assert list(pool.map(tasks.work, milliseconds)) == milliseconds


CASES = {
    "submit, then all results": (submit_all, 2000),
    "map": (map_all, 2000),
    "submit, result, one by one": (one_by_one, 300),
    "map of arrays, 80 KB": (functools.partial(arrays, count=10_000), 100),
    "map of arrays, 8 MB": (functools.partial(arrays, count=1_000_000), 10),
    "map of uneven tasks, 1 and 10 ms": (uneven, 100),
}


def executors(workers, with_mpi):
    from hocket.futures import Executor

    found = {"hocket": Executor(workers), "ProcessPoolExecutor": concurrent.futures.ProcessPoolExecutor(workers)}
    if with_mpi and importlib.util.find_spec("mpi4py") is not None:
        try:
            from mpi4py.futures import MPIPoolExecutor

            pool = MPIPoolExecutor(workers, path=[str(Path(__file__).parent)])
            pool.submit(tasks.square, 2).result(timeout=60)
            found["mpi4py"] = pool
        except Exception as error:
            print(f"mpi4py is left out: {type(error).__name__}: {error}", file=sys.stderr)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--mpi", action="store_true", help="beside mpi4py.futures, too")
    options = parser.parse_args()
    pools = executors(options.workers, options.mpi)
    for pool in pools.values():
        submit_all(pool, 200)
    print(f"us a task, {options.workers} workers, median (lowest to highest) of {options.rounds} rounds in turns")
    print(f"{'':34}" + "".join(f"{name:>28}" for name in pools))
    for case, (run, n) in CASES.items():
        times = {name: [] for name in pools}
        for _ in range(options.rounds):
            for name, pool in pools.items():
                begin = time.perf_counter()
                run(pool, n)
                times[name].append((time.perf_counter() - begin) / n * 1e6)
        cells = (f"{statistics.median(each):.0f} ({min(each):.0f} to {max(each):.0f})" for each in times.values())
        print(f"{case:34}" + "".join(f"{cell:>28}" for cell in cells), flush=True)
    for pool in pools.values():
        pool.shutdown()


if __name__ == "__main__":
    main()
