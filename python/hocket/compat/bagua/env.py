"""``bagua.torch_api.env``: this process's place in the job, as the launcher gives it."""

from __future__ import annotations

import os


def _number(names: tuple[str, ...], default: int) -> int:
    for name in names:
        if name in os.environ:
            return int(os.environ[name])
    return default


def get_rank() -> int:
    """Return this process's number in the job; 0 in a job of one process."""
    return _number(("RANK", "HOCKET_RANK"), 0)


def get_world_size() -> int:
    """Return the number of processes of the job."""
    return _number(("WORLD_SIZE", "HOCKET_SIZE"), 1)


def get_local_rank() -> int:
    """Return this process's number on its node. Programs also use it as the number of the GPU."""
    return _number(("LOCAL_RANK", "HOCKET_LOCAL_RANK"), 0)


def get_local_size() -> int:
    """Return the number of the job's processes on this node."""
    return _number(("LOCAL_WORLD_SIZE", "HOCKET_LOCAL_SIZE"), 1)


def get_node_rank() -> int:
    """Return this node's number. If the launcher gives none, it follows from the ranks."""
    return _number(("NODE_RANK", "GROUP_RANK"), get_rank() // max(1, get_local_size()))


def get_master_addr() -> str:
    """Return the host of rank 0. If the launcher names none, it is this host."""
    return os.environ.get("MASTER_ADDR", "127.0.0.1")
