"""DDP's built-in hook FP16_COMPRESS over hocket.

The C++ code of this hook accepts only futures of C++ backends. The Python hook of the same name
gives the same bits, and replaces it.
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
    """Do the same as PyTorch's method, except that a group of hocket gets the Python hook."""
    group = model.process_group
    # In older PyTorch, a HocketBackend is a whole group.
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
