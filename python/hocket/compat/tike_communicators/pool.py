"""tike.communicators.pool: ThreadPool over `hocket.DevicePool`."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, Optional, Union

import numpy as np

from ...pool import DevicePool
from ._module import array_module

__all__ = ["ThreadPool"]


class ThreadPool(ThreadPoolExecutor):
    """Workers that are threads, one for each GPU. With NumPy, workers are virtual, and have copies
    of their own.

    `submit` runs a call in a further thread, on the current device, as in tike of 2021.

    Parameters
    ----------
    workers : int or tuple of int
        Number of workers, or the GPUs' numbers. GPUs that do not exist are left out, with a
        warning.
    xp : module, optional
        numpy or cupy. By default cupy, if it has GPUs.
    device_count : int, optional
        Number of devices. By default CuPy's number of GPUs; with NumPy as many as the workers need.

    Raises
    ------
    ValueError
        There is less than one worker, or a device is missing. Or on entering the context, the
        current device is not the first worker's.
    """

    #: Default mode of `swap_edges`: "blend" as in today's tike, or "swap" as in older tike.
    edge_mode = "blend"

    def __init__(
        self,
        workers: Union[int, Sequence[int]],
        xp: Any = None,
        device_count: Optional[int] = None,
    ) -> None:
        self.xp: Any = array_module() if xp is None else xp
        self._is_host = self.xp.__name__ == "numpy"
        self.device_count: int = self._count(workers) if device_count is None else device_count
        self.workers: tuple[int, ...] = self._choose(workers)
        if self._is_host:
            self._pool = DevicePool(len(self.workers))
            self.streams: list[list[Any]] = [[None, None] for _ in self.workers]
        else:
            self._pool = DevicePool(devices=self.workers)
            self.streams = self._pool.streams
        super().__init__(len(self.workers))

    def _count(self, workers: Union[int, Sequence[int]]) -> int:
        if not self._is_host:
            return int(self.xp.cuda.runtime.getDeviceCount())
        return workers if isinstance(workers, int) else max(workers, default=-1) + 1

    def _choose(self, workers: Union[int, Sequence[int]]) -> tuple[int, ...]:
        if isinstance(workers, int):
            if workers < 1:
                raise ValueError(f"Provide workers > 0, not {workers}.")
            if workers > self.device_count:
                warnings.warn(
                    "Not enough CUDA devices for workers! "
                    f"Requested {workers} of {self.device_count} devices.",
                    stacklevel=3,
                )
                workers = self.device_count
            if workers == 1:
                return (self._current(),)
            return tuple(range(workers))
        chosen = tuple(int(worker) for worker in workers)
        if not chosen:
            raise ValueError("Provide workers > 0, not 0.")
        for worker in chosen:
            if not 0 <= worker < self.device_count:
                raise ValueError(f"{worker} is not a valid GPU device number.")
        return chosen

    def _current(self) -> int:
        return 0 if self._is_host else int(self.xp.cuda.Device().id)

    @property
    def num_workers(self) -> int:
        """The number of workers."""
        return len(self.workers)

    def Device(self, worker: int) -> Any:
        """Return a context in which a worker's device is the current device."""
        return nullcontext() if self._is_host else self.xp.cuda.Device(worker)

    # --- Life ---------------------------------------------------------------------------------

    def __enter__(self) -> ThreadPool:
        if not self._is_host and self.workers[0] != self._current():
            raise ValueError(
                "The primary worker must be the current device. "
                f"Use `with cupy.cuda.Device({self.workers[0]}):` to set the current device."
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers. It may be called again; any other call afterwards is an error."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        self._pool.close()

    def _place(self, worker: int) -> int:
        if worker not in self.workers:
            raise ValueError(f"worker is {worker!r}, expected one of the pool's {self.workers}")
        return self.workers.index(worker)

    # --- Work ---------------------------------------------------------------------------------

    def map(  # type: ignore[override]
        self,
        func: Callable[..., Any],
        *iterables: Iterable[Any],
        workers: Optional[Sequence[int]] = None,
        **kwargs: Any,
    ) -> list[Any]:
        """Call `func` once for each worker, on its device and stream, with one item of each
        iterable.
        """
        # Two workers may share a device, so `_place` cannot find all of them.
        every = range(self.num_workers)
        chosen = list(every) if workers is None else [self._place(w) for w in workers]
        items = list(itertools.islice(zip(*iterables), len(chosen))) if iterables else None
        if items is None:
            return self._pool.map(func, workers=chosen, **kwargs)
        return self._pool.map(lambda item: func(*item, **kwargs), items, workers=chosen)

    # --- Movement -----------------------------------------------------------------------------

    def bcast(self, x: Any, stride: int = 1) -> list[Any]:
        """Copy x[i % stride] to worker i. A single array is copied to all workers."""
        if hasattr(x, "shape"):
            x = [x]
        _check_stride(stride, len(x))
        return self._distribute(x, [i % stride for i in range(self.num_workers)])

    def scatter(self, x: Sequence[Any], stride: int = 1) -> list[Any]:
        """Copy x[i // stride] to worker i."""
        _check_stride(stride)
        return self._distribute(x, [i // stride for i in range(self.num_workers)])

    def _distribute(self, x: Sequence[Any], sources: Sequence[int]) -> list[Any]:
        """Copy x[sources[i]] to worker i. A copy keeps the array's memory layout, because the last
        bits of later sums along an axis depend on it.
        """
        if _all_in_c_order(x):
            return self._pool.distribute(x, sources)
        return self._pool.map(lambda i: self.xp.array(x[i], copy=True, order="K"), sources)

    def scatter_bcast(self, x: Sequence[Any], stride: int = 1) -> list[Any]:
        """Copy x[i // stride] to worker i."""
        return self.scatter(x, stride)

    def gather(self, x: Sequence[Any], worker: Optional[int] = None, axis: Optional[int] = 0) -> Any:
        """Concatenate x on one worker. If `axis` is None, stack x along a new first axis."""
        at = 0 if worker is None else self._place(worker)
        _check_axis(x, axis)
        if len(x) == self.num_workers and _all_in_c_order(x):
            return self._pool.gather(x, worker=at, axis=axis)
        return self._pool.map(lambda: self._merge(x, axis), workers=[at])[0]

    def gather_host(self, x: Sequence[Any], axis: Optional[int] = 0) -> Any:
        """Concatenate x in host memory. If `axis` is None, stack x along a new first axis."""
        _check_axis(x, axis)
        if len(x) == self.num_workers:
            return self._pool.gather(x, worker=None, axis=axis)
        hosted = [x0 if isinstance(x0, np.ndarray) else x0.get() for x0 in x[: self.num_workers]]
        return np.stack(hosted) if axis is None else np.concatenate(hosted, axis=axis)

    def all_gather(self, x: Sequence[Any], axis: Optional[int] = 0) -> list[Any]:
        """Concatenate x on every worker. If `axis` is None, stack x along a new first axis."""
        _check_axis(x, axis)
        if len(x) == self.num_workers and _all_in_c_order(x):
            return self._pool.all_gather(x, axis=axis)
        return self._pool.map(lambda: self._merge(x, axis))

    def _merge(self, x: Sequence[Any], axis: Optional[int]) -> Any:
        here = [self.xp.asarray(part) for part in x]
        return self.xp.stack(here) if axis is None else self.xp.concatenate(here, axis=axis)

    # --- Reductions ---------------------------------------------------------------------------

    def reduce_gpu(
        self,
        x: Sequence[Any],
        stride: int = 1,
        workers: Optional[Sequence[int]] = None,
        worker: Optional[int] = None,
    ) -> Any:
        """Add up x[i::stride] in order, on worker i. Return a list with one array for each worker.

        If `worker` is given (tike of 2021), add up all of x on that worker, and return an array.
        """
        if worker is not None:
            return self._add(x, [self._place(worker)], 1)[0]
        _check_stride(stride, len(x))
        chosen = range(stride) if workers is None else [self._place(w) for w in workers]
        return self._add(x, list(chosen)[: self.num_workers], stride)

    def _add(self, x: Sequence[Any], chosen: Sequence[int], stride: int) -> list[Any]:
        if self._is_host:
            return [
                self._pool.reduce(x[(i if stride > 1 else 0) :: stride], worker=i) for i in chosen
            ]
        # Each worker fetches the arrays that it adds.
        return self._pool.map(
            lambda i: _sum([self.xp.asarray(part) for part in x[(i if stride > 1 else 0) :: stride]]),
            chosen,
            workers=chosen,
        )

    def reduce_cpu(self, x: Sequence[Any]) -> Any:
        """Add up x in host memory."""
        assert len(x) <= self.num_workers, (
            f"{len(x)} work is more than {self.num_workers} workers"
        )
        if self._is_host and np.result_type(*x) in (np.float32, np.float64, np.int64):
            return self._pool.reduce(x)
        return np.sum([x0 if isinstance(x0, np.ndarray) else x0.get() for x0 in x], axis=0)

    def reduce_mean(
        self, x: Sequence[Any], axis: Optional[int] = 0, worker: Optional[int] = None
    ) -> Any:
        """Return the mean of x, concatenated along `axis`, which is kept."""
        at = self.workers[0] if worker is None else worker
        together = self.gather(x, worker=at, axis=axis)
        with self.Device(at):
            return self.xp.mean(together, keepdims=x[0].ndim > 0, axis=axis)

    def allreduce(self, x: Sequence[Any], stride: Optional[int] = None) -> list[Any]:
        """Add up x within groups of `stride` consecutive workers. Every worker gets its group's
        sum.
        """
        if self.num_workers == 1:
            return list(x)
        stride = len(x) if stride is None else stride
        _check_stride(stride, len(x))
        if len(x) != self.num_workers:
            return self._pool.map(
                lambda i: _sum([self.xp.asarray(part) for part in x[i : i + stride]]),
                [i // stride * stride for i in range(self.num_workers)],
            )
        if not all(self._lies_at(worker, part) for worker, part in zip(self.workers, x)):
            x = self._pool.distribute(x, list(range(self.num_workers)))
        inputs = [self.xp.ascontiguousarray(part).reshape(part.shape) for part in x]
        out = self._pool.map(self.xp.empty_like, inputs)
        return self._pool.all_reduce(inputs, out=out, group=stride)

    def _lies_at(self, worker: int, part: Any) -> bool:
        return self._is_host or int(part.device.id) == worker

    # --- Edges --------------------------------------------------------------------------------

    def swap_edges(
        self,
        x: Sequence[Any],
        overlap: int,
        edges: Sequence[int],
        mode: Optional[str] = None,
        *,
        across: Any = None,
        outer_edges: tuple[int, int] = (0, 0),
    ) -> Sequence[Any]:
        """Exchange [..., edges[i]:(edges[i] + overlap), :] between workers i - 1 and i, in place.

        With `mode` "blend", both workers get a linear cross-fade, as in today's tike. With "swap",
        each gets the other's data, as tike's documentation says. The default is
        `ThreadPool.edge_mode`.

        tike does not have the following: `across` is a communicator of processes. With it, the last
        worker of each process also exchanges with the first worker of the next process.
        `outer_edges` are the edges towards the previous and the next process.
        """
        if overlap < 1:
            raise ValueError(f"Overlap for swap_edges cannot be less than 1: {overlap}")
        how: Any = self.edge_mode if mode is None else mode
        seams = [int(edge) for edge in edges[1 : self.num_workers]]
        contiguous = [part if part.flags.c_contiguous else part.copy() for part in x]
        self._pool.exchange_halo(
            contiguous, seams, overlap, mode=how, across=across, outer_seams=outer_edges
        )
        for part, copy in zip(x, contiguous):
            if part is not copy:
                part[...] = copy
        return x


def _all_in_c_order(x: Sequence[Any]) -> bool:
    return all(not hasattr(part, "flags") or part.flags.c_contiguous for part in x)


def _sum(parts: Sequence[Any]) -> Any:
    total: Any = 0
    for part in parts:
        total = total + part
    return total


def _check_stride(stride: int, most: Optional[int] = None) -> None:
    assert stride >= 1, f"Stride cannot be less than 1; it is {stride}."
    assert most is None or stride <= most, f"Stride cannot be greater than {most}; it is {stride}."


def _check_axis(x: Sequence[Any], axis: Optional[int]) -> None:
    assert axis is None or x[0].ndim > 0, (
        "Cannot concatenate zero-dimensional arrays; use `axis=None`"
    )
