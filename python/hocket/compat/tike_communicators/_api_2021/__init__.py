"""tike.communicators as it was in 2021: `install("tike.communicators@2021")`.

Calls whose meaning has changed since then have their older meaning. All others are as in today's
tike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

from .. import comm as _comm
from .. import pool as _pool
from ..mpi import *
from ..mpi import MPIComm
from ..stream import *


class ThreadPool(_pool.ThreadPool):
    """Workers that are threads, one for each GPU; see today's `ThreadPool`. Only `reduce_gpu`
    differs: it returns one array.
    """

    def reduce_gpu(self, x: Sequence[Any], worker: Optional[int] = None) -> Any:  # type: ignore[override]
        """Add up x in order, on one worker, by default the first. Return an array."""
        return super().reduce_gpu(x, worker=self.workers[0] if worker is None else worker)


class Comm(_comm.Comm):
    """A pool of workers in each process of the job.

    Parameters
    ----------
    gpu_count : int or tuple of int
        The workers, as for `ThreadPool`.
    mpi : class
        MPIComm or NoMPIComm.
    pool : class
        ThreadPool.
    """

    def __init__(
        self,
        gpu_count: Union[int, Sequence[int]],
        mpi: Any = MPIComm,
        pool: Any = ThreadPool,
        **kwargs: Any,
    ) -> None:
        super().__init__(gpu_count, mpi, pool, **kwargs)

    def _sum_on_first(self, x: Sequence[Any]) -> Any:
        return self.pool.reduce_gpu(x)

    def reduce(self, x: Sequence[Any], dest: str, **kwargs: Any) -> Any:  # type: ignore[override]
        """Add up x on one worker ("gpu"), or in host memory ("cpu")."""
        if dest == "gpu":
            return self.pool.reduce_gpu(x, **kwargs)
        if dest == "cpu":
            return self.pool.reduce_cpu(x, **kwargs)
        raise ValueError("dest must be gpu or cpu.")
