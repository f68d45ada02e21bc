"""Creates process groups, whose ranks meet at torch.distributed's store."""

from __future__ import annotations

import sys
from typing import Any, Union

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroup
from torch.distributed.rendezvous import register_rendezvous_handler

from . import _batches, _extraction, _hooks, _joining, _shrinking
from ._backend import Base, HocketBackend
from ._backend_as_group import BackendAsGroup
from ._group import HocketGroup, backends_by_device, whole_group
from ._meeting import Place
from ._membership import Unformed
from ._rendezvous import by_launcher


def create(options: Any, backend_options: Any = None) -> Union[HocketGroup, HocketBackend]:
    """Create a group. torch.distributed calls it on each member."""
    known = sys._getframe(1).f_locals
    if Base is ProcessGroup:
        _refuse_others(known)
    place = Place(options.store, options.timeout, _name_of(options))
    is_movable = getattr(options, "enable_reconfigure", False)
    if is_movable and Base is not ProcessGroup:
        comm: Any = Unformed(options.group_rank, options.group_size, options.timeout, place.name)
    else:
        comm = place.meet(options.group_rank, options.group_size)
    if Base is ProcessGroup:
        group = BackendAsGroup(comm, str(options.group_id), place)
        group.bind(known.get("device_id"))
        return group
    backend = HocketBackend(comm, str(options.group_id), place)
    backend.is_movable = is_movable
    return whole_group(backend, options, known) or backend


def _name_of(options: Any) -> str:
    """Return the group's name in errors: "world" for all ranks, else PyTorch's name and the
    members.
    """
    ranks = list(options.global_ranks_in_group)
    if not ranks:
        return "world"
    shown = ", ".join(map(str, ranks[:_SHOWN])) + (", ..." if len(ranks) > _SHOWN else "")
    return f"group {options.group_id} of ranks {shown}"


_SHOWN = 8  # number of members that a group's name shows


def _refuse_others(known: dict[str, Any]) -> None:
    """Refuse other backends if this PyTorch would use a Python backend for all devices."""
    others = {n: d for d, n in backends_by_device(known).items() if n != "hocket"}
    for name, device in others.items():
        raise ValueError(
            f'the backend of {device} tensors is "{name}": PyTorch {torch.__version__} takes only '
            'whole process groups in Python; use "hocket" for all tensors, or a newer PyTorch (2.15 '
            "will do)"
        )


def register() -> None:
    """Register "hocket" and "hocket://" with torch.distributed. Importing `hocket.torch` does it.
    """
    if "HOCKET" in dist.Backend._plugins:
        return
    _batches.install()
    _extraction.install()
    _joining.install()
    _hooks.install()
    _shrinking.install()
    register_rendezvous_handler("hocket", by_launcher)
    # PyTorch reports these devices as those of a group's tensors.
    devices = ["cpu", "cuda"] if torch.cuda.device_count() > 0 else ["cpu"]
    dist.Backend.register_backend("hocket", create, extended_api=True, devices=devices)
