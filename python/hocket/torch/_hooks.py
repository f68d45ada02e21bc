"""DDP's built-in hook FP16_COMPRESS, whose C++ code takes futures of backends in C++ alone.

The hook of the same name in Python does the same to the same bits.
"""

from __future__ import annotations

import functools
from typing import Any

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ._backend import HocketBackend
from ._group import HocketGroup

_theirs: Any = DistributedDataParallel._register_builtin_comm_hook


@functools.wraps(_theirs)
def register_builtin_comm_hook(model: Any, comm_hook_type: Any) -> None:
    """PyTorch's method, but for this hook on a group of hocket."""
    group = model.process_group
    # A HocketBackend is a group by itself in older versions of PyTorch.
    is_ours = isinstance(group, HocketBackend) or (isinstance(group, HocketGroup) and group.is_first)
    if not is_ours or comm_hook_type != dist.BuiltinCommHookType.FP16_COMPRESS:
        _theirs(model, comm_hook_type)
        return
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

    model.logger._set_comm_hook_name(str(comm_hook_type))
    dist._register_comm_hook(model.reducer, model.process_group, fp16_compress_hook)


def install() -> None:
    """Replace PyTorch's method."""
    DistributedDataParallel._register_builtin_comm_hook = register_builtin_comm_hook  # type: ignore[method-assign, unused-ignore]
