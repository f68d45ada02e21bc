"""Rank 0 hands out tasks and takes results as they come: of whom, for which task and how long, a probe tells.

    hocket run -n 4 -- python examples/python/task_farm.py

Each task is a range of whole numbers, and its result the primes in it.
"""

import numpy as np

import hocket

TASKS = [(first, first + 500) for first in range(2, 10_000, 500)]
NO_MORE = np.array([-1, -1])


def primes(first, end):
    return np.array([n for n in range(first, end) if all(n % d for d in range(2, int(n**0.5) + 1))])


def hand_out(comm):
    """What all tasks gave, in their order."""
    results = [None] * len(TASKS)
    left = list(range(len(TASKS)))
    idle = list(range(1, comm.size))
    under_way = 0
    while left or under_way:
        while left and idle:
            task = left.pop(0)
            comm.send(np.array(TASKS[task]), idle.pop(), tag=task)
            under_way += 1
        told = comm.probe(tag=hocket.ANY_TAG)  # the tag is the task
        results[told.tag] = np.empty(told.count, told.dtype)
        comm.recv(results[told.tag], told.source, told.tag)
        idle.append(told.source)
        under_way -= 1
    for rank in range(1, comm.size):
        comm.send(NO_MORE, rank, tag=len(TASKS))
    return results


def work(comm):
    task = np.empty(2, int)
    while True:
        received = comm.recv(task, 0, tag=hocket.ANY_TAG)
        if received.tag == len(TASKS):
            return
        comm.send(primes(*task), 0, tag=received.tag)


def main(comm):
    if comm.rank != 0:
        work(comm)
        return
    results = hand_out(comm) if comm.size > 1 else [primes(*task) for task in TASKS]
    found = np.concatenate(results)
    assert np.array_equal(found, primes(2, 10_002))
    print(f"{len(found)} primes, the last is {found[-1]}")


if __name__ == "__main__":
    with hocket.init() as communicator:
        main(communicator)
