"""Long lists of tensors, packed piece by piece through memory that stays in the caches."""

from __future__ import annotations

from collections.abc import Sequence

import torch

import hocket
from hocket._calls.types import Op

# Bytes of all ranks' pieces together. Above this size, pieces are quicker than packing everything
# at once.
_PACKED_BYTES = 1 << 19


def takes_pieces(parts: Sequence[torch.Tensor], is_async: bool) -> bool:
    """True for a long list in host memory in a synchronous call. The same on all ranks."""
    first = parts[0]
    total = sum(part.numel() for part in parts) * first.element_size()
    return not is_async and not first.is_cuda and total > _PACKED_BYTES


def reduce_scatter_in_pieces(
    comm: hocket.Communicator, parts: Sequence[torch.Tensor], out: torch.Tensor, op: Op
) -> None:
    """Reduce part r of all ranks into the `out` of rank r, by several calls one after another."""
    flat = [part.detach().reshape(-1) for part in parts]
    piece = max(1, _PACKED_BYTES // flat[0].element_size() // len(flat))
    packed = torch.empty(piece * len(flat), dtype=flat[0].dtype)
    for first in range(0, max(part.numel() for part in flat), piece):
        pieces = [part[first : first + piece] for part in flat]
        counts = [part.numel() for part in pieces]
        whole = packed[: sum(counts)]
        torch.cat(pieces, out=whole)
        comm.reduce_scatter_v(whole, out[first : first + piece], counts, op)
