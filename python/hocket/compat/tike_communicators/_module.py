"""Finds the package of arrays: CuPy or NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np


def array_module() -> Any:
    """CuPy where it has GPUs; else NumPy."""
    try:
        import cupy

        has_gpus = cupy.cuda.runtime.getDeviceCount() > 0
    # CuPy raises a different class for each: not installed, no driver, a driver too old
    except Exception:
        return np
    # An emulated CuPy keeps its arrays in host memory, and has devices in name only.
    return cupy if has_gpus and not issubclass(cupy.ndarray, np.ndarray) else np


def is_on_gpu(x: Any) -> bool:
    """True if an array lies in a GPU's memory."""
    return hasattr(x, "__cuda_array_interface__")
