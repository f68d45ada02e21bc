"""Functions that inspect or make arrays of any package: NumPy, CuPy, PyTorch."""

from __future__ import annotations

import operator
from typing import Any, Literal, Optional

import numpy as np

from ..errors import InvalidArgument


def name_of(dtype: Any) -> str:
    """Return a dtype's name, such as "float32"."""
    try:
        return str(np.dtype(dtype).name)
    except TypeError:
        return str(dtype).rpartition(".")[2]  # PyTorch's dtypes print as "torch.float32"


def is_on_gpu(x: Any) -> bool:
    """Return True if an array lies in a GPU's memory.

    PyTorch's 8-bit floats have no ``__cuda_array_interface__``, so `is_cuda` comes first.
    """
    own = getattr(x, "is_cuda", None)
    return own if isinstance(own, bool) else hasattr(x, "__cuda_array_interface__")


def gpu_of(x: Any) -> Optional[int]:
    """Return the GPU in whose memory an array lies; None for host memory.

    Raises
    ------
    InvalidArgument
        The array says that it lies on a GPU, but not on which one.
    """
    if not is_on_gpu(x):
        return None
    device = getattr(x, "device", None)
    number: Any = getattr(device, "index", None)  # PyTorch's devices have `index`, CuPy's have `id`
    number = getattr(device, "id", None) if number is None or callable(number) else number
    try:
        return operator.index(number)
    except TypeError:
        raise InvalidArgument(
            f"a {type(x).__name__} says that it is of a GPU (__cuda_array_interface__), and no "
            "device.id or device.index says of which; expected an array of CuPy or PyTorch"
        ) from None


def _numpy_dtype(name: str) -> Any:
    """Return NumPy's dtype of this name. ml_dtypes provides bfloat16 and 8-bit floats."""
    if not name.startswith(("bfloat", "float8")):
        return name
    import ml_dtypes

    return getattr(ml_dtypes, name)


def empty_like(x: Any, shape: tuple[int, ...], dtype: str, order: str = "C") -> Any:
    """Return a new contiguous array of the same package and device as `x`."""
    if hasattr(x, "new_empty"):  # PyTorch
        import torch

        made = x.new_empty(shape if order == "C" else shape[::-1], dtype=getattr(torch, dtype))
        return made if order == "C" else made.permute(*reversed(range(made.ndim)))
    letter: Literal["C", "F"] = "F" if order == "F" else "C"
    own: Any = getattr(x, "dtype", dtype)
    own = own if name_of(own) == dtype else _numpy_dtype(dtype)
    if hasattr(x, "__cuda_array_interface__"):  # CuPy
        if all(kind.__module__.partition(".")[0] != "cupy" for kind in type(x).__mro__):
            raise InvalidArgument(
                f"out is missing: arrays like a {type(x).__name__} are not made here; expected one "
                "of CuPy or PyTorch"
            )
        import cupy

        with x.device:
            return cupy.empty(shape, own, order=letter)
    return np.empty(shape, own, letter)
