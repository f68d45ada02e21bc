"""Operands of a distributed FFT. The result is written into the operand's memory."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np


def dtype_name(operand: Any) -> str:
    """Return NumPy's name of an operand's dtype."""
    return str(operand.dtype).rpartition(".")[2]


def has_c_layout(operand: Any) -> bool:
    """Return True if strides decrease from axis to axis; gaps are allowed."""
    strides = operand.stride() if callable(getattr(operand, "stride", None)) else operand.strides
    return list(strides) == sorted(strides, reverse=True)


def new_buffer(package: Any, count: int, dtype: Any) -> Any:
    """Return a new flat array of the package."""
    return package.empty((count,), dtype=dtype)


def cut_last(array: Any, length: int) -> Any:
    """Return the first `length` elements along the last axis. If there are no more, return `array`.
    """
    return array if array.shape[-1] == length else array[..., :length]


def reinterpreted(operand: Any, shape: Sequence[int], dtype: str) -> Optional[Any]:
    """Return an array of another shape and dtype at the start of `operand`. Return None if there is
    no room.
    """
    if tuple(operand.shape) == tuple(shape) and dtype_name(operand) == dtype:
        return operand
    if hasattr(operand, "storage_offset"):
        return _of_torch(operand, shape, dtype)
    if hasattr(operand, "__cuda_array_interface__"):
        return _of_cupy(operand, shape, dtype)
    base = operand
    while isinstance(base.base, np.ndarray):
        base = base.base
    if not base.flags.c_contiguous:
        base = operand
        if not base.flags.c_contiguous:
            return None
    at = operand.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    need = math.prod(shape) * np.dtype(dtype).itemsize
    if at + need > base.nbytes:
        return None
    return base.reshape(-1).view(np.uint8)[at : at + need].view(dtype).reshape(shape)


def _of_torch(operand: Any, shape: Sequence[int], dtype: str) -> Optional[Any]:
    torch: Any = importlib.import_module("torch")
    # PyTorch before 2.0 has another name for the storage, and dtypes without itemsize.
    new = hasattr(operand, "untyped_storage")
    storage = operand.untyped_storage() if new else operand.storage().untyped()
    kind, size = getattr(torch, dtype), np.dtype(dtype).itemsize
    at = operand.storage_offset() * operand.element_size()
    if at % size or at + math.prod(shape) * size > storage.nbytes():
        return None
    result = torch.empty(0, dtype=kind, device=operand.device)
    return result.set_(storage, at // size, tuple(shape))


def _of_cupy(operand: Any, shape: Sequence[int], dtype: str) -> Optional[Any]:
    cupy: Any = importlib.import_module("cupy")
    at = operand.data  # CuPy's pointer object, which has the address and the allocation
    need = math.prod(shape) * np.dtype(dtype).itemsize
    if at.ptr - at.mem.ptr + need > at.mem.size:
        return None
    return cupy.ndarray(tuple(shape), dtype, memptr=at)


def packed(operand: Any) -> Any:
    """Return the operand without gaps: the operand itself, or a copy."""
    if hasattr(operand, "contiguous"):
        return operand.contiguous()
    if hasattr(operand, "__cuda_array_interface__"):
        return importlib.import_module("cupy").ascontiguousarray(operand)
    return np.ascontiguousarray(operand)


def is_packed(operand: Any) -> bool:
    """Return True if the operand has no gaps."""
    if hasattr(operand, "is_contiguous"):
        return bool(operand.is_contiguous())
    return bool(operand.flags.c_contiguous)
