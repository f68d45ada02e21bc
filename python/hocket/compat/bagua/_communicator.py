"""One communicator of a group: Bagua's ``BaguaSingleCommunicatorPy``, over hocket."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, NoReturn, Optional

import torch

import hocket
from hocket._calls.types import Op
from hocket.errors import InvalidArgument

from . import env


class ReduceOp(IntEnum):
    """Operators of reductions, with Bagua's numbers.

    The bitwise operators are for integers and bool. AVG of integers rounds toward zero.
    """

    SUM = 0
    PRODUCT = 1
    MIN = 2
    MAX = 3
    BOR = 7
    BAND = 8
    BXOR = 9
    AVG = 10


_NAMES: dict[ReduceOp, Op] = {
    ReduceOp.SUM: "sum",
    ReduceOp.PRODUCT: "product",
    ReduceOp.MIN: "min",
    ReduceOp.MAX: "max",
    ReduceOp.BOR: "bor",
    ReduceOp.BAND: "band",
    ReduceOp.BXOR: "bxor",
    ReduceOp.AVG: "avg",
}
_BITWISE = (ReduceOp.BOR, ReduceOp.BAND, ReduceOp.BXOR)


class RefusedType(InvalidArgument, TypeError):
    """A reduction is undefined for the tensor's dtype. Raised on all ranks."""


class BaguaCommunicator:
    """The `comm` argument of Bagua's functions. Its methods are these functions without `comm`.

    Calls run after the current stream's earlier work. Calls on GPU tensors run on that stream, and
    `finish` waits for them, as Bagua's functions do. Sizes are numbers of elements. If sizes do not
    fit, or if a tensor is not contiguous, all ranks raise. After `abort`, every call on every rank
    raises `hocket.Aborted`. Calls that the aborting process has put on a stream end without an
    error, as with Bagua.
    """

    def __init__(self, comm: hocket.Communicator, stream: Any = None) -> None:
        self._comm = comm
        self.cuda_stream = stream
        # The last call on a GPU: its handle, or its stream if the call has no handle.
        self._last: Any = None
        self._has_aborted = False  # true if this process has called `abort`

    def rank(self) -> int:
        """This process's number in the communicator."""
        return self._comm.rank

    def nranks(self) -> int:
        """Number of processes in the communicator."""
        return self._comm.size

    def device_id(self) -> int:
        """The GPU of this process, which for Bagua is the process's number on its node."""
        return env.get_local_rank()

    @property
    def communicator(self) -> hocket.Communicator:
        """hocket's communicator, which has features beyond Bagua's."""
        return self._comm

    def abort(self) -> None:
        """End the pending and later calls of all ranks at once."""
        self._has_aborted = True
        self._comm.abort("abort() of a Bagua communicator")

    def check_abort(self) -> bool:
        """Return True if the communicator has ended, by `abort` or by a failure."""
        return self._comm.status is not None

    def barrier(self) -> None:
        """Wait until all ranks have made this call, and until this rank's current stream has
        finished.
        """
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.current_stream().synchronize()
        self._comm.barrier()

    # --- Reductions ---------------------------------------------------------------------------
    def allreduce(self, send: torch.Tensor, recv: torch.Tensor, op: int = ReduceOp.SUM) -> None:
        """Put the reduction of all ranks' `send` into `recv` on every rank. The two may be one
        tensor.
        """
        name = self._op(send, op)
        self._same_size(send, recv)
        self._call("all_reduce", recv, send, None if _is_same(send, recv) else recv, name)

    def allreduce_inplace(self, tensor: torch.Tensor, op: int = ReduceOp.SUM) -> None:
        """Do `allreduce` in place."""
        self._call("all_reduce", tensor, tensor, None, self._op(tensor, op))

    def reduce(
        self, send: torch.Tensor, recv: torch.Tensor, dst: int, op: int = ReduceOp.SUM
    ) -> None:
        """Put the reduction of all ranks' `send` into `recv` on rank `dst`."""
        name = self._op(send, op)
        if self.rank() == dst:
            self._same_size(send, recv)
        self._call("reduce", send, send, None if _is_same(send, recv) else recv, dst, name)

    def reduce_inplace(self, tensor: torch.Tensor, dst: int, op: int = ReduceOp.SUM) -> None:
        """Reduce the tensors of all ranks in place on rank `dst`."""
        self._call("reduce", tensor, tensor, None, dst, self._op(tensor, op))

    def reduce_scatter(
        self, send: torch.Tensor, recv: torch.Tensor, op: int = ReduceOp.SUM
    ) -> None:
        """Put the r-th share of the reduction into `recv` on rank r."""
        name = self._op(send, op)
        self._times(send, "send_tensor", recv, "recv_tensor")
        self._call("reduce_scatter", recv, send, recv, name)

    def reduce_scatter_inplace(self, tensor: torch.Tensor, op: int = ReduceOp.SUM) -> None:
        """Do `reduce_scatter` in place. Every rank's share is at the beginning of its tensor."""
        name = self._op(tensor, op)
        flat = self._flat(tensor, "tensor")
        self._call("reduce_scatter", tensor, flat, flat[: self._share(tensor)], name)

    def allreduce_coalesced_inplace(
        self, tensors: Sequence[torch.Tensor], op: int = ReduceOp.SUM
    ) -> None:
        """Do `allreduce_inplace` of each tensor, in one call."""
        names = {self._op(tensor, op) for tensor in tensors}
        if names:
            self._comm.all_reduce_coalesced(list(tensors), names.pop())
            self._put(tensors[0])

    # --- Movement -----------------------------------------------------------------------------
    def broadcast(self, tensor: torch.Tensor, src: int = 0) -> None:
        """Send the tensor of rank `src` to all ranks."""
        self._call("broadcast", tensor, tensor, src)

    def broadcast_coalesced(self, tensors: Sequence[torch.Tensor], src: int = 0) -> None:
        """Do `broadcast` of each tensor, in one call."""
        if tensors:
            self._comm.broadcast_coalesced(list(tensors), src)
            self._put(tensors[0])

    def allgather(self, send: torch.Tensor, recv: torch.Tensor) -> None:
        """Put all ranks' `send`, one after the other, into `recv` on every rank."""
        self._times(recv, "recv_tensor", send, "send_tensor")
        self._call("all_gather", recv, send, recv)

    def allgather_inplace(self, tensor: torch.Tensor) -> None:
        """Do `allgather` in place. Rank r passes its data as the r-th share of the tensor."""
        flat = self._flat(tensor, "tensor")
        self._call("all_gather", tensor, self._own(flat, self._share(tensor)), flat)

    def gather(self, send: torch.Tensor, recv: torch.Tensor, dst: int) -> None:
        """Put all ranks' `send`, one after the other, into `recv` on rank `dst`."""
        if self.rank() == dst:
            self._times(recv, "recv_tensor", send, "send_tensor")
        self._call("gather", send, send, recv if self.rank() == dst else None, dst)

    def gather_inplace(self, tensor: torch.Tensor, count: int, dst: int) -> None:
        """Do `gather` in place. Rank `dst` passes its own data as share number `dst` of the tensor.
        """
        flat = self._counted(tensor, count, dst)
        if self.rank() == dst:
            self._call("gather", tensor, self._own(flat, count), flat, dst)
        else:
            self._call("gather", tensor, flat, None, dst)

    def scatter(self, send: torch.Tensor, recv: torch.Tensor, src: int) -> None:
        """Send the r-th share of `send` on rank `src` to rank r."""
        if self.rank() == src:
            self._times(send, "send_tensor", recv, "recv_tensor")
        self._call("scatter", recv, send if self.rank() == src else None, recv, src)

    def scatter_inplace(self, tensor: torch.Tensor, count: int, src: int) -> None:
        """Do `scatter` in place. On rank `src`, its own share stays at its position."""
        flat = self._counted(tensor, count, src)
        if self.rank() == src:
            self._call("scatter", tensor, flat, self._own(flat, count), src)
        else:
            self._call("scatter", tensor, None, flat, src)

    def alltoall(self, send: torch.Tensor, recv: torch.Tensor) -> None:
        """Send the r-th share of `send` to rank r. The received shares lie in the order of the
        ranks.
        """
        self._same_size(send, recv)
        self._share(send)
        source, target = self._flat(send, "send_tensor"), self._flat(recv, "recv_tensor")
        self._call("all_to_all", recv, source, target)

    def alltoall_inplace(self, tensor: torch.Tensor) -> None:
        """Do `alltoall` in place."""
        self.alltoall(tensor, tensor)

    def alltoall_v(
        self,
        send: torch.Tensor,
        send_counts: Sequence[int],
        send_displs: Sequence[int],
        recv: torch.Tensor,
        recv_counts: Sequence[int],
        recv_displs: Sequence[int],
    ) -> None:
        """Do `alltoall` with shares of given sizes at given offsets, both in elements."""
        self._check_parts(send, "send", send_counts, send_displs)
        self._check_parts(recv, "recv", recv_counts, recv_displs)
        source, target = self._flat(send, "send_tensor"), self._flat(recv, "recv_tensor")
        shares = [source[at : at + count] for count, at in zip(send_counts, send_displs)]
        came = torch.empty(sum(recv_counts), dtype=recv.dtype, device=recv.device)
        self._call(
            "all_to_all_v", came, torch.cat(shares), list(send_counts), came, list(recv_counts)
        )
        pieces = came.split(list(recv_counts))
        for count, at, piece in zip(recv_counts, recv_displs, pieces):
            target[at : at + count] = piece

    def alltoall_v_inplace(
        self, tensor: torch.Tensor, counts: Sequence[int], displs: Sequence[int]
    ) -> None:
        """Do `alltoall_v` in place. Each rank sends to a rank as much as it receives from it."""
        self.alltoall_v(tensor, counts, displs, tensor, counts, displs)

    # --- Between two ranks ----------------------------------------------------------------------
    def send(self, tensor: torch.Tensor, dst: int) -> None:
        """Send a tensor to rank `dst`."""
        self._call("send", tensor, tensor, dst)

    def recv(self, tensor: torch.Tensor, src: int) -> None:
        """Receive a tensor from rank `src`."""
        self._call("recv", tensor, tensor, src)

    # --- On GPUs --------------------------------------------------------------------------------
    def _call(self, name: str, tensor: torch.Tensor, *arguments: Any) -> None:
        """Make hocket's call `name`. If `tensor` lies on a GPU, the call runs on the current
        stream.
        """
        if getattr(tensor, "is_cuda", False):
            self._last = getattr(self._comm, name + "_async")(*arguments)
            with self._own_abort_is_no_error():
                self._last.wait()  # the stream waits for the call
        else:
            getattr(self._comm, name)(*arguments)

    def finish(self) -> None:
        """Wait for the last call if it runs on a GPU. Raise its error."""
        last, self._last = self._last, None
        if last is None:
            return
        with self._own_abort_is_no_error():
            last.synchronize()
            if not isinstance(last, hocket.Work) and self._comm.status is not None:
                self._comm.barrier()  # raises the communicator's error

    @contextlib.contextmanager
    def _own_abort_is_no_error(self) -> Iterator[None]:
        """Make a context that ignores the error of a call if this process has called `abort`."""
        try:
            yield
        except hocket.Aborted:
            if not self._has_aborted:
                raise

    def _put(self, tensor: torch.Tensor) -> None:
        """Note the stream of a call that has no handle."""
        if tensor.is_cuda:
            self._last = torch.cuda.current_stream(tensor.device)

    # --- Checks: what is refused here is refused on all ranks -------------------------------------
    def _refuse(self, message: str, kind: type[InvalidArgument] = InvalidArgument) -> NoReturn:
        try:
            self._comm.refuse(message)
        except InvalidArgument as error:
            if kind is InvalidArgument:
                raise
            refused = kind(str(error))
            refused.status = error.status
            raise refused from None

    def _op(self, tensor: torch.Tensor, op: int) -> Op:
        if op not in list(ReduceOp):
            known = ", ".join(f"{o.name} {o.value}" for o in ReduceOp)
            self._refuse(f"op is {op!r}, expected one of {known}")
        if op in _BITWISE and (tensor.is_floating_point() or tensor.is_complex()):
            self._refuse(
                f"op is {ReduceOp(op).name} on {tensor.dtype}, expected integers or bool",
                RefusedType,
            )
        return _NAMES[ReduceOp(op)]

    def _same_size(self, send: torch.Tensor, recv: torch.Tensor) -> None:
        if send.numel() != recv.numel():
            self._refuse(
                f"send_tensor has {send.numel()} elements and recv_tensor {recv.numel()}, "
                "expected as many"
            )

    def _times(self, large: torch.Tensor, name: str, small: torch.Tensor, small_name: str) -> None:
        if large.numel() != self.nranks() * small.numel():
            self._refuse(
                f"{name} has {large.numel()} elements and {small_name} {small.numel()}, expected "
                f"{self.nranks()} times as many in {name}: {self.nranks() * small.numel()}"
            )

    def _share(self, tensor: torch.Tensor) -> int:
        if tensor.numel() % self.nranks():
            self._refuse(
                f"tensor has {tensor.numel()} elements, expected a multiple of {self.nranks()}"
            )
        return int(tensor.numel()) // self.nranks()

    def _counted(self, tensor: torch.Tensor, count: int, root: int) -> torch.Tensor:
        wanted = self.nranks() * count if self.rank() == root else count
        if tensor.numel() != wanted:
            self._refuse(
                f"tensor has {tensor.numel()} elements on rank {self.rank()}, expected {wanted}"
            )
        return self._flat(tensor, "tensor")

    def _flat(self, tensor: torch.Tensor, name: str) -> torch.Tensor:
        if not tensor.is_contiguous():
            self._refuse(f"{name} is not contiguous; pass {name}.contiguous()")
        return tensor.detach().view(-1)

    def _own(self, flat: torch.Tensor, count: int) -> torch.Tensor:
        return flat[self.rank() * count : (self.rank() + 1) * count]

    def _check_parts(
        self, tensor: torch.Tensor, name: str, counts: Sequence[int], places: Sequence[int]
    ) -> None:
        n, size = self.nranks(), tensor.numel()
        if len(counts) != n or len(places) < n:  # an offset may equal the end of the tensor
            self._refuse(
                f"{name}_counts and {name}_displs have {len(counts)} and {len(places)} entries, "
                f"expected {n} (of the second also more)"
            )
        for rank, (count, at) in enumerate(zip(counts, places)):
            if count < 0 or at < 0 or at + count > size:
                self._refuse(
                    f"{name}_counts[{rank}] is {count} at {at}, expected within the {size} "
                    f"elements of {name}_tensor"
                )


def _is_same(send: torch.Tensor, recv: Optional[torch.Tensor]) -> bool:
    return recv is None or (recv.data_ptr() == send.data_ptr() and send.numel() > 0)

