"""Collectives on sparse arrays of SciPy and CuPy: CSR, CSC and COO, matrices and arrays.

>>> from hocket import sparse
>>> total = sparse.all_reduce(comm, matrix)          # a new matrix, on every rank
>>> parts = sparse.all_gather(comm, matrix)          # a list, rank after rank

Ranks may pass different numbers of entries, element types and index widths, and different shapes
unless the arrays are added. A small call first exchanges descriptions of all arrays. No rank leaves
this call before all ranks have come. A second call moves all contents. If a rank refuses an
argument or lacks memory, all ranks are told, and the communicator stays usable. Results are new
arrays, in the format, element type and index width of the sent array. They lie in the memory (host
or GPU) of this rank's own argument.

Every function takes the communicator first. ``deadline`` and ``stream`` have the same meaning as in
the communicator's methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from ._arrays.sparse_contents import (
    LENGTH,
    Description,
    Kind,
    Message,
    Sparse,
    assign,
    decode,
    holds_sparse,
    kind_of,
    lengths_of,
    make_message,
    make_messages,
    on,
    pack,
    unpack,
    unpack_all,
)
from ._calls.keywords import takes_either
from ._calls.refusals import announcing, collective
from ._calls.types import Stream, Timeout
from ._hocket import Communicator, _check_stream
from .errors import InvalidArgument

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "assign",
    "broadcast",
    "gather",
    "holds_sparse",
    "recv",
    "reduce",
    "reduce_scatter",
    "scatter",
    "send",
    "send_recv",
]

# --- Movement ---------------------------------------------------------------------------------
@collective
def broadcast(
    comm: Communicator,
    array: Sparse,
    root: int = 0,
    *,
    deadline: Timeout = None,
    stream: Stream = None,
) -> Sparse:
    """Send the root's array to all ranks.

    Parameters
    ----------
    comm : Communicator
    array : sparse array
        The array to send, at the root. On other ranks, any sparse array of the package (SciPy or
        CuPy) that the result is to have.
    root : int

    Returns
    -------
    sparse array
        At the root `array` itself, on other ranks a new array.

    Raises
    ------
    TypeError
        `array` is no sparse array in CSR, CSC or COO.
    """
    with announcing(comm):
        _check_root(comm, root)
        _check_stream(stream)
        kind = kind_of(array, "array")
        row = np.zeros(LENGTH, "int64")
        if comm.rank == root:
            message = make_message(array, "array")
            row[:] = message.description.encode()
    table = comm.all_gather(row, None, deadline)
    with on(stream, kind):
        with announcing(comm):
            description = decode(table[root])
            if comm.rank == root:
                packed, _ = pack([message], kind.xp)
            else:
                packed = kind.xp.empty(description.offsets[3], "uint8")
        comm.broadcast(packed, root, deadline, stream)
        return array if comm.rank == root else unpack(description, packed, kind)


@collective
def all_gather(
    comm: Communicator, array: Sparse, *, deadline: Timeout = None, stream: Stream = None
) -> list[Sparse]:
    """Return every rank's array, in rank order, on every rank."""
    message, kind, table = _describe(comm, array, deadline, stream)
    with on(stream, kind):
        with announcing(comm):
            packed, lengths = pack([message], kind.xp)[0], lengths_of(table)
        gathered = comm.all_gather_v(packed, None, lengths, deadline, stream)
        return unpack_all(table, gathered, kind)


@collective
def gather(
    comm: Communicator,
    array: Sparse,
    root: int = 0,
    *,
    deadline: Timeout = None,
    stream: Stream = None,
) -> Optional[list[Sparse]]:
    """Return every rank's array, in rank order, at the root; None on other ranks."""
    with announcing(comm):
        _check_root(comm, root)
    message, kind, table = _describe(comm, array, deadline, stream)
    return _gather(comm, message, kind, table, root, deadline, stream)


def _describe(
    comm: Communicator, array: Sparse, deadline: Timeout, stream: Stream
) -> tuple[Message, Kind, Any]:
    with announcing(comm):
        _check_stream(stream)
        kind = kind_of(array, "array")
        message = make_message(array, "array")
        row = message.description.encode()
    return message, kind, comm.all_gather(row, None, deadline)


def _check_root(comm: Communicator, root: int) -> None:
    if not isinstance(root, (int, np.integer)) or not 0 <= root < comm.size:
        raise InvalidArgument(f"root is {root!r}, expected a rank from 0 to {comm.size - 1}")


def _gather(
    comm: Communicator,
    message: Message,
    kind: Kind,
    table: Any,
    root: int,
    deadline: Timeout,
    stream: Stream,
) -> Optional[list[Sparse]]:
    with on(stream, kind):
        with announcing(comm):
            packed, lengths = pack([message], kind.xp)[0], lengths_of(table)
        gathered = comm.gather_v(packed, None, lengths, root, deadline, stream)
        return None if gathered is None else unpack_all(table, gathered, kind)


@collective
def scatter(
    comm: Communicator,
    arrays: Optional[Sequence[Sparse]],
    root: int = 0,
    *,
    like: Optional[Sparse] = None,
    deadline: Timeout = None,
    stream: Stream = None,
) -> Sparse:
    """Rank r gets ``arrays[r]`` of the root.

    Parameters
    ----------
    comm : Communicator
    arrays : sequence of sparse arrays
        At the root, one array for each rank. On other ranks it may be None.
    root : int
    like : sparse array, optional
        An array of the package that the result is to have, if `arrays` is None; SciPy by default.
    """
    packed, lengths = None, None
    with announcing(comm):
        _check_root(comm, root)
        _check_stream(stream)
        kind = _kind_like(arrays[0] if arrays else like)
        table = np.zeros((comm.size, LENGTH), "int64")
        if comm.rank == root:
            messages = make_messages(arrays, comm, "arrays")
            table[:] = [message.description.encode() for message in messages]
    came = comm.all_to_all(table, None, deadline)
    with on(stream, kind):
        with announcing(comm):
            description = decode(came[root])
            if comm.rank == root:
                packed, lengths = pack(messages, kind.xp)
            mine = kind.xp.empty(description.offsets[3], "uint8")
        comm.scatter_v(packed, mine, lengths, root, deadline, stream)
        return unpack(description, mine, kind)


def _kind_like(array: Optional[Sparse]) -> Kind:
    if array is not None:
        return kind_of(array, "like")
    import scipy.sparse

    return Kind(scipy.sparse, np)


@collective
def all_to_all(
    comm: Communicator,
    arrays: Sequence[Sparse],
    *,
    deadline: Timeout = None,
    stream: Stream = None,
) -> list[Sparse]:
    """Send ``arrays[r]`` to rank r. Returns the received arrays in the order of the ranks."""
    with announcing(comm):
        _check_stream(stream)
        messages = make_messages(arrays, comm, "arrays")
        kind = kind_of(arrays[0], "arrays[0]")
        own = np.array([message.description.encode() for message in messages])
    table = comm.all_to_all(own, None, deadline)
    with on(stream, kind):
        with announcing(comm):
            packed, lengths = pack(messages, kind.xp)
            came = lengths_of(table)
            received = kind.xp.empty(sum(came), "uint8")
        comm.all_to_all_v(packed, lengths, received, came, deadline, stream)
        return unpack_all(table, received, kind)


@takes_either
def send(
    comm: Communicator,
    array: Sparse,
    destination: int,
    tag: int = 0,
    *,
    deadline: Timeout = None,
    stream: Stream = None,
) -> None:
    """Send an array to one rank, which receives it by `recv`."""
    kind = kind_of(array, "array")
    message = make_message(array, "array")
    comm.send(message.description.encode(), destination, tag, deadline)
    with on(stream, kind):
        comm.send(pack([message], kind.xp)[0], destination, tag, deadline, stream)


@takes_either
def recv(
    comm: Communicator,
    source: int,
    tag: int = 0,
    *,
    like: Optional[Sparse] = None,
    deadline: Timeout = None,
    stream: Stream = None,
) -> Sparse:
    """Receive an array from one rank, or from `ANY_SOURCE`; for `like` see `scatter`."""
    kind = _kind_like(like)
    row = np.zeros(LENGTH, "int64")
    received = comm.recv(row, source, tag, deadline)
    description = decode(row)
    with on(stream, kind):
        packed = kind.xp.empty(description.offsets[3], "uint8")
        comm.recv(packed, received.source, received.tag, deadline, stream)
        return unpack(description, packed, kind)


@takes_either
def send_recv(
    comm: Communicator,
    array: Sparse,
    peer: int,
    tag: int = 0,
    *,
    like: Optional[Sparse] = None,
    deadline: Timeout = None,
    stream: Stream = None,
) -> Sparse:
    """Send to one rank, and receive from the same rank at the same time."""
    kind = kind_of(array if like is None else like, "array")
    message = make_message(array, "array")
    row = np.zeros(LENGTH, "int64")
    comm.send_recv(message.description.encode(), peer, row, peer, tag, deadline)
    description = decode(row)
    with on(stream, kind):
        packed = kind.xp.empty(description.offsets[3], "uint8")
        comm.send_recv(pack([message], kind.xp)[0], peer, packed, peer, tag, deadline, stream)
        return unpack(description, packed, kind)


# --- Reductions -------------------------------------------------------------------------------
@collective
def reduce(
    comm: Communicator,
    array: Sparse,
    op: str = "sum",
    root: int = 0,
    *,
    deadline: Timeout = None,
    stream: Stream = None,
) -> Optional[Sparse]:
    """Add or multiply the arrays of all ranks; the root gets the result, the others None.

    Parameters
    ----------
    comm : Communicator
    array : sparse array
        For a sum, all ranks pass arrays of one shape.
    op : str
        "sum", or "prod" (or "product"): the matrix product for matrices, the elementwise product
        for arrays (csr_array, ...). The root's array comes first, then those of the others in
        ascending order of ranks.
    root : int

    Raises
    ------
    InvalidArgument
        Raised on every rank: the shapes do not fit, or `op` is unknown.
    """
    message, kind, table, order = _describe_to_fold(comm, array, op, root, deadline, stream)
    arrays = _gather(comm, message, kind, table, root, deadline, stream)
    if arrays is None:
        return None
    with on(stream, kind):
        return _fold([arrays[rank] for rank in order], op, kind)


def _describe_to_fold(
    comm: Communicator, array: Sparse, op: str, root: int, deadline: Timeout, stream: Stream
) -> tuple[Message, Kind, Any, list[int]]:
    with announcing(comm):
        _check_op(op)
        _check_root(comm, root)
    message, kind, table = _describe(comm, array, deadline, stream)
    order = [root, *(rank for rank in range(comm.size) if rank != root)]
    with announcing(comm):
        _check_shapes([decode(row) for row in table], order, op)
    return message, kind, table, order


@collective
def all_reduce(
    comm: Communicator,
    array: Sparse,
    op: str = "sum",
    *,
    deadline: Timeout = None,
    stream: Stream = None,
) -> Sparse:
    """Like `reduce` to rank 0; every rank gets the result."""
    message, kind, table, order = _describe_to_fold(comm, array, op, 0, deadline, stream)
    with on(stream, kind):
        with announcing(comm):
            packed, lengths = pack([message], kind.xp)[0], lengths_of(table)
            room = kind.xp.empty(sum(lengths), "uint8") if comm.rank == 0 else None
        # A rank leaves gather_v as soon as it has sent its part, so a refusal of gather_v might not
        # reach it. The barrier waits until all ranks have passed their checks.
        comm.barrier(deadline)
        gathered = comm.gather_v(packed, room, lengths, 0, deadline, stream)
        if gathered is not None:
            with announcing(comm):  # the other ranks wait for this one in `broadcast`
                arrays = unpack_all(table, gathered, kind)
                array = _fold([arrays[rank] for rank in order], op, kind)
    return broadcast(comm, array, 0, deadline=deadline, stream=stream)


@collective
def reduce_scatter(
    comm: Communicator,
    arrays: Sequence[Sparse],
    op: str = "sum",
    *,
    deadline: Timeout = None,
    stream: Stream = None,
) -> Sparse:
    """Rank r gets the sum or product of all ranks' ``arrays[r]``, in rank order; see `reduce`."""
    with announcing(comm):
        _check_op(op)
        _check_stream(stream)
        messages = make_messages(arrays, comm, "arrays")
        own = np.array([message.description.encode() for message in messages])
    # Exchanges all descriptions, so that every rank refuses an array that one rank cannot add.
    every = comm.all_gather(own, None, deadline)
    with announcing(comm):
        for place in range(comm.size):
            _check_shapes([decode(table[place]) for table in every], range(comm.size), op)
    parts = all_to_all(comm, arrays, deadline=deadline, stream=stream)
    kind = kind_of(parts[0], "arrays[0]")
    with on(stream, kind):
        return _fold(parts, op, kind)


def _check_op(op: str) -> None:
    if op not in ("sum", "prod", "product"):
        raise InvalidArgument(f'op is {op!r}; sparse arrays take "sum" or "prod"')


def _check_shapes(descriptions: Sequence[Description], order: Sequence[int], op: str) -> None:
    """Raise the same error on all ranks, which have the same descriptions, if shapes do not fit."""
    first = descriptions[order[0]]
    columns = first.columns
    for rank in order[1:]:
        other = descriptions[rank]
        if op != "sum" and not first.is_array:
            fits, columns, expected = other.rows == columns, other.columns, f"{columns} rows"
        else:
            fits, expected = other.shape == first.shape, f"shape {first.shape}"
        if not fits:
            raise InvalidArgument(
                f"array has shape {other.shape} on rank {rank}, expected {expected} there to "
                f"{'add to' if op == 'sum' else 'be multiplied with'} that of rank {order[0]}"
            )


def _fold(arrays: Sequence[Sparse], op: str, kind: Kind) -> Sparse:
    if op == "sum" and _are_mostly_empty(arrays):
        return _sum_by_sorting(arrays, kind)
    result = arrays[0]
    wanted = result.format
    for other in arrays[1:]:
        if op == "sum":
            result = result + other
        else:
            result = result * other  # the matrix product for matrices, elementwise for arrays
    if result.format != wanted:
        result = result.asformat(wanted)
    return result


def _are_mostly_empty(arrays: Sequence[Sparse]) -> bool:
    """Return True if COO arrays have many more rows than entries. SciPy's addition takes time for
    each row.
    """
    rows = 8 * sum(array.nnz for array in arrays) + 1024
    return arrays[0].shape[0] > rows and all(array.format == "coo" for array in arrays)


def _sum_by_sorting(arrays: Sequence[Sparse], kind: Kind) -> Sparse:
    def joined(part: str) -> Any:
        return kind.xp.concatenate([getattr(array, part) for array in arrays])

    entries = joined("data"), (joined("row"), joined("col"))
    result = type(arrays[0])(entries, shape=arrays[0].shape)
    result.sum_duplicates()
    return result
