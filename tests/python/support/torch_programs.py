"""Programs for the ranks of test_torch.py: ``python torch_programs.py NAME RANK SIZE FILE``."""

import datetime
import os
import sys
import unittest.mock

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

# The device of tensors: with "cuda", rank r uses GPU r.
DEVICE = os.environ.get("HOCKET_TEST_DEVICE", "cpu")
TIMEOUT = datetime.timedelta(seconds=40)
DTYPES = [
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex64, torch.bool, torch.float8_e4m3fn,
]


def use_device(rank):
    torch.set_num_threads(1)
    if DEVICE == "cuda":
        torch.cuda.set_device(rank)
        torch.set_default_device(f"cuda:{rank}")


def values(rank, *shape, dtype=torch.float32):
    """Small whole numbers that differ by rank and place."""
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 3 + rank * 5 + 1) % 4).float().reshape(shape).to(dtype)


def check(got, wanted):
    assert got.dtype == wanted.dtype and got.shape == wanted.shape, (got, wanted)
    same = torch.equal(got, wanted) if got.dtype.itemsize > 1 else torch.equal(
        got.view(torch.uint8), wanted.view(torch.uint8)
    )
    assert same, f"{got} is not {wanted}"


def movement(rank, n):
    for dtype in DTYPES:
        def v(*a, dtype=dtype):
            return values(*a, dtype=dtype)

        for root in range(n):
            x = v(rank, 3, 2)
            dist.broadcast(x, root)
            check(x, v(root, 3, 2))
            out = [torch.empty(4, dtype=dtype) for _ in range(n)] if rank == root else None
            dist.gather(v(rank, 4), out, root)
            for r, part in enumerate(out or []):
                check(part, v(r, 4))
            x = torch.empty(2, dtype=dtype)
            dist.scatter(x, [v(root + r, 2) for r in range(n)] if rank == root else None, root)
            check(x, v(root + rank, 2))
        out = [torch.empty(3, dtype=dtype) for _ in range(n)]
        dist.all_gather(out, v(rank, 3))
        for r in range(n):
            check(out[r], v(r, 3))
        x = torch.empty(n * 3, dtype=dtype)
        dist.all_gather_into_tensor(x, v(rank, 3))
        check(x, torch.stack([v(r, 3) for r in range(n)]).view(-1))
        x = torch.empty(n, 2, dtype=dtype)
        dist.all_to_all_single(x, v(rank, n, 2))
        check(x, torch.stack([v(r, n, 2)[rank] for r in range(n)]))
        # To rank r go r + 1 rows.
        total = n * (n + 1) // 2
        x = torch.empty(n * (rank + 1), 2, dtype=dtype)
        dist.all_to_all_single(x, v(rank, total, 2), [rank + 1] * n, [r + 1 for r in range(n)])
        first = rank * (rank + 1) // 2
        rows = [v(r, total, 2)[first : first + rank + 1] for r in range(n)]
        check(x.view(torch.uint8), torch.stack(rows).view(n * (rank + 1), 2).view(torch.uint8))
        out = [torch.empty(r + 1, dtype=dtype) for r in range(n)]
        dist.all_to_all(out, [v(rank, rank + 1) for r in range(n)])
        for r in range(n):
            check(out[r], v(r, r + 1))


def reductions(rank, n):
    for dtype in DTYPES:
        every = [values(r, 5, dtype=dtype) for r in range(n)]
        wide = torch.complex64 if dtype.is_complex else torch.float64
        stacked = torch.stack([x.to(wide) for x in every])
        wanted = {ReduceOp.SUM: stacked.sum(0)}
        if not dtype.is_complex:  # PyTorch itself refuses the rest on them
            wanted[ReduceOp.PRODUCT] = stacked.prod(0)
            wanted.update({ReduceOp.MIN: stacked.amin(0), ReduceOp.MAX: stacked.amax(0)})
        for op, result in wanted.items():
            if dtype.itemsize == 1 and not dtype.is_floating_point or dtype is torch.float8_e4m3fn:
                if op == ReduceOp.PRODUCT and dtype is not torch.bool:
                    continue
            result = result.to(dtype)
            x = every[rank].clone()
            dist.all_reduce(x, op)
            check(x, result)
            for root in range(n):
                x = every[rank].clone()
                dist.reduce(x, root, op)
                check(x, result if rank == root else every[rank])
            x = torch.empty(1, dtype=dtype)
            dist.reduce_scatter(x, [every[rank][r : r + 1].clone() for r in range(n)], op)
            check(x, result[rank : rank + 1])
            x = torch.empty(1, dtype=dtype)
            dist.reduce_scatter_tensor(x, every[rank][:n].clone(), op)
            check(x, result[rank : rank + 1])
    for op, fold in ((ReduceOp.BAND, "__and__"), (ReduceOp.BOR, "__or__"), (ReduceOp.BXOR, "__xor__")):
        x = torch.tensor([rank + 1, 6])
        dist.all_reduce(x, op)
        result = 1
        for r in range(1, n):
            result = getattr(result, fold)(r + 1)
        check(x[:1], torch.tensor([result]))
    x = torch.full((3,), float(rank))
    dist.all_reduce(x, ReduceOp.AVG)
    check(x, torch.full((3,), (n - 1) / 2))


def layouts(rank, n):
    """Tensors that are not contiguous."""
    base = values(rank, 4, 6)
    view = base.t()[1:5:2]
    rest = base.clone()
    dist.all_reduce(view)
    rest.t()[1:5:2] = sum(values(r, 4, 6).t()[1:5:2] for r in range(n))
    check(base, rest)
    image = values(rank, 2, 3, 4, 5).to(memory_format=torch.channels_last)
    dist.broadcast(image, n - 1)
    check(image.contiguous(), values(n - 1, 2, 3, 4, 5))
    out = torch.empty(5, n).t()
    dist.all_gather_into_tensor(out, values(rank, 5))
    check(out.contiguous(), torch.stack([values(r, 5) for r in range(n)]))
    scalar = torch.tensor(float(rank), requires_grad=True)
    with torch.no_grad():
        dist.all_reduce(scalar)
    assert scalar.item() == n * (n - 1) / 2
    empty = torch.empty(0)
    dist.all_reduce(empty)


def asynchronous(rank, n):
    tensors = [values(rank + i, 1000 + i) for i in range(20)]
    works = [dist.all_reduce(x, async_op=True) for x in tensors]
    out = [[torch.empty(7) for _ in range(n)] for _ in range(3)]
    works += [dist.all_gather(o, values(rank, 7), async_op=True) for o in out]
    works[5].wait()
    futures = [work.get_future() for work in works]
    for future in futures:
        future.wait()
    for work in reversed(works):
        assert work.wait()
    for i, x in enumerate(tensors):
        check(x, sum(values(r + i, 1000 + i) for r in range(n)))
    for o in out:
        for r in range(n):
            check(o[r], values(r, 7))
    x = values(rank, 3)
    then = dist.all_reduce(x, async_op=True).get_future().then(lambda f: f.value()[0] * 2)
    check(then.wait(), 2 * sum(values(r, 3) for r in range(n)))
    dist.barrier(async_op=True).wait()


def messages(rank, n):
    following, previous = (rank + 1) % n, (rank - 1) % n
    x = torch.empty(5)
    work = dist.isend(values(rank, 5), following)
    dist.recv(x, previous)
    work.wait()
    check(x, values(previous, 5))
    big, got = values(rank, 1 << 20), torch.empty(1 << 20)
    ops = [dist.P2POp(dist.isend, big, following), dist.P2POp(dist.irecv, got, previous)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    check(got, values(previous, 1 << 20))
    tagged = [torch.empty(1), torch.empty(1)]
    works = [dist.isend(torch.tensor([float(t)]), following, tag=t) for t in (0, 1)]
    dist.recv(tagged[1], previous, tag=1)
    dist.recv(tagged[0], previous, tag=0)
    assert [t.item() for t in tagged] == [0, 1]
    for work in works:
        work.wait()


def groups(rank, n):
    members = list(range(1, n))
    group = dist.new_group(members)
    x = torch.full((2,), float(rank))
    if rank in members:
        dist.all_reduce(x, group=group)
        assert x[0] == sum(members) and dist.get_world_size(group) == n - 1
        y = torch.full((1,), float(rank))
        dist.broadcast(y, src=members[-1], group=group)
        assert y.item() == members[-1]
    everybody = dist.new_group()
    dist.all_reduce(x, group=everybody)
    objects = [None] * n
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
    assert objects == [{"rank": r, "text": "x" * r} for r in range(n)]
    thing = [("from", 0)] if rank == 0 else [None]
    dist.broadcast_object_list(thing, 0)
    assert thing == [("from", 0)]


def coalesced(rank, n):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    options = dist.AllreduceCoalescedOptions()
    tensors = [values(rank, 3), values(rank, 4)]
    backend.allreduce_coalesced(tensors, options).wait()
    check(tensors[1], sum(values(r, 4) for r in range(n)))
    outs = [torch.empty(n, 2), torch.empty(n * 3)]
    backend.all_gather_single_coalesced(outs, [values(rank, 2), values(rank, 3)], None)
    check(outs[0], torch.stack([values(r, 2) for r in range(n)]))


def sparse(rank, n):
    """Sums of sparse tensors: entries may meet, be missing, and be given twice."""
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        for dense in (0, 1):
            def made(r, dtype=dtype, dense=dense):
                count = 0 if r == 1 else 6 + r  # rank 1 has no entry at all
                places = torch.stack([torch.arange(count) * (r + 1) % 5, torch.arange(count) % 3])
                return torch.sparse_coo_tensor(
                    places, values(r, count, *(4,) * dense, dtype=dtype), (5, 3) + (4,) * dense
                )

            x = made(rank)
            for is_async in (False, True):
                work = dist.all_reduce(x, async_op=is_async)
                if is_async:
                    work.wait()
                wanted = sum(made(r).to_dense() for r in range(n))
                assert x.is_sparse and x.is_coalesced() and x.sparse_dim() == 2
                check(x.to_dense(), wanted)
                x = made(rank)
    # The function that PyTorch calls for CUDA tensors.
    x = torch.ones(2).to_sparse()
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    backend.allreduce_sparse([x], dist.AllreduceOptions()).wait()
    check(x.to_dense(), torch.full((2,), float(n)))
    model = torch.nn.Embedding(7, 3, sparse=True)
    torch.nn.init.ones_(model.weight)
    model = torch.nn.parallel.DistributedDataParallel(model)
    model(torch.tensor([rank, 6])).sum().backward()
    gradient = model.module.weight.grad
    assert gradient.is_sparse
    wanted = torch.zeros(7, 3)
    wanted[:n] = 1 / n
    wanted[6] = 1
    torch.testing.assert_close(gradient.to_dense(), wanted)
    text = []
    for x, op in (
        (torch.zeros(3 + rank).to_sparse(), ReduceOp.SUM),
        (torch.zeros(3).to_sparse(), ReduceOp.MAX),
        (torch.zeros(3, 3).to_sparse_csr(), ReduceOp.SUM),
    ):
        try:
            dist.all_reduce(x, op)
        except (ValueError, RuntimeError) as error:
            text.append(type(error).__name__)
    assert len(text) == (3 if n > 1 else 2), text
    x = torch.ones(2).to_sparse()
    dist.all_reduce(x)  # the group goes on
    check(x.to_dense(), torch.full((2,), float(n)))


def split_off(rank, n):
    """Groups split off a group that is bound to a device, afterwards or by init_process_group."""
    device = torch.device(DEVICE, rank if DEVICE == "cuda" else 0)
    dist.group.WORLD.bound_device_id = device
    split_in_two_ways(rank, n)
    import hocket.torch

    has_cuda = DEVICE == "cuda" or not isinstance(dist.group.WORLD, hocket.torch.HocketGroup)
    dist.destroy_process_group()
    if not has_cuda or torch.accelerator.current_accelerator() is None:
        return
    bound = torch.device("cuda", device.index)
    # Without a GPU, a mock reports some: the tensors stay on the CPU.
    count = max(torch.accelerator.device_count(), device.index + 1)
    with unittest.mock.patch("torch.accelerator.device_count", return_value=count):
        dist.init_process_group(
            "hocket",
            init_method=f"file://{sys.argv[4]}-bound",
            rank=rank,
            world_size=n,
            device_id=bound,
        )
    assert dist.group.WORLD.bound_device_id == bound
    split_in_two_ways(rank, n)
    own, every = dist.new_subgroups(1)
    dist.all_reduce(x := values(rank, 5), group=own)
    check(x, values(rank, 5))
    assert len(every) == n and dist.get_world_size(own) == 1


def split_in_two_ways(rank, n):
    for ranks in ([list(range(n))], [[r] for r in range(n)]):
        group = dist.split_group(split_ranks=ranks)
        x = values(rank, 100)
        dist.all_reduce(x, group=group)
        check(x, sum(values(r, 100) for r in (range(n) if len(ranks) == 1 else [rank])))
        assert dist.get_world_size(group) == len(ranks[0])


def premultiplied(rank, n):
    """PREMUL_SUM: each rank's factor, a number or a tensor."""
    if not hasattr(dist, "_make_nccl_premul_sum"):
        return
    for factor in (0.5 * (rank + 1), torch.tensor([0.5 * (rank + 1)])):
        op = dist._make_nccl_premul_sum(factor)
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
            def v(r, *shape, dtype=dtype):
                return values(r, *shape, dtype=dtype)

            wanted = sum(0.5 * (r + 1) * v(r, 4 * n).double() for r in range(n)).to(dtype)
            for is_async in (False, True):
                x = v(rank, 4 * n)
                work = dist.all_reduce(x, op, async_op=is_async)
                if is_async:
                    work.wait()
                check(x, wanted)
            x = v(rank, 4 * n).view(n, 4).t()
            dist.all_reduce(x, op)
            check(x.t().reshape(-1), wanted)
            x = v(rank, 4 * n)
            dist.reduce(x, n - 1, op)
            check(x, wanted if rank == n - 1 else v(rank, 4 * n))
            x = torch.empty(4, dtype=dtype)
            dist.reduce_scatter_tensor(x, v(rank, 4 * n), op)
            check(x, wanted[4 * rank : 4 * rank + 4])
            x.zero_()
            dist.reduce_scatter(x, list(v(rank, 4 * n).chunk(n)), op)
            check(x, wanted[4 * rank : 4 * rank + 4])
            tensors = [v(rank, 4 * n), v(rank, 4 * n)[:3].clone()]
            with dist._coalescing_manager():
                for y in tensors:
                    dist.all_reduce(y, op)
            check(tensors[0], wanted)
            check(tensors[1], wanted[:3])
    try:
        dist.all_reduce(torch.ones(2, dtype=torch.int32), op)
    except ValueError as error:
        assert "PREMUL_SUM takes floating" in str(error)
    else:
        raise AssertionError("integers went through")


def refusals(rank, n):
    import hocket

    for call in (
        lambda: dist.all_gather([torch.empty(1)] * (n + 1), torch.empty(1)),
        lambda: dist.all_reduce(torch.zeros(3).to_sparse(), ReduceOp.MAX),
        lambda: dist.all_reduce(torch.zeros(3), ReduceOp.BAND),
        lambda: dist.all_reduce(torch.zeros(3 + rank)),
    ):
        try:
            call()
        except (ValueError, hocket.Mismatch) as error:
            print(type(error).__name__)
        else:
            raise AssertionError("went through")


def deadline(rank, n):
    import hocket

    if rank == 0:
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        backend.set_timeout(datetime.timedelta(seconds=0.3))
        try:
            dist.all_reduce(torch.zeros(3))
        except hocket.DeadlineExceeded as error:
            print("late:", error.missing)
    else:
        try:
            dist.recv(torch.zeros(1), 0)
        except hocket.Error as error:
            print(type(error).__name__)


def aborts(rank, n):
    import threading
    import time

    import hocket

    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    if rank == 0:
        threading.Thread(target=lambda: (time.sleep(0.3), backend.abort())).start()
    try:
        dist.all_reduce(torch.zeros(3)) if rank == 0 else dist.recv(torch.zeros(1), 0)
    except hocket.Aborted:
        print("aborted")


def _train(wrap, rank, n, steps=12):
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 3)
    )
    model = wrap(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(100 + rank)
    losses = []
    for _ in range(steps):
        x = torch.randn(16, 20)
        target = x[:, :3].argmax(1)
        loss = torch.nn.functional.cross_entropy(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        losses.append(total.item())
    return losses


def ddp(rank, n):
    from torch.nn.parallel import DistributedDataParallel

    def wrap(model):
        return DistributedDataParallel(model, bucket_cap_mb=0.001)

    print(*(f"{loss:.9g}" for loss in _train(wrap, rank, n)))


def uneven(rank, n):
    """Ranks with more steps than others: averages are divided by all ranks, or by those left."""
    for by_all in (True, False):
        torch.manual_seed(5)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(20, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        losses = []
        with model.join(divide_by_initial_world_size=by_all):
            for step in range(4 + 3 * rank):
                loss = model(values(rank + step, 6, 20) / 9).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        print(*(f"{loss:.9g}" for loss in losses))


def fsdp(rank, n):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (n,))

    def wrap(model):
        for layer in model:
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer, mesh=mesh)
        return fully_shard(model, mesh=mesh)

    print(*(f"{loss:.9g}" for loss in _train(wrap, rank, n)))


def compiled(rank, n):
    """A compiled DDP, whose buffers are sent around as it runs, and calls within a graph."""
    import torch.distributed._functional_collectives as functional

    gradients = []
    for wrap in (lambda model: model, lambda model: torch.compile(model, backend="aot_eager")):
        torch.manual_seed(5)
        layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
        through = wrap(torch.nn.parallel.DistributedDataParallel(layers))
        through(values(rank, 8, 4) / 7).pow(3).mean().backward()
        gradients.append(layers[0].weight.grad)
    assert gradients[0].abs().max() > 0
    torch.testing.assert_close(gradients[1], gradients[0])

    @torch.compile(backend="aot_eager", fullgraph=True)
    def graph(x):
        total = functional.all_reduce(x * 2, "sum", dist.group.WORLD)
        return functional.all_gather_tensor(total + 1, 0, dist.group.WORLD)

    check(graph(torch.full((3,), float(rank))), torch.full((3 * n,), n * (n - 1.0) + 1))


def inductor(rank, n):
    """A DDP whose model inductor compiles trains as one that is not compiled."""
    torch.set_num_threads(1)
    losses = []
    for compile_it in (False, True):
        torch.manual_seed(5)
        layers = torch.nn.Sequential(torch.nn.Linear(16, 40), torch.nn.GELU())
        if compile_it:
            layers.compile(backend="inductor")
        model = torch.nn.parallel.DistributedDataParallel(layers)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            loss = model(values(rank + n * step, 8, 16) / 100).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    torch.testing.assert_close(losses[3:], losses[:3])


def both_devices(rank, n):
    x = torch.full((2,), float(rank))
    dist.all_reduce(x)
    assert x[0] == n * (n - 1) / 2
    print(dist.get_backend_config())


def named(rank, n):
    """Properties that PyTorch sees of the backend: its name, and the devices of its tensors."""
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    model(torch.ones(1, 2)).sum().backward()
    assert model._get_ddp_logging_data()["backend_name"] == "hocket"
    assert dist.get_backend() == "hocket"
    devices = dist.Backend.backend_capability["hocket"]
    assert devices == (["cpu", "cuda"] if torch.cuda.device_count() else ["cpu"]), devices


def checkpoints(rank, n):
    """PyTorch's checkpoints and sharded tensors ask where the group's tensors lie."""
    import tempfile

    import torch.distributed.checkpoint as checkpoint
    from torch.distributed._shard import sharded_tensor
    from torch.distributed._shard.sharding_spec import ChunkShardingSpec

    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder, 0)
    saved = {"x": torch.arange(10.0), "rank": rank}
    checkpoint.save(saved, checkpoint_id=folder[0])
    loaded = {"x": torch.zeros(10), "rank": -1}
    checkpoint.load(loaded, checkpoint_id=folder[0])
    assert torch.equal(loaded["x"], saved["x"])
    spec = ChunkShardingSpec(dim=0, placements=[f"rank:{r}/{DEVICE}" for r in range(n)])
    sharded = sharded_tensor.rand(spec, 4 * n, 3)
    out = torch.zeros(4 * n, 3) if rank == 0 else None
    sharded.gather(0, out)
    if rank == 0:
        assert torch.equal(out[:4], sharded.local_tensor())


def main(programs, name, rank, size, file, backend="hocket"):
    rank, size = int(rank), int(size)
    if "hocket" in backend:
        import hocket.torch  # noqa: F401
    use_device(rank)
    dist.init_process_group(
        backend, init_method=f"file://{file}", rank=rank, world_size=size, timeout=TIMEOUT
    )
    for one in name.split(","):
        programs[one](rank, size)
    if dist.is_initialized():
        dist.destroy_process_group()
    sys.stdout.flush()


if __name__ == "__main__":
    main(globals(), *sys.argv[1:])
