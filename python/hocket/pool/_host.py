"""Operations of a pool's host workers on arrays, by NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Optional

import numpy as np

from ..errors import InvalidArgument


def require_unmasked(array: Any) -> None:
    """Refuse an array with masked elements, of any package."""
    if np.ma.is_masked(array):
        raise InvalidArgument("an array has a mask, which would be lost; pass x.filled(value)")


class HostArrays:
    """Arrays in host memory. All methods except `current_streams` may run in a worker's thread."""

    module = np

    def current_streams(self) -> Optional[list[int]]:
        """Return the caller's current streams, one for each worker; None on the host."""
        return None

    def worker_streams(self) -> list[list[Any]]:
        """Return each worker's stream for loading and its stream for work; empty on the host."""
        return []

    def at_worker(self, worker: int) -> AbstractContextManager[Any]:
        """Return a context in which a worker's device and stream are the current ones. It does
        nothing on the host.
        """
        return nullcontext()

    def at_caller(self, worker: int) -> AbstractContextManager[Any]:
        """Return a context in which a worker's device is the current one. It does nothing on the
        host.
        """
        return nullcontext()

    def empty(self, worker: int, shape: Sequence[int], dtype: Any) -> Any:
        """Return a new array in a worker's memory."""
        return np.empty(tuple(shape), dtype)

    def contiguous(self, array: Any) -> Any:
        """Return the array, or a copy of it in C order."""
        require_unmasked(array)
        return np.ascontiguousarray(array).reshape(np.shape(array))

    def assign(self, target: Any, source: Any) -> None:
        """Copy element by element. `target` may be a part of an array."""
        require_unmasked(source)
        np.copyto(target, source, casting="unsafe")

    def to_host(self, array: Any) -> Any:
        """Return the array in host memory."""
        return np.asarray(array)
