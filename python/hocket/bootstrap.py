"""Joining a job by the user's own process group, with ready classes for MPI and PyTorch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal, Optional

from ._calls.types import type_in_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The fold that a bootstrap's all_reduce applies to two integers.
Fold = Literal["sum", "min", "max"]


class Bootstrap(ABC):
    """A process group to join by: ``hocket.init(bootstrap=...)``.

    Derive a class from it; its ranks become the world's ranks. All ranks call `broadcast` and
    `all_reduce` in the same order, in the thread that called ``init``. Both methods block. ``init``
    calls them only while it sets up the world, and raises their exceptions. They carry the job's
    key, so every process of the group must belong to the job.
    """

    @property
    @abstractmethod
    def rank(self) -> int:
        """This process's number, from 0."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of processes."""

    @abstractmethod
    def broadcast(self, buffer: NDArray[np.uint8], root: int) -> None:
        """Overwrite `buffer` with the root's buffer. It has the same length on all ranks.

        Parameters
        ----------
        buffer : numpy.ndarray
            One-dimensional, of uint8. Valid only during the call.
        root : int
            The rank whose buffer all ranks get.
        """

    @abstractmethod
    def all_reduce(self, values: NDArray[np.int64], op: Fold) -> None:
        """Replace each value by the fold of all ranks' values at the same index.

        Parameters
        ----------
        values : numpy.ndarray
            One-dimensional, of int64. Valid only during the call.
        op : {"sum", "min", "max"}
            The fold of two values; sums wrap around.
        """


class MPIBootstrap(Bootstrap):
    """Joins by a communicator of mpi4py; ``hocket.init(mpi=comm)`` makes one.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        Its ranks become the world's ranks, in the same order.
    """

    def __init__(self, comm: Any) -> None:
        needed = ("Get_rank", "Get_size", "Bcast", "Allreduce")
        if not all(hasattr(comm, name) for name in needed):
            raise TypeError(
                f"mpi is {type_in_words(comm)}; give an intracommunicator of mpi4py, such as "
                "mpi4py.MPI.COMM_WORLD"
            )
        self._comm = comm

    @property
    def rank(self) -> int:
        """This process's number in the communicator."""
        return int(self._comm.Get_rank())

    @property
    def size(self) -> int:
        """Number of processes in the communicator."""
        return int(self._comm.Get_size())

    def broadcast(self, buffer: NDArray[np.uint8], root: int) -> None:
        """See `Bootstrap.broadcast`."""
        self._comm.Bcast(buffer, root=root)

    def all_reduce(self, values: NDArray[np.int64], op: Fold) -> None:
        """See `Bootstrap.all_reduce`."""
        from mpi4py import MPI

        folds = {"sum": MPI.SUM, "min": MPI.MIN, "max": MPI.MAX}
        self._comm.Allreduce(MPI.IN_PLACE, values, op=folds[op])


class TorchBootstrap(Bootstrap):
    """Joins by a process group of torch.distributed.

    Parameters
    ----------
    group : torch.distributed.ProcessGroup, optional
        By default the group that ``torch.distributed.init_process_group`` made.
    device : str or torch.device, optional
        Device of the group's tensors. By default "cpu", or "cuda" (the current device) if NCCL is
        the group's only backend.
    """

    def __init__(self, group: Any = None, device: Optional[Any] = None) -> None:
        import torch
        import torch.distributed as dist

        if not dist.is_initialized():
            raise RuntimeError(
                "torch.distributed has no process group; call "
                "torch.distributed.init_process_group before hocket.init"
            )
        self._group = group
        if device is None:
            device = "cuda" if dist.get_backend(group) == "nccl" else "cpu"
        self._device = torch.device(device)

    @property
    def rank(self) -> int:
        """This process's number in the group."""
        import torch.distributed as dist

        return int(dist.get_rank(self._group))

    @property
    def size(self) -> int:
        """Number of processes in the group."""
        import torch.distributed as dist

        return int(dist.get_world_size(self._group))

    def broadcast(self, buffer: NDArray[np.uint8], root: int) -> None:
        """See `Bootstrap.broadcast`."""
        import torch
        import torch.distributed as dist

        tensor = torch.from_numpy(buffer).to(self._device, copy=True)
        source = root if self._group is None else dist.get_global_rank(self._group, root)
        dist.broadcast(tensor, source, group=self._group)
        buffer[:] = tensor.cpu().numpy()

    def all_reduce(self, values: NDArray[np.int64], op: Fold) -> None:
        """See `Bootstrap.all_reduce`."""
        import torch
        import torch.distributed as dist

        folds = {"sum": dist.ReduceOp.SUM, "min": dist.ReduceOp.MIN, "max": dist.ReduceOp.MAX}
        tensor = torch.from_numpy(values).to(self._device, copy=True)
        dist.all_reduce(tensor, op=folds[op], group=self._group)
        values[:] = tensor.cpu().numpy()
