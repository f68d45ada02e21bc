"""Tasks of uneven length on workers that may die: concurrent.futures' interface, with ranks as workers.

    python examples/python/executor.py                      # three processes of this host
    hocket run -n 4 --keep-going -- python examples/python/executor.py --job --kill

With --kill one worker is killed with its task. The task is run again, and the other workers go on.
"""

import argparse
import os
import signal

import numpy as np

import hocket
from hocket.futures import Executor

TASKS = [(first, first + 500) for first in range(2, 10_000, 500)]


def primes(first, end):
    return np.array([n for n in range(first, end) if all(n % d for d in range(2, int(n**0.5) + 1))])


def killed_once(path, first, end):
    """The first worker that comes here dies."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return primes(first, end)
    os.kill(os.getpid(), signal.SIGKILL)


def hand_out(pool, path):
    workers = pool.ranks
    if path:
        first = pool.submit(killed_once, path, *TASKS[0])
    else:
        first = pool.submit(primes, *TASKS[0])
    rest = pool.map(primes, *zip(*TASKS[1:]))  # an array comes back from each
    found = np.concatenate([first.result(), *rest])
    assert np.array_equal(found, primes(2, 10_002))
    print(f"{len(found)} primes, the last is {found[-1]}")
    print(f"workers {workers}, at the end {pool.ranks}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", action="store_true", help="the ranks of this job are the workers")
    parser.add_argument("--kill", metavar="FILE", nargs="?", const="", help="kill a worker; a new file says so")
    options = parser.parse_args()
    path = options.kill
    if path == "":
        path = os.path.join("/tmp", f"hocket-executor-{os.environ.get('HOCKET_JOB', os.getpid())}")
    with Executor(hocket.init() if options.job else 3, retries=1) as pool:
        if pool is not None:
            hand_out(pool, path)
            if path:
                os.remove(path)


if __name__ == "__main__":
    main()
