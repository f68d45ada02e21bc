"""Programs with futures for the ranks of test_torch.py: ``python torch_futures.py NAME RANK SIZE
FILE``.
"""

import datetime
import random
import sys
import time

import torch
import torch.distributed as dist
from torch_programs import check, main, values

import hocket


def summed(n, *shape, times=0):
    return sum(values(r + times, *shape) for r in range(n))


def waited_for_in_a_callback(rank, n):
    """A callback of one future waits for another future, whose callback waits for a third."""
    x, y, z = values(rank, 3), values(rank + 1, 4), values(rank + 2, 5)

    def start(tensor):
        return dist.all_reduce(tensor, async_op=True).get_future()

    got = start(x).then(lambda _: start(y).wait()[0]).wait()
    check(got, summed(n, 4, times=1))
    x = values(rank, 3)

    def inner(_):
        return start(y).then(lambda _: start(z).wait()[0] * 2).wait()

    y = values(rank + 1, 4)
    check(start(x).then(inner).then(lambda f: f.value() + 1).wait(), 2 * summed(n, 5, times=2) + 1)
    # A callback waits for a call that was made before, and for one that was made after.
    x, y, z = values(rank, 3), values(rank + 1, 4), values(rank + 2, 5)
    first, second = start(x), start(y)
    third = second.then(lambda _: (first.wait(), start(z).wait())[1][0])
    check(third.wait(), summed(n, 5, times=2))


def as_their_calls_end(rank, n):
    """A waiting message delays no other future."""
    late = torch.zeros(3)
    waiting = dist.irecv(late, (rank + 1) % n).get_future()
    heard = []
    waiting.then(lambda f: heard.append(f.value()[0].clone()))
    for i in range(20):
        x = values(rank + i, 5)
        check(dist.all_reduce(x, async_op=True).get_future().wait()[0], summed(n, 5, times=i))
        assert i == 19 or not waiting.done()  # after the last call the other rank may have sent
    dist.isend(values(rank, 3), (rank - 1) % n).wait()
    check(waiting.wait()[0], values((rank + 1) % n, 3))


def in_one_order(rank, n):
    """Callbacks make calls, and so does this thread. All ranks have one order, though callbacks
    run sooner on one rank than on another.
    """
    chance = random.Random(rank)
    futures = []

    def attached(i):
        def run(future):
            future.wait()
            time.sleep(chance.random() / 200)
            x = values(rank + i, 100 + i)  # a call out of order would be a mismatch
            dist.all_reduce(x, async_op=i % 2 == 0 or None) and time.sleep(0)
            y = values(rank, 7 + i)
            return dist.all_reduce(y, async_op=True).get_future().wait()[0]

        return run

    def once_more(i):
        def run(future):
            z = values(rank, 500 + i)
            dist.all_reduce(z)
            return future.value(), z

        return run

    for i in range(25):
        time.sleep(chance.random() / 200)
        future = dist.all_reduce(values(rank, 50 + i), async_op=True).get_future()
        futures.append(future.then(attached(i)).then(once_more(i)))
        if i % 4 == 0:
            x = values(rank, 3)
            dist.all_reduce(x)
            check(x, summed(n, 3))
    for i, future in enumerate(futures):
        y, z = future.wait()
        check(y, summed(n, 7 + i))
        check(z, summed(n, 500 + i))


def attached_to_ended(rank, n):
    """A callback that is added to a finished future runs at once, and in the same order."""
    for i in range(10):
        future = dist.all_reduce(values(rank, 50), async_op=True).get_future()
        if rank == 0:
            future.wait()
        following = future.then(lambda _: dist.all_reduce(values(rank, 8), async_op=True))
        x = values(rank, 30 + i)
        dist.all_reduce(x)
        check(x, summed(n, 30 + i))
        following.wait().wait()


def of_waited_for_calls(rank, n):
    """The future of a call that was waited for has its value, asked for before or after."""
    for i in range(60):
        time.sleep((rank + i) % 2 / 1000)
        work = dist.all_reduce(values(rank + i, 40), async_op=True)
        before = work.get_future() if i % 3 == 0 else None
        work.wait()
        for future in [before] if before else [work.get_future(), work.get_future()]:
            assert future.done(), i
            check(future.value()[0], summed(n, 40, times=i))


def what_fails(rank, n):
    """Errors in callbacks and in calls reach every waiter."""
    future = dist.all_reduce(values(rank, 3), async_op=True).get_future()
    seen = []
    future.add_done_callback(lambda f: seen.append(f.value()[0].clone()))

    def fails(_):
        raise KeyError("mine")

    following = future.then(fails)
    for one in (following, following.then(lambda f: f.value())):
        try:
            one.wait()
        except KeyError as error:
            assert "mine" in str(error)
        else:
            raise AssertionError("went through")
    dist.all_reduce(x := values(rank, 3))  # comes after all callbacks that were attached
    check(seen[0], x)
    try:
        future = dist.all_reduce(torch.zeros(3 + rank), async_op=True).get_future()
    except hocket.Mismatch:  # it may be found as the call starts
        return
    following = future.then(lambda f: f.value())
    for one in (future, following):
        try:
            one.wait()
        except hocket.Mismatch as error:
            # All ranks differ, so any two of them may be named.
            assert isinstance(error, RuntimeError) and "all_reduce #3 sum float32[" in str(error), error
        else:
            raise AssertionError("went through")


def ended_with_calls_under_way(rank, n):
    """Closing a group waits for its calls, and raises errors that were not raised yet."""
    x = torch.full((1000,), float(rank))
    group = dist.new_group()
    dist.all_reduce(x, group=group, async_op=True)  # its handle is dropped
    if rank == 0:
        time.sleep(0.2)
    dist.destroy_process_group(group)
    assert x.eq(n * (n - 1) / 2).all(), x
    group = dist.new_group()
    dist.barrier(group)
    if rank == 0:  # no rank answers it, and none waits for it
        unanswered = dist.irecv(torch.zeros(1), 1, group=group).get_future()
    dist.barrier()
    dist.destroy_process_group(group)
    if rank == 0:
        try:
            unanswered.wait()
        except (hocket.Aborted, hocket.PeerDied):  # by this rank, or because the other rank left
            print("given up")
    # The last call differs on each rank. The first rank that makes it cannot see this.
    if rank > 0:
        time.sleep(0.3)
    try:
        dist.all_reduce(torch.zeros(3 + rank), async_op=True)
        print("made")
        dist.destroy_process_group()
    except hocket.Mismatch as error:
        print("raised", "float32[4]" in str(error))
    dist.destroy_process_group()  # raises nothing twice
    assert not dist.is_initialized()


def told_already(rank, n):
    """An error that a call has raised is not raised again by the end."""
    work = dist.all_reduce(torch.zeros(3 + rank), async_op=True)
    try:
        work.wait(datetime.timedelta(seconds=30))
    except hocket.Mismatch:
        print("told")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(globals(), *sys.argv[1:])
