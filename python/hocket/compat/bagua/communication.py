"""``bagua.torch_api.communication``: Bagua's groups and functions over hocket.

Tensors lie on the CPU or on GPUs. Calls block, and run after the current stream's earlier work. If
`comm` is absent or `CommMember.WORLD`, the default group's global communicator is used. If this
process is no member of `comm`, a call returns at once and leaves its tensors unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from ._communicator import ReduceOp
from ._groups import (
    BaguaProcessGroup,
    Comm,
    CommMember,
    State,
    from_torch_group,
    get_backend,
    get_communicator,
    init_process_group,
    is_initialized,
    new_group,
    resolve,
)
from ._groups import get_default_group as _get_default_group  # noqa: F401: Bagua's name
from ._objects import decode, encode

__all__ = [
    "BaguaProcessGroup",
    "CommMember",
    "ReduceOp",
    "allgather",
    "allgather_inplace",
    "allow_pickle",
    "allreduce",
    "allreduce_coalesced_inplace",
    "allreduce_inplace",
    "alltoall",
    "alltoall_inplace",
    "alltoall_v",
    "alltoall_v_inplace",
    "barrier",
    "broadcast",
    "broadcast_coalesced",
    "broadcast_object",
    "from_torch_group",
    "gather",
    "gather_inplace",
    "get_backend",
    "get_communicator",
    "init_process_group",
    "is_initialized",
    "new_group",
    "recv",
    "reduce",
    "reduce_inplace",
    "reduce_scatter",
    "reduce_scatter_inplace",
    "scatter",
    "scatter_inplace",
    "send",
]


comm = CommMember  # Bagua has this name, too


def _call(comm: Comm, name: str, *arguments: Any) -> None:
    """Make a call of a communicator, and wait for it."""
    if (chosen := resolve(comm)) is not None:
        getattr(chosen, name)(*arguments)
        chosen.finish()


# --- Calls ------------------------------------------------------------------------------------
def send(tensor: Tensor, dst: int, comm: Comm = None) -> None:
    """Send a tensor to rank `dst`, which calls `recv`."""
    _call(comm, "send", tensor, dst)


def recv(tensor: Tensor, src: int, comm: Comm = None) -> None:
    """Receive a tensor from rank `src`."""
    _call(comm, "recv", tensor, src)


def broadcast(tensor: Tensor, src: int = 0, comm: Comm = None) -> None:
    """Send the tensor of rank `src` to all ranks."""
    _call(comm, "broadcast", tensor, src)


def broadcast_coalesced(tensors: Sequence[Tensor], src: int = 0, comm: Comm = None) -> None:
    """Do `broadcast` of each tensor, in one call."""
    _call(comm, "broadcast_coalesced", tensors, src)


def reduce(
    send_tensor: Tensor, recv_tensor: Tensor, dst: int, op: int = ReduceOp.SUM, comm: Comm = None
) -> None:
    """Reduce all ranks' `send_tensor` into `recv_tensor` on rank `dst`."""
    _call(comm, "reduce", send_tensor, recv_tensor, dst, op)


def reduce_inplace(tensor: Tensor, dst: int, op: int = ReduceOp.SUM, comm: Comm = None) -> None:
    """Do `reduce` in place."""
    _call(comm, "reduce_inplace", tensor, dst, op)


def allreduce(
    send_tensor: Tensor, recv_tensor: Tensor, op: int = ReduceOp.SUM, comm: Comm = None
) -> None:
    """Reduce all ranks' `send_tensor` into `recv_tensor` on every rank. All get the same bits."""
    _call(comm, "allreduce", send_tensor, recv_tensor, op)


def allreduce_inplace(tensor: Tensor, op: int = ReduceOp.SUM, comm: Comm = None) -> None:
    """Do `allreduce` in place."""
    _call(comm, "allreduce_inplace", tensor, op)


def allreduce_coalesced_inplace(
    tensors: Sequence[Tensor], op: int = ReduceOp.SUM, comm: Comm = None
) -> None:
    """Do `allreduce_inplace` of each tensor, in one call."""
    _call(comm, "allreduce_coalesced_inplace", tensors, op)


def allgather(send_tensor: Tensor, recv_tensor: Tensor, comm: Comm = None) -> None:
    """Collect all ranks' `send_tensor`. `recv_tensor` has nranks times as many elements."""
    _call(comm, "allgather", send_tensor, recv_tensor)


def allgather_inplace(tensor: Tensor, comm: Comm = None) -> None:
    """Do `allgather` in place. Rank r's data is the r-th share of the tensor."""
    _call(comm, "allgather_inplace", tensor)


def gather(send_tensor: Tensor, recv_tensor: Tensor, dst: int, comm: Comm = None) -> None:
    """Collect all ranks' `send_tensor` in `recv_tensor` on rank `dst`."""
    _call(comm, "gather", send_tensor, recv_tensor, dst)


def gather_inplace(tensor: Tensor, count: int, dst: int, comm: Comm = None) -> None:
    """Do `gather` in place. The tensor has nranks * `count` elements on rank `dst`, elsewhere
    `count`.
    """
    _call(comm, "gather_inplace", tensor, count, dst)


def scatter(send_tensor: Tensor, recv_tensor: Tensor, src: int, comm: Comm = None) -> None:
    """Send each rank its share of `send_tensor` on rank `src`."""
    _call(comm, "scatter", send_tensor, recv_tensor, src)


def scatter_inplace(tensor: Tensor, count: int, src: int, comm: Comm = None) -> None:
    """Do `scatter` in place. The tensor has nranks * `count` elements on rank `src`, elsewhere
    `count`.
    """
    _call(comm, "scatter_inplace", tensor, count, src)


def reduce_scatter(
    send_tensor: Tensor, recv_tensor: Tensor, op: int = ReduceOp.SUM, comm: Comm = None
) -> None:
    """Reduce all ranks' `send_tensor`; rank r gets the r-th share."""
    _call(comm, "reduce_scatter", send_tensor, recv_tensor, op)


def reduce_scatter_inplace(tensor: Tensor, op: int = ReduceOp.SUM, comm: Comm = None) -> None:
    """Do `reduce_scatter` in place. The share is at the tensor's beginning."""
    _call(comm, "reduce_scatter_inplace", tensor, op)


def alltoall(send_tensor: Tensor, recv_tensor: Tensor, comm: Comm = None) -> None:
    """Send a share to each rank, and receive a share from each rank."""
    _call(comm, "alltoall", send_tensor, recv_tensor)


def alltoall_inplace(tensor: Tensor, comm: Comm = None) -> None:
    """Do `alltoall` in place."""
    _call(comm, "alltoall_inplace", tensor)


def alltoall_v(
    send_tensor: Tensor,
    send_counts: Sequence[int],
    send_displs: Sequence[int],
    recv_tensor: Tensor,
    recv_counts: Sequence[int],
    recv_displs: Sequence[int],
    comm: Comm = None,
) -> None:
    """Do `alltoall` with shares of given sizes at given offsets, both in elements."""
    parts = (send_tensor, send_counts, send_displs, recv_tensor, recv_counts, recv_displs)
    _call(comm, "alltoall_v", *parts)


def alltoall_v_inplace(
    tensor: Tensor, counts: Sequence[int], displs: Sequence[int], comm: Comm = None
) -> None:
    """Do `alltoall_v` in place."""
    _call(comm, "alltoall_v_inplace", tensor, counts, displs)


def barrier(comm: Comm = None) -> None:
    """Wait until all ranks have made this call."""
    _call(comm, "barrier")


# --- Objects ----------------------------------------------------------------------------------
def allow_pickle(allow: bool = True) -> None:
    """Let `broadcast_object` pickle objects that hocket cannot encode as plain data.

    Unpickling runs code that the sender chooses, so use it only if all ranks are trusted. All ranks
    must call it.
    """
    State.allow_pickle = allow


def broadcast_object(obj: Any, src: int = 0, comm: Comm = None) -> Any:
    """Send an object of rank `src` to all ranks.

    Accepts plain data, NumPy arrays, tensors, and containers of these, such as state_dicts. For
    other objects see `allow_pickle`. Tensors arrive on the CPU.

    Returns
    -------
    object
        `obj` itself on rank `src`, and a copy on other ranks. If this process is no member, `obj`.
    """
    chosen = resolve(comm)
    if chosen is None:
        return obj
    if chosen.rank() == src:
        chosen.communicator.broadcast_object(encode(obj), src, State.allow_pickle)
        return obj
    return decode(chosen.communicator.broadcast_object(None, src, State.allow_pickle))
