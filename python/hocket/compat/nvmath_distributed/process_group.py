"""Process groups, with which a program sets up the runtime."""

from __future__ import annotations

import functools
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from enum import IntEnum
from typing import Any, Literal, Optional, TypeVar, Union

import numpy as np

from ...bootstrap import Bootstrap, Fold

__all__ = [
    "HocketProcessGroup",
    "MPIProcessGroup",
    "MsgSizeError",
    "ProcessGroup",
    "ReductionOp",
    "TorchProcessGroup",
]

T = TypeVar("T")


class ReductionOp(IntEnum):
    """The operation of `ProcessGroup.allreduce_buffer` on two elements."""

    SUM = 0
    MIN = 1
    MAX = 2


class MsgSizeError(Exception):
    """nvmath's error if an object is larger than a message may be. hocket's groups never raise it.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class ProcessGroup(ABC):
    """A set of processes. It is used to set up the runtime, and never to compute. Derive a class
    from it.
    """

    @property
    @abstractmethod
    def rank(self) -> int:
        """This process's number, from 0."""

    @property
    @abstractmethod
    def nranks(self) -> int:
        """Number of processes."""

    @abstractmethod
    def broadcast_buffer(self, array: np.ndarray, *, root: int = 0) -> None:
        """Overwrite a NumPy array with the root's array."""

    @abstractmethod
    def allreduce_buffer(self, array: np.ndarray, *, op: ReductionOp) -> None:
        """Reduce a NumPy array in place, element by element."""

    @abstractmethod
    def allreduce_object(self, obj: T, *, op: Callable[[T, T], T]) -> T:
        """Fold the processes' objects by a function of two objects. All processes get the result.
        """


class GroupBootstrap(Bootstrap):
    """Makes a bootstrap of hocket from any process group."""

    def __init__(self, group: ProcessGroup) -> None:
        self._group = group

    @property
    def rank(self) -> int:
        """See `Bootstrap.rank`."""
        return int(self._group.rank)

    @property
    def size(self) -> int:
        """See `Bootstrap.size`."""
        return int(self._group.nranks)

    def broadcast(self, buffer: Any, root: int) -> None:
        """See `Bootstrap.broadcast`. It sends int8, because not all groups support uint8."""
        copy = buffer.view(np.int8).copy()
        self._group.broadcast_buffer(copy, root=root)
        buffer[:] = copy.view(np.uint8)

    def all_reduce(self, values: Any, op: Fold) -> None:
        """See `Bootstrap.all_reduce`."""
        copy = values.copy()
        self._group.allreduce_buffer(copy, op=ReductionOp[op.upper()])
        values[:] = copy


class MPIProcessGroup(ProcessGroup):
    """The processes of a communicator of mpi4py."""

    def __init__(self, mpi_comm: Any) -> None:
        self._mpi_comm = mpi_comm

    @property
    def rank(self) -> int:
        """This process's number in the communicator."""
        return int(self._mpi_comm.Get_rank())

    @property
    def nranks(self) -> int:
        """Number of processes in the communicator."""
        return int(self._mpi_comm.Get_size())

    def broadcast_buffer(self, array: np.ndarray, *, root: int = 0) -> None:
        """See `ProcessGroup.broadcast_buffer`."""
        self._mpi_comm.Bcast(array, root=root)

    def allreduce_buffer(self, array: np.ndarray, *, op: ReductionOp) -> None:
        """See `ProcessGroup.allreduce_buffer`."""
        from mpi4py import MPI

        ops = {ReductionOp.SUM: MPI.SUM, ReductionOp.MIN: MPI.MIN, ReductionOp.MAX: MPI.MAX}
        self._mpi_comm.Allreduce(MPI.IN_PLACE, array, ops[op])

    def allreduce_object(self, obj: T, *, op: Callable[[T, T], T]) -> T:
        """See `ProcessGroup.allreduce_object`."""
        result: T = self._mpi_comm.allreduce(obj, op=op)
        return result


class TorchProcessGroup(ProcessGroup):
    """The processes of a group of torch.distributed.

    Parameters
    ----------
    device_id : int or "cpu"
        Device on which the group's backend needs its tensors.
    torch_process_group : torch.distributed.ProcessGroup, optional
        By default torch.distributed's default group.
    """

    MIN_ALL_REDUCE_OBJ_BUFFER_SIZE = 128

    def __init__(
        self,
        *,
        device_id: Union[int, Literal["cpu"]],
        torch_process_group: Any = None,
        logger: Optional[logging.Logger] = None,
    ) -> None:
        import torch
        import torch.distributed as dist

        if not isinstance(device_id, int) and device_id != "cpu":
            raise ValueError("device_id must be int or 'cpu'")
        if not dist.is_initialized():
            raise RuntimeError("torch.distributed is not initialized")
        backend = dist.get_backend(torch_process_group)
        if backend in ("nccl", "xccl") and device_id == "cpu":
            raise ValueError(
                f"This process group is using a GPU-only backend ({backend}), but the provided "
                "device_id is 'cpu'"
            )
        self.logger: logging.Logger = logging.getLogger() if logger is None else logger
        self._device_id = device_id
        self._device = torch.device("cpu" if device_id == "cpu" else f"cuda:{device_id}")
        self._torch_process_group = torch_process_group
        self.allreduce_obj_buffer_size = 2048

    @property
    def allreduce_obj_buffer_size(self) -> int:
        """The initial size of nvmath's messages in `allreduce_object`. It has no effect here."""
        return self._allreduce_obj_buffer_size

    @allreduce_obj_buffer_size.setter
    def allreduce_obj_buffer_size(self, value: int) -> None:
        if not isinstance(value, int) or value < self.MIN_ALL_REDUCE_OBJ_BUFFER_SIZE:
            raise ValueError(f"Buffer size must be >= {self.MIN_ALL_REDUCE_OBJ_BUFFER_SIZE}")
        self._allreduce_obj_buffer_size = value

    @property
    def device_id(self) -> Union[int, Literal["cpu"]]:
        """Device on which the group's backend needs its tensors."""
        return self._device_id

    @property
    def rank(self) -> int:
        """This process's number in the group."""
        import torch.distributed as dist

        return int(dist.get_rank(group=self._torch_process_group))

    @property
    def nranks(self) -> int:
        """Number of processes in the group."""
        import torch.distributed as dist

        return int(dist.get_world_size(group=self._torch_process_group))

    def broadcast_buffer(self, array: np.ndarray, *, root: int = 0) -> None:
        """See `ProcessGroup.broadcast_buffer`."""
        import torch
        import torch.distributed as dist

        tensor = torch.from_numpy(array).to(self._device)
        group = self._torch_process_group
        source = root if group is None else dist.get_global_rank(group, root)
        dist.broadcast(tensor, source, group=group)
        array[...] = tensor.cpu().numpy()

    def allreduce_buffer(self, array: np.ndarray, *, op: ReductionOp) -> None:
        """See `ProcessGroup.allreduce_buffer`."""
        import torch
        import torch.distributed as dist

        ops = {
            ReductionOp.SUM: dist.ReduceOp.SUM,
            ReductionOp.MIN: dist.ReduceOp.MIN,
            ReductionOp.MAX: dist.ReduceOp.MAX,
        }
        tensor = torch.from_numpy(array).to(self._device)
        dist.all_reduce(tensor, op=ops[op], group=self._torch_process_group)
        array[...] = tensor.cpu().numpy()

    def allreduce_object(self, obj: T, *, op: Callable[[T, T], T]) -> T:
        """See `ProcessGroup.allreduce_object`. Folds in the order of the ranks."""
        import torch
        import torch.distributed as dist

        everybody: list[Any] = [None] * self.nranks
        on_device: Any = torch.cuda.device(self._device) if self._device_id != "cpu" else (
            nullcontext()
        )
        with on_device:
            dist.all_gather_object(everybody, obj, group=self._torch_process_group)
        result: T = functools.reduce(op, everybody)
        return result


class HocketProcessGroup(ProcessGroup):
    """The processes of a communicator of hocket.

    Parameters
    ----------
    comm : hocket.Communicator
        A world or a part of it, such as the result of ``hocket.init()``.
    """

    def __init__(self, comm: Any) -> None:
        self._comm = comm

    @property
    def rank(self) -> int:
        """This process's number in the communicator."""
        return int(self._comm.rank)

    @property
    def nranks(self) -> int:
        """Number of processes in the communicator."""
        return int(self._comm.size)

    def broadcast_buffer(self, array: np.ndarray, *, root: int = 0) -> None:
        """See `ProcessGroup.broadcast_buffer`."""
        self._comm.broadcast(array, root=root)

    def allreduce_buffer(self, array: np.ndarray, *, op: ReductionOp) -> None:
        """See `ProcessGroup.allreduce_buffer`."""
        self._comm.all_reduce(array, op=ReductionOp(op).name.lower())

    def allreduce_object(self, obj: T, *, op: Callable[[T, T], T]) -> T:
        """See `ProcessGroup.allreduce_object`. Folds in the order of the ranks.

        Objects that hocket cannot encode are pickled.
        """
        everybody = self._comm.all_gather_object(obj, allow_pickle=True)
        result: T = functools.reduce(op, everybody)
        return result
