"""``bagua.torch_api.communication``: Bagua's groups and functions over hocket.

Tensors are on the CPU or on GPUs. Calls block, ordered after the current stream's work. Where
`comm` is not given, or `CommMember.WORLD`, it is the default group's global communicator; with one
that this process is no member of, a call returns at once and leaves its tensors alone.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Any, Optional, Union

import torch
import torch.distributed as dist

import hocket

from . import env
from ._communicator import BaguaCommunicator, ReduceOp
from ._objects import decode, encode

__all__ = [
    "BaguaProcessGroup",
    "CommMember",
    "ReduceOp",
    "allgather",
    "allgather_inplace",
    "allow_pickle",
    "allreduce",
    "allreduce_coalesced_inplace",
    "allreduce_inplace",
    "alltoall",
    "alltoall_inplace",
    "alltoall_v",
    "alltoall_v_inplace",
    "barrier",
    "broadcast",
    "broadcast_coalesced",
    "broadcast_object",
    "from_torch_group",
    "gather",
    "gather_inplace",
    "get_backend",
    "get_communicator",
    "init_process_group",
    "is_initialized",
    "new_group",
    "recv",
    "reduce",
    "reduce_inplace",
    "reduce_scatter",
    "reduce_scatter_inplace",
    "scatter",
    "scatter_inplace",
    "send",
]


class CommMember:
    """What stands for communicators."""

    WORLD: Any = object()
    NON_COMM_MEMBER: Any = object()


comm = CommMember

Comm = Union[BaguaCommunicator, Any, None]
Tensor = torch.Tensor


class _State:
    """What Bagua keeps for a process: its default group, and the groups by name."""

    world: Optional[hocket.Communicator] = None
    default: Optional[BaguaProcessGroup] = None
    groups: dict[str, BaguaProcessGroup] = {}
    allow_pickle = False


# --- Groups -----------------------------------------------------------------------------------
class BaguaProcessGroup:
    """A set of ranks and its three communicators; made by `new_group`.

    Attributes
    ----------
    ranks : list of int
        The members, ascending.
    intra_ranks, inter_ranks : list of int
        The members on this node; those whose number on their nodes is that of ``ranks[0]``.
    """

    def __init__(
        self, world: hocket.Communicator, ranks: Sequence[int], stream: Any, group_name: str
    ) -> None:
        self.ranks = list(ranks)
        self.stream = stream
        self.group_name = group_name
        me, hosts = world.rank, world.hosts
        local = [hosts[:rank].count(hosts[rank]) for rank in range(world.size)]
        self.intra_ranks = [rank for rank in self.ranks if hosts[rank] == hosts[me]]
        self.inter_ranks = [rank for rank in self.ranks if local[rank] == local[self.ranks[0]]]
        # All ranks of the world make the group at once, so that later nobody waits for others.
        color = hosts[me] if me in self.ranks else -1
        self._communicators = {
            "global": self._wrap(world.new_group(self.ranks)),
            "inter": self._wrap(world.new_group(self.inter_ranks)),
            "intra": self._wrap(world.split(color)),
        }

    def _wrap(self, made: hocket.Communicator) -> Comm:
        if not made.is_member:
            return CommMember.NON_COMM_MEMBER
        return BaguaCommunicator(made, self.stream)

    def get_global_communicator(self) -> Comm:
        """Of all members; `CommMember.NON_COMM_MEMBER` where this process is none."""
        return self._communicators["global"]

    def get_inter_node_communicator(self) -> Comm:
        """Of one member a node; `CommMember.NON_COMM_MEMBER` where this process is none."""
        return self._communicators["inter"]

    def get_intra_node_communicator(self) -> Comm:
        """Of the members on this node."""
        return self._communicators["intra"]


def init_process_group(
    store: Any = None,
    rank: Optional[int] = None,
    world_size: Optional[int] = None,
    local_world_size: Optional[int] = None,
) -> None:
    """Join the job and make the default group.

    Where torch.distributed has a process group, its ranks are the job's, and they meet by it.
    Otherwise they meet by `store`, or as torchrun's environment says, and torch.distributed gets
    one, of the backend "hocket"; under ``hocket run`` hocket's own way is taken, without that.

    Parameters
    ----------
    store : torch.distributed.Store, optional
    rank, world_size : int, optional
        By default what the launcher says.
    local_world_size : int, optional
        Not needed: hocket knows which ranks share a node.

    Raises
    ------
    RuntimeError
        It has been called before.
    """
    if _State.default is not None:
        raise RuntimeError("trying to initialize the default process group twice!")
    _State.world = _join(store, rank, world_size)
    _State.default = new_group()


def _join(store: Any, rank: Optional[int], size: Optional[int]) -> hocket.Communicator:
    if not dist.is_initialized():
        by_torch = store is not None or "MASTER_ADDR" in os.environ
        if not by_torch:
            return hocket.init(rank=rank, size=size)
        importlib.import_module("hocket.torch")
        dist.init_process_group(
            "hocket",
            store=store,
            rank=env.get_rank() if rank is None else rank,
            world_size=env.get_world_size() if size is None else size,
        )
    return hocket.init(bootstrap=hocket.TorchBootstrap())


def is_initialized() -> bool:
    """Whether `init_process_group` has been called."""
    return _State.default is not None


def _get_default_group() -> BaguaProcessGroup:
    """The group that `init_process_group` made."""
    if _State.default is None:
        raise RuntimeError(
            "Default process group has not been initialized, "
            "please make sure to call init_process_group."
        )
    return _State.default


def new_group(ranks: Optional[Sequence[int]] = None, stream: Any = None) -> BaguaProcessGroup:
    """Make a group; every process of the job calls it, members or not, in one order.

    Parameters
    ----------
    ranks : sequence of int, optional
        The members; all ranks by default. Their order does not matter.
    stream : torch.cuda.Stream, optional
        Kept as ``group.stream``; calls go on the current stream.

    Raises
    ------
    ValueError
        A rank is not in the job.
    """
    world = _State.world
    if world is None:
        _get_default_group()
        raise AssertionError
    members = sorted(set(range(world.size) if ranks is None else ranks))
    if not members or members[0] < 0 or members[-1] >= world.size:
        world.refuse(f"ranks is {ranks}, expected some of 0 to {world.size - 1}")
    return _keep(world, members, stream)


def _keep(world: hocket.Communicator, ranks: Sequence[int], stream: Any) -> BaguaProcessGroup:
    name = str(len(_State.groups) + 1)
    _State.groups[name] = BaguaProcessGroup(world, ranks, stream, name)
    return _State.groups[name]


def from_torch_group(group: Any, stream: Any = None) -> BaguaProcessGroup:
    """The equivalent of a group of torch.distributed; its members alone call it.

    The ranks of its lists are those in the group.
    """
    world = hocket.init(bootstrap=hocket.TorchBootstrap(group))
    return _keep(world, range(world.size), stream)


def get_communicator(group_name: str, comm_name: str) -> Comm:
    """A group's communicator "global", "inter" or "intra"."""
    if comm_name not in ("global", "inter", "intra"):
        raise ValueError("comm_name should be one of ['global', 'inter', 'intra']")
    return _State.groups[group_name]._communicators[comm_name]


class _CommBackend:
    """What `get_backend` gives: a name and a device. Bagua's bucket scheduler is not part of it."""

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name
        self.device_id = env.get_local_rank()


_backends: dict[str, _CommBackend] = {}


def get_backend(model_name: str) -> Any:
    """The one object of each model's name."""
    return _backends.setdefault(model_name, _CommBackend(model_name))


def _resolve(chosen: Comm) -> Optional[BaguaCommunicator]:
    """The communicator that is meant; None where this process is no member."""
    if chosen is CommMember.NON_COMM_MEMBER:
        return None
    if chosen is None or chosen is CommMember.WORLD:
        chosen = _get_default_group().get_global_communicator()
    return chosen  # type: ignore[no-any-return]


# --- Calls ------------------------------------------------------------------------------------
def send(tensor: Tensor, dst: int, comm: Comm = None) -> None:
    """Send a tensor to rank `dst`, which calls `recv`."""
    if (chosen := _resolve(comm)) is not None:
        chosen.send(tensor, dst)


def recv(tensor: Tensor, src: int, comm: Comm = None) -> None:
    """Receive a tensor from rank `src`."""
    if (chosen := _resolve(comm)) is not None:
        chosen.recv(tensor, src)


def broadcast(tensor: Tensor, src: int = 0, comm: Comm = None) -> None:
    """Send the tensor of rank `src` to all."""
    if (chosen := _resolve(comm)) is not None:
        chosen.broadcast(tensor, src)


def broadcast_coalesced(tensors: Sequence[Tensor], src: int = 0, comm: Comm = None) -> None:
    """`broadcast` of each tensor, in one call."""
    if (chosen := _resolve(comm)) is not None:
        chosen.broadcast_coalesced(tensors, src)


def reduce(
    send_tensor: Tensor, recv_tensor: Tensor, dst: int, op: int = ReduceOp.SUM, comm: Comm = None
) -> None:
    """Reduce all ranks' `send_tensor` into `recv_tensor` of rank `dst`."""
    if (chosen := _resolve(comm)) is not None:
        chosen.reduce(send_tensor, recv_tensor, dst, op)


def reduce_inplace(tensor: Tensor, dst: int, op: int = ReduceOp.SUM, comm: Comm = None) -> None:
    """`reduce` in place."""
    if (chosen := _resolve(comm)) is not None:
        chosen.reduce_inplace(tensor, dst, op)


def allreduce(
    send_tensor: Tensor, recv_tensor: Tensor, op: int = ReduceOp.SUM, comm: Comm = None
) -> None:
    """Reduce all ranks' `send_tensor` into everybody's `recv_tensor`, bitwise the same."""
    if (chosen := _resolve(comm)) is not None:
        chosen.allreduce(send_tensor, recv_tensor, op)


def allreduce_inplace(tensor: Tensor, op: int = ReduceOp.SUM, comm: Comm = None) -> None:
    """`allreduce` in place."""
    if (chosen := _resolve(comm)) is not None:
        chosen.allreduce_inplace(tensor, op)


def allreduce_coalesced_inplace(
    tensors: Sequence[Tensor], op: int = ReduceOp.SUM, comm: Comm = None
) -> None:
    """`allreduce_inplace` of each tensor, in one call."""
    if (chosen := _resolve(comm)) is not None:
        chosen.allreduce_coalesced_inplace(tensors, op)


def allgather(send_tensor: Tensor, recv_tensor: Tensor, comm: Comm = None) -> None:
    """Collect all ranks' `send_tensor`; `recv_tensor` is nranks times as large."""
    if (chosen := _resolve(comm)) is not None:
        chosen.allgather(send_tensor, recv_tensor)


def allgather_inplace(tensor: Tensor, comm: Comm = None) -> None:
    """`allgather` in place: rank r's share lies at its place."""
    if (chosen := _resolve(comm)) is not None:
        chosen.allgather_inplace(tensor)


def gather(send_tensor: Tensor, recv_tensor: Tensor, dst: int, comm: Comm = None) -> None:
    """Collect all ranks' `send_tensor` in `recv_tensor` of rank `dst`."""
    if (chosen := _resolve(comm)) is not None:
        chosen.gather(send_tensor, recv_tensor, dst)


def gather_inplace(tensor: Tensor, count: int, dst: int, comm: Comm = None) -> None:
    """`gather` in place: nranks * `count` elements on rank `dst`, elsewhere `count`."""
    if (chosen := _resolve(comm)) is not None:
        chosen.gather_inplace(tensor, count, dst)


def scatter(send_tensor: Tensor, recv_tensor: Tensor, src: int, comm: Comm = None) -> None:
    """Hand out the shares of `send_tensor` of rank `src`."""
    if (chosen := _resolve(comm)) is not None:
        chosen.scatter(send_tensor, recv_tensor, src)


def scatter_inplace(tensor: Tensor, count: int, src: int, comm: Comm = None) -> None:
    """`scatter` in place: nranks * `count` elements on rank `src`, elsewhere `count`."""
    if (chosen := _resolve(comm)) is not None:
        chosen.scatter_inplace(tensor, count, src)


def reduce_scatter(
    send_tensor: Tensor, recv_tensor: Tensor, op: int = ReduceOp.SUM, comm: Comm = None
) -> None:
    """Reduce all ranks' `send_tensor`; rank r gets the r-th share."""
    if (chosen := _resolve(comm)) is not None:
        chosen.reduce_scatter(send_tensor, recv_tensor, op)


def reduce_scatter_inplace(tensor: Tensor, op: int = ReduceOp.SUM, comm: Comm = None) -> None:
    """`reduce_scatter` in place: the share is at the tensor's beginning."""
    if (chosen := _resolve(comm)) is not None:
        chosen.reduce_scatter_inplace(tensor, op)


def alltoall(send_tensor: Tensor, recv_tensor: Tensor, comm: Comm = None) -> None:
    """Send a share to each rank and get one from each."""
    if (chosen := _resolve(comm)) is not None:
        chosen.alltoall(send_tensor, recv_tensor)


def alltoall_inplace(tensor: Tensor, comm: Comm = None) -> None:
    """`alltoall` in place."""
    if (chosen := _resolve(comm)) is not None:
        chosen.alltoall_inplace(tensor)


def alltoall_v(
    send_tensor: Tensor,
    send_counts: Sequence[int],
    send_displs: Sequence[int],
    recv_tensor: Tensor,
    recv_counts: Sequence[int],
    recv_displs: Sequence[int],
    comm: Comm = None,
) -> None:
    """`alltoall` of shares of given sizes at given places, in elements."""
    if (chosen := _resolve(comm)) is not None:
        chosen.alltoall_v(
            send_tensor, send_counts, send_displs, recv_tensor, recv_counts, recv_displs
        )


def alltoall_v_inplace(
    tensor: Tensor, counts: Sequence[int], displs: Sequence[int], comm: Comm = None
) -> None:
    """`alltoall_v` in place."""
    if (chosen := _resolve(comm)) is not None:
        chosen.alltoall_v_inplace(tensor, counts, displs)


def barrier(comm: Comm = None) -> None:
    """Return when all ranks have come here."""
    if (chosen := _resolve(comm)) is not None:
        chosen.barrier()


# --- Objects ----------------------------------------------------------------------------------
def allow_pickle(allow: bool = True) -> None:
    """Let `broadcast_object` use pickle for what hocket's codec cannot carry.

    Unpickling runs code that the sender chooses: only where all ranks are trusted. All ranks say
    it.
    """
    _State.allow_pickle = allow


def broadcast_object(obj: Any, src: int = 0, comm: Comm = None) -> Any:
    """Send an object of rank `src` to all.

    Plain data, NumPy arrays, tensors, and what is made of them, state_dicts among it; for more see
    `allow_pickle`. Tensors arrive on the CPU.

    Returns
    -------
    object
        On rank `src` `obj` itself, elsewhere what was sent; `obj` where this process is no member.
    """
    chosen = _resolve(comm)
    if chosen is None:
        return obj
    if chosen.rank() == src:
        chosen.communicator.broadcast_object(encode(obj), src, _State.allow_pickle)
        return obj
    return decode(chosen.communicator.broadcast_object(None, src, _State.allow_pickle))
