"""Programs for the ranks of test_bagua.py: ``python bagua_programs.py NAMES RANK SIZE FILE``."""

import sys
import threading
import time
from collections import OrderedDict

import torch
import torch.distributed as dist
from torch_programs import check, use_device, values

import hocket
import hocket.compat

hocket.compat.install("bagua")

import bagua.torch_api as bagua  # noqa: E402
import bagua.torch_api.communication as bc  # noqa: E402
from bagua.torch_api import ReduceOp  # noqa: E402

DTYPES = [
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex64, torch.complex128, torch.bool,
]


def raised(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:
        return " ".join(c.__name__ for c in type(error).__mro__) + ": " + str(error)
    return "nothing"


def every(n, count, dtype):
    wide = torch.complex128 if dtype.is_complex else torch.float64
    return torch.stack([values(r, count, dtype=dtype).to(wide) for r in range(n)])


def folds(n, count, dtype):
    """Returns the result of each reduction that the dtype supports."""
    stacked = every(n, count, dtype)
    results = {ReduceOp.SUM: stacked.sum(0), ReduceOp.PRODUCT: stacked.prod(0)}
    if not dtype.is_complex:
        results[ReduceOp.MIN] = stacked.amin(0)
        results[ReduceOp.MAX] = stacked.amax(0)
    if dtype is not torch.bool:
        mean = stacked.sum(0) / n
        results[ReduceOp.AVG] = mean
        if not dtype.is_floating_point and not dtype.is_complex:
            results[ReduceOp.AVG] = mean.trunc()
    if not dtype.is_floating_point and not dtype.is_complex:
        parts = [values(r, count, dtype=dtype) for r in range(n)]
        for op, join in ((ReduceOp.BAND, torch.bitwise_and), (ReduceOp.BOR, torch.bitwise_or),
                         (ReduceOp.BXOR, torch.bitwise_xor)):
            total = parts[0]
            for part in parts[1:]:
                total = join(total, part)
            results[op] = total
    return {op: result.to(dtype) for op, result in results.items()}


def close(got, wanted, op):
    if op == ReduceOp.AVG and (got.is_floating_point() or got.is_complex()):
        torch.testing.assert_close(got, wanted)
    else:
        check(got, wanted)


def reductions(rank, n):
    for dtype in DTYPES:
        mine = values(rank, 2 * n, dtype=dtype)
        for op, wanted in folds(n, 2 * n, dtype).items():
            out = torch.zeros_like(mine)
            bagua.allreduce(mine, out, op)
            close(out, wanted, op)
            x = mine.clone()
            bagua.allreduce_inplace(x, op)
            check(x, out)
            x = mine.clone()
            bagua.allreduce(x, x, op)
            check(x, out)
            for dst in range(n):
                got = torch.zeros_like(mine)
                bagua.reduce(mine, got, dst, op)
                check(got, out if rank == dst else torch.zeros_like(mine))
                x = mine.clone()
                bagua.reduce_inplace(x, dst, op)
                check(x, out if rank == dst else mine)
            share = torch.zeros(2, dtype=dtype)
            bagua.reduce_scatter(mine, share, op)
            check(share, out[2 * rank : 2 * rank + 2])
            x = mine.clone()
            bagua.reduce_scatter_inplace(x, op)
            check(x[:2], share)
            tensors = [mine.clone(), mine[:1].clone()]
            bc.allreduce_coalesced_inplace(tensors, op)
            check(tensors[0], out)
            check(tensors[1], out[:1])


def movement(rank, n):
    for dtype in [*DTYPES, torch.float8_e5m2]:
        def v(r, count, dtype=dtype):
            return values(r, count, dtype=dtype)

        gathered = torch.cat([v(r, 3).view(torch.uint8) for r in range(n)]).view(dtype)
        out = torch.empty(3 * n, dtype=dtype)
        bagua.allgather(v(rank, 3), out)
        check(out, gathered)
        x = torch.zeros(3 * n).to(dtype)
        x[3 * rank : 3 * rank + 3] = v(rank, 3)
        bagua.allgather_inplace(x)
        check(x, gathered)
        for root in range(n):
            x = v(rank, 5)
            bagua.broadcast(x, root)
            check(x, v(root, 5))
            pair = [v(rank, 2), v(rank, 7)]
            bc.broadcast_coalesced(pair, root)
            check(pair[1], v(root, 7))
            out = torch.zeros(3 * n).to(dtype)
            bagua.gather(v(rank, 3), out if rank == root else None, root)
            if rank == root:
                check(out, gathered)
            x = v(rank, 3)
            if rank == root:
                x = torch.zeros(3 * n).to(dtype)
                x[3 * rank : 3 * rank + 3] = v(rank, 3)
            bagua.gather_inplace(x, 3, root)
            check(x, gathered if rank == root else v(rank, 3))
            whole = v(root, 3 * n)
            share = torch.zeros(3).to(dtype)
            bagua.scatter(whole if rank == root else None, share, root)
            check(share, whole[3 * rank : 3 * rank + 3])
            x = whole.clone() if rank == root else torch.zeros(3).to(dtype)
            bagua.scatter_inplace(x, 3, root)
            check(x, whole if rank == root else whole[3 * rank : 3 * rank + 3])
        shares = [v(r, 2 * n).view(torch.uint8).chunk(n)[rank] for r in range(n)]
        wanted = torch.cat(shares).view(dtype)
        out = torch.empty(2 * n, dtype=dtype)
        bagua.alltoall(v(rank, 2 * n), out)
        check(out, wanted)
        x = v(rank, 2 * n)
        bagua.alltoall_inplace(x)
        check(x, wanted)
        if n > 1:
            if rank == 0:
                bagua.send(v(0, 4), 1)
            if rank == 1:
                x = torch.zeros(4).to(dtype)
                bagua.recv(x, 0)
                check(x, v(0, 4))
    bagua.barrier()


def parts(rank, n):
    # To rank r go r + 1 elements, with a gap of one before each share.
    counts = [r + 1 for r in range(n)]
    places = [sum(counts[:r]) + r + 1 for r in range(n)]
    send = values(rank, sum(counts) + n + 1)
    recv = torch.full((n * (rank + 2) + 1,), -1.0)
    came = [rank + 1] * n
    at = [r * (rank + 2) for r in range(n)]
    bc.alltoall_v(send, counts, places, recv, came, at)
    wanted = torch.full_like(recv, -1.0)
    for r in range(n):
        theirs = values(r, sum(counts) + n + 1)
        wanted[at[r] : at[r] + rank + 1] = theirs[places[rank] : places[rank] + rank + 1]
    check(recv, wanted)
    x = values(rank, 2 * n)
    bc.alltoall_v_inplace(x, [2] * n, [2 * r for r in range(n + 1)])  # the last offset is the end
    check(x, torch.cat([values(r, 2 * n)[2 * rank : 2 * rank + 2] for r in range(n)]))


def the_documented(rank, n):
    send = torch.arange(2, dtype=torch.int64) + 1 + 2 * rank
    recv = torch.zeros(2, dtype=torch.int64)
    bagua.allreduce(send, recv)
    check(recv, torch.tensor([4, 6]))
    send = torch.tensor([1 + 1j, 2 + 2j], dtype=torch.cfloat) + 2 * rank * (1 + 1j)
    recv = torch.zeros(2, dtype=torch.cfloat)
    bagua.allreduce(send, recv)
    check(recv, torch.tensor([4 + 4j, 6 + 6j], dtype=torch.cfloat))


def groups(rank, n):
    world = bc._get_default_group()
    comm = world.get_global_communicator()
    assert (comm.rank(), comm.nranks(), comm.check_abort()) == (rank, n, False)
    assert world.get_intra_node_communicator().nranks() == n
    assert world.inter_ranks == [0] and world.intra_ranks == list(range(n))
    inter = world.get_inter_node_communicator()
    assert (inter is bc.CommMember.NON_COMM_MEMBER) == (rank != 0)
    group = bagua.new_group([n - 1, 1])
    assert group.ranks == [1, n - 1]
    x = torch.full((1,), float(rank))
    bagua.allreduce_inplace(x, comm=group.get_global_communicator())
    assert x.item() == (n if rank in group.ranks else rank)
    x = torch.full((1,), float(rank))
    bagua.broadcast(x, comm=inter)  # a group of one member: nothing changes
    assert x.item() == rank
    assert bc.get_communicator(group.group_name, "global") is group.get_global_communicator()
    x = torch.ones(1)
    bagua.allreduce_inplace(x, comm=bc.CommMember.WORLD)
    assert x.item() == n
    torch_group = dist.new_group([0, n - 1])
    ours = bagua.from_torch_group(torch_group)  # other ranks may call it too, and are no members
    x = torch.full((1,), float(rank + 1))
    bagua.allreduce_inplace(x, comm=ours.get_global_communicator())
    assert x.item() == (n + 1 if rank in (0, n - 1) else rank + 1)
    raw = world.get_global_communicator()
    x = torch.full((2,), float(rank))
    raw.allreduce_inplace(x, ReduceOp.MAX)
    assert x[0] == n - 1
    assert "ValueError" in raised(bagua.new_group, [0, n])
    assert "twice" in raised(bagua.init_process_group)
    assert bagua.is_initialized() and bagua.get_rank() >= 0
    assert bc.get_backend("m") is bc.get_backend("m")


def objects(rank, n):
    torch.manual_seed(3)
    model = torch.nn.Linear(3, 2).to(torch.bfloat16)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3, dtype=torch.bfloat16)).sum().backward()
    optimizer.step()
    state = OrderedDict(model=model.state_dict(), optimizer=optimizer.state_dict(),
                        shape=torch.Size([2, 3]), dtype=torch.float8_e4m3fn, plain=(1, "a", None))
    got = bagua.broadcast_object(state if rank == 1 else None, 1)
    if rank == 1:
        assert got is state
    else:
        assert type(got) is OrderedDict and list(got) == list(state)
        assert got["shape"] == torch.Size([2, 3]) and isinstance(got["shape"], torch.Size)
        assert got["dtype"] is torch.float8_e4m3fn and got["plain"] == (1, "a", None)
        check(got["model"]["weight"], state["model"]["weight"])
        check(got["optimizer"]["state"][0]["exp_avg"], state["optimizer"]["state"][0]["exp_avg"])
        fresh = torch.optim.Adam(torch.nn.Linear(3, 2).to(torch.bfloat16).parameters())
        fresh.load_state_dict(got["optimizer"])
    text = raised(bagua.broadcast_object, {1, 2} if rank == 0 else None, 0)
    assert "pickle" in text, text
    bc.allow_pickle()
    assert bagua.broadcast_object({1, 2} if rank == 0 else None, 0) == {1, 2}


def refusals(rank, n):
    x = torch.zeros(4)
    refused = [
        ("4 elements and recv_tensor 5", bagua.allreduce, x, torch.zeros(5)),
        ("9 elements", bagua.allgather, x, torch.zeros(9)),
        (f"multiple of {n}", bagua.alltoall_inplace, torch.zeros(n + 1)),
        ("4 elements", bagua.reduce_scatter, x, x),
        ("contiguous", bagua.allreduce_inplace, torch.zeros(4, 4).t()[1:]),
        ("op is 5", bagua.allreduce_inplace, x, 5),
        ("send_counts[0] is 9", bc.alltoall_v, x, [9] * n, [0] * n, x, [1] * n, [0] * n),
    ]
    # Here one rank alone refuses. On GPUs that would end the communicator.
    if not x.is_cuda:
        refused += [("3 elements", bagua.gather_inplace, torch.zeros(3), 2, 0),
                    ("2 elements", bagua.scatter, torch.zeros(2), x, 0)]
    for words, *call in refused:
        text = raised(*call)
        assert "ValueError" in text and words in text, (words, text)
    text = raised(bagua.allreduce_inplace, x, ReduceOp.BAND)
    assert "TypeError" in text and "BAND" in text, text
    bagua.allreduce_inplace(x)  # the communicator can be used further


def registered(rank, n):
    """Bagua's methods of tensors, as its raw communicators want them."""
    comm = bc._get_default_group().get_global_communicator()
    x = values(rank, 5)
    assert not x.is_bagua_tensor() and x.ensure_bagua_tensor("x") is x and x.is_bagua_tensor()
    assert x.bagua_tensor_name == "x"
    comm.allreduce_inplace(x.ensure_bagua_tensor("x").bagua_backend_tensor(), ReduceOp.SUM)
    check(x, sum(values(r, 5) for r in range(n)))
    y = values(rank, 4)
    new = y.to_bagua_tensor()
    assert not y.is_bagua_tensor() and new.data_ptr() == y.data_ptr()
    comm.allreduce_inplace(new.bagua_backend_tensor(), 10)
    assert torch.allclose(y, sum(values(r, 4) for r in range(n)) / n)
    p = torch.nn.Parameter(torch.ones(3)).bagua_ensure_grad().ensure_bagua_tensor(
        "p", "m", lambda p: p.grad, lambda p, t: setattr(p, "grad", t)
    )
    p.grad += rank
    comm.allreduce_inplace(p.bagua_backend_tensor())
    check(p.grad, torch.full((3,), n * (n - 1) / 2))
    whole = torch.arange(10.0)
    p.bagua_set_registered_storage(whole.untyped_storage(), 4)
    check(p.bagua_getter_closure(), whole[4:7])
    assert "already" in raised(x.ensure_bagua_tensor, "z")
    assert "getter_closure" in raised(lambda: y.ensure_bagua_tensor(setter_closure=print))
    assert "scheduler" in raised(x.bagua_mark_communication_ready)


def aborts(rank, n):
    comm = bc._get_default_group().get_global_communicator()
    if rank == 0:
        if torch.zeros(1).is_cuda:  # calls that are on a stream end without an error
            threading.Timer(0.5, comm.abort).start()
            bagua.allreduce_inplace(torch.zeros(3))
        else:
            comm.abort()
    else:
        while not comm.check_abort():
            time.sleep(0.01)
    assert "Aborted" in raised(bagua.allreduce_inplace, torch.zeros(3))
    assert comm.check_abort()
    assert "Aborted" in raised(bagua.barrier)


def main(name, rank, size, file):
    use_device(rank)
    assert "has not been initialized" in raised(bagua.barrier)
    bagua.init_process_group(dist.FileStore(file, size), rank, size)
    for one in name.split(","):
        globals()[one](rank, size)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
