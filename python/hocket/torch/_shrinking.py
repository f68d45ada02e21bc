"""Groups that ``dist.shrink_group`` makes of hocket's backends.

PyTorch would wrap them in a group of its own, whose handles know neither a call's end nor its
sender.
"""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch._C._distributed_c10d import PrefixStore, ProcessGroup
from torch.distributed import distributed_c10d

from ._backend import HocketBackend
from ._group import HocketGroup

_theirs: Any = getattr(distributed_c10d, "_create_shrunk_process_group", None)


def create_shrunk_process_group(
    new_backend: Any, remaining_ranks: list[int], metadata: Any, is_default_group: bool
) -> Any:
    """PyTorch's function, but for backends of hocket."""
    if not isinstance(new_backend, HocketBackend):
        return _theirs(new_backend, remaining_ranks, metadata, is_default_group)
    name = metadata["new_group_name"]
    group: Any = new_backend  # which is a group by itself in older PyTorch
    if not isinstance(group, ProcessGroup):
        store = PrefixStore(f"{name}/", metadata["store"])
        group = HocketGroup.assemble(store, new_backend, new_backend.devices, {})
        before = metadata["original_group_name"]
        group._set_group_desc("default:shrunken" if is_default_group else f"{before}:shrunk")
    group._set_group_name(name)
    bound: Optional[torch.device] = metadata["bound_device_id"]
    if bound is not None:
        group.bound_device_id = bound
    return group


def install() -> None:
    """Replace PyTorch's function, where it has one."""
    if _theirs is not None:
        distributed_c10d._create_shrunk_process_group = create_shrunk_process_group
