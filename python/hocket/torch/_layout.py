"""Tensors in the form that hocket takes: flat and contiguous."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch

from hocket import InvalidArgument


class Layout:
    """A tensor to write to: itself if it is contiguous, else a copy that is copied back.

    hocket takes `dense`, whatever its shape. Calls that count rows take `flat`.
    """

    __slots__ = ("_copy", "_tensor", "dense")

    def __init__(self, tensor: torch.Tensor) -> None:
        _require_dense(tensor)
        self._tensor = tensor
        self._copy = None if lies_flat(tensor) else _resolved(tensor.detach())
        self.dense = tensor if self._copy is None else self._copy

    @property
    def flat(self) -> torch.Tensor:
        """The same with one dimension."""
        return self.dense.detach().view(-1)

    @property
    def back(self) -> Optional[Callable[[], None]]:
        """`copy_back`, to be called when the call has ended; None if no copy was made."""
        return None if self._copy is None else self.copy_back

    def copy_back(self) -> None:
        """Copy the result into the tensor."""
        if self._copy is not None:
            self._tensor.detach().copy_(self._copy)


def all_back(layouts: Sequence[Layout]) -> Optional[Callable[[], None]]:
    """The same of several."""
    if all(layout.back is None for layout in layouts):
        return None

    def back() -> None:
        for layout in layouts:
            layout.copy_back()

    return back


def apart(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Contiguous tensors that share no memory. A tensor that overlaps another one is copied."""
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
    """True if its memory holds its numbers, one after the other.

    Lazy views, which are conjugated or negated only when they are read, hold others.
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
    """A tensor to read from: itself if it is contiguous, else a copy."""
    _require_dense(tensor)
    return tensor if lies_flat(tensor) else _resolved(tensor.detach())


def as_flat(tensor: torch.Tensor) -> torch.Tensor:
    """The same with one dimension."""
    return as_dense(tensor).detach().view(-1)


def each_flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Tensors to read from, one after the other."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def row_counts(tensor: torch.Tensor, splits: list[int], size: int, name: str) -> list[int]:
    """Number of elements for each rank, from rows for each rank."""
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
    """Tensors that hocket reads or writes in place; None if some of them have to be copied."""
    first = tensors[0]
    size = first.element_size()
    for tensor in tensors:
        if tensor.is_cuda or not lies_flat(tensor) or tensor.dtype != first.dtype:
            return None
        if tensor.data_ptr() % size:
            return None
    return list(tensors)


def sent_parts(tensors: Sequence[torch.Tensor]) -> tuple[Any, list[int]]:
    """Tensors to read from, as one array or a list, and their sizes."""
    counts = [tensor.numel() for tensor in tensors]
    return as_list(tensors) or each_flat(tensors), counts


def received_parts(
    tensors: Sequence[torch.Tensor],
) -> tuple[Any, list[int], Optional[Callable[[], None]]]:
    """Destination of the received data, sizes of the parts, and a function that copies into
    them.
    """
    counts = [tensor.numel() for tensor in tensors]
    listed = as_list(tensors)
    if listed is not None:
        return listed, counts, None
    flat, spread = parts_of(tensors)
    return flat, counts, spread


def parts_of(parts: Sequence[torch.Tensor]) -> tuple[torch.Tensor, Callable[[], None]]:
    """A flat tensor for the received data, and a function that copies it into the parts."""
    total = sum(part.numel() for part in parts)
    flat = torch.empty(total, dtype=parts[0].dtype, device=parts[0].device)

    def spread() -> None:
        for part, piece in zip(parts, flat.split([part.numel() for part in parts])):
            part.copy_(piece.view(part.shape))

    return flat, spread
