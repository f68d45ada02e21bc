"""Packs long lists of tensors chunk by chunk, through memory that stays in the caches."""

from __future__ import annotations

from collections.abc import Sequence

import torch

import hocket
from hocket._calls.types import Op

# Size of all ranks' chunks together, in bytes. Lists of more bytes are faster in chunks than packed
# at once.
_PACKED_BYTES = 1 << 19


def takes_chunks(parts: Sequence[torch.Tensor], is_async: bool) -> bool:
    """Return True for a long list in host memory in a synchronous call; equal on all ranks."""
    first = parts[0]
    total = sum(part.numel() for part in parts) * first.element_size()
    return not is_async and not first.is_cuda and total > _PACKED_BYTES


def reduce_scatter_in_chunks(
    comm: hocket.Communicator, parts: Sequence[torch.Tensor], out: torch.Tensor, op: Op
) -> None:
    """Reduce part r of all ranks into the `out` of rank r, by several calls in sequence."""
    flat = [part.detach().reshape(-1) for part in parts]
    chunk = max(1, _PACKED_BYTES // flat[0].element_size() // len(flat))
    packed = torch.empty(chunk * len(flat), dtype=flat[0].dtype)
    for first in range(0, max(part.numel() for part in flat), chunk):
        chunks = [part[first : first + chunk] for part in flat]
        counts = [part.numel() for part in chunks]
        whole = packed[: sum(counts)]
        torch.cat(chunks, out=whole)
        comm.reduce_scatter_v(whole, out[first : first + chunk], counts, op)
