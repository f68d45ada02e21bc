"""Operations that work on arrays of NumPy, CuPy and PyTorch."""

from __future__ import annotations

import importlib
import logging
import math
from collections.abc import Sequence
from typing import Any, Optional

from ...._arrays.kinds import _numpy_dtype
from .._fft_memory import dtype_name
from .._packages import package_of
from .._symmetric import allocate_symmetric_memory
from ._types import FLOAT8


def like(array: Any, shape: Sequence[int], dtype: str) -> Any:
    """Return zeros in Fortran order, of the same package and in the same memory as `array`."""
    if package_of(array) == "torch":
        import torch

        return torch.zeros(tuple(shape[::-1]), dtype=getattr(torch, dtype), device=array.device).T
    return module_of(array).zeros(tuple(shape), dtype, order="F")


def in_dtype(array: Any, dtype: str) -> Any:
    """Return the array, or a copy of it in another dtype."""
    if dtype_name(array) == dtype:
        return array
    if dtype in FLOAT8:  # numbers that are too large become the largest number
        array = array.clip(-FLOAT8[dtype], FLOAT8[dtype])
    if package_of(array) == "torch":
        import torch

        return array.to(getattr(torch, dtype))
    return array.astype(_numpy_dtype(dtype))


def largest_of(array: Any) -> Any:
    """Return the largest magnitude, as an array of one float32 in the same memory as `array`."""
    made = like(array, (1, 1), "float32")[0]
    if math.prod(array.shape):
        made[0] = abs(array).max()
    return made


def module_of(array: Any) -> Any:
    """Return the module of the array's package."""
    return __import__(package_of(array))


def in_symmetric_memory(
    shape: Sequence[int], package: str, dtype: str, logger: Optional[logging.Logger]
) -> Any:
    """Return a new array in Fortran order. Collective; the program frees it."""
    module = importlib.import_module(package)
    return allocate_symmetric_memory(
        shape,
        module,
        dtype=getattr(module, dtype) if package == "torch" else _numpy_dtype(dtype),
        axis_order="F",
        make_symmetric=True,
        logger=logger,
    )


def rounded(array: Any, out: Any, dtype: str) -> Any:
    """Return the array converted to a dtype. If `out` is given, the result is written to it."""
    array = in_dtype(array, dtype)
    if out is not None and array is not out:
        out[...] = array
    return array if out is None else out


def sum_of_all(comm: Any, array: Any) -> Any:
    """Return the sum of all processes' arrays, as a new array."""
    summed = array.clone() if hasattr(array, "clone") else array.copy(order="F")
    comm.all_reduce(summed.T)
    return summed
