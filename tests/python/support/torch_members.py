"""Programs of changing groups for the ranks of test_torch_members.py: ``python torch_members.py
NAME RANK SIZE FILE``.
"""

import os
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import hocket
import hocket.torch  # noqa: F401

LIMIT = timedelta(seconds=20)


def start(store, rank, n):
    dist.init_process_group(
        "hocket", store=store, rank=rank, world_size=n, timeout=LIMIT, enable_reconfigure=True
    )


def handles_of(store, key, me, members):
    """The handles of all members, in order."""
    store.set(f"{key}/{me}", dist._get_reconfigure_handle())
    return [store.get(f"{key}/{member}").decode() for member in members]


def check(members):
    """All calls are among these, which the tensors name."""
    mine = members[dist.get_rank()]
    assert dist.get_world_size() == len(members)
    x = torch.full((5,), float(mine))
    dist.all_reduce(x)
    assert x.tolist() == [sum(members)] * 5, x
    work = dist.all_reduce(y := torch.full((1,), 1.0 + mine), async_op=True)
    work.wait()
    assert y.item() == sum(members) + len(members)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1, bias=False))
    model(torch.full((1, 3), float(mine))).sum().backward()
    (weight,) = model.parameters()
    assert torch.allclose(weight.grad, torch.full((1, 3), sum(members) / len(members)))
    others = [None] * len(members)
    dist.all_gather_object(others, mine)
    assert others == members


def grow_and_shrink(store, rank, n):
    """Two begin, one more comes, one dies and another one comes at once, and one is left alone."""
    start(store, rank, n)
    if rank < 2:
        dist._reconfigure(1, handles_of(store, "a", rank, [0, 1])).wait()
        check([0, 1])
    if rank < 3:
        dist._reconfigure(2, handles_of(store, "b", rank, [0, 1, 2]), timeout=LIMIT).wait()
        check([0, 1, 2])
    if rank == 1:
        store.set("gone", "1")
        os.kill(os.getpid(), signal.SIGKILL)
    if rank in (0, 2):
        try:
            while True:
                dist.all_reduce(torch.ones(1))
        except hocket.PeerDied:
            pass
    store.get("gone")
    members = [0, 2, 3]
    dist._reconfigure(3, handles_of(store, "c", rank, members)).wait()
    check(members)
    dist._reconfigure(4, set(handles_of(store, "d", rank, members))).wait()  # in any order
    places = [None] * 3
    dist.all_gather_object(places, rank)
    assert sorted(places) == members and places[dist.get_rank()] == rank
    dist._reconfigure(5 + rank, [dist._get_reconfigure_handle()]).wait()
    check([rank])
    print("done")


def one_does_not_come(store, rank, n):
    """A member that has died before it came is named; the others try again without it."""
    start(store, rank, n)
    try:
        dist.all_reduce(torch.ones(1))
    except hocket.RendezvousError as error:
        assert "enable_reconfigure=True" in str(error)
    every = handles_of(store, "a", rank, range(n))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    try:
        dist._reconfigure(1, every, timeout=timedelta(seconds=1))
        raise AssertionError("made without rank 1")
    except hocket.RendezvousError as error:
        told = str(error)
    assert time.monotonic() - began < 15
    assert "rank 0 has not come" in told if rank else "rank 1 of 3 has not come" in told, told
    left = [every[0], every[2]]
    for uuid, given, words in [
        (1, left, "already used"),
        (2, every[:1] if rank else every[2:], "own handle is not among"),
        (2, [*left, left[0]], "twice"),
        (2, [*left, "gloo:0"], "handles[2] is 'gloo:0'"),
    ]:
        try:
            dist._reconfigure(uuid, given)
            raise AssertionError(words)
        except hocket.InvalidArgument as error:
            assert words in str(error), error
    dist._reconfigure(3, left).wait()
    check([0, 2])
    print("done")


def aborted(store, rank, n):
    """Calls that wait on the group before end as its members change."""
    start(store, rank, n)
    handles = handles_of(store, "a", rank, range(n))
    dist._reconfigure(1, handles).wait()
    check(list(range(n)))
    if rank == 0:
        pending = dist.all_reduce(torch.ones(1), async_op=True)  # the others make none
    dist._reconfigure(2, handles).wait()
    check(list(range(n)))
    if rank == 0:
        try:
            pending.wait()
            raise AssertionError("ended well")
        except hocket.Aborted as error:
            assert "reconfigured" in str(error)
    print("done")


def shrink(store, rank, n):
    """``dist.shrink_group``: of a subgroup whose member has died, and of all."""
    dist.init_process_group("hocket", store=store, rank=rank, world_size=n, timeout=LIMIT)
    some = dist.new_group([0, 1, 2])
    if rank == 3:
        store.get("subgroup")
    else:
        x = torch.full((2,), float(rank))
        dist.all_reduce(x, group=some)
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            while True:
                dist.all_reduce(torch.ones(1), group=some)
        except hocket.PeerDied:
            pass
        fewer = dist.shrink_group([1], group=some)
        assert fewer.size() == 2 and fewer.rank() == rank // 2
        x = torch.full((2,), float(rank))
        work = dist.all_reduce(x, group=fewer, async_op=True)
        work.wait()
        assert x.tolist() == [2, 2]
        store.set("subgroup", "1")
    world = dist.shrink_group([1], shrink_flags=1)
    assert world is dist.group.WORLD
    check([0, 2, 3])
    dist.destroy_process_group()
    print("done")


def refused(store, rank, n):
    """A group whose members are fixed."""
    dist.init_process_group("hocket", store=store, rank=rank, world_size=n, timeout=LIMIT)
    assert not dist._supports_reconfigure()
    for call in (dist._get_reconfigure_handle, lambda: dist._reconfigure(1, ["hocket:a"])):
        try:
            call()
            raise AssertionError("was made")
        except hocket.InvalidArgument as error:
            assert "enable_reconfigure=True" in str(error)
    check(list(range(n)))
    dist.destroy_process_group()
    print("done")


if __name__ == "__main__":
    name, rank, n, file = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    globals()[name](dist.FileStore(file, n), rank, n)
