"""Operations of a pool's GPU workers on arrays, by CuPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Optional

import numpy as np


class CupyArrays:
    """Arrays in GPUs' memory. `streams` holds a pair of raw handles for each worker: (load, work).
    """

    def __init__(self, devices: Sequence[int], streams: Sequence[tuple[int, int]]) -> None:
        import cupy

        self.module = cupy
        self.devices = list(devices)
        self.streams = [
            [cupy.cuda.ExternalStream(handle, device) for handle in pair]
            for device, pair in zip(devices, streams)
        ]

    def current_streams(self) -> Optional[list[int]]:
        """Return the caller's current streams, one for each worker."""
        cuda = self.module.cuda
        return [int(cuda.get_current_stream(device).ptr) for device in self.devices]

    def worker_streams(self) -> list[list[Any]]:
        """Return each worker's stream for loading and its stream for work."""
        return self.streams

    @contextmanager
    def _at(self, worker: int) -> Iterator[None]:
        with self.module.cuda.Device(self.devices[worker]), self.streams[worker][1]:
            yield

    def at_worker(self, worker: int) -> AbstractContextManager[Any]:
        """Return a context in which a worker's device and stream are the current ones."""
        return self._at(worker)

    def at_caller(self, worker: int) -> AbstractContextManager[Any]:
        """Return a context in which a worker's device is the current one, in the caller's thread.
        """
        context: AbstractContextManager[Any] = self.module.cuda.Device(self.devices[worker])
        return context

    def empty(self, worker: int, shape: Sequence[int], dtype: Any) -> Any:
        """Return a new array in a worker's memory."""
        with self.at_caller(worker):
            return self.module.empty(tuple(shape), dtype)

    def contiguous(self, array: Any) -> Any:
        """Return the array, or a copy of it in C order in the same memory."""
        if isinstance(array, self.module.ndarray):
            with array.device:
                return self.module.ascontiguousarray(array).reshape(array.shape)
        return np.ascontiguousarray(array).reshape(np.shape(array))

    def assign(self, target: Any, source: Any) -> None:
        """Copy element by element. The two may lie in different memory, and may be parts of arrays.
        """
        if isinstance(target, np.ndarray):
            target[...] = self.to_host(source)
        elif isinstance(source, self.module.ndarray):
            target[...] = source
        else:
            target[...] = self.module.asarray(source)

    def to_host(self, array: Any) -> Any:
        """Return the array in host memory. Waits for the work on the current stream."""
        return self.module.asnumpy(array) if hasattr(array, "__cuda_array_interface__") else (
            np.asarray(array)
        )
