"""Sums of sparse tensors (COO). The ranks' entries may differ in number and position."""

from __future__ import annotations

from typing import Optional

import torch

import hocket
from hocket._calls.types import Op

# A tensor is described by one row of numbers: dtype, entries, sparse axes, dense axes, shape. The
# row has this many numbers.
_AXES = 64
_DTYPES = (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
)


def all_reduce_sparse(comm: hocket.Communicator, tensor: torch.Tensor, op: Optional[Op]) -> None:
    """Add up the sparse tensors of all ranks, in place. Each tensor becomes the coalesced sum.

    Raises
    ------
    InvalidArgument
        Raised on all ranks: shapes or dtypes differ, the layout is not COO, or the op is not SUM.
    """
    own = tensor.detach()
    if own.layout != torch.sparse_coo or own.dtype not in _DTYPES:
        comm.refuse(f"the tensor is {own.layout} of {own.dtype}, expected a dense one or COO")
    if op != "sum":
        comm.refuse(f"op is {op or 'PREMUL_SUM'} on a sparse tensor, expected SUM")
    own = own.coalesce()
    row = [_DTYPES.index(own.dtype), own._nnz(), own.sparse_dim(), own.dense_dim(), *own.shape]
    table = comm.all_gather(torch.tensor(row + [-1] * (_AXES - len(row)), device="cpu"))
    counts = [int(theirs[1]) for theirs in table]
    table[:, 1] = 0
    for rank, theirs in enumerate(table):
        if not theirs.equal(table[0]):
            raise hocket.InvalidArgument(
                f"the sparse tensor of rank {rank} has {_describe(theirs)}, and that of rank 0 has "
                f"{_describe(table[0])}, expected the same"
            )
    places = own.indices().t().contiguous()  # indices of one entry after those of another
    total = sum(counts)
    every = torch.empty(total, own.sparse_dim(), dtype=torch.int64, device=own.device)
    values = own.values().new_empty(total, *own.shape[own.sparse_dim() :])
    width = values[0].numel() if total else 0
    comm.all_gather_v(places.view(-1), every.view(-1), [n * own.sparse_dim() for n in counts])
    comm.all_gather_v(own.values().reshape(-1), values.view(-1), [n * width for n in counts])
    summed = torch.sparse_coo_tensor(every.t(), values, own.shape, check_invariants=False)
    with torch.no_grad():  # copying into a detached tensor would not change the caller's tensor
        tensor.copy_(summed.coalesce())


def _describe(row: torch.Tensor) -> str:
    dtype, _, sparse, dense, *shape = row.tolist()
    extents = tuple(shape[: sparse + dense])
    return f"shape {extents}, of which {sparse} axes are sparse, and dtype {_DTYPES[dtype]}"
