"""Makes the groups for ``dist.shrink_group`` from hocket's backends.

PyTorch would wrap these backends in a group of its own. The handles of that group know neither a
call's end nor a message's sender.
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
    """Do the same as PyTorch's function, except that groups of hocket's backends are made here."""
    if not isinstance(new_backend, HocketBackend):
        return _theirs(new_backend, remaining_ranks, metadata, is_default_group)
    name = metadata["new_group_name"]
    group: Any = new_backend  # in older PyTorch a backend is a group by itself
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
    """Replace PyTorch's function, if this version has one."""
    if _theirs is not None:
        distributed_c10d._create_shrunk_process_group = create_shrunk_process_group
