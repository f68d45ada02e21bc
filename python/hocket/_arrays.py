"""What hocket asks of arrays, whosever they are: NumPy's, CuPy's, PyTorch's."""

from __future__ import annotations

from typing import Any, Literal, Optional

import numpy as np


def name_of(dtype: Any) -> str:
    """A dtype's name: "float32"."""
    try:
        return str(np.dtype(dtype).name)
    except TypeError:
        return str(dtype).rpartition(".")[2]  # PyTorch's


def gpu_of(x: Any) -> Optional[int]:
    """The GPU whose memory an array lies in; None for the host's."""
    if not hasattr(x, "__cuda_array_interface__"):
        return None
    device = x.device
    number = getattr(device, "index", None)  # PyTorch's; CuPy's has `id`
    return int(device.id if number is None or callable(number) else number)


def empty_like(x: Any, shape: tuple[int, ...], dtype: str, order: str = "C") -> Any:
    """A new array of the kind of `x`, without gaps, in its memory."""
    if hasattr(x, "new_empty"):  # PyTorch
        import torch

        made = x.new_empty(shape if order == "C" else shape[::-1], dtype=getattr(torch, dtype))
        return made if order == "C" else made.permute(*reversed(range(made.ndim)))
    letter: Literal["C", "F"] = "F" if order == "F" else "C"
    own: Any = getattr(x, "dtype", dtype)  # NumPy knows bfloat16 by no name
    own = own if name_of(own) == dtype else dtype
    if hasattr(x, "__cuda_array_interface__"):  # CuPy
        import cupy

        with x.device:
            return cupy.empty(shape, own, order=letter)
    return np.empty(shape, own, letter)
