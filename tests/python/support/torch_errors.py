"""Errors that the ranks of test_torch.py make: ``python torch_errors.py NAME RANK SIZE FILE``."""

import datetime
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import AllgatherOptions
from torch_programs import check, main, values

import hocket


def raised(call, kind=hocket.InvalidArgument):
    try:
        call()
    except RuntimeError as error:  # which is what programs for PyTorch catch
        assert isinstance(error, kind), repr(error)
        return str(error)
    raise AssertionError("went through")


def refused_by_one(rank, n):
    """A wrong argument on one rank reaches all ranks at once; the group goes on."""
    def lists(k):
        return [torch.empty(1) for _ in range(k)]

    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    options = dist.AllreduceCoalescedOptions()
    wrong = n + (rank == 1)
    for call in (
        lambda: dist.all_gather(lists(wrong), torch.empty(1)),
        lambda: dist.reduce_scatter(torch.empty(1), lists(wrong)),
        lambda: dist.all_to_all(lists(wrong), lists(n)),
        lambda: dist.all_to_all_single(torch.empty(n), torch.empty(n + (rank == 1))),
        lambda: backend.allreduce_coalesced([] if rank == 1 else [torch.ones(1)], options),
    ):
        text = raised(call)
        assert rank == 1 or "rank 1" in text, text
    options = dist.BroadcastOptions()
    options.rootRank = n + 3
    assert f"root is {n + 3}" in raised(lambda: backend.broadcast([torch.ones(1)], options))
    x = values(rank, 4)
    dist.all_reduce(x)
    check(x, sum(values(r, 4) for r in range(n)))


def nothing_and_twice(rank, n):
    """Empty lists are refused, and a tensor that is in a list twice is summed once."""
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    options = dist.AllreduceCoalescedOptions()
    for call in (
        lambda: backend.allreduce_coalesced([], options),
        lambda: backend.all_gather_single_coalesced([], [], None),
        lambda: backend.reduce_scatter_single_coalesced([], [], dist.ReduceScatterOptions()),
        lambda: backend.allgather_coalesced([], [], AllgatherOptions()),
        lambda: backend.allgather([], [], AllgatherOptions()),
    ):
        assert "is empty" in raised(call)
    total = sum(values(r, 6) for r in range(n))
    x = values(rank, 6)
    backend.allreduce_coalesced([x, x], options).wait()
    check(x, total)
    x = values(rank, 6)
    y = values(rank, 3)
    backend.allreduce_coalesced([x[2:], y, x[:4]], options).wait()  # the first and the last tensor overlap
    check(x, total)
    check(y, sum(values(r, 3) for r in range(n)))


def subgroups_are_named(rank, n):
    """Errors say on which group."""
    group = dist.new_group([0, 1])
    if rank < 2:
        text = raised(lambda: dist.all_reduce(torch.zeros(3 + rank), group=group), hocket.Mismatch)
        assert f"on group {group.group_name} of ranks 0, 1" in text, text
    x = values(rank, 4)
    dist.all_reduce(x)
    check(x, sum(values(r, 4) for r in range(n)))


def monitored(rank, n):
    """In a subgroup, waiting for all, and with a timeout of zero."""
    group = dist.new_group([0, 1])
    if rank < 2:
        dist.monitored_barrier(group=group, wait_all_ranks=True)
    dist.barrier()
    if rank == 0:
        text = raised(
            lambda: dist.monitored_barrier(group=group, timeout=datetime.timedelta(0)),
            hocket.DeadlineExceeded,
        )
        assert "of ranks 0, 1" in text and "rank 1" in text, text
        print(text)
    dist.barrier()


def texts(rank, n):
    """Errors begin with the words that PyTorch's own tests look for."""
    short = datetime.timedelta(seconds=0.25)
    groups = [dist.new_group() for _ in range(4)]
    if rank == 0:
        for group, waits_for_all in zip(groups, (False, True)):
            print(raised(
                lambda: dist.monitored_barrier(group, short, waits_for_all), hocket.DeadlineExceeded
            ))
        print(raised(lambda: dist.barrier(groups[2], timeout=short), hocket.DeadlineExceeded))
    elif rank == 1:
        print(raised(lambda: dist.monitored_barrier(groups[3], short), hocket.DeadlineExceeded))
    dist.monitored_barrier()


def two_threads(rank, n):
    """A second thread's call is refused, with what to do in PyTorch's words."""
    group = dist.new_group()

    def wait():
        dist.barrier(group=group)

    thread = threading.Thread(target=wait)
    if rank == 0:
        thread.start()
        time.sleep(0.5)  # the barrier waits for the others
        text = raised(lambda: dist.all_reduce(torch.ones(1), group=group))
        assert "two threads are using" in text, text
        assert "process_group=dist.new_group()" in text, text
    dist.barrier()
    if rank != 0:
        wait()
    else:
        thread.join()


def spans(rank, n):
    """A profiler sees each call once, with the shapes of its inputs."""
    x, parts = torch.ones(3, 5), [torch.empty(2) for _ in range(n)]
    with torch.profiler.profile(record_shapes=True) as seen:
        dist.all_reduce(x)
        dist.all_gather(parts, torch.ones(2))
        dist.all_gather_into_tensor(torch.empty(n, 4), torch.ones(4))
        dist.broadcast(x, 0, async_op=True).wait()
        dist.barrier()
        following = dist.isend(torch.ones(7), (rank + 1) % n)
        dist.recv(torch.empty(7), (rank - 1) % n)
        following.wait()
    dist.all_reduce(x)  # nobody looks
    found = sorted(
        (event.name, str(event.input_shapes))
        for event in seen.events()
        if event.name.startswith("hocket:")
    )
    print(*found, sep="\n")


def calls_with_timeouts(rank, n):
    """A call that is given a timeout has it, and the group keeps its own."""
    short = datetime.timedelta(seconds=0.25)
    ones = torch.ones(3)

    def backend_of(group):
        return group._get_backend(torch.device("cpu"))

    for call in (
        lambda group: dist.barrier(group=group, timeout=short),
        lambda group: dist.barrier(group=group, timeout=short, async_op=True).wait(),
        lambda group: group.barrier(timeout=short).wait(),
        lambda group: group.allreduce(ones, timeout=short).wait(),
        lambda group: group.allreduce(ones, dist.ReduceOp.MAX, short).wait(),
        lambda group: group.allgather([torch.ones(3) for _ in range(n)], ones, timeout=short).wait(),
        lambda group: backend_of(group).broadcast([ones], 1, timeout=short).wait(),
    ):
        group = dist.new_group(timeout=datetime.timedelta(seconds=30))
        group.allreduce(ones, timeout=datetime.timedelta(seconds=29)).wait()
        if rank == 0:
            text = raised(lambda call=call, group=group: call(group), hocket.DeadlineExceeded)
            assert "0.25 s" in text, text
        assert backend_of(group).communicator.deadline == 30
        dist.barrier()
    backend_of(group)._set_default_timeout(short)
    assert backend_of(group).options._timeout == short


if __name__ == "__main__":
    main(globals(), *sys.argv[1:])
