"""Sparse arrays in the face of CuPy: results of `hocket.sparse` are written into CuPy's
placeholders.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Optional

import hocket
from hocket import sparse
from hocket.errors import InvalidArgument

from ._errors import RefusedCall, as_kind

holds_sparse = sparse.holds_sparse


@contextmanager
def _translated() -> Iterator[None]:
    """Make a context that raises the class of error that CuPy raises for refused arguments."""
    try:
        yield
    except InvalidArgument as error:
        raise as_kind(RefusedCall, error) from None


class SparseCalls:
    """The calls of `NCCLBackend` on sparse arrays, or lists of sparse arrays.

    Outputs are placeholders. A call replaces a placeholder's contents and shape, and appends to
    lists.
    """

    def __init__(self, comm: hocket.Communicator) -> None:
        self._comm = comm

    def all_reduce(self, in_array: Any, out_array: Any, op: str, stream: Any) -> None:
        with _translated():
            sparse.assign(out_array, sparse.all_reduce(self._comm, in_array, op, stream=stream))

    def reduce(self, in_array: Any, out_array: Any, root: int, op: str, stream: Any) -> None:
        with _translated():
            result = sparse.reduce(self._comm, in_array, op, root, stream=stream)
            if result is not None:
                sparse.assign(out_array, result)

    def reduce_scatter(
        self, in_array: Any, out_array: Any, count: int, op: str, stream: Any
    ) -> None:
        with _translated():
            sparse.assign(out_array, sparse.reduce_scatter(self._comm, in_array, op, stream=stream))

    def broadcast(self, in_out_array: Any, root: int, stream: Any) -> None:
        with _translated():
            result = sparse.broadcast(self._comm, in_out_array, root, stream=stream)
            if self._comm.rank != root:
                sparse.assign(in_out_array, result)

    def all_gather(self, in_array: Any, out_array: list[Any], count: int, stream: Any) -> None:
        with _translated():
            out_array.extend(sparse.all_gather(self._comm, in_array, stream=stream))

    def gather(self, in_array: Any, out_array: list[Any], root: int, stream: Any) -> None:
        with _translated():
            result = sparse.gather(self._comm, in_array, root, stream=stream)
            if result is not None:
                out_array.extend(result)

    def scatter(self, in_array: Optional[Any], out_array: Any, root: int, stream: Any) -> None:
        with _translated():
            result = sparse.scatter(self._comm, in_array, root, like=out_array, stream=stream)
            sparse.assign(out_array, result)

    def all_to_all(self, in_array: Any, out_array: list[Any], stream: Any) -> None:
        with _translated():
            out_array.extend(sparse.all_to_all(self._comm, in_array, stream=stream))

    def send(self, array: Any, peer: int, stream: Any) -> None:
        with _translated():
            sparse.send(self._comm, array, peer, stream=stream)

    def recv(self, out_array: Any, peer: int, stream: Any) -> None:
        with _translated():
            sparse.assign(out_array, sparse.recv(self._comm, peer, like=out_array, stream=stream))

    def send_recv(self, in_array: Any, out_array: Any, peer: int, stream: Any) -> None:
        with _translated():
            result = sparse.send_recv(self._comm, in_array, peer, like=out_array, stream=stream)
            sparse.assign(out_array, result)
