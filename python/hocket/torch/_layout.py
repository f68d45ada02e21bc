"""Brings tensors into the form that hocket accepts: dense and contiguous."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch

from hocket import InvalidArgument


class Layout:
    """A tensor that a call writes to: the tensor itself if it is contiguous, else a copy that is
    copied back.

    hocket accepts `dense`, of any shape. Calls that count rows take `flat`.
    """

    __slots__ = ("_copy", "_tensor", "dense")

    def __init__(self, tensor: torch.Tensor) -> None:
        _require_dense(tensor)
        self._tensor = tensor
        self._copy = None if lies_flat(tensor) else _resolved(tensor.detach())
        self.dense = tensor if self._copy is None else self._copy

    @property
    def flat(self) -> torch.Tensor:
        """The tensor `dense`, viewed with one dimension."""
        return self.dense.detach().view(-1)

    @property
    def back(self) -> Optional[Callable[[], None]]:
        """The method `copy_back`, to call when the call has ended. None if no copy was made."""
        return None if self._copy is None else self.copy_back

    def copy_back(self) -> None:
        """Copy the result into the tensor."""
        if self._copy is not None:
            self._tensor.detach().copy_(self._copy)


def all_back(layouts: Sequence[Layout]) -> Optional[Callable[[], None]]:
    """Return one `copy_back` for several layouts. Return None if no copies were made."""
    if all(layout.back is None for layout in layouts):
        return None

    def back() -> None:
        for layout in layouts:
            layout.copy_back()

    return back


def apart(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return contiguous tensors that share no memory. A tensor that overlaps another is copied."""
    result = list(tensors)
    end: tuple[Any, int] = (None, 0)
    for place in sorted(range(len(tensors)), key=lambda place: tensors[place].data_ptr()):
        tensor = tensors[place]
        first = tensor.data_ptr()
        if tensor.device == end[0] and first < end[1] and tensor.numel() > 0:
            result[place] = tensor.clone()
        last = first + tensor.numel() * tensor.element_size()
        end = (tensor.device, last if tensor.device != end[0] else max(end[1], last))
    return result


def lies_flat(tensor: torch.Tensor) -> bool:
    """Return True if the tensor's memory holds the tensor's numbers, without gaps.

    A lazy view is conjugated or negated when it is read. Its memory holds other numbers.
    """
    return bool(tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj())


def _resolved(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.resolve_conj().resolve_neg().contiguous()


def _require_dense(tensor: torch.Tensor) -> None:
    if tensor.layout is not torch.strided:
        raise InvalidArgument(
            f"the tensor is {tensor.layout}, expected a dense one; all_reduce takes sparse "
            "tensors, and hocket.sparse has collectives on sparse arrays of SciPy and CuPy"
        )


def as_dense(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor to read from: the tensor itself if it is contiguous, else a copy."""
    _require_dense(tensor)
    return tensor if lies_flat(tensor) else _resolved(tensor.detach())


def as_flat(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor to read from, with one dimension; see `as_dense`."""
    return as_dense(tensor).detach().view(-1)


def each_flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return one tensor that holds the elements of all tensors, one after the other."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def row_counts(tensor: torch.Tensor, splits: list[int], size: int, name: str) -> list[int]:
    """Return the number of elements for each rank. `splits` holds the numbers of rows."""
    rows = tensor.shape[0] if tensor.dim() else 0
    if not splits:
        if rows % size:
            raise InvalidArgument(f"{name} has {rows} rows, expected a multiple of {size}, or splits")
        splits = [rows // size] * size
    if len(splits) != size or sum(splits) != rows:
        raise InvalidArgument(
            f"the {name} splits are {splits}, expected {size} numbers whose sum is {rows}"
        )
    width = tensor.numel() // rows if rows else 0
    return [split * width for split in splits]


def as_list(tensors: Sequence[torch.Tensor]) -> Optional[list[torch.Tensor]]:
    """Return the tensors if hocket can read or write all of them in place. Otherwise return None.
    """
    first = tensors[0]
    size = first.element_size()
    for tensor in tensors:
        if tensor.is_cuda or not lies_flat(tensor) or tensor.dtype != first.dtype:
            return None
        if tensor.data_ptr() % size:
            return None
    return list(tensors)


def sent_parts(tensors: Sequence[torch.Tensor]) -> tuple[Any, list[int]]:
    """Return tensors to read from, as one array or as a list, and their sizes."""
    counts = [tensor.numel() for tensor in tensors]
    return as_list(tensors) or each_flat(tensors), counts


def received_parts(
    tensors: Sequence[torch.Tensor],
) -> tuple[Any, list[int], Optional[Callable[[], None]]]:
    """Return the destination of the received data, the sizes of the parts, and a function that
    copies the data into the parts (None if it is not needed).
    """
    counts = [tensor.numel() for tensor in tensors]
    listed = as_list(tensors)
    if listed is not None:
        return listed, counts, None
    flat, spread = parts_of(tensors)
    return flat, counts, spread


def parts_of(parts: Sequence[torch.Tensor]) -> tuple[torch.Tensor, Callable[[], None]]:
    """Return a flat tensor for the received data, and a function that copies it into the parts."""
    total = sum(part.numel() for part in parts)
    flat = torch.empty(total, dtype=parts[0].dtype, device=parts[0].device)

    def spread() -> None:
        for part, piece in zip(parts, flat.split([part.numel() for part in parts])):
            part.copy_(piece.view(part.shape))

    return flat, spread
