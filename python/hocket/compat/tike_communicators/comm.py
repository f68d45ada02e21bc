"""tike.communicators.comm: many devices in each process, and many processes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np

from .mpi import MPIComm, NoMPIComm
from .pool import ThreadPool

__all__ = ["Comm", "MPIComm", "NoMPIComm", "ThreadPool"]


class Comm:
    """A pool of workers in each of several processes.

    Each process sends only one array to the others, no matter how many workers it has.

    Parameters
    ----------
    gpu_count : int or tuple of int
        The workers, as for `ThreadPool`.
    mpi : class
        NoMPIComm or MPIComm.
    pool : class
        ThreadPool.

    Attributes
    ----------
    streams : list of list of stream
        Two streams for each worker. As in tike 0.26, these are not the pool's streams.
    """

    def __init__(
        self,
        gpu_count: Union[int, Sequence[int]],
        mpi: Any = NoMPIComm,
        pool: Any = ThreadPool,
        **kwargs: Any,
    ) -> None:
        self.mpi: Any = mpi()
        self.use_mpi: bool = isinstance(self.mpi, MPIComm)
        self.pool: Any = pool(gpu_count, **kwargs)
        self.streams: Any = self.pool.streams

    def __enter__(self) -> Comm:
        self.mpi.__enter__()
        self.pool.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.mpi.__exit__(*error)
        self.pool.__exit__(*error)

    def reduce(self, x: Sequence[Any], dest: str, s: int = 1, **kwargs: Any) -> Any:
        """Add up x on a group of workers ("gpu"), or in host memory ("cpu"). Deprecated."""
        warnings.warn(
            "Comm.reduce is deprecated. Use Comm.pool.reduce_gpu or Comm.pool.reduce_cpu directly.",
            DeprecationWarning,
            stacklevel=2,
        )
        if dest == "gpu":
            return self.pool.reduce_gpu(x, s, **kwargs)
        if dest == "cpu":
            return self.pool.reduce_cpu(x, **kwargs)
        raise ValueError("dest must be gpu or cpu.")

    def Allreduce_reduce_gpu(self, x: Sequence[Any]) -> list[Any]:
        """Add up x over all workers and processes, on the first worker. Return a list of one array.
        """
        with self.mpi._telling():
            total = self._sum_on_first(x)
        with self.pool.Device(self.pool.workers[0]):
            return [self.mpi.Allreduce(total)]

    def _sum_on_first(self, x: Sequence[Any]) -> Any:
        (total,) = self.pool.reduce_gpu(x)
        return total

    def Allreduce_reduce_cpu(self, x: Sequence[Any]) -> Any:
        """Add up x over all workers and processes, in host memory."""
        with self.mpi._telling():
            total = self.pool.reduce_cpu(x)
        return self.mpi.Allreduce(total)

    def Allreduce_mean(self, x: Sequence[Any], axis: Optional[int] = 0) -> Any:
        """Return the mean of x over all workers and processes along an axis, which is kept."""
        with self.pool.Device(self.pool.workers[0]):
            with self.mpi._telling():
                here = sum(x0.size if axis is None or x0.ndim == 0 else x0.shape[axis] for x0 in x)
            everywhere = int(self.mpi.Allreduce(np.array(here)))
            with self.mpi._telling():
                share = self.pool.reduce_mean(x, axis=axis) * (here / everywhere)
            return self.mpi.Allreduce(share)

    def Allreduce(self, x: Sequence[Any], s: Optional[int] = None, **kwargs: Any) -> list[Any]:
        """Add up x within groups of `s` workers, and over the processes. Each worker gets a new
        array.
        """
        with self.mpi._telling():
            sums = self.pool.allreduce(x, s)
        if self.mpi.size == 1:
            return list(sums)
        # The workers of a group hold equal arrays, so only one worker of each group sends.
        group = len(x) if s is None else s
        leaders = range(0, self.pool.num_workers, group)
        totals = []
        for leader in leaders:
            with self.pool.Device(self.pool.workers[leader]):
                totals.append(self.mpi.Allreduce(sums[leader]))
        result: list[Any] = self.pool.scatter(totals, stride=group)
        return result

    def swap_edges(
        self,
        x: Sequence[Any],
        overlap: int,
        edges: Sequence[int],
        mode: Optional[str] = None,
        outer_edges: Optional[tuple[int, int]] = None,
    ) -> Any:
        """See `ThreadPool.swap_edges`. With `outer_edges`, processes exchange edges, too."""
        across = self.mpi.comm if self.use_mpi and outer_edges is not None else None
        return self.pool.swap_edges(
            x=x,
            overlap=overlap,
            edges=edges,
            mode=mode,
            across=across,
            outer_edges=outer_edges or (0, 0),
        )
