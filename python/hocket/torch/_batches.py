"""Starts the messages of a batch together, where PyTorch would start them one by one.

Some versions of PyTorch start the messages of a batch one by one in groups of other classes than
its own. On GPUs, each message would then wait for the message before it. Ranks that all begin with
a send would wait for each other forever.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d

from ._backend import HocketBackend
from ._group import HocketGroup
from ._verbs import Batch

_theirs: Any = distributed_c10d.batch_isend_irecv


@functools.wraps(_theirs)
def batch_isend_irecv(p2p_op_list: list[Any]) -> list[Any]:
    """Do the same as PyTorch's function, except that GPU messages over hocket start together."""
    group = p2p_op_list[0].group if p2p_op_list else None
    group = group or dist.group.WORLD
    backend = group.backend if isinstance(group, HocketGroup) else group
    if not isinstance(backend, HocketBackend):
        return list(_theirs(p2p_op_list))
    backend.made.batch = batch = Batch(backend)
    try:
        works = list(_theirs(p2p_op_list))
    finally:
        backend.made.batch = None
    batch.go()
    return works


def install() -> None:
    """Replace PyTorch's function, in versions that need it."""
    if "type(group) is ProcessGroup" in inspect.getsource(_theirs):
        dist.batch_isend_irecv = distributed_c10d.batch_isend_irecv = batch_isend_irecv  # type: ignore[assignment, unused-ignore]
