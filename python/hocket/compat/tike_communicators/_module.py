"""Chooses the package of arrays: CuPy or NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np


def array_module() -> Any:
    """Return CuPy if it has GPUs, else NumPy."""
    try:
        import cupy

        has_gpus = cupy.cuda.runtime.getDeviceCount() > 0
    # CuPy raises different classes of errors if it is not installed, or if the driver is missing or
    # old.
    except Exception:
        return np
    # An emulated CuPy keeps its arrays in host memory, and has no real devices.
    return cupy if has_gpus and not issubclass(cupy.ndarray, np.ndarray) else np
