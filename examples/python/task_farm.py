"""Rank 0 hands out tasks and takes results as they come: of whom, for which task and how long, a probe tells.

    hocket run -n 4 --keep-going -- python examples/python/task_farm.py --kill 2

Each task is a range of whole numbers, and its result the primes in it. A rank that is killed, here with its first
task, costs nothing but the tasks that were under way: those who are left rebuild and do them again.
"""

import argparse
import os
import signal

import numpy as np

import hocket

TASKS = [(first, first + 500) for first in range(2, 10_000, 500)]
NO_MORE = np.array([-1, -1])


def primes(first, end):
    return np.array([n for n in range(first, end) if all(n % d for d in range(2, int(n**0.5) + 1))])


def hand_out(comm, results):
    """Fills in the results that are missing."""
    left = [task for task, result in enumerate(results) if result is None]
    idle = list(range(1, comm.size))
    under_way = 0
    while left or under_way:
        if comm.size == 1:
            task = left.pop(0)
            results[task] = primes(*TASKS[task])
            continue
        while left and idle:
            task = left.pop(0)
            comm.send(np.array(TASKS[task]), idle.pop(), tag=task)
            under_way += 1
        told = comm.probe(tag=hocket.ANY_TAG)  # the tag is the task
        result = np.empty(told.count, told.dtype)
        comm.recv(result, told.source, told.tag)
        results[told.tag] = result
        idle.append(told.source)
        under_way -= 1
    for rank in range(1, comm.size):
        comm.send(NO_MORE, rank, tag=len(TASKS))


def work(comm, dies):
    task = np.empty(2, int)
    while True:
        received = comm.recv(task, 0, tag=hocket.ANY_TAG)
        if received.tag == len(TASKS):
            return
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        comm.send(primes(*task), 0, tag=received.tag)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kill", type=int, default=-1, help="the rank that dies with its first task")
    options = parser.parse_args()
    comm = hocket.init()
    dies = comm.rank == options.kill
    results = [None] * len(TASKS)
    while True:
        try:
            if comm.rank == 0:
                hand_out(comm, results)
            else:
                work(comm, dies)
            break
        except (hocket.PeerDied, hocket.Aborted) as failure:
            comm = comm.rebuild(deadline=60)  # a worker comes when it has done its task
            if comm.rank == 0:
                print(f"{failure}\ngoing on with ranks {list(comm.world_ranks)}")
    if comm.rank == 0:
        found = np.concatenate(results)
        assert np.array_equal(found, primes(2, 10_002))
        print(f"{len(found)} primes, the last is {found[-1]}")


if __name__ == "__main__":
    main()
