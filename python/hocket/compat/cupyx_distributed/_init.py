"""``cupyx.distributed.init_process_group``."""

from __future__ import annotations

import os
from typing import Optional

from . import _store
from ._nccl_comm import NCCLBackend

_backends = {"nccl": NCCLBackend}


def init_process_group(
    n_devices: int,
    rank: int,
    *,
    backend: str = "nccl",
    host: Optional[str] = None,
    port: Optional[int] = None,
    use_mpi: bool = False,
) -> NCCLBackend:
    """Join the job, and return its communicator.

    Parameters
    ----------
    n_devices : int
        Number of processes that take part.
    rank : int
        This process's number, from 0.
    backend : str
        "nccl". Only the name matters: hocket chooses the engine.
    host, port : optional
        Address at which rank 0 serves. By default CUPYX_DISTRIBUTED_HOST and
        CUPYX_DISTRIBUTED_PORT, or if these are not set, 127.0.0.1 and 13333. If the host is another
        machine, HOCKET_KEY_FILE must be set.
    use_mpi : bool
        True: the processes meet by mpi4py's COMM_WORLD.

    Raises
    ------
    ValueError
        `n_devices`, `rank` or `backend` is out of range.
    """
    if n_devices <= 0:
        raise ValueError(f"n_devices is {n_devices}, expected at least 1")
    if not 0 <= rank < n_devices:
        raise ValueError(f"rank is {rank}, expected 0 to {n_devices - 1}")
    if backend not in _backends:
        raise ValueError(f'backend is {backend!r}, expected "nccl"')
    if host is None:
        host = os.environ.get("CUPYX_DISTRIBUTED_HOST", _store._DEFAULT_HOST)
    if port is None:
        port = int(os.environ.get("CUPYX_DISTRIBUTED_PORT", _store._DEFAULT_PORT))
    return _backends[backend](n_devices, rank, host, port, use_mpi)
