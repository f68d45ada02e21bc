"""``bagua.torch_api.env``: this process's place in the job, as launchers give it."""

from __future__ import annotations

import os


def _number(names: tuple[str, ...], default: int) -> int:
    for name in names:
        if name in os.environ:
            return int(os.environ[name])
    return default


def get_rank() -> int:
    """This process's number in the job, 0 for a job of one."""
    return _number(("RANK", "HOCKET_RANK"), 0)


def get_world_size() -> int:
    """Number of processes of the job."""
    return _number(("WORLD_SIZE", "HOCKET_SIZE"), 1)


def get_local_rank() -> int:
    """This process's number on its node; programs use it as the GPU's number, too."""
    return _number(("LOCAL_RANK", "HOCKET_LOCAL_RANK"), 0)


def get_local_size() -> int:
    """Number of the job's processes on this node."""
    return _number(("LOCAL_WORLD_SIZE", "HOCKET_LOCAL_SIZE"), 1)


def get_node_rank() -> int:
    """This node's number, if the launcher gives one."""
    return _number(("NODE_RANK", "GROUP_RANK"), get_rank() // max(1, get_local_size()))


def get_master_addr() -> str:
    """The host of rank 0, if the launcher names it."""
    return os.environ.get("MASTER_ADDR", "127.0.0.1")
