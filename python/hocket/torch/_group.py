"""A whole process group over hocket, alone or beside other devices' backends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Optional

import torch
import torch.distributed as dist
from torch._C._autograd import _profiler_enabled
from torch._C._distributed_c10d import AllreduceOptions, PrefixStore, ProcessGroup

from ._backend import HocketBackend
from ._meeting import Place

# The calls of a group that return a handle. Each has its older name as value, or "".
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
    """PyTorch's own process group, except that its calls return hocket's handles.

    PyTorch wraps the handle of a Python backend in a handle of its own, which knows neither the
    call's end nor a message's sender. Everything else is PyTorch's: its dispatcher, hooks,
    profiler, and the backends of other devices.
    """

    backend: HocketBackend
    devices: list[str]  # devices whose tensors hocket carries
    others: dict[str, tuple[Any, Any]]  # kind and backend of each other device
    is_first: bool  # true if hocket is the group's default backend

    @classmethod
    def assemble(
        cls,
        store: Any,
        backend: HocketBackend,
        devices: Sequence[str],
        others: dict[str, tuple[Any, Any]],
    ) -> HocketGroup:
        """Return a group of these backends, each for its devices."""
        kind = MovableGroup if backend.is_movable else cls
        group = kind(store, backend.rank(), backend.size())
        group.backend, group.devices, group.others = backend, list(devices), others
        backend.devices = devices
        backend.hands_on = backend.marks_batches = True
        ours = (ProcessGroup.BackendType.CUSTOM, backend)
        every = {**dict.fromkeys(devices, ours), **others}
        # Chooses the default like PyTorch: an accelerator's backend before the host's.
        first = every[min(every, key=lambda device: device == "cpu")]
        group.is_first = first is ours
        group._set_default_backend(first[0])
        for device, (kind, one) in every.items():
            group._register_backend(torch.device(device), kind, one)
        return group

    def split_group(
        self,
        ranks: Sequence[int],
        timeout: Optional[timedelta] = None,
        opts: Any = None,
        group_name: Any = None,
        group_desc: Optional[str] = None,
        device_types: Optional[Sequence[torch.device]] = None,
    ) -> Any:
        """Split this group. ``dist.split_group`` calls it on every rank. Returns None outside
        `ranks`.
        """
        wanted = [*self.devices, *self.others]
        if device_types is not None:
            wanted = [device.type for device in device_types]
        devices = [device for device in self.devices if device in wanted]
        others = [device for device in self.others if device in wanted]
        split: Any = super().split_group
        theirs: Any = None
        if others:
            types = [torch.device(device) for device in others]
            theirs = split(ranks, timeout, opts, group_name, group_desc, types)
        if not devices:
            return theirs
        comm = self.backend.split_off(ranks, timeout)
        if comm is None:
            return None
        name: Any = group_name or f"{self.group_name}:{min(ranks)}"
        store = PrefixStore(f"{name}/", self.get_group_store())
        group = HocketGroup.assemble(
            store,
            HocketBackend(comm, name, Place(store, timedelta(seconds=min(comm.deadline, 1e9)), str(name))),
            devices,
            {d: (self.others[d][0], theirs._get_backend(torch.device(d))) for d in others},
        )
        group._set_group_name(name)
        group._set_group_desc(group_desc or "undefined")
        return group

    def getBackendName(self) -> str:  # noqa: N802: PyTorch's name
        """Return the name of the group's backend for DDP's logging."""
        theirs: Any = super()
        return "hocket" if self.is_first else str(theirs.getBackendName())

    def carries(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Return True if hocket carries the device of these tensors."""
        return len(tensors) > 0 and tensors[0].device.type in self.devices

    def gather_single(self, output: Any, input: torch.Tensor, options: Any = None) -> Any:
        """Implements ``dist.gather_single``, which PyTorch does not pass on to backends in Python.
        """
        if input.device.type not in self.devices:
            return super().gather_single(output, input, options)
        return self.backend.gather_single(output, input, options)

    gather_into_tensor: Any = gather_single

    def _start_coalescing(self, device: torch.device) -> None:
        """Collect the handles of calls until `_end_coalescing`. On hocket's devices, calls start at
        once; only messages on GPUs start together at the end.
        """
        if device.type in self.devices:
            self.backend._start_coalescing(device)
        else:
            super()._start_coalescing(device)

    def _end_coalescing(self, device: torch.device) -> Any:
        """Return one handle for all calls since `_start_coalescing`."""
        if device.type not in self.devices:
            return super()._end_coalescing(device)
        return self.backend._end_coalescing(device)


class MovableGroup(HocketGroup):
    """A group whose members may change, and with them its size and this process's rank."""

    def rank(self) -> int:
        """Return this process's number in the current group."""
        return self.backend.rank()

    def size(self) -> int:
        """Return the number of processes in the current group."""
        return self.backend.size()

    # PyTorch's own code uses these names.
    getRank, getSize = rank, size  # noqa: N815: PyTorch's names


# Messages go directly to the backend, because short messages would spend most of their time in
# PyTorch's dispatcher. They take the dispatcher if a profiler or another mode observes it. Calls on
# lazy views always go directly: the dispatcher would resolve a view into a copy, and the call's
# result would be lost with the copy.
_STRAIGHT = ("send", "recv", "recv_anysource")

# Number of a call's arguments that hold tensors. For calls that are not listed it is two.
_PLACES = {
    "broadcast": 1,
    "allreduce": 1,
    "allreduce_coalesced": 1,
    "reduce": 1,
    "send": 1,
    "recv": 1,
    "recv_anysource": 1,
    "barrier": 0,
}


def _is_watched() -> bool:
    return bool(torch._C._len_torch_dispatch_stack()) or _profiler_enabled()


def _lazy_one(given: Any) -> Optional[torch.Tensor]:
    """Return a lazy view: `given`, or a tensor in that list. Return None if there is no lazy view.
    """
    if isinstance(given, torch.Tensor):
        return given if given.is_neg() or given.is_conj() else None
    for one in given if isinstance(given, list) else ():
        found = _lazy_one(one)
        if found is not None:
            return found
    return None


def _negated_one(tensors: Sequence[torch.Tensor]) -> Optional[torch.Tensor]:
    """Return a tensor that is lazily negated, or None. No tensor here is lazily conjugated, because
    PyTorch passes complex tensors to these calls as pairs of reals.
    """
    for one in tensors:
        if one.is_neg():
            return one
    return None


def _call(name: str) -> Callable[..., Any]:
    theirs = getattr(ProcessGroup, name)
    straight = name in _STRAIGHT
    places = _PLACES.get(name, 2)
    first = torch.Tensor if name.endswith(("_single", "_base")) else list
    find: Callable[..., Any] = _negated_one if name in ("allreduce", "broadcast") else _lazy_one

    def call(self: HocketGroup, *arguments: Any, **named: Any) -> Any:
        if straight and not named and not _is_watched() and self.carries(arguments[0]):
            return getattr(self.backend, name)(*arguments)
        if places and arguments and isinstance(arguments[0], first):  # torch.distributed's form
            lazy = find(arguments[0])
            if lazy is None and places == 2 and len(arguments) > 1:
                lazy = find(arguments[1])
            if lazy is not None and self.carries([lazy]):
                return getattr(self.backend, name)(*arguments, **named)
        self.backend.made.handle = None
        timeout = named.get("timeout") if named else arguments[-1] if arguments else None
        if isinstance(timeout, timedelta):
            with self.backend.lasting(timeout):
                work = theirs(self, *arguments, **named)
        else:
            work = theirs(self, *arguments, **named)
        return self.backend.made.handle or work

    # By this name, PyTorch recognizes that an override calls the method of the base class.
    call.__code__ = call.__code__.replace(co_name=name)
    call.__name__ = name
    return call


def _all_reduce() -> Callable[..., Any]:
    """Return the override of `allreduce`, the most frequent call. Its usual form has a fast path.
    """
    theirs, any_form = ProcessGroup.allreduce, _call("allreduce")

    def allreduce(self: HocketGroup, tensors: Any, *rest: Any, **named: Any) -> Any:
        if (
            named
            or len(rest) != 1
            or type(rest[0]) is not AllreduceOptions
            or type(tensors) is not list
            or len(tensors) != 1
            or tensors[0].is_neg()
        ):
            return any_form(self, tensors, *rest, **named)
        made = self.backend.made
        made.handle = None
        work = theirs(self, tensors, rest[0])
        return made.handle or work

    return allreduce


for _name, _before in _CALLS.items():
    # Overrides only one of the two names. If the newer name is not overridden, PyTorch calls the
    # older.
    _there = _name if hasattr(ProcessGroup, _name) else _before
    if hasattr(ProcessGroup, _there):
        setattr(HocketGroup, _there, _all_reduce() if _there == "allreduce" else _call(_there))


def _other_backends(
    known: dict[str, Any], devices: dict[str, str], options: Any
) -> dict[str, tuple[Any, Any]]:
    """Return the backends beside hocket: those that PyTorch has already made, and those that it
    would make later.

    This function makes the latter like PyTorch does.
    """
    made: dict[str, tuple[Any, Any]] = {}
    for device, name in devices.items():
        if name == "hocket":
            continue
        kind = dist.Backend.backend_type_map.get(name, ProcessGroup.BackendType.CUSTOM)
        try:
            made[device] = (kind, options.process_group._get_backend(torch.device(device)))
            continue
        except RuntimeError:
            pass
        plugin = dist.Backend._plugins[name.upper()]
        store = PrefixStore(f"{device}/", known["prefix_store"])
        if plugin.extended_api:
            theirs = type(options)()
            for field in _FIELDS:
                if hasattr(options, field):
                    setattr(theirs, field, getattr(options, field))
            theirs.store = store
            backend = plugin.creator_fn(theirs, known["backend_options"])
        else:
            backend = plugin.creator_fn(
                store, options.group_rank, options.group_size, options.timeout
            )
        made[device] = (kind, backend)
    return made


# Options that PyTorch passes to a new backend, in addition to the store.
_FIELDS = (
    "group_rank",
    "group_size",
    "timeout",
    "group_id",
    "global_ranks_in_group",
    "process_group",
    "split_from",
    "enable_reconfigure",
)


def backends_by_device(known: dict[str, Any]) -> dict[str, str]:
    """Return the backend of each device, from the local variables of PyTorch's function that makes
    a group.

    PyTorch does not tell a backend its devices, nor the other backends of the group.
    """
    config: Any = getattr(known.get("backend_config"), "get_device_backend_map", dict)()
    return dict(config)


def whole_group(
    backend: HocketBackend, options: Any, known: dict[str, Any]
) -> Optional[HocketGroup]:
    """Return the group that wraps `backend`. Return None if this PyTorch has no such groups.

    PyTorch accepts a whole group from a backend's creator. For the group's backends see
    `backends_by_device`.
    """
    theirs = getattr(options, "process_group", None)
    config = backends_by_device(known)
    if not config or theirs is None:
        return None
    devices = [device for device, name in config.items() if name == "hocket"]
    try:
        others = _other_backends(known, config, options)
        group = HocketGroup.assemble(theirs.get_group_store(), backend, devices, others)
    except (AttributeError, KeyError, TypeError):
        backend.hands_on = False
        return None
    if theirs.bound_device_id is not None:
        group.bound_device_id = theirs.bound_device_id
    return group
