"""The runtime of nvmath.distributed: initialize, finalize, get_context."""

from __future__ import annotations

import atexit
import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Optional, Union

from ... import Context
from ...errors import Error
from .process_group import GroupBootstrap, MPIProcessGroup, ProcessGroup

NOT_INITIALIZED = (
    "nvmath.distributed has not been initialized. Refer to "
    "https://docs.nvidia.com/cuda/nvmath-python/latest/distributed-apis/runtime.html for more "
    "information."
)

#: nvmath's backends, and hocket's own engines for host memory.
GPU_BACKENDS = ("nvshmem", "nccl")
HOST_BACKENDS = ("shm", "ucx", "mpi")

_ABSENT: Any = object()


@dataclass(frozen=True)
class DistributedContext:
    """The arguments with which the runtime was initialized.

    Attributes
    ----------
    device_id : int or "cpu"
        The number of this process's GPU, or "cpu" for host memory.
    process_group : ProcessGroup
        The processes that take part.
    nvshmem_available : bool
        True if "nvshmem" is one of the backends. Then the program can allocate symmetric memory.
    nccl_comm : object or None
        hocket's communicator if "nccl" is one of the backends.
    """

    device_id: Union[int, Literal["cpu"]]
    process_group: ProcessGroup
    nvshmem_available: bool
    nccl_comm: Optional[Any]

    @property
    def communicator(self) -> Any:
        """The communicator of mpi4py with which the runtime was set up (nvmath 0.8)."""
        if not isinstance(self.process_group, MPIProcessGroup):
            kind = type(self.process_group).__name__
            raise AttributeError(
                f"the runtime was set up with a {kind}, not with a communicator of mpi4py; "
                "process_group has its rank and nranks"
            )
        return self.process_group._mpi_comm


class _Runtime:
    """The only runtime of this process. Guarded by `lock`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.context: Optional[DistributedContext] = None
        self.leaves_at_exit = False


_runtime = _Runtime()


def _check(device_id: Any, process_group: Any, backends: Sequence[str]) -> None:
    if not isinstance(device_id, int) and device_id != "cpu":
        raise TypeError(
            "The device ID used to initialize the nvmath.distributed module must be an integer. "
            f"The provided device ID is {device_id}."
        )
    for backend in backends:
        if backend not in GPU_BACKENDS + HOST_BACKENDS:
            raise ValueError(f"backend must be one of {GPU_BACKENDS}, got {backend}")
    if len(backends) == 0:
        raise ValueError(
            f"Need to specify at least one of {GPU_BACKENDS} communication backends"
        )
    if process_group is None:
        raise ValueError("process_group cannot be None")


def _as_group(process_group: Any) -> ProcessGroup:
    if isinstance(process_group, ProcessGroup):
        return process_group
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and isinstance(process_group, mpi.Comm):
        return MPIProcessGroup(process_group)
    raise TypeError(
        f"Unrecognized process group type ({process_group}). Need nvmath.distributed.ProcessGroup "
        "or mpi4py communicator."
    )


def _also_by_communicator(function: Callable[..., None]) -> Callable[..., None]:
    """Accept nvmath 0.8's `communicator` in place of a process group; None means MPI.COMM_WORLD."""

    @functools.wraps(function)
    def either(*args: Any, communicator: Any = _ABSENT, **given: Any) -> None:
        if communicator is not _ABSENT:
            if len(args) > 1 or "process_group" in given:
                raise TypeError(
                    "initialize() got a process_group and a communicator, as nvmath 0.8 calls it; give "
                    "exactly one of them"
                )
            if communicator is None:
                from mpi4py import MPI

                communicator = MPI.COMM_WORLD
            given["process_group"] = communicator
        function(*args, **given)

    return either


def _tell_refusal(process_group: Any) -> None:
    """Tell the group's other processes that this process's arguments were refused."""
    with contextlib.suppress(Exception):
        Context.initialize(bootstrap=GroupBootstrap(_as_group(process_group)), timeout=-1)


@_also_by_communicator
def initialize(
    device_id: Union[int, Literal["cpu"]], process_group: Any, backends: Sequence[str]
) -> None:
    """Initialize the runtime. Collective. The current device does not change.

    Parameters
    ----------
    device_id : int or "cpu"
        The number of this process's GPU, or "cpu" for host memory.
    process_group : ProcessGroup or mpi4py communicator
        The processes that take part. The group is used only to set up the runtime, never to
        compute.
    backends : sequence of str
        "nvshmem" or "nccl" for GPUs; "shm", "ucx" or "mpi" for host memory.
    """
    try:
        _check(device_id, process_group, backends)
    except Exception:
        _tell_refusal(process_group)
        raise
    with _runtime.lock:
        if _runtime.context is not None:
            raise RuntimeError("nvmath.distributed has already been initialized")
        group = _as_group(process_group)
        # Engines for GPUs also need engines for the host, so hocket chooses among all engines.
        on_host = all(backend in HOST_BACKENDS for backend in backends)
        made = Context.initialize(
            device=None if device_id == "cpu" else device_id,
            bootstrap=GroupBootstrap(group),
            engines=list(backends) if on_host else None,
        )
        _runtime.context = DistributedContext(
            device_id=device_id,
            process_group=group,
            nvshmem_available="nvshmem" in backends,
            nccl_comm=made.communicator if "nccl" in backends else None,
        )
        if not _runtime.leaves_at_exit:
            atexit.register(_leave)
            _runtime.leaves_at_exit = True


def finalize() -> None:
    """Finalize the runtime. Collective. `initialize` may follow. Does nothing without a runtime.

    Symmetric memory that has not been freed is logged.
    """
    from ._symmetric import forget_all

    with _runtime.lock:
        if _runtime.context is None:
            return
        forget_all()
        _runtime.context = None
        Context.finalize()


def _leave() -> None:
    try:
        finalize()
    except Error:
        pass  # another process has already ended, and reported the reason


def get_context() -> Optional[DistributedContext]:
    """Return the runtime's context; None before `initialize`."""
    return _runtime.context


def require_context() -> DistributedContext:
    """Return the runtime's context. Raise RuntimeError before `initialize`."""
    context = _runtime.context
    if context is None:
        raise RuntimeError(NOT_INITIALIZED)
    return context


def communicator() -> Any:
    """Return hocket's communicator of the runtime."""
    require_context()
    context = Context.current()
    assert context is not None
    return context.communicator
