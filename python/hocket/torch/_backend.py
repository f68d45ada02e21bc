"""The backend itself: torch.distributed's calls as hocket's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from threading import local
from typing import Any, Optional, Union

import torch
from torch._C._distributed_c10d import Backend, ProcessGroup

import hocket

from ._layout import (
    Layout,
    as_flat,
    each_flat,
    parts_of,
    received_parts,
    row_counts,
    sent_parts,
)
from ._pieces import reduce_scatter_in_pieces, takes_pieces
from ._ops import op_of, summand
from ._sparse import all_reduce_sparse
from ._work import Finished, Pending, Together, Waiter

Tensors = list[torch.Tensor]
_DENSE = torch.strided
Handle = Union[Finished, Pending]


def _one(tensors: Sequence[torch.Tensor], name: str) -> torch.Tensor:
    if len(tensors) != 1:
        raise ValueError(f"{name} holds {len(tensors)} tensors, expected one a process")
    return tensors[0]


def _is_long(tensor: torch.Tensor) -> bool:
    """Whether copying a rank's part costs more than what the v-forms add to a call."""
    return not tensor.is_cuda and tensor.numel() * tensor.element_size() >= 1 << 15


def _base() -> Any:
    """What backends in Python derive from: newer PyTorch has it, older takes whole groups."""
    try:
        Backend(0, 1)
    except TypeError:
        return ProcessGroup
    return Backend


Base: Any = _base()


class HocketBackend(Base):  # type: ignore[misc]
    """A process group of torch.distributed over a communicator of hocket.

    A resource, made by ``dist.init_process_group`` and ``dist.new_group``. Calls that are not asked
    to be async block here without the GIL; async ones on host memory are moved by hocket's progress
    thread. Calls on CUDA tensors are put on the current stream. Errors are hocket's own
    (`hocket.errors`); after `PeerDied`, a deadline, `Mismatch` or `abort` every later call raises.
    """

    def __init__(self, comm: hocket.Communicator, name: str) -> None:
        super().__init__(comm.rank, comm.size)
        self._comm = comm
        self._called = name
        self._waiter = Waiter()
        # `handle`: the last one made in this thread; whether PyTorch passes it on is told below.
        # While calls are coalesced: `collected`, the pending ones; `batch`, the messages of GPUs.
        self.made = local()
        self.hands_on = Base is ProcessGroup
        self.marks_batches = False

    @property
    def communicator(self) -> hocket.Communicator:
        """hocket's own, with all that it offers beyond torch.distributed."""
        return self._comm

    # What PyTorch may ask for beyond the calls below; without these its own look-up never ends.
    supports_splitting = True
    supports_shrinking = False
    supports_reconfigure = False
    supports_window = False
    _supports_time_estimate = False

    @property
    def supports_coalescing(self) -> bool:
        """Whether messages in a batch come between marks: in a HocketGroup, for the GPUs' sake."""
        return self.marks_batches and torch.cuda.is_initialized()

    def eager_connect_single_device(self, device: Any) -> None:
        """Called for a group that is bound to a device: introduces GPUs to each other."""
        if torch.device(device).type == "cuda":
            self._comm.barrier(stream=torch.cuda.current_stream(device))

    def perform_nocolor_split(self, device: Any) -> None:
        """Called where a new group has no place for this rank, which has then nothing to do."""

    @property
    def options(self) -> Any:
        """Of PyTorch's kind; hocket has no more."""
        return Backend.Options("hocket", timedelta(seconds=min(self._comm.deadline, 1e9)))

    def _get_backend(self, device: Any) -> HocketBackend:
        """Where PyTorch takes this for a whole process group."""
        return self

    # Older PyTorch takes this for the group itself, and has a name for it only where it has backends.
    @property
    def group_name(self) -> str:
        """What torch.distributed calls the group."""
        return self._called

    def getGroupName(self) -> str:  # noqa: N802: PyTorch's name
        """The same, for PyTorch's own code."""
        return self._called

    def _set_group_name(self, name: str) -> None:
        self._called = name

    def getBackendName(self) -> str:  # noqa: N802: PyTorch's name
        """"hocket"."""
        return "hocket"

    def _start_coalescing(self, _device: torch.device) -> None:
        self.made.collected, self.made.batch = [], Batch()

    def _end_coalescing(self, _device: torch.device) -> Any:
        collected, batch = self.made.collected, self.made.batch
        self.made.collected = self.made.batch = None
        batch.go(self._comm)
        return Together(collected)

    # --- One verb for the blocking and the async form -----------------------------------------
    def _run(
        self,
        name: str,
        arguments: tuple[Any, ...],
        is_async: bool,
        result: Tensors,
        after: Optional[Callable[[], None]] = None,
    ) -> Handle:
        """Makes the call `name`; `after` brings results where they belong."""
        if is_async and not result[0].is_cuda:
            work = getattr(self._comm, name + "_async")(*arguments)
            return self._pending(work, result, after)
        getattr(self._comm, name)(*arguments)
        if after is not None:
            after()
        return self._finished(result)

    def _finished(self, result: Tensors) -> Finished:
        self.made.handle = handle = Finished(result)
        return handle

    def _pending(
        self, work: hocket.Work, result: Tensors, after: Optional[Callable[[], None]] = None
    ) -> Pending:
        self.made.handle = handle = Pending(work, result, self._waiter, after)
        collected = getattr(self.made, "collected", None)
        if collected is not None:
            collected.append(handle)
        return handle

    # --- Reductions ---------------------------------------------------------------------------
    def allreduce(self, tensors: Tensors, options: Any) -> Handle:
        """``dist.all_reduce``."""
        tensor, op = _one(tensors, "tensors"), op_of(options)
        if tensor.layout != _DENSE:
            all_reduce_sparse(self._comm, tensor, op)
            return self._finished(tensors)
        if op is not None and not options.asyncOp and tensor.is_contiguous():  # the usual
            self._comm.all_reduce(tensor, None, op)
            return self._finished(tensors)
        layout = Layout(tensor)
        source, op = summand(layout.flat, options)
        return self._run(
            "all_reduce", (source, layout.flat, op), options.asyncOp, tensors, layout.copy_back
        )

    def allreduce_coalesced(self, tensors: Tensors, options: Any) -> Handle:
        """``dist.all_reduce`` of several tensors at once."""
        layouts = [Layout(tensor) for tensor in tensors]
        sources = [summand(layout.flat, options) for layout in layouts]
        for op in {op for _, op in sources}:  # one, or none where there are no tensors
            self._comm.all_reduce_coalesced([source for source, _ in sources], op)
        for layout, (source, _) in zip(layouts, sources):
            if source is not layout.flat:
                layout.flat.copy_(source)
            layout.copy_back()
        return self._finished(tensors)

    def reduce(self, tensors: Tensors, options: Any) -> Handle:
        """``dist.reduce``: in place at the root."""
        layout = Layout(_one(tensors, "tensors"))
        source, op = summand(layout.flat, options)
        out, back = None, None
        if self._comm.rank == options.rootRank:
            out, back = layout.flat, layout.copy_back
        arguments = (source, out, options.rootRank, op)
        return self._run("reduce", arguments, options.asyncOp, tensors, back)

    def reduce_scatter_single(
        self, output: torch.Tensor, input: torch.Tensor, options: Any
    ) -> Handle:
        """``dist.reduce_scatter_tensor``."""
        out = Layout(output)
        source, op = summand(as_flat(input), options)
        arguments = (source, out.flat, op)
        return self._run("reduce_scatter", arguments, options.asyncOp, [output], out.copy_back)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter(self, outputs: Tensors, inputs: list[Tensors], options: Any) -> Handle:
        """``dist.reduce_scatter``; the tensors may differ in size."""
        output, parts = _one(outputs, "outputs"), inputs[0]
        self._check_list(parts, "input_list")
        out = Layout(output)
        counts = [part.numel() for part in parts]
        op = op_of(options)
        if op is not None and takes_pieces(parts, options.asyncOp):
            reduce_scatter_in_pieces(self._comm, parts, out.flat, op)
            out.copy_back()
            return self._finished(outputs)
        source, op = summand(each_flat(parts), options)
        arguments = (source, out.flat, counts, op)
        return self._run("reduce_scatter_v", arguments, options.asyncOp, outputs, out.copy_back)

    def reduce_scatter_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, options: Any
    ) -> Handle:
        """``dist.reduce_scatter_tensor`` of several at once."""
        layouts = [Layout(output) for output in outputs]
        flat = [layout.flat for layout in layouts]
        sources = [summand(as_flat(tensor), options) for tensor in inputs]
        for op in {op for _, op in sources}:
            self._comm.reduce_scatter_coalesced([source for source, _ in sources], flat, op)
        for layout in layouts:
            layout.copy_back()
        return self._finished(outputs)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # --- Movement -----------------------------------------------------------------------------
    def broadcast(self, tensors: Tensors, options: Any) -> Handle:
        """``dist.broadcast``."""
        layout = Layout(_one(tensors, "tensors"))
        arguments = (layout.flat, options.rootRank)
        return self._run("broadcast", arguments, options.asyncOp, tensors, layout.copy_back)

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, options: Any) -> Handle:
        """``dist.all_gather_into_tensor``."""
        out = Layout(output)
        arguments = (as_flat(input), out.flat)
        return self._run("all_gather", arguments, options.asyncOp, [output], out.copy_back)

    _allgather_base = all_gather_single

    def allgather(self, outputs: list[Tensors], inputs: Tensors, options: Any) -> Handle:
        """``dist.all_gather``; the tensors may differ in size."""
        parts = outputs[0]
        self._check_list(parts, "tensor_list")
        gathered, counts, after = received_parts(parts)
        arguments = (as_flat(_one(inputs, "tensors")), gathered, counts)
        return self._run("all_gather_v", arguments, options.asyncOp, parts, after)

    def allgather_coalesced(self, outputs: list[Tensors], inputs: Tensors, options: Any) -> Handle:
        """``dist.all_gather`` of several tensors, one list of outputs a rank."""
        for place, tensor in enumerate(inputs):
            self.allgather([[rank[place] for rank in outputs]], [tensor], _Blocking)
        return self._finished([tensor for rank in outputs for tensor in rank])

    def all_gather_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, options: Any = None
    ) -> Handle:
        """``dist.all_gather_into_tensor`` of several at once."""
        layouts = [Layout(output) for output in outputs]
        flat = [layout.flat for layout in layouts]
        self._comm.all_gather_coalesced([as_flat(tensor) for tensor in inputs], flat)
        for layout in layouts:
            layout.copy_back()
        return self._finished(outputs)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, outputs: list[Tensors], inputs: Tensors, options: Any) -> Handle:
        """``dist.gather``."""
        tensor = _one(inputs, "tensors")
        listed = _is_long(tensor)  # alike on all ranks, which must call the same
        out: Any = None
        after = None
        result = [tensor]
        if self._comm.rank == options.rootRank:
            result = outputs[0]
            self._check_list(result, "gather_list")
            if listed:
                out, _, after = received_parts(result)
            else:
                out, after = parts_of(result)
        if not listed:
            arguments: tuple[Any, ...] = (as_flat(tensor), out, options.rootRank)
            return self._run("gather", arguments, options.asyncOp, result, after)
        counts = [tensor.numel()] * self._comm.size
        arguments = (as_flat(tensor), out, counts, options.rootRank)
        return self._run("gather_v", arguments, options.asyncOp, result, after)

    def gather_single(self, output: Any, input: torch.Tensor, options: Any) -> Handle:
        """``dist.gather_single``."""
        if self._comm.rank != options.rootRank:
            arguments: tuple[Any, ...] = (as_flat(input), None, options.rootRank)
            return self._run("gather", arguments, options.asyncOp, [input])
        out = Layout(output)
        arguments = (as_flat(input), out.flat, options.rootRank)
        return self._run("gather", arguments, options.asyncOp, [output], out.copy_back)

    def scatter(self, outputs: Tensors, inputs: list[Tensors], options: Any) -> Handle:
        """``dist.scatter``."""
        out = Layout(_one(outputs, "tensors"))
        parts: Any = None
        counts = None
        listed = _is_long(out.flat)
        if self._comm.rank == options.rootRank:
            self._check_list(inputs[0], "scatter_list")
            parts, counts = sent_parts(inputs[0]) if listed else (each_flat(inputs[0]), None)
        if not listed:
            arguments: tuple[Any, ...] = (parts, out.flat, options.rootRank)
            return self._run("scatter", arguments, options.asyncOp, outputs, out.copy_back)
        arguments = (parts, counts, out.flat, options.rootRank)
        return self._run("scatter_v", arguments, options.asyncOp, outputs, out.copy_back)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_splits: list[int],
        input_splits: list[int],
        options: Any,
    ) -> Handle:
        """``dist.all_to_all_single``; splits count rows."""
        out = Layout(output)
        if not output_splits and not input_splits:
            arguments: tuple[Any, ...] = (as_flat(input), out.flat)
            return self._run("all_to_all", arguments, options.asyncOp, [output], out.copy_back)
        size = self._comm.size
        sent = row_counts(input, input_splits, size, "input")
        came = row_counts(output, output_splits, size, "output")
        arguments = (as_flat(input), sent, out.flat, came)
        return self._run("all_to_all_v", arguments, options.asyncOp, [output], out.copy_back)

    alltoall_base = all_to_all_single

    def alltoall(self, outputs: Tensors, inputs: Tensors, options: Any) -> Handle:
        """``dist.all_to_all``; the tensors may differ in size."""
        self._check_list(outputs, "output_tensor_list")
        self._check_list(inputs, "input_tensor_list")
        out, came, after = received_parts(outputs)
        parts, sent = sent_parts(inputs)
        arguments = (parts, sent, out, came)
        return self._run("all_to_all_v", arguments, options.asyncOp, outputs, after)

    # --- Between two ranks ----------------------------------------------------------------------
    def send(self, tensors: Tensors, destination: int, tag: int) -> Handle:
        """``dist.send``, ``dist.isend``."""
        tensor = _one(tensors, "tensors")
        batch = getattr(self.made, "batch", None)
        if batch is not None and tensor.is_cuda:
            batch.outgoing.append((as_flat(tensor), destination))
            return self._finished(tensors)
        arguments = (as_flat(tensor), destination, tag)
        return self._run("send", arguments, True, tensors)

    def recv(self, tensors: Tensors, source: int, tag: int) -> Handle:
        """``dist.recv``, ``dist.irecv``."""
        layout = Layout(_one(tensors, "tensors"))
        batch = getattr(self.made, "batch", None)
        if batch is not None and layout.flat.is_cuda:
            batch.incoming.append((layout.flat, source))
            batch.after.append(layout.copy_back)
            return self._finished(tensors)
        return self._run("recv", (layout.flat, source, tag), True, tensors, layout.copy_back)

    def recv_anysource(self, tensors: Tensors, tag: int) -> Handle:
        """``dist.recv`` and ``dist.irecv`` without `src`; on host memory."""
        if not self.hands_on:
            raise NotImplementedError(
                "recv without src: this PyTorch has no way to hear from a backend who sent; give src, "
                "or use hocket's own communicator (backend.communicator.recv)"
            )
        return self.recv(tensors, hocket.ANY_SOURCE, tag)

    # --- The rest -------------------------------------------------------------------------------
    def barrier(self, opts: Any = None) -> Handle:
        """``dist.barrier``."""
        if torch.cuda.is_initialized():  # who comes here has done what is on the stream
            torch.cuda.current_stream().synchronize()
        if getattr(opts, "asyncOp", False):
            return self._pending(self._comm.barrier_async(), [])
        self._comm.barrier()
        return self._finished([])

    def monitored_barrier(self, options: Any, wait_all_ranks: bool = False) -> None:
        """``dist.monitored_barrier``: a barrier whose error names all ranks that have not come."""
        timeout = getattr(options, "timeout", None)
        self._comm.barrier(timeout if timeout and timeout > timedelta(0) else None)

    def set_timeout(self, timeout: timedelta) -> None:
        """The deadline of later calls."""
        self._comm.deadline = timeout

    def abort(self) -> None:
        """End the pending and later calls of all ranks, now."""
        self._comm.abort("torch.distributed aborted the process group")

    def shutdown(self) -> None:
        """What ``dist.destroy_process_group`` calls; waits for nobody."""
        self._waiter.close()
        self._comm.close()

    def _set_sequence_number_for_group(self) -> None:
        """hocket counts its calls by itself."""

    def _get_sequence_number_for_group(self) -> int:
        """The number of the last call that this rank made."""
        calls = self._comm.recent_calls()
        return calls[-1].sequence if calls else 0

    def _check_list(self, tensors: Sequence[torch.Tensor], name: str) -> None:
        if len(tensors) != self._comm.size:
            raise ValueError(f"{name} holds {len(tensors)} tensors, expected {self._comm.size}")


class Batch:
    """Messages of GPUs that are put on the stream at once, where else each would wait for the last."""

    def __init__(self) -> None:
        self.outgoing: list[tuple[torch.Tensor, int]] = []
        self.incoming: list[tuple[torch.Tensor, int]] = []
        self.after: list[Callable[[], None]] = []

    def go(self, comm: hocket.Communicator) -> None:
        """Put them there."""
        comm.exchange(self.outgoing, self.incoming)
        for after in self.after:
            after()


class _Blocking:
    """Options of a call that blocks."""

    asyncOp = False  # noqa: N815: PyTorch's name

