"""``cupyx.distributed.NCCLBackend``: CuPy's interface and behaviour, over hocket."""

from __future__ import annotations

import importlib.util
import math
from typing import Any, NoReturn, Optional

import numpy as np

import hocket
from hocket._calls.types import Op
from hocket.errors import InvalidArgument

from . import _meeting, _store
from ._errors import RefusedCall, RefusedType, as_kind
from ._sparse import SparseCalls, holds_sparse

_mpi_available = importlib.util.find_spec("mpi4py") is not None

_OPS = frozenset(("sum", "prod", "max", "min"))


class NCCLBackend:
    """The communicator of one process.

    Arrays are those of NumPy or CuPy, sparse arrays of SciPy or CuPy, or any other arrays that
    hocket accepts. A call on host arrays has finished when it returns. A call on GPU arrays is put
    on `stream`, by default on the current stream. Every call returns None.

    Arguments that must agree on all ranks are checked, and a refused call raises on all ranks. The
    error is a ValueError. If CuPy raises RuntimeError or TypeError in this case, the error is also
    one of these.

    Parameters
    ----------
    n_devices : int
        Number of processes that take part.
    rank : int
        This process's number, from 0.
    host, port
        Address at which rank 0 serves.
    use_mpi : bool
        True: the processes meet by mpi4py's COMM_WORLD instead.
    """

    def __init__(
        self,
        n_devices: int,
        rank: int,
        host: str = _store._DEFAULT_HOST,
        port: int = _store._DEFAULT_PORT,
        use_mpi: bool = False,
    ) -> None:
        self._use_mpi = bool(use_mpi)
        if use_mpi:
            self._adopt(_meeting.by_mpi(n_devices, rank))
        else:
            self._adopt(_meeting.by_store(n_devices, rank, host, port))
        _meeting.acquaint(self._comm)

    @classmethod
    def over(cls, comm: hocket.Communicator) -> NCCLBackend:
        """Wrap an existing communicator of hocket."""
        backend = cls.__new__(cls)
        backend._use_mpi = False
        backend._adopt(comm)
        return backend

    def _adopt(self, comm: hocket.Communicator) -> None:
        self._comm = comm
        self._n_devices = comm.size
        self.rank: int = comm.rank
        # Types that are known to be neither sparse arrays nor lists.
        self._dense: set[type] = set()
        self._sparse = SparseCalls(comm)

    def stop(self) -> None:
        """End this communicator. Local; it may be called again."""
        self._comm.close()

    # --- Reductions ---------------------------------------------------------------------------
    def all_reduce(
        self, in_array: Any, out_array: Any, op: Op = "sum", stream: Any = None
    ) -> None:
        """Reduce over all ranks; every rank gets the result.

        Parameters
        ----------
        in_array, out_array : array
            Both have the same number of elements, dtype and order.
        op : str
            "sum", "prod", "max" or "min". Complex numbers support only "sum".
        stream : optional
            The GPU's stream; by default the current stream.
        """
        if type(in_array) not in self._dense and self._is_sparse(in_array):
            return self._sparse.all_reduce(in_array, out_array, op, stream)
        if op != "sum":
            self._check_op(in_array, op)
        try:
            self._comm.all_reduce(in_array, out_array, op, None, stream)
        except InvalidArgument as error:
            self._translate(error, in_array, out_array)

    def reduce(
        self,
        in_array: Any,
        out_array: Any,
        root: int = 0,
        op: Op = "sum",
        stream: Any = None,
    ) -> None:
        """Reduce over all ranks. Only the root gets the result; other ranks' `out_array` is
        ignored.

        The parameters are as in `all_reduce`.
        """
        if type(in_array) not in self._dense and self._is_sparse(in_array):
            return self._sparse.reduce(in_array, out_array, root, op, stream)
        if op != "sum":
            self._check_op(in_array, op)
        if out_array is None and self.rank == root:
            self._refuse("out_array is None at the root, expected an array")
        try:
            self._comm.reduce(in_array, out_array, root, op, None, stream)
        except InvalidArgument as error:
            self._translate(error, in_array, out_array)

    def reduce_scatter(
        self,
        in_array: Any,
        out_array: Any,
        count: int,
        op: Op = "sum",
        stream: Any = None,
    ) -> None:
        """Reduce over all ranks; rank r gets the r-th `count` elements of the result.

        Parameters
        ----------
        in_array : array
            At least n_devices * count elements.
        out_array : array
            At least count elements.
        count : int
            Number of elements of a rank's share.
        op, stream
            As for `all_reduce`.
        """
        if type(in_array) not in self._dense and self._is_sparse(in_array):
            return self._sparse.reduce_scatter(in_array, out_array, count, op, stream)
        if op != "sum":
            self._check_op(in_array, op)
        try:
            self._comm.reduce_scatter(
                self._first(in_array, self._n_devices * count, "in_array"),
                self._first(out_array, count, "out_array"),
                op,
                None,
                stream,
            )
        except InvalidArgument as error:
            self._translate(error, in_array, out_array)

    # --- Movement -----------------------------------------------------------------------------
    def broadcast(self, in_out_array: Any, root: int = 0, stream: Any = None) -> None:
        """Send the root's array to all ranks, in place."""
        if type(in_out_array) not in self._dense and self._is_sparse(in_out_array):
            return self._sparse.broadcast(in_out_array, root, stream)
        try:
            self._comm.broadcast(in_out_array, root, None, stream)
        except InvalidArgument as error:
            self._translate(error, in_out_array)

    def all_gather(self, in_array: Any, out_array: Any, count: int, stream: Any = None) -> None:
        """Collect the first `count` elements of every rank on every rank.

        Parameters
        ----------
        in_array : array
            At least count elements.
        out_array : array
            At least n_devices * count elements, rank after rank.
        count : int
            Number of elements of a rank's share.
        """
        if type(in_array) not in self._dense and self._is_sparse(in_array):
            return self._sparse.all_gather(in_array, out_array, count, stream)
        try:
            self._comm.all_gather(
                self._first(in_array, count, "in_array"),
                self._first(out_array, self._n_devices * count, "out_array"),
                None,
                stream,
            )
        except InvalidArgument as error:
            self._translate(error, in_array, out_array)

    def gather(self, in_array: Any, out_array: Any, root: int = 0, stream: Any = None) -> None:
        """Collect every rank's array at the root: `out_array[r]` is rank r's.

        At other ranks `out_array` may be None.
        """
        if type(in_array) not in self._dense and self._is_sparse(in_array):
            return self._sparse.gather(in_array, out_array, root, stream)
        if out_array is not None or self.rank == root:
            self._check_leading(out_array, "out_array")
        try:
            self._comm.gather(in_array, out_array, root, None, stream)
        except InvalidArgument as error:
            self._translate(error, in_array, out_array)

    def scatter(self, in_array: Any, out_array: Any, root: int = 0, stream: Any = None) -> None:
        """Distribute the entries of the root's array: rank r gets `in_array[r]`.

        At other ranks `in_array` may be None.
        """
        if type(in_array) not in self._dense and self._is_sparse(in_array):
            return self._sparse.scatter(in_array, out_array, root, stream)
        if in_array is not None or self.rank == root:
            self._check_leading(in_array, "in_array")
        elif holds_sparse(out_array):
            return self._sparse.scatter(None, out_array, root, stream)
        try:
            self._comm.scatter(in_array, out_array, root, None, stream)
        except InvalidArgument as error:
            self._translate(error, in_array, out_array)

    def all_to_all(self, in_array: Any, out_array: Any, stream: Any = None) -> None:
        """Send `in_array[r]` to rank r, and receive `out_array[r]` from rank r."""
        if type(in_array) not in self._dense and self._is_sparse(in_array):
            return self._sparse.all_to_all(in_array, out_array, stream)
        self._check_leading(in_array, "in_array")
        self._check_leading(out_array, "out_array")
        try:
            self._comm.all_to_all(in_array, out_array, None, stream)
        except InvalidArgument as error:
            self._translate(error, in_array, out_array)

    # --- Between two ranks ----------------------------------------------------------------------
    def send(self, array: Any, peer: int, stream: Any = None) -> None:
        """Send an array to rank `peer`."""
        if type(array) not in self._dense and self._is_sparse(array):
            return self._sparse.send(array, peer, stream)
        try:
            self._comm.send(array, peer, 0, None, stream)
        except InvalidArgument as error:
            self._translate(error, array)

    def recv(self, out_array: Any, peer: int, stream: Any = None) -> None:
        """Receive an array from rank `peer`."""
        if type(out_array) not in self._dense and self._is_sparse(out_array):
            return self._sparse.recv(out_array, peer, stream)
        try:
            self._comm.recv(out_array, peer, 0, None, stream)
        except InvalidArgument as error:
            self._translate(error, out_array)

    def send_recv(self, in_array: Any, out_array: Any, peer: int, stream: Any = None) -> None:
        """Send to rank `peer`, and receive from rank `peer` at the same time."""
        if type(in_array) not in self._dense and self._is_sparse(in_array):
            return self._sparse.send_recv(in_array, out_array, peer, stream)
        try:
            self._comm.send_recv(in_array, peer, out_array, peer, 0, None, stream)
        except InvalidArgument as error:
            self._translate(error, in_array, out_array)

    def barrier(self) -> None:
        """Wait until the processes of all ranks have made this call."""
        self._comm.barrier()

    # --- What calls share -----------------------------------------------------------------------
    def _is_sparse(self, array: Any) -> bool:
        """Return whether an argument is sparse. It is called only if the argument's type is not
        known to be dense.
        """
        if holds_sparse(array):
            return True
        if not isinstance(array, (list, tuple)):
            self._dense.add(type(array))
        return False

    def _check_op(self, array: Any, op: Op) -> None:
        if op not in _OPS:
            self._refuse(f'op is {op!r}, expected "sum", "prod", "max" or "min"')
        if _is_complex(array):
            self._refuse(
                f'op is "{op}" on complex numbers, expected "sum"; or reduce real and imaginary '
                "parts apart",
                InvalidArgument,
            )

    def _check_leading(self, array: Any, name: str) -> None:
        shape: Optional[tuple[int, ...]] = getattr(array, "shape", None)
        if not shape or shape[0] != self._n_devices:
            found = f"shape {shape}" if shape is not None else f"a {type(array).__name__}"
            self._refuse(
                f"{name} needs {self._n_devices} entries along its first axis, one a rank; "
                f"found {found}"
            )

    def _first(self, array: Any, count: int, name: str) -> Any:
        """Return the array's first `count` elements. If it has exactly `count` elements, return it
        as it is.
        """
        size = getattr(array, "size", None)
        if size == count:
            return array
        if count < 0:
            self._refuse(f"count is {count}, expected at least 0")
        if not isinstance(size, int):  # PyTorch's `size` is a method, and buffers have no size
            array = array if hasattr(array, "reshape") else np.asarray(memoryview(array))
            size = math.prod(array.shape)
        if size < count:
            self._refuse(f"{name} has {size} elements, expected at least {count} (by count)")
        if size == count:
            return array
        if not _is_c_contiguous(array):
            self._refuse(f"{name} is cut by count and not contiguous in C order; pass a copy")
        return array.reshape(-1)[:count]

    def _refuse(
        self, message: str, kind: type[InvalidArgument] = RefusedCall
    ) -> NoReturn:
        """Raise the error on this rank, and on the other ranks, which are in the same call."""
        try:
            self._comm.refuse(message)
        except InvalidArgument as error:
            raise as_kind(kind, error) from None

    def _translate(self, error: InvalidArgument, *arrays: Any) -> NoReturn:
        """Raise the class of error that CuPy raises for the arguments, which hocket has refused."""
        if type(error) is not InvalidArgument:
            raise error
        foreign = any(map(_has_foreign_dtype, arrays))
        raise as_kind(RefusedType if foreign else RefusedCall, error) from None


def _get_nccl_dtype_and_count(array: Any, count: Optional[int] = None) -> tuple[int, int]:
    """Return NCCL's number for an array's dtype, and the number of elements that NCCL counts.
    CuPy's DistributedArray uses it, because it calls NCCL directly.
    """
    from cupy.cuda import nccl

    dtype = array.dtype
    real, parts = (np.dtype(f"f{dtype.itemsize // 2}"), 2) if dtype.kind == "c" else (dtype, 1)
    kind = {"i": "INT", "u": "UINT", "f": "FLOAT"}.get(real.kind)
    number = getattr(nccl, f"NCCL_{kind}{8 * real.itemsize}", None)
    if number is None:
        raise TypeError(f"Unknown dtype {dtype} for NCCL")
    return number, parts * (array.size if count is None else count)


# dtypes of NumPy and CuPy have the attribute `kind`; PyTorch's dtypes do not have it.
def _is_complex(array: Any) -> bool:
    dtype = getattr(array, "dtype", None)
    return getattr(dtype, "kind", "") == "c" or bool(getattr(dtype, "is_complex", False))


def _has_foreign_dtype(array: Any) -> bool:
    dtype: Any = getattr(array, "dtype", None)
    kind = getattr(dtype, "kind", None)
    return kind is not None and kind in "OSUMmV" and dtype.names is None


def _is_c_contiguous(array: Any) -> bool:
    if hasattr(array, "is_contiguous"):  # PyTorch
        return bool(array.is_contiguous())
    return bool(array.flags.c_contiguous)
