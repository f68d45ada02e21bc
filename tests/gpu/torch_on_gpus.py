"""What the ranks of test_faces.py do with PyTorch: ``python torch_on_gpus.py NAMES RANK SIZE FILE BACKEND``.

On the CPU too, where gloo takes the place of NCCL: HOCKET_TEST_DEVICE=cpu.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "python"))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch_programs import DEVICE, _train, check, main, values  # noqa: E402

import hocket.compat  # noqa: E402

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
    """A group of some ranks; calls on another stream, and those that are async."""
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
