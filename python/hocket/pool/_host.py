"""Operations of a pool's host workers on arrays, by NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Optional

import numpy as np

from ..errors import InvalidArgument


def require_unmasked(array: Any) -> None:
    """Refuse an array of any package that has masked elements."""
    if np.ma.is_masked(array):
        raise InvalidArgument("an array has a mask, which would be lost; pass x.filled(value)")


class HostArrays:
    """Arrays in host memory. All methods but `current_streams` run in a worker's thread, or may."""

    module = np

    def current_streams(self) -> Optional[list[int]]:
        """The caller's streams, one a worker; None where there are none."""
        return None

    def worker_streams(self) -> list[list[Any]]:
        """Each worker's stream for loading and stream for work."""
        return []

    def at_worker(self, worker: int) -> AbstractContextManager[Any]:
        """A context in which a worker's device and stream are the current ones; nothing on the
        host.
        """
        return nullcontext()

    def at_caller(self, worker: int) -> AbstractContextManager[Any]:
        """A context in which a worker's device is the current one; nothing on the host."""
        return nullcontext()

    def empty(self, worker: int, shape: Sequence[int], dtype: Any) -> Any:
        """A new array in a worker's memory."""
        return np.empty(tuple(shape), dtype)

    def contiguous(self, array: Any) -> Any:
        """The array, or a copy in C order."""
        require_unmasked(array)
        return np.ascontiguousarray(array).reshape(np.shape(array))

    def assign(self, target: Any, source: Any) -> None:
        """Copy element by element; `target` may be a part of an array."""
        require_unmasked(source)
        np.copyto(target, source, casting="unsafe")

    def to_host(self, array: Any) -> Any:
        """The array in host memory."""
        return np.asarray(array)
