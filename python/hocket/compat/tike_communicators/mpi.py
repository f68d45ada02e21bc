"""tike.communicators.mpi: MPIComm over hocket's communicator, with or without MPI."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Optional

import numpy as np

from ... import Communicator, init
from ..._arrays.kinds import is_on_gpu
from ...errors import InvalidArgument
from ._module import array_module

__all__ = ["MPIComm", "MPIio", "NoMPIComm", "combined_shape"]


def combined_shape(shapes: Sequence[tuple[int, ...]], axis: Optional[int] = 0) -> list[int]:
    """Return the shape of arrays of `shapes` concatenated along `axis`. None stacks on a new first
    axis.

    >>> combined_shape([(5, 2, 3), (1, 2, 3)], axis=0)
    [6, 2, 3]
    """
    first = shapes[0]
    for shape in shapes[1:]:
        if len(shape) != len(first):
            raise ValueError("All shapes must have the same number of dimensions")
        if any(a != b for i, (a, b) in enumerate(zip(first, shape)) if i != axis):
            raise ValueError("All dimensions except for the named `axis` must be equal")
    if axis is None:
        return [len(shapes), *first]
    return [n if i != axis else sum(shape[i] for shape in shapes) for i, n in enumerate(first)]


class MPIio:
    """Selects the part of the data that a process reads."""

    rank: int
    size: int

    def MPIio_ptycho(self, scan: Any, *args: Any) -> tuple[Any, ...]:
        """Return this process's stripe of the scan positions, along their first coordinate, and of
        args.
        """
        edges = np.linspace(scan[..., 0].min(), scan[..., 0].max(), self.size + 1)
        edges[0] -= 1  # so that the first stripe includes the lowest point
        edges[-1] += 1
        mask = np.logical_and(edges[self.rank] < scan[:, 0], scan[:, 0] <= edges[self.rank + 1])
        return (scan[mask], *(arg[mask] for arg in args))

    def MPIio_lamino(self, *args: Any, axis: int = 0) -> tuple[Any, ...]:
        """Return this process's part of each array, split along `axis`."""
        return tuple(np.array_split(arg, self.size, axis=axis)[self.rank] for arg in args)


def _require(sendbuf: Any, name: str) -> Any:
    if sendbuf is None:
        raise ValueError(f"{name} data can't be empty.")
    return sendbuf if is_on_gpu(sendbuf) else np.asarray(sendbuf)


class NoMPIComm(MPIio):
    """The communicator of a single process."""

    def __init__(self) -> None:
        self.rank: int = 0
        self.size: int = 1

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def _telling(self) -> AbstractContextManager[None]:
        """See `MPIComm._telling`. There is no other process."""
        return nullcontext()

    def p2p(self, sendbuf: Any, src: int = 0, dest: int = 0, tg: int = 0, **_: Any) -> Any:
        """Return the data."""
        return _require(sendbuf, "Send")

    def bcast(self, sendobj: Any, root: int = 0) -> Any:
        """Return the object."""
        return sendobj

    def Bcast(self, sendbuf: Any, root: int = 0) -> Any:
        """Return the data."""
        return _require(sendbuf, "Broadcast")

    def Gather(self, sendbuf: Any, axis: Optional[int] = 0, root: int = 0) -> Any:
        """Return the data. If `axis` is None, it gets a new first axis."""
        sendbuf = _require(sendbuf, "Gather")
        return sendbuf[None, ...] if axis is None else sendbuf

    def Scatter(self, sendbuf: Any, src: int = 0) -> Any:
        """Return the data."""
        return _require(sendbuf, "Scatter")

    def Allreduce(self, sendbuf: Any, op: Any = None) -> Any:
        """Return the data."""
        return _require(sendbuf, "Allreduce")

    def Allgather(self, sendbuf: Any, axis: Optional[int] = 0) -> Any:
        """Return the data. If `axis` is None, it gets a new first axis."""
        return self.Gather(_require(sendbuf, "Allgather"), axis)


@functools.lru_cache(maxsize=None)
def _world() -> Communicator:
    """Return the communicator of all processes of the job. The first MPIComm joins the job."""
    return init()


def _op_name(op: Any) -> Any:
    """Return hocket's name of an operator: a name, an operator of mpi4py, or None for the sum."""
    if op is None or isinstance(op, str):
        return op or "sum"
    mpi = sys.modules.get("mpi4py.MPI")
    names = {"SUM": "sum", "PROD": "product", "MIN": "min", "MAX": "max", "BAND": "band",
             "BOR": "bor", "BXOR": "bxor"}
    for theirs, ours in names.items():
        if mpi is not None and op == getattr(mpi, theirs):
            return ours
    raise ValueError(f"op is {op!r}, expected one of mpi4py's {', '.join(names)}")


class MPIComm(NoMPIComm):
    """All processes of a job: of `hocket run`, mpiexec, torchrun or Slurm, or a single process.

    Arrays may lie on GPUs; this needs no environment variable.

    Parameters
    ----------
    comm : hocket.Communicator, optional
        A part of the job's processes. By default all processes.
    """

    def __init__(self, comm: Optional[Communicator] = None) -> None:
        self.comm: Communicator = _world() if comm is None else comm
        self.rank: int = self.comm.rank
        self.size: int = self.comm.size

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Make a context for this process's own part of a collective call, before it communicates.

        An error in the context ends the call on all processes. The other processes would otherwise
        wait until their deadlines. They raise `InvalidArgument`, which is a `ValueError`.
        """
        try:
            yield
        except Exception as error:
            try:
                self.comm.refuse(str(error))
            except InvalidArgument as refused:
                if isinstance(error, ValueError):
                    raise refused from error
            raise

    def p2p(self, sendbuf: Any, src: int = 0, dest: int = 1, tg: int = 0, **_: Any) -> Any:
        """Send an array from one process to another, which returns it. Other processes return None.

        At the receiver, `sendbuf` gives only the shape and dtype of the message.
        """
        sendbuf = _require(sendbuf, "Send")
        if src == dest:
            return sendbuf if self.rank == src else None
        if self.rank == src:
            self.comm.send(_contiguous(sendbuf), dest, tag=tg)
        if self.rank != dest:
            return None
        recvbuf = _new(sendbuf, sendbuf.shape)
        self.comm.recv(recvbuf, src, tag=tg)
        return recvbuf

    def bcast(self, sendobj: Any, root: int = 0) -> Any:
        """Send a Python object to all processes. Objects that hocket cannot encode are pickled."""
        return self.comm.broadcast_object(sendobj, root=root, allow_pickle=True)

    def Bcast(self, sendbuf: Any, root: int = 0) -> Any:
        """Send an array to all processes. Each process passes an array of its shape and dtype."""
        with self._telling():
            sendbuf = _require(sendbuf, "Broadcast")
        here = _contiguous(sendbuf) if self.rank == root else _new(sendbuf, sendbuf.shape)
        # CuPy's flags do not have `writeable`, because its arrays are always writable.
        if self.rank == root and not getattr(here.flags, "writeable", True):
            here = here.copy()
        self.comm.broadcast(here, root=root)
        return sendbuf if self.rank == root else here

    def Gather(self, sendbuf: Any, axis: Optional[int] = 0, root: int = 0) -> Any:
        """Concatenate the processes' arrays at the root. Return None on other processes."""
        with self._telling():
            sendbuf = _check_axis(_require(sendbuf, "Gather"), axis)
        shapes = self._shapes(sendbuf, axis)
        flat = self.comm.gather_v(_contiguous(sendbuf).reshape(-1), counts=_sizes(shapes), root=root)
        return _merge(flat, shapes, axis) if self.rank == root else None

    def Allgather(self, sendbuf: Any, axis: Optional[int] = 0) -> Any:
        """Concatenate the processes' arrays on all processes. They may differ in length along
        `axis`.
        """
        with self._telling():
            sendbuf = _check_axis(_require(sendbuf, "Allgather"), axis)
        shapes = self._shapes(sendbuf, axis)
        flat = self.comm.all_gather_v(_contiguous(sendbuf).reshape(-1), counts=_sizes(shapes))
        return _merge(flat, shapes, axis)

    def _shapes(self, sendbuf: Any, axis: Optional[int]) -> list[tuple[int, ...]]:
        shapes = [tuple(shape) for shape in self.comm.all_gather_object(tuple(sendbuf.shape))]
        # All ranks have the same shapes, so all raise the same error, before any rank sends its data.
        combined_shape(shapes, None if axis is None else axis % sendbuf.ndim)
        return shapes

    def Scatter(self, sendbuf: Any, src: int = 0) -> Any:
        """Split the array of `src` equally along its first axis. Every process passes an array of
        the same shape and dtype; only that of `src` is read.
        """
        with self._telling():
            sendbuf = _require(sendbuf, "Scatter")
            if sendbuf.ndim == 0 or len(sendbuf) % self.size != 0:
                raise ValueError(
                    f"sendbuf has shape {sendbuf.shape}, whose first axis does not divide among "
                    f"{self.size} processes"
                )
        part = _new(sendbuf, (len(sendbuf) // self.size, *sendbuf.shape[1:]))
        self.comm.scatter(_contiguous(sendbuf) if self.rank == src else None, out=part, root=src)
        return part

    def Allreduce(self, sendbuf: Any, op: Any = None) -> Any:
        """Reduce the processes' arrays on all processes. Return a new array."""
        with self._telling():
            sendbuf = _require(sendbuf, "Allreduce")
            name = _op_name(op)
        out = _new(sendbuf, sendbuf.shape)
        self.comm.all_reduce(_contiguous(sendbuf), out=out, op=name)
        return out


def _module_of(x: Any) -> Any:
    return array_module() if is_on_gpu(x) else np


def _contiguous(x: Any) -> Any:
    return x if x.flags.c_contiguous else _module_of(x).ascontiguousarray(x)


def _new(like: Any, shape: tuple[int, ...]) -> Any:
    return _module_of(like).empty(shape, like.dtype)


def _sizes(shapes: Sequence[tuple[int, ...]]) -> list[int]:
    return [int(np.prod(shape, dtype=int)) for shape in shapes]


def _check_axis(sendbuf: Any, axis: Optional[int]) -> Any:
    assert axis is None or sendbuf.ndim > 0, (
        "Cannot concatenate zero-dimensional arrays; use `axis=None`"
    )
    return sendbuf


def _merge(flat: Any, shapes: Sequence[tuple[int, ...]], axis: Optional[int]) -> Any:
    xp = _module_of(flat)
    ends = np.cumsum(_sizes(shapes))
    parts = [
        flat[end - size : end].reshape(shape)
        for end, size, shape in zip(ends.tolist(), _sizes(shapes), shapes)
    ]
    return xp.stack(parts) if axis is None else xp.concatenate(parts, axis=axis)
