"""Bagua's process groups over hocket, and the groups that a process keeps."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

import hocket

from . import env
from ._communicator import BaguaCommunicator


class CommMember:
    """Constants in the place of communicators."""

    WORLD: Any = object()
    NON_COMM_MEMBER: Any = object()


Comm = Union[BaguaCommunicator, Any, None]


class State:
    """The process's groups: the default one, and all by name."""

    world: Optional[hocket.Communicator] = None
    default: Optional[BaguaProcessGroup] = None
    groups: dict[str, BaguaProcessGroup] = {}
    allow_pickle = False
    on_gpus = False  # true if every process has a GPU; exchanged when they joined


class BaguaProcessGroup:
    """A set of ranks and its three communicators; made by `new_group`.

    Attributes
    ----------
    ranks : list of int
        The members, ascending.
    intra_ranks, inter_ranks : list of int
        The members on this node, and the members whose node-local number is that of ``ranks[0]``.
    """

    def __init__(
        self,
        ranks: Sequence[int],
        stream: Any,
        group_name: str,
        world: Optional[hocket.Communicator] = None,
    ) -> None:
        self.ranks = list(ranks)
        self.stream = stream
        self.group_name = group_name
        self.intra_ranks: list[int] = []
        self.inter_ranks: list[int] = []
        self._communicators = dict.fromkeys(("global", "inter", "intra"), CommMember.NON_COMM_MEMBER)
        if self.ranks:
            self._make(get_world() if world is None else world)

    def _make(self, world: hocket.Communicator) -> None:
        me, hosts = world.rank, world.hosts
        local = [hosts[:rank].count(hosts[rank]) for rank in range(world.size)]
        self.intra_ranks = [rank for rank in self.ranks if hosts[rank] == hosts[me]]
        self.inter_ranks = [rank for rank in self.ranks if local[rank] == local[self.ranks[0]]]
        # All ranks of the world make the communicators at once, so that no later call has to wait
        # for others.
        color = hosts[me] if me in self.ranks else -1
        self._communicators = {
            "global": self._wrap(_introduced(world.new_group(self.ranks))),
            "inter": self._wrap(world.new_group(self.inter_ranks)),
            "intra": self._wrap(world.split(color)),
        }

    def _wrap(self, made: hocket.Communicator) -> Comm:
        if not made.is_member:
            return CommMember.NON_COMM_MEMBER
        return BaguaCommunicator(made, self.stream)

    def get_global_communicator(self) -> Comm:
        """The communicator of all members; `CommMember.NON_COMM_MEMBER` if this process is none."""
        return self._communicators["global"]

    def get_inter_node_communicator(self) -> Comm:
        """The communicator of one member a node; `CommMember.NON_COMM_MEMBER` if this process is
        none.
        """
        return self._communicators["inter"]

    def get_intra_node_communicator(self) -> Comm:
        """The communicator of the members on this node."""
        return self._communicators["intra"]


def init_process_group(
    store: Any = None,
    rank: Optional[int] = None,
    world_size: Optional[int] = None,
    local_world_size: Optional[int] = None,
) -> None:
    """Join the job and make the default group.

    If torch.distributed has a process group, its ranks are the job's, and they meet by it. If not,
    torch.distributed gets one of the backend "hocket". Its ranks meet by `store`, by torchrun's
    environment, or by the launcher of ``hocket run``.

    Parameters
    ----------
    store : torch.distributed.Store, optional
    rank, world_size : int, optional
        By default, or if -1, as the launcher says.
    local_world_size : int, optional
        Ignored: hocket knows which ranks share a node.

    Raises
    ------
    RuntimeError
        It has been called before.
    """
    if State.default is not None:
        raise RuntimeError("trying to initialize the default process group twice!")
    State.world = _join(
        store, None if rank == -1 else rank, None if world_size == -1 else world_size
    )
    with_gpu = np.array([torch.cuda.is_initialized()], "int64")
    State.on_gpus = bool(State.world.all_reduce(with_gpu, op="min")[0])
    State.default = _keep(State.world, range(State.world.size), None)


def _introduced(made: hocket.Communicator) -> hocket.Communicator:
    """Introduce the members' GPUs to each other, so that a message may be the first call."""
    if State.on_gpus and made.is_member:
        made.barrier(stream=torch.cuda.current_stream())
    return made


def _join(store: Any, rank: Optional[int], size: Optional[int]) -> hocket.Communicator:
    if not dist.is_initialized():
        by_torch = store is not None or "MASTER_ADDR" in os.environ
        importlib.import_module("hocket.torch")
        if not by_torch and "HOCKET_RANK" in os.environ:
            dist.init_process_group("hocket", init_method="hocket://")
        elif not by_torch and env.get_world_size() == 1:
            dist.init_process_group("hocket", store=HashStore(), rank=0, world_size=1)
        else:
            dist.init_process_group(
                "hocket",
                store=store,
                rank=env.get_rank() if rank is None else rank,
                world_size=env.get_world_size() if size is None else size,
            )
    return hocket.init(bootstrap=hocket.TorchBootstrap())


def is_initialized() -> bool:
    """True if `init_process_group` has been called."""
    return State.default is not None


def get_default_group() -> BaguaProcessGroup:
    """The group that `init_process_group` made."""
    if State.default is None:
        raise RuntimeError(
            "Default process group has not been initialized, "
            "please make sure to call init_process_group."
        )
    return State.default


def get_world() -> hocket.Communicator:
    """All ranks of the job."""
    get_default_group()
    assert State.world is not None
    return State.world


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
    world = get_world()
    members = sorted(set(range(world.size) if ranks is None else ranks))
    if not members or members[0] < 0 or members[-1] >= world.size:
        world.refuse(f"ranks is {ranks}, expected some of 0 to {world.size - 1}")
    return _keep(world, members, stream)


def _keep(world: hocket.Communicator, ranks: Sequence[int], stream: Any) -> BaguaProcessGroup:
    name = str(len(State.groups) + 1)
    State.groups[name] = BaguaProcessGroup(ranks, stream, name, world)
    return State.groups[name]


def from_torch_group(group: Any, stream: Any = None) -> BaguaProcessGroup:
    """The equivalent of a group of torch.distributed; its members alone call it.

    Ranks count within the group. A process that is no member may call it too, and gets a group
    whose communicators exclude it.
    """
    if group == dist.GroupMember.NON_GROUP_MEMBER:
        return BaguaProcessGroup([], stream, "")
    world = hocket.init(bootstrap=hocket.TorchBootstrap(group))
    return _keep(world, range(world.size), stream)


def get_communicator(group_name: str, comm_name: str) -> Comm:
    """A group's communicator "global", "inter" or "intra"."""
    if comm_name not in ("global", "inter", "intra"):
        raise ValueError("comm_name should be one of ['global', 'inter', 'intra']")
    return State.groups[group_name]._communicators[comm_name]


class _CommBackend:
    """The result of `get_backend`: a name and a device. Bagua's bucket scheduler is not part of
    it.
    """

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name
        self.device_id = env.get_local_rank()


_backends: dict[str, _CommBackend] = {}


def get_backend(model_name: str) -> Any:
    """The backend of a model's name; one object for each name."""
    return _backends.setdefault(model_name, _CommBackend(model_name))


def resolve(chosen: Comm) -> Optional[BaguaCommunicator]:
    """The communicator that `comm` means; None if this process is no member."""
    if chosen is CommMember.NON_COMM_MEMBER:
        return None
    if chosen is None or chosen is CommMember.WORLD:
        chosen = get_default_group().get_global_communicator()
    return chosen
