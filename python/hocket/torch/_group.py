"""A whole process group over hocket, where hocket carries all of its tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Optional

import torch
from torch._C._distributed_c10d import ProcessGroup

from ._backend import HocketBackend

# The calls of a group that give a handle back, and what they were called before.
_CALLS = {
    "broadcast": "",
    "allreduce": "",
    "allreduce_coalesced": "",
    "reduce": "",
    "allgather": "",
    "allgather_coalesced": "",
    "all_gather_single": "_allgather_base",
    "all_gather_single_coalesced": "allgather_into_tensor_coalesced",
    "gather": "",
    "scatter": "",
    "reduce_scatter": "",
    "reduce_scatter_single": "_reduce_scatter_base",
    "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced",
    "all_to_all_single": "alltoall_base",
    "alltoall": "",
    "send": "",
    "recv": "",
    "recv_anysource": "",
    "barrier": "",
}


class HocketGroup(ProcessGroup):  # type: ignore[misc, unused-ignore]
    """PyTorch's own process group, but that its calls give back hocket's handles.

    PyTorch puts what a backend in Python returns into a handle of its own, which knows neither that
    the call has ended nor who sent. Everything else is PyTorch's: its dispatcher, hooks, profiler.
    """

    backend: HocketBackend


def _call(name: str) -> Callable[..., Any]:
    theirs = getattr(ProcessGroup, name)

    def call(self: HocketGroup, *arguments: Any, **named: Any) -> Any:
        self.backend.made.handle = None
        work = theirs(self, *arguments, **named)
        return self.backend.made.handle or work

    # By this name PyTorch tells that an override is calling what it overrides.
    call.__code__ = call.__code__.replace(co_name=name)
    call.__name__ = name
    return call


for _name, _before in _CALLS.items():
    # Not both: one is what PyTorch calls where the other is not overridden.
    _there = _name if hasattr(ProcessGroup, _name) else _before
    if hasattr(ProcessGroup, _there):
        setattr(HocketGroup, _there, _call(_there))


def _devices(depth: int) -> list[str]:
    """For which devices PyTorch is making the group, if hocket alone is to carry them; else none.

    PyTorch tells a backend neither, but takes a whole group from it only where it is alone: so we
    look at what the function that calls us knows.
    """
    config = sys._getframe(depth).f_locals.get("backend_config")
    devices: dict[str, str] = getattr(config, "get_device_backend_map", dict)()
    return list(devices) if set(devices.values()) == {"hocket"} else []


def whole_group(backend: HocketBackend, options: Any) -> Optional[HocketGroup]:
    """The group of `backend`; None where there are other backends, or this PyTorch has no such."""
    theirs = getattr(options, "process_group", None)
    devices = _devices(3)
    if not devices or theirs is None or isinstance(backend, ProcessGroup):
        return None
    try:
        group = HocketGroup(theirs.get_group_store(), backend.rank(), backend.size())
    except (AttributeError, TypeError):
        return None
    group.backend = backend
    backend.hands_on = True
    if theirs.bound_device_id is not None:
        group.bound_device_id = theirs.bound_device_id
    group._set_default_backend(ProcessGroup.BackendType.CUSTOM)
    for device in devices:
        group._register_backend(torch.device(device), ProcessGroup.BackendType.CUSTOM, backend)
    return group
