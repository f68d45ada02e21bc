"""PyTorch programs for the ranks of test_faces.py: ``python torch_on_gpus.py NAMES RANK SIZE FILE
BACKEND``.

On the CPU too, where gloo takes the place of NCCL: HOCKET_TEST_DEVICE=cpu.
"""

import datetime
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "python" / "support"))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch_programs import DEVICE, _train, check, main, values  # noqa: E402

import hocket  # noqa: E402
import hocket.compat  # noqa: E402
import hocket.torch  # noqa: E402

PEERS = {"cuda": "nccl", "cpu": "gloo"}


def batches(rank, n):
    """Messages that would wait for each other, were they one after the other."""
    dist.barrier()
    dist.all_reduce(torch.ones(1))  # GPUs know each other from here on
    following, previous = (rank + 1) % n, (rank - 1) % n
    for count in (1, 5, 100_003, 1 << 25):  # more than any staging
        got = torch.zeros(count)
        ops = [
            dist.P2POp(dist.isend, values(rank, count), following),
            dist.P2POp(dist.irecv, got, previous),
        ]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        check(got, values(previous, count))
    # Several between the same two, some not contiguous: they pair in their order.
    sent = [values(rank + i, 50, 2)[:, i % 2] for i in range(5)]
    got = [torch.zeros(50, 2)[:, i % 2] for i in range(5)]
    ops = [dist.P2POp(dist.irecv, x, previous) for x in got]
    ops += [dist.P2POp(dist.isend, x, following) for x in sent]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    for i, x in enumerate(got):
        check(x, values(previous + i, 50, 2)[:, i % 2])
    x = torch.zeros(7)
    if rank == 0:
        dist.send(values(0, 7), 1)
        dist.recv(x, n - 1)
        check(x, values(n - 1, 7))
    if rank == 1:
        dist.recv(x, 0)
        check(x, values(0, 7))
    if rank == n - 1:
        dist.send(values(rank, 7), 0)


def a_group_s_streams(rank, n):
    """A group of some ranks; calls on another stream, and async calls."""
    group = dist.new_group([0, 1])
    if rank < 2:
        x = values(rank, 1000)
        dist.all_reduce(x, group=group)
        check(x, values(0, 1000) + values(1, 1000))
    if DEVICE == "cuda":
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(20_000_000)
            x = values(rank, 1000)
            work = dist.all_reduce(x, async_op=True)
            work.wait()
            y = x + 1
        torch.cuda.synchronize()
        check(y, sum(values(r, 1000) for r in range(n)) + 1)
    out = torch.empty(n * 3, 2)
    dist.all_gather_into_tensor(out, values(rank, 3, 2))
    check(out, torch.cat([values(r, 3, 2) for r in range(n)]))
    out = torch.empty(3, 2)
    dist.reduce_scatter_tensor(out, values(rank, 3 * n, 2))
    check(out, sum(values(r, 3 * n, 2) for r in range(n))[3 * rank : 3 * rank + 3])
    out = torch.empty(n, 2)
    dist.all_to_all_single(out, values(rank, n, 2))
    check(out, torch.stack([values(r, n, 2)[rank] for r in range(n)]))


def waits_order_streams(rank, n):
    """A call on one stream, `wait` and a read on another: each kind of call, again and again."""
    side, count, previous = torch.cuda.Stream(), 300_000, (rank - 1) % n
    made = []

    def slowly(*shape):
        """Made on the side stream, after it has been busy for a while."""
        torch.cuda._sleep(3_000_000)
        made.append(values(rank, *shape))
        return made[-1]

    def reduced():
        return (x := slowly(count)), dist.all_reduce(x, async_op=True), summed(n, count)

    def gathered():
        out = torch.zeros(n * count)
        work = dist.all_gather_into_tensor(out, slowly(count), async_op=True)
        return out, work, torch.cat([values(r, count) for r in range(n)])

    def listed():
        out = [torch.zeros(count + r) for r in range(n)]
        work = dist.all_gather(out, slowly(count + rank), async_op=True)
        return out[previous], work, values(previous, count + previous)

    def scattered():
        out = torch.zeros(count)
        work = dist.reduce_scatter_tensor(out, slowly(n * count), async_op=True)
        return out, work, summed(n, n * count)[rank * count : (rank + 1) * count]

    def strided():
        x = slowly(count, 2)[:, 0]
        return x, dist.all_reduce(x, async_op=True), summed(n, count, 2)[:, 0]

    def from_root():
        x = slowly(count)
        return x, dist.broadcast(x, 1, async_op=True), values(1, count)

    def exchanged():
        got = torch.zeros(count)
        ops = [
            dist.P2POp(dist.isend, slowly(count), (rank + 1) % n),
            dist.P2POp(dist.irecv, got, previous),
        ]
        works = dist.batch_isend_irecv(ops)
        for work in works[:-1]:
            work.wait()
        return got, works[-1], values(previous, count)

    dist.all_reduce(torch.ones(1))  # GPUs know each other from here on
    torch.cuda.synchronize()
    for _ in range(20):
        for kind in (reduced, gathered, listed, scattered, strided, from_root, exchanged):
            with torch.cuda.stream(side):
                result, work, wanted = kind()
            work.wait()
            read = result.clone()  # on the default stream
            torch.cuda.current_stream().wait_stream(side)  # for what is wanted
            assert torch.equal(read, wanted), kind.__name__
    # By a future, and by a callback of it.
    with torch.cuda.stream(side):
        future = dist.all_reduce(x := slowly(count), async_op=True).get_future()
    doubled = future.then(lambda f: f.value()[0] * 2).wait()
    torch.cuda.current_stream().wait_stream(side)
    assert torch.equal(doubled, 2 * summed(n, count)), x


def summed(n, *shape):
    return sum(values(r, *shape) for r in range(n))


def until(condition):
    """Polls; the test's watchdog bounds it."""
    while not condition():
        time.sleep(0.001)


def handles_are_honest(rank, n):
    """A call that waits for another rank has not ended, and says so; its caller's stream goes on."""
    store = dist.distributed_c10d._get_default_store()
    dist.all_reduce(torch.ones(1))
    # CUDA loads a kernel when it is first used, and may wait for all that runs before it does.
    assert (torch.ones(1000) * 3).sum().item() == 3000
    torch.cuda.synchronize()
    x = values(rank, 1000)
    if rank == 1:
        store.wait(["rank 0 has looked"])
    work = dist.all_reduce(x, async_op=True)
    if rank == 0:
        y = torch.ones(1000) * 3
        passed = torch.cuda.current_stream().record_event()
        until(passed.query)  # this stream does not wait for the call
        assert y.sum().item() == 3000
        assert not work.is_completed() and not work.is_success()
        try:
            work.wait(datetime.timedelta(milliseconds=20))
        except TimeoutError:
            store.set("rank 0 has looked", "1")
        else:
            raise AssertionError("it ended without the others")
    until(work.is_completed)
    assert work.is_success() and work.exception() is None
    assert torch.equal(x.cpu(), summed(n, 1000).cpu())


def backward_goes_on_beside_calls(rank, n):
    """DDP: rank 0's backward pass ends on the GPU while its first bucket still waits for rank 1.
    Rank 1 begins its own pass only then. Prints the timeline.
    """
    from torch.nn.parallel import DistributedDataParallel

    store = dist.distributed_c10d._get_default_store()
    layers = [torch.nn.Linear(512, 512, bias=False) for _ in range(6)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=1)
    started, finished = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    last_gradient = torch.cuda.Event(enable_timing=True)
    ends = []

    def hook(_, bucket):
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        end = torch.cuda.Event(enable_timing=True)
        future = work.get_future()

        def average(f):
            end.record()
            return f.value()[0] / n

        ends.append(end)
        return future.then(average)

    model.register_comm_hook(None, hook)
    x = torch.randn(64, 512)
    for step in range(3):  # buckets are rebuilt after the first
        ends.clear()
        model(x).square().mean().backward()
        torch.cuda.synchronize()
    ends.clear()
    loss = model(x).square().mean()
    watched = layers[0].weight.register_hook(lambda _: last_gradient.record())
    if rank == 1:
        store.wait(["rank 0 has come to the end"])
    started.record()
    loss.backward()
    finished.record()
    if rank == 0:
        until(last_gradient.query)  # for ever, were it behind the calls
        assert not ends[0].query(), "the first bucket ended without rank 1"
        store.set("rank 0 has come to the end", "1")
    torch.cuda.synchronize()
    watched.remove()
    assert len(ends) > 1, "one bucket alone shows nothing"
    at = [f"{started.elapsed_time(end):.2f}" for end in ends]
    print(
        f"rank {rank}: last gradient at {started.elapsed_time(last_gradient):.2f} ms, "
        f"buckets ended at {', '.join(at)} ms, all at {started.elapsed_time(finished):.2f} ms"
    )
    if rank == 0:
        assert started.elapsed_time(last_gradient) < started.elapsed_time(ends[0])
    for parameter in model.parameters():
        theirs = parameter.grad.clone()
        dist.broadcast(theirs, 0)
        assert torch.equal(theirs, parameter.grad)


def memory_is_kept(rank, n):
    """Tensors and objects of the call may be dropped while it is under way."""
    count = 1 << 20
    dist.all_reduce(torch.ones(1))
    for i in range(30):
        out = torch.zeros(n * count)
        torch.cuda._sleep(3_000_000)
        x = torch.full((count,), float(rank + i))
        work = dist.all_gather_into_tensor(out, x, async_op=True)
        y = torch.full((count, 2), float(rank + i))
        dist.all_reduce(y[:, 1], async_op=True)  # dropped, and what was made for it
        del x
        junk = [torch.full((count,), -1.0) for _ in range(4)]
        work.wait()
        assert out.view(n, count).eq(torch.arange(n).view(n, 1) + i).all(), i
        dist.all_reduce(torch.ones(1), async_op=True).wait()  # behind the dropped one
        assert y[:, 1].eq(sum(r + i for r in range(n))).all() and y[:, 0].eq(rank + i).all()
        del junk


def graphs(rank, n):
    """Async and blocking calls in one graph, beside what the caller does."""
    x, z = values(rank, 1000), torch.ones(1000)
    keep = x.clone()
    dist.all_reduce(x.clone(), async_op=True).wait()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            x.copy_(keep)
            work = dist.all_reduce(x, async_op=True)
            y = z * 2
            work.wait()
            w = x + y
            work = dist.all_reduce(w, async_op=True)
            v = z.clone()
            dist.all_reduce(v)  # after a call that no caller has waited for
            work.wait()
    except RuntimeError as error:
        # The host, or another library, carries calls here; PyTorch may raise what follows from that.
        assert "cannot be captured" in f"{error} {error.__context__}", error
        print("no graphs here")
        return
    for k in range(1, 4):
        z.fill_(k)
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(w, n * (summed(n, 1000) + 2 * k)) and v.eq(n * k).all(), k
    dist.all_reduce(z, async_op=True).wait()
    assert z.eq(3 * n).all()


def the_last_call_fails(rank, n):
    """The job's last call differs between ranks and no rank waits for it. The end of the job
    raises.
    """
    dist.all_reduce(torch.ones(1))
    torch.cuda.synchronize()
    try:
        dist.all_reduce(torch.ones(1000 + rank), async_op=True)
        dist.destroy_process_group()
    except hocket.Error as error:
        print("raised", type(error).__name__)
    dist.destroy_process_group()


def a_barrier_comes_after_async_calls(rank, n):
    """A rank that has left a barrier finds the calls before it ended."""
    dist.all_reduce(torch.ones(1))
    for _ in range(20):
        torch.cuda._sleep(2_000_000)
        work = dist.all_reduce(values(rank, 100_000), async_op=True)
        dist.barrier()
        assert work.is_completed()


def split_and_monitored(rank, n):
    """Groups split off, with calls on their own streams; barriers that name who is missing."""
    bound = torch.device("cuda", rank)
    dist.group.WORLD.bound_device_id = bound
    group = dist.split_group(split_ranks=[list(range(n))])
    work = dist.all_reduce(x := values(rank, 500), group=group, async_op=True)
    dist.all_reduce(y := values(rank, 700))
    work.wait()
    assert torch.equal(x, summed(n, 500)) and torch.equal(y, summed(n, 700))
    assert group.getBackendName() == "hocket"
    alone = dist.split_group(split_ranks=[[r] for r in range(n)])
    dist.all_reduce(x := values(rank, 5), group=alone)
    assert torch.equal(x, values(rank, 5))
    if isinstance(dist.group.WORLD, hocket.torch.HocketGroup):  # newer PyTorch
        dist.monitored_barrier()
        dist.monitored_barrier(group=group, wait_all_ranks=True)


def training(rank, n):
    """DDP and FSDP come to the losses that they come to over PyTorch's own backend."""
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    def ddp(group):
        def wrap(model):
            return DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.001)

        return wrap

    def fsdp(group):
        mesh = DeviceMesh.from_group(group, DEVICE)

        def wrap(model):
            for layer in model:
                if isinstance(layer, torch.nn.Linear):
                    fully_shard(layer, mesh=mesh)
            return fully_shard(model, mesh=mesh)

        return wrap

    ours, theirs = dist.group.WORLD, dist.new_group(backend=PEERS[DEVICE])
    for form in (ddp, fsdp):
        mine, wanted = _train(form(ours), rank, n), _train(form(theirs), rank, n)
        torch.testing.assert_close(torch.tensor(mine), torch.tensor(wanted), rtol=1e-4, atol=1e-5)
        assert mine[-1] < mine[0], mine


def bagua_groups_and_objects(rank, n):
    hocket.compat.install("bagua")
    import bagua.torch_api as bagua

    bagua.init_process_group()
    group = bagua.new_group([0, 1])
    for comm in (group.get_global_communicator(), group.get_intra_node_communicator()):
        x = torch.full((1000,), float(rank))
        bagua.allreduce_inplace(x, comm=comm)
        assert x.eq(1 if rank < 2 else rank).all()
    x = torch.full((3,), float(rank))
    bagua.broadcast(x, comm=group.get_inter_node_communicator())  # one member
    assert x.eq(rank).all()
    alone = bagua.new_group([1])
    x = torch.full((3,), float(rank))
    bagua.allreduce_inplace(x, bagua.ReduceOp.AVG, comm=alone.get_global_communicator())
    assert x.eq(rank).all()
    ours = bagua.from_torch_group(dist.new_group([0, 1]))
    bagua.allreduce_inplace(x, comm=ours.get_global_communicator())
    assert x.eq(1 if rank < 2 else rank).all()
    model = torch.nn.Linear(3, 2).to(torch.bfloat16)
    got = bagua.broadcast_object(model.state_dict() if rank == 0 else None, 0)
    weight = got["weight"].to(model.weight.device)
    bagua.broadcast(model.weight.detach(), 0)
    assert torch.equal(weight, model.weight)


if __name__ == "__main__":
    main(globals(), *sys.argv[1:])
