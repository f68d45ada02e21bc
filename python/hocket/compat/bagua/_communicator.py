"""One communicator of a group: ``bagua_core.BaguaSingleCommunicatorPy`` over hocket's."""

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
    """Operators of reductions, by Bagua's numbers.

    The bitwise ones are for integers and bool. AVG of integers rounds toward zero.
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
    """A reduction that is undefined for the tensor's dtype; raised on all ranks."""


class BaguaCommunicator:
    """The `comm` argument of Bagua's functions. Its methods are those functions without `comm`.

    Calls are ordered after the current stream's work. Calls on GPU tensors run on that stream, and
    `finish` waits, as Bagua's functions do. Sizes are element counts. All ranks raise if sizes do
    not fit or a tensor is not contiguous. After `abort` every call on every rank raises
    `hocket.Aborted`. Work that the aborting process has put on a stream ends without an error, as
    with Bagua.
    """

    def __init__(self, comm: hocket.Communicator, stream: Any = None) -> None:
        self._comm = comm
        self.cuda_stream = stream
        # The last call on a GPU: its handle, or its stream if it has no handle.
        self._last: Any = None
        self._has_aborted = False  # this process, by `abort`

    def rank(self) -> int:
        """This process's number in the communicator."""
        return self._comm.rank

    def nranks(self) -> int:
        """Number of processes in the communicator."""
        return self._comm.size

    def device_id(self) -> int:
        """The GPU of this process, as Bagua has it: its number on the node."""
        return env.get_local_rank()

    @property
    def communicator(self) -> hocket.Communicator:
        """hocket's communicator, with features beyond Bagua's."""
        return self._comm

    def abort(self) -> None:
        """End the pending and later calls of all ranks, now."""
        self._has_aborted = True
        self._comm.abort("abort() of a Bagua communicator")

    def check_abort(self) -> bool:
        """True if the communicator has ended, by `abort` or by a failure."""
        return self._comm.status is not None

    def barrier(self) -> None:
        """Return when all ranks have come here, and this rank's current stream has finished."""
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.current_stream().synchronize()
        self._comm.barrier()

    # --- Reductions ---------------------------------------------------------------------------
    def allreduce(self, send: torch.Tensor, recv: torch.Tensor, op: int = ReduceOp.SUM) -> None:
        """Put the reduction of all ranks' `send` into everybody's `recv`; they may be one
        tensor.
        """
        name = self._op(send, op)
        self._same_size(send, recv)
        self._call("all_reduce", recv, send, None if _is_same(send, recv) else recv, name)

    def allreduce_inplace(self, tensor: torch.Tensor, op: int = ReduceOp.SUM) -> None:
        """The same in place."""
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
        """The same in place on rank `dst`."""
        self._call("reduce", tensor, tensor, None, dst, self._op(tensor, op))

    def reduce_scatter(
        self, send: torch.Tensor, recv: torch.Tensor, op: int = ReduceOp.SUM
    ) -> None:
        """Put the r-th share of the reduction into `recv` on rank r."""
        name = self._op(send, op)
        self._times(send, "send_tensor", recv, "recv_tensor")
        self._call("reduce_scatter", recv, send, recv, name)

    def reduce_scatter_inplace(self, tensor: torch.Tensor, op: int = ReduceOp.SUM) -> None:
        """The same; every rank's share is at the beginning of its tensor."""
        name = self._op(tensor, op)
        flat = self._flat(tensor, "tensor")
        self._call("reduce_scatter", tensor, flat, flat[: self._share(tensor)], name)

    def allreduce_coalesced_inplace(
        self, tensors: Sequence[torch.Tensor], op: int = ReduceOp.SUM
    ) -> None:
        """`allreduce_inplace` of each, in one call."""
        names = {self._op(tensor, op) for tensor in tensors}
        if names:
            self._comm.all_reduce_coalesced(list(tensors), names.pop())
            self._put(tensors[0])

    # --- Movement -----------------------------------------------------------------------------
    def broadcast(self, tensor: torch.Tensor, src: int = 0) -> None:
        """Send the tensor of rank `src` to all."""
        self._call("broadcast", tensor, tensor, src)

    def broadcast_coalesced(self, tensors: Sequence[torch.Tensor], src: int = 0) -> None:
        """`broadcast` of each, in one call."""
        if tensors:
            self._comm.broadcast_coalesced(list(tensors), src)
            self._put(tensors[0])

    def allgather(self, send: torch.Tensor, recv: torch.Tensor) -> None:
        """Put all ranks' `send`, one after the other, into everybody's `recv`."""
        self._times(recv, "recv_tensor", send, "send_tensor")
        self._call("all_gather", recv, send, recv)

    def allgather_inplace(self, tensor: torch.Tensor) -> None:
        """The same in place; rank r's own share is at its place already."""
        flat = self._flat(tensor, "tensor")
        self._call("all_gather", tensor, self._own(flat, self._share(tensor)), flat)

    def gather(self, send: torch.Tensor, recv: torch.Tensor, dst: int) -> None:
        """Put all ranks' `send`, one after the other, into `recv` of rank `dst`."""
        if self.rank() == dst:
            self._times(recv, "recv_tensor", send, "send_tensor")
        self._call("gather", send, send, recv if self.rank() == dst else None, dst)

    def gather_inplace(self, tensor: torch.Tensor, count: int, dst: int) -> None:
        """The same in place; on rank `dst` its own share is at its place already."""
        flat = self._counted(tensor, count, dst)
        if self.rank() == dst:
            self._call("gather", tensor, self._own(flat, count), flat, dst)
        else:
            self._call("gather", tensor, flat, None, dst)

    def scatter(self, send: torch.Tensor, recv: torch.Tensor, src: int) -> None:
        """Send the r-th share of `send` of rank `src` to rank r."""
        if self.rank() == src:
            self._times(send, "send_tensor", recv, "recv_tensor")
        self._call("scatter", recv, send if self.rank() == src else None, recv, src)

    def scatter_inplace(self, tensor: torch.Tensor, count: int, src: int) -> None:
        """The same in place; on rank `src` its own share stays at its place."""
        flat = self._counted(tensor, count, src)
        if self.rank() == src:
            self._call("scatter", tensor, flat, self._own(flat, count), src)
        else:
            self._call("scatter", tensor, None, flat, src)

    def alltoall(self, send: torch.Tensor, recv: torch.Tensor) -> None:
        """Send the r-th share of `send` to rank r. Received shares lie in rank order."""
        self._same_size(send, recv)
        self._share(send)
        source, target = self._flat(send, "send_tensor"), self._flat(recv, "recv_tensor")
        self._call("all_to_all", recv, source, target)

    def alltoall_inplace(self, tensor: torch.Tensor) -> None:
        """The same in place."""
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
        """The same for shares of given sizes at given offsets, in elements."""
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
        """The same in place: as much comes from a rank as goes to it."""
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
        """Make hocket's call `name`, on the current stream if `tensor` lies on a GPU."""
        if getattr(tensor, "is_cuda", False):
            self._last = getattr(self._comm, name + "_async")(*arguments)
            with self._own_abort_is_no_error():
                self._last.wait()  # has the stream wait
        else:
            getattr(self._comm, name)(*arguments)

    def finish(self) -> None:
        """Wait for the last call if it runs on a GPU; raises its error."""
        last, self._last = self._last, None
        if last is None:
            return
        with self._own_abort_is_no_error():
            last.synchronize()
            if not isinstance(last, hocket.Work) and self._comm.status is not None:
                self._comm.barrier()  # which raises it

    @contextlib.contextmanager
    def _own_abort_is_no_error(self) -> Iterator[None]:
        """Context for waiting for a call that has been put on a stream."""
        try:
            yield
        except hocket.Aborted:
            if not self._has_aborted:
                raise

    def _put(self, tensor: torch.Tensor) -> None:
        """Notes the stream of a call that has no handle."""
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

