"""Programs with handles for the ranks of test_torch.py: ``python torch_handles.py NAME RANK SIZE
FILE``.
"""

import datetime
import sys
import time

import torch
import torch.distributed as dist
from torch_programs import check, main, values

import hocket
from hocket.torch import HocketBackend
from hocket.torch._meeting import StoreBootstrap


def poll(work):
    """Until it says that it is done; the test's watchdog bounds it."""
    while not work.is_completed():
        time.sleep(0.0005)


def anybody(rank, n):
    """Messages from any sender."""
    if rank == 0:
        heard = set()
        for _ in range(n - 1):
            x = torch.empty(4)
            source = dist.recv(x)
            check(x, values(source, 4))
            heard.add(source)
        assert heard == set(range(1, n))
        work = dist.irecv(x := torch.empty(2), tag=3)
        work.wait()
        check(x, values(work._source_rank() + 7, 2))
    else:
        dist.send(values(rank, 4), 0)
        if rank == n - 1:
            dist.send(values(rank + 7, 2), 0, tag=3)
    # PyTorch passes the group's ranks to the backend, and gives the world's rank to the caller.
    group = dist.new_group(list(range(1, n)))
    if n > 2 and rank == n - 1:
        dist.send(values(rank, 3), 1, group=group)
    if n > 2 and rank == 1:
        assert dist.recv(x := torch.empty(3), group=group) == n - 1
        check(x, values(n - 1, 3))


def polling(rank, n):
    """Handles tell when calls have ended, of tensors that are not contiguous too."""
    x = values(rank, 1000, 3)
    work = dist.all_reduce(x, async_op=True)
    poll(work)
    assert work.is_success() and work.exception() is None
    check(x, sum(values(r, 1000, 3) for r in range(n)))
    base = values(rank, 4, 6)
    work = dist.all_reduce(base.t()[1:5:2], async_op=True)
    poll(work)
    wanted = values(rank, 4, 6)
    wanted.t()[1:5:2] = sum(values(r, 4, 6).t()[1:5:2] for r in range(n))
    check(base, wanted)
    out = [torch.empty(5) for _ in range(n)]
    poll(dist.all_gather(out, values(rank, 5), async_op=True))
    for r in range(n):
        check(out[r], values(r, 5))
    following, previous = (rank + 1) % n, (rank - 1) % n
    got = torch.empty(9)
    ops = [dist.P2POp(dist.irecv, got, previous), dist.P2POp(dist.isend, values(rank, 9), following)]
    for work in dist.batch_isend_irecv(ops):
        poll(work)
    check(got, values(previous, 9))
    poll(dist.barrier(async_op=True))
    # A call that cannot have ended, as not all ranks are in it.
    if rank == 0:
        work = dist.all_reduce(x, async_op=True)
        assert not work.is_completed()
        try:
            work.wait(datetime.timedelta(milliseconds=20))
        except TimeoutError:
            pass
        else:
            raise AssertionError("it ended without the others")
        for r in range(1, n):
            dist.send(torch.ones(1), r)
        work.wait()
    else:
        dist.recv(torch.empty(1), 0)
        dist.all_reduce(x)


def dropped(rank, n):
    """Handles that the program drops: the calls go on, as with other backends."""
    other = dist.new_group()
    tensors = [torch.full((5,), rank + 1.0) for _ in range(100)]
    base = torch.full((4, 2), rank + 1.0)  # its column is no contiguous tensor: a copy follows the call
    if rank != 0:
        dist.barrier(other)  # rank 0 has dropped its handles by then, before any call has ended
    for x in [*tensors, base[:, 0]]:
        dist.all_reduce(x, async_op=True)
    dist.isend(torch.full((3,), float(rank)), (rank + 1) % n)
    if rank == 0:
        dist.barrier(other)
    y = torch.zeros(3)
    dist.recv(y, (rank - 1) % n)
    dist.barrier()
    total = n * (n + 1) / 2
    assert all((x == total).all() for x in tensors) and (base[:, 0] == total).all()
    assert (base[:, 1] == rank + 1).all() and (y == (rank - 1) % n).all()


def futures_beside_calls(rank, n):
    """The thread that ends futures waits while this one goes on making calls."""
    tensors = [values(rank + i, 50 + i) for i in range(200)]
    futures = []
    for i, x in enumerate(tensors):
        futures.append(dist.all_reduce(x, async_op=True).get_future())
        if i % 5 == 0:
            y = values(rank, 3)
            dist.all_reduce(y)
            check(y, sum(values(r, 3) for r in range(n)))
    for i, future in enumerate(futures):
        check(future.wait()[0], sum(values(r + i, 50 + i) for r in range(n)))


def coalescing(rank, n):
    tensors = [values(rank, 3 + i) for i in range(4)]
    with dist._coalescing_manager():
        for x in tensors:
            dist.all_reduce(x)
    for i, x in enumerate(tensors):
        check(x, sum(values(r, 3 + i) for r in range(n)))
    outs = [torch.empty(n * (2 + i)) for i in range(3)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for i, out in enumerate(outs):
            dist.all_gather_into_tensor(out, values(rank, 2 + i))
    manager.wait()
    for i, out in enumerate(outs):
        check(out, torch.cat([values(r, 2 + i) for r in range(n)]))


def monitored(rank, n):
    dist.monitored_barrier(wait_all_ranks=True)
    if rank == n - 1:
        try:
            dist.recv(torch.zeros(1), 0)  # in place of the barrier
        except hocket.Error as error:
            print(type(error).__name__)
        return
    try:
        dist.monitored_barrier(timeout=datetime.timedelta(seconds=0.3))
    except hocket.DeadlineExceeded as error:
        print("missing:", *error.missing)


def again(rank, n):
    """A group with its own deadline. All groups are closed, and a new one is made."""
    group = dist.new_group(timeout=datetime.timedelta(seconds=7))
    backend = group._get_backend(torch.device("cpu"))
    assert backend.communicator.deadline == 7
    dist.destroy_process_group(group)
    store = dist.distributed_c10d._get_default_store()
    dist.barrier()
    dist.destroy_process_group()
    assert not dist.is_initialized()
    for _ in range(3):
        # The store holds the keys of the earlier start, as torchrun's does when it restarts ranks.
        # The others find them, as rank 0 comes last.
        if rank == 0:
            time.sleep(0.3)
        dist.init_process_group(
            "cpu:hocket",
            store=dist.PrefixStore("again", store),
            rank=rank,
            world_size=n,
            timeout=datetime.timedelta(seconds=30),
        )
        x = torch.full((3,), float(rank))
        dist.all_reduce(x)
        check(x, torch.full((3,), n * (n - 1) / 2))
        assert dist.group.WORLD._get_backend(torch.device("cpu")).communicator.size == n
        dist.barrier()
        dist.destroy_process_group()


def missing(rank, n):
    """Rank 0 names who has not come to a group."""
    if rank != 0:
        return
    store = dist.PrefixStore("missing", dist.distributed_c10d._get_default_store())
    try:
        StoreBootstrap.meet(store, 0, n, datetime.timedelta(seconds=0.5))
    except hocket.RendezvousError as error:
        print(error)


def in_pieces(rank, n):
    """Calls coalesced for a device: each starts at once, one handle ends them all."""
    cpu = torch.device("cpu")
    got = torch.empty(4)
    with dist._coalescing_manager(device=cpu, async_ops=True) as manager:
        dist.isend(values(rank, 4), (rank + 1) % n)
        dist.irecv(got, (rank - 1) % n)
    manager.wait()
    check(got, values((rank - 1) % n, 4))
    outs = [torch.empty(n * (2 + i)) for i in range(3)]
    with dist._coalescing_manager(device=cpu):
        for i, out in enumerate(outs):
            dist.all_gather_into_tensor(out, values(rank, 2 + i))
    for i, out in enumerate(outs):
        check(out, torch.cat([values(r, 2 + i) for r in range(n)]))
    if hasattr(dist, "gather_single"):
        out = torch.empty(n * 4) if rank == 1 else None
        dist.gather_single(values(rank, 4), out, 1)
        if rank == 1:
            check(out, torch.cat([values(r, 4) for r in range(n)]))


def splits(rank, n, inner=True):
    """Groups made of a group, with ranks in another order and with ranks left out."""
    if not hasattr(dist, "split_group") or isinstance(dist.group.WORLD, HocketBackend):
        return  # older PyTorch: see split_off
    group = dist.split_group(split_ranks=[[1, 0], [2]])
    x = torch.full((2,), float(rank))
    dist.all_reduce(x, group=group)
    assert x[0] == (1 if rank < 2 else 2)
    assert dist.get_world_size(group) == (2 if rank < 2 else 1)
    if rank < 2:
        assert dist.get_group_rank(group, 1) == 0
        y = torch.full((1,), float(rank))
        dist.broadcast(y, src=1, group=group)
        assert y[0] == 1
    outside = dist.split_group(split_ranks=[[0, 2]])
    assert (outside is dist.GroupMember.NON_GROUP_MEMBER) == (rank == 1)
    if rank != 1:
        dist.barrier(group=outside)
    # A group that is bound to a device offers itself to be split for new groups.
    dist.barrier(group=dist.new_group(device_id=torch.device("cpu", 0)))
    if inner and rank < 2:  # comes last: PyTorch names a group by how many groups this rank has made
        innermost(rank, group)


TWO_SECONDS = datetime.timedelta(seconds=2)


def innermost(rank, group):
    alone = dist.split_group(parent_pg=group, split_ranks=[[0]], timeout=TWO_SECONDS)
    assert (alone is dist.GroupMember.NON_GROUP_MEMBER) == (rank == 0)
    if rank == 1:
        x = torch.ones(1)
        dist.all_reduce(x, group=alone)
        assert x[0] == 1 and alone._get_backend(torch.device("cpu")).communicator.deadline == 2
        dist.destroy_process_group(alone)


def beside_gloo(rank, n):
    """If another backend has other devices, handles are hocket's too."""
    x = values(rank, 5)
    work = dist.all_reduce(x, async_op=True)
    poll(work)
    check(x, sum(values(r, 5) for r in range(n)))
    anybody(rank, n)
    splits(rank, n, inner=False)
    gloo = dist.group.WORLD._get_backend(torch.device("cuda"))
    assert gloo.name() == "gloo" and gloo.size() == n
    gloo.broadcast([x]).wait()  # on the CPU's tensors, which it takes as well
    assert isinstance(dist.group.WORLD, hocket.torch.HocketGroup)
    dist.barrier(group=dist.new_group([0, 1])) if rank < 2 else dist.new_group([0, 1])


def long_lists(rank, n):
    """Tensors in lists that are used where they lie, and such as have to be copied."""
    count = 100_003
    for strided in (False, True):
        def empty(k=count, strided=strided):
            return torch.zeros(k, 2)[:, 0] if strided else torch.zeros(k)

        def wanted(r, to=0):
            return values(r + 7 * to, count)

        out = [empty() for _ in range(n)]
        dist.all_gather(out, wanted(rank))
        assert all(torch.equal(out[r], wanted(r)) for r in range(n))
        out = [empty() for _ in range(n)] if rank == 1 else None
        dist.gather(wanted(rank), out, 1)
        assert rank != 1 or all(torch.equal(out[r], wanted(r)) for r in range(n))
        part = empty()
        dist.scatter(part, [wanted(1, r) for r in range(n)] if rank == 1 else None, 1)
        assert torch.equal(part, wanted(1, rank))
        out = [empty() for _ in range(n)]
        for is_async in (False, True):
            work = dist.all_to_all(out, [wanted(rank, r) for r in range(n)], async_op=is_async)
            if is_async:
                work.wait()
            assert all(torch.equal(out[r], wanted(r, rank)) for r in range(n))
        # Parts of different sizes, each long enough for several chunks.
        part = empty(count * (rank + 1))
        inputs = [values(rank + r, count * (r + 1)) for r in range(n)]
        dist.reduce_scatter(part, inputs)
        assert torch.equal(part, sum(values(q + rank, count * (rank + 1)) for q in range(n)))
    tensors = list(torch.zeros(n, 40_000).unbind())  # they lie side by side in one tensor
    tensors[rank] += rank + 1
    dist.all_gather(tensors, tensors[rank])
    assert [t[5].item() for t in tensors] == [r + 1 for r in range(n)]


def lazy_views(rank, n):
    """Tensors whose memory holds other numbers: the imaginary part of a conjugated tensor, and
    conjugated ones in those calls that PyTorch lets them into."""
    def lazy(r, k=3):
        view = torch.complex(values(r, k), values(r + 50, k)).conj().imag
        assert view.is_neg()
        return view

    def bare(r, k=3):  # a contiguous view, as PyTorch's own code makes them
        return torch._neg_view(values(r, k))

    ranks = range(n)
    for make in (lazy, bare):
        each = [make(r).clone() for r in ranks]
        total = sum(each)
        for is_async in (False, True):
            def done(call, *arguments, is_async=is_async):
                work = call(*arguments, async_op=is_async)
                if is_async:
                    work.wait()

            x = make(rank)
            done(dist.all_reduce, x)
            check(x, total)
            x = make(rank)
            done(dist.reduce, x, 1)
            assert rank != 1 or torch.allclose(x, total)
            x = make(rank)
            done(dist.all_reduce, x, dist.ReduceOp.MAX)
            check(x, torch.stack(each).amax(0))
            x = make(rank)
            done(dist.broadcast, x, n - 1)
            check(x, each[n - 1])
            for out in ([torch.zeros(3) for _ in ranks], [make(7) for _ in ranks]):
                done(dist.all_gather, out, make(rank))
                for one, wanted in zip(out, each):
                    check(one, wanted)
            whole = make(9, 3 * n)
            done(dist.all_gather_into_tensor, whole, make(rank))
            check(whole, torch.cat(each))
            x = make(9)
            done(dist.reduce_scatter, x, [make(rank) for _ in ranks])
            check(x, total)
            out = [make(9) for _ in ranks]
            done(dist.all_to_all, out, [make(rank) for _ in ranks])
            check(torch.stack(out), torch.stack(each))
            x = make(9)
            done(dist.scatter, x, [make(r) for r in ranks] if rank == 0 else None, 0)
            check(x, each[rank])
            out = [make(9) for _ in ranks] if rank == 0 else None
            done(dist.gather, make(rank), out, 0)
            assert rank != 0 or torch.equal(torch.stack(out), torch.stack(each))
        if rank == 0:
            dist.send(make(0), 1)
        elif rank == 1:
            x = make(9)
            dist.recv(x, 0)
            check(x, each[0])
    conjugated = [torch.complex(values(r, 3), values(r + 50, 3)).conj() for r in ranks]
    x = conjugated[rank].clone().conj().resolve_conj().conj()
    dist.reduce(x, 0)
    assert rank != 0 or torch.allclose(x, sum(conjugated))


def short_forms(rank, n):
    """Calls of a group and of a backend themselves, without options, as PyTorch's own take them."""
    total = sum(values(r, 4) for r in range(n))
    every = [values(r, 4) for r in range(n)]
    most = torch.stack(every).amax(0)
    world = dist.group.WORLD
    for group in (world, world._get_backend(torch.device("cpu"))):
        for arguments, named, wanted in (
            ((), {}, total),
            ((dist.ReduceOp.MAX,), {}, most),
            ((), {"op": dist.ReduceOp.MAX}, most),
        ):
            for wrap in (list, lambda alone: alone[0]):
                if group is not world and (arguments or named):
                    continue  # PyTorch's own backends do not take these either
                group.allreduce(wrap([x := values(rank, 4)]), *arguments, **named).wait()
                check(x, wanted)
        group.broadcast([x := values(rank, 4)]).wait()
        check(x, every[0])
        group.reduce([x := values(rank, 4)]).wait()
        assert rank != 0 or torch.equal(x, total)
        group.allgather([out := [torch.empty(4) for _ in range(n)]], [values(rank, 4)]).wait()
        check(torch.stack(out), torch.stack(every))
        group._allgather_base(out := torch.empty(4 * n), values(rank, 4)).wait()
        check(out, torch.cat(every))
        group._reduce_scatter_base(out := torch.empty(2), values(rank, 2 * n)).wait()
        check(out, sum(values(r, 2 * n) for r in range(n))[2 * rank : 2 * rank + 2])
        group.alltoall_base(out := torch.empty(n), torch.full((n,), float(rank)), [], []).wait()
        check(out, torch.arange(float(n)))
    world.broadcast(x := values(rank, 4), 1).wait()
    check(x, every[1])
    world.broadcast(x := values(rank, 4), root=1).wait()
    check(x, every[1])
    world.reduce(x := values(rank, 4), 1, dist.ReduceOp.MAX).wait()
    assert rank != 1 or torch.equal(x, most)
    world.allgather(out := [torch.empty(4) for _ in range(n)], values(rank, 4)).wait()
    check(torch.stack(out), torch.stack(every))
    out = [torch.empty(4) for _ in range(n)] if rank == 1 else []
    world.gather(out, values(rank, 4), 1).wait()
    assert rank != 1 or torch.equal(torch.stack(out), torch.stack(every))
    world.scatter(x := torch.empty(4), every if rank == 1 else [], 1).wait()
    check(x, every[rank])
    world.reduce_scatter(x := torch.empty(4), [values(r + rank, 4) for r in range(n)]).wait()
    check(x, sum(values(r + rank, 4) for r in range(n)))
    world.monitored_barrier()
    assert dist.distributed_c10d._get_pg_default_device(world) is not None


def own_parts(rank, n):
    """The result goes to the rank's own part of its input, as in Megatron's optimizers."""
    wanted = sum(values(r, n * 5) for r in range(n)).chunk(n)[rank]
    x = values(rank, n * 5)
    dist.reduce_scatter_tensor(x.chunk(n)[rank], x)
    check(x.chunk(n)[rank], wanted)
    x = values(rank, n * 40_000)
    work = dist.reduce_scatter_tensor(x.chunk(n)[rank], x, async_op=True)
    work.wait()
    check(x.chunk(n)[rank], sum(values(r, n * 40_000) for r in range(n)).chunk(n)[rank])
    x = torch.zeros(n * 5)
    x.chunk(n)[rank].copy_(values(rank, 5))
    dist.all_gather_into_tensor(x, x.chunk(n)[rank])
    check(x, torch.cat([values(r, 5) for r in range(n)]))


def ended(rank, n):
    """PyTorch's abort ends pending calls on all ranks."""
    try:
        work = dist.irecv(torch.empty(1), (rank + 1) % n)
        if rank == 0:
            dist.group.WORLD.abort()
        work.wait()
    except hocket.Aborted:
        print("aborted")


if __name__ == "__main__":
    main(globals(), *sys.argv[1:])
