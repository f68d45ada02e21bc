"""Bagua's process groups over hocket, and the groups that this process has made."""

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
    """Constants that may be passed in place of communicators."""

    WORLD: Any = object()
    NON_COMM_MEMBER: Any = object()


Comm = Union[BaguaCommunicator, Any, None]


class State:
    """The groups of this process: the default group, and all groups by name."""

    world: Optional[hocket.Communicator] = None
    default: Optional[BaguaProcessGroup] = None
    groups: dict[str, BaguaProcessGroup] = {}
    allow_pickle = False
    on_gpus = False  # true if every process has a GPU; the processes agree when they join


class BaguaProcessGroup:
    """A set of ranks and its three communicators. `new_group` makes it.

    Attributes
    ----------
    ranks : list of int
        The members, in ascending order.
    intra_ranks, inter_ranks : list of int
        The members on this node, and the members whose node-local number equals that of
        ``ranks[0]``.
    """

    def __init__(
        self,
        ranks: Sequence[int],
        stream: Any,
        group_name: str,
        world: Optional[hocket.Communicator] = None,
    ) -> None:
        self.ranks: list[int] = list(ranks)
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
        # All ranks of the world make the communicators at the same time, so that no later call must
        # wait for other ranks.
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
        """Return the communicator of all members, or `CommMember.NON_COMM_MEMBER` on other
        processes.
        """
        return self._communicators["global"]

    def get_inter_node_communicator(self) -> Comm:
        """Return the communicator with one member of each node, or `CommMember.NON_COMM_MEMBER` if
        this process is no member of it.
        """
        return self._communicators["inter"]

    def get_intra_node_communicator(self) -> Comm:
        """Return the communicator of the members on this node."""
        return self._communicators["intra"]


def init_process_group(
    store: Any = None,
    rank: Optional[int] = None,
    world_size: Optional[int] = None,
    local_world_size: Optional[int] = None,
) -> None:
    """Join the job and make the default group.

    If torch.distributed has a process group, its ranks become the job's ranks, and meet by it. If
    it has none, torch.distributed gets a group of the backend "hocket". Its ranks meet by `store`,
    by torchrun's environment, or by the launcher of ``hocket run``.

    Parameters
    ----------
    store : torch.distributed.Store, optional
    rank, world_size : int, optional
        By default, or if -1, the value that the launcher gives.
    local_world_size : int, optional
        Ignored: hocket knows which ranks share a node.

    Raises
    ------
    RuntimeError
        This function has been called before.
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
    """Connect the members' GPUs, so that the first call may be a message."""
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
    """Return the group that `init_process_group` has made."""
    if State.default is None:
        raise RuntimeError(
            "Default process group has not been initialized, "
            "please make sure to call init_process_group."
        )
    return State.default


def get_world() -> hocket.Communicator:
    """Return the communicator of all ranks of the job."""
    get_default_group()
    assert State.world is not None
    return State.world


def new_group(ranks: Optional[Sequence[int]] = None, stream: Any = None) -> BaguaProcessGroup:
    """Make a group. Every process of the job calls it, members and others, in the same order.

    Parameters
    ----------
    ranks : sequence of int, optional
        The members; all ranks by default. Their order does not matter.
    stream : torch.cuda.Stream, optional
        Kept as ``group.stream``. Calls run on the current stream.

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
    """Make the equivalent of a group of torch.distributed. All its members call it.

    Ranks are numbers within the group. A process that is no member may call it, too. It gets a
    group of whose communicators it is no member.
    """
    if group == dist.GroupMember.NON_GROUP_MEMBER:
        return BaguaProcessGroup([], stream, "")
    world = hocket.init(bootstrap=hocket.TorchBootstrap(group))
    return _keep(world, range(world.size), stream)


def get_communicator(group_name: str, comm_name: str) -> Comm:
    """Return a group's communicator "global", "inter" or "intra"."""
    if comm_name not in ("global", "inter", "intra"):
        raise ValueError("comm_name should be one of ['global', 'inter', 'intra']")
    return State.groups[group_name]._communicators[comm_name]


class _CommBackend:
    """The result of `get_backend`: a name and a device. It does not contain Bagua's bucket
    scheduler.
    """

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name
        self.device_id = env.get_local_rank()


_backends: dict[str, _CommBackend] = {}


def get_backend(model_name: str) -> Any:
    """Return the backend of a model's name. Equal names get the same object."""
    return _backends.setdefault(model_name, _CommBackend(model_name))


def resolve(chosen: Comm) -> Optional[BaguaCommunicator]:
    """Return the communicator that `comm` stands for. Return None if this process is no member."""
    if chosen is CommMember.NON_COMM_MEMBER:
        return None
    if chosen is None or chosen is CommMember.WORLD:
        chosen = get_default_group().get_global_communicator()
    return chosen
