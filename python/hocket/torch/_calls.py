"""The calls of torch.distributed on tensors, carried out by hocket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch

import hocket

from ._chunks import reduce_scatter_in_chunks, takes_chunks
from ._layout import (
    Layout,
    all_back,
    apart,
    as_dense,
    as_flat,
    each_flat,
    lies_flat,
    parts_of,
    received_parts,
    row_counts,
    sent_parts,
)
from ._ops import op_of, summand
from ._sparse import all_reduce_sparse
from ._streams import OnStream
from ._verbs import Batch, Handle, Tensors, Verbs
from ._work import Kind


def _some(tensors: Sequence[Any], name: str) -> None:
    if len(tensors) == 0:
        raise hocket.InvalidArgument(f"{name} is empty, expected at least one tensor")


def _one(tensors: Sequence[Any], name: str) -> Any:
    _some(tensors, name)
    if len(tensors) != 1:
        raise hocket.InvalidArgument(
            f"{name} holds {len(tensors)} tensors, expected one, as a process has one rank"
        )
    return tensors[0]


def _is_long(tensor: torch.Tensor) -> bool:
    """Return True if copying a rank's part costs more time than the v-forms add to a call."""
    return not tensor.is_cuda and tensor.numel() * tensor.element_size() >= 1 << 15


class Calls(Verbs):
    """The calls of a process group, under the names by which PyTorch calls them on a backend.

    Part of `HocketBackend`, whose docstring also describes these calls.
    """

    # --- Reductions ---------------------------------------------------------------------------
    def allreduce(self, tensors: Tensors, options: Any) -> Optional[Handle]:
        """Implements ``dist.all_reduce``."""
        tensor, op = _one(tensors, "tensors"), op_of(options)
        if tensor.layout is not torch.strided:
            all_reduce_sparse(self._comm, tensor, op)
            return self._finished(tensors, options.asyncOp)
        if op is not None and lies_flat(tensor):
            return self._run("all_reduce", (tensor, None, op), options.asyncOp, tensors)
        layout = Layout(tensor)
        source, op = summand(layout.dense, options)
        arguments = (source, layout.dense, op)
        return self._run("all_reduce", arguments, options.asyncOp, tensors, layout.back)

    allreduce_sparse = allreduce  # PyTorch calls it for sparse CUDA tensors

    def allreduce_coalesced(self, tensors: Tensors, options: Any) -> Optional[Handle]:
        """Implements ``dist.all_reduce`` of several tensors at once. A tensor that is listed twice
        is summed once.
        """
        _some(tensors, "tensors")
        layouts = [Layout(tensor) for tensor in tensors]
        every = [summand(one, options) for one in apart([layout.dense for layout in layouts])]
        sources, op = [source for source, _ in every], every[0][1]

        def back() -> None:
            for layout, source in zip(layouts, sources):
                if source is not layout.dense:
                    layout.dense.detach().copy_(source)
                layout.copy_back()

        return self._run("all_reduce_coalesced", (sources, op), options.asyncOp, tensors, back)

    def reduce(self, tensors: Tensors, options: Any) -> Optional[Handle]:
        """Implements ``dist.reduce``: in place at the root."""
        layout = Layout(_one(tensors, "tensors"))
        source, op = summand(layout.dense, options)
        out, back = None, None
        if self._comm.rank == options.rootRank:
            out, back = layout.dense, layout.back
        arguments = (source, out, options.rootRank, op)
        return self._run("reduce", arguments, options.asyncOp, tensors, back)

    def reduce_scatter_single(
        self, output: torch.Tensor, input: torch.Tensor, options: Any
    ) -> Optional[Handle]:
        """Implements ``dist.reduce_scatter_tensor``."""
        out = Layout(output)
        source, op = summand(as_dense(input), options)
        arguments = (source, out.dense, op)
        return self._run("reduce_scatter", arguments, options.asyncOp, [output], out.back)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter(self, outputs: Tensors, inputs: list[Tensors], options: Any) -> Optional[Handle]:
        """Implements ``dist.reduce_scatter``. The tensors may differ in size."""
        output, parts = _one(outputs, "outputs"), _one(inputs, "input_lists")
        self._check_list(parts, "input_list")
        out = Layout(output)
        counts = [part.numel() for part in parts]
        op = op_of(options)
        if op is not None and takes_chunks(parts, options.asyncOp):
            reduce_scatter_in_chunks(self._comm, parts, out.flat, op)
            out.copy_back()
            return self._finished(outputs)
        source, op = summand(each_flat(parts), options)
        arguments = (source, out.flat, counts, op)
        return self._run("reduce_scatter_v", arguments, options.asyncOp, outputs, out.back)

    def reduce_scatter_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, options: Any
    ) -> Optional[Handle]:
        """Implements ``dist.reduce_scatter_tensor`` of several tensors at once."""
        _some(outputs, "outputs")
        layouts = [Layout(output) for output in outputs]
        every = [summand(as_dense(tensor), options) for tensor in inputs]
        sources = [source for source, _ in every]
        arguments = (sources, [layout.dense for layout in layouts], every[0][1])
        back = all_back(layouts)
        return self._run("reduce_scatter_coalesced", arguments, options.asyncOp, outputs, back)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # --- Movement -----------------------------------------------------------------------------
    def broadcast(self, tensors: Tensors, options: Any) -> Optional[Handle]:
        """Implements ``dist.broadcast``."""
        layout = Layout(_one(tensors, "tensors"))
        arguments = (layout.dense, options.rootRank)
        return self._run("broadcast", arguments, options.asyncOp, tensors, layout.back)

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, options: Any) -> Optional[Handle]:
        """Implements ``dist.all_gather_into_tensor``."""
        out = Layout(output)
        arguments = (as_dense(input), out.dense)
        return self._run("all_gather", arguments, options.asyncOp, [output], out.back)

    _allgather_base = all_gather_single

    def allgather(self, outputs: list[Tensors], inputs: Tensors, options: Any) -> Optional[Handle]:
        """Implements ``dist.all_gather``. The tensors may differ in size."""
        parts = _one(outputs, "output_lists")
        self._check_list(parts, "tensor_list")
        gathered, counts, after = received_parts(parts)
        arguments = (as_flat(_one(inputs, "tensors")), gathered, counts)
        handle = self._run("all_gather_v", arguments, options.asyncOp, parts, after)
        if isinstance(handle, OnStream):
            handle.stacks = all(part.shape == parts[0].shape for part in parts)
        return handle

    def allgather_coalesced(self, outputs: list[Tensors], inputs: Tensors, options: Any) -> Optional[Handle]:
        """Implements ``dist.all_gather`` of several tensors, with one list of outputs for each
        rank.
        """
        _some(inputs, "tensors")
        for place, tensor in enumerate(inputs):
            Calls.allgather(self, [[rank[place] for rank in outputs]], [tensor], _Blocking)
        everything = [tensor for rank in outputs for tensor in rank]
        return self._finished(everything, options.asyncOp)

    def all_gather_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, options: Any = None
    ) -> Optional[Handle]:
        """Implements ``dist.all_gather_into_tensor`` of several tensors at once."""
        _some(outputs, "outputs")
        layouts = [Layout(output) for output in outputs]
        out = [layout.dense for layout in layouts]
        is_async = getattr(options, "asyncOp", False)
        arguments = ([as_dense(tensor) for tensor in inputs], out)
        return self._run("all_gather_coalesced", arguments, is_async, outputs, all_back(layouts))

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, outputs: list[Tensors], inputs: Tensors, options: Any) -> Optional[Handle]:
        """Implements ``dist.gather``."""
        tensor = _one(inputs, "tensors")
        # All ranks must choose the same call, so the choice depends on values that are equal on all
        # ranks.
        listed = _is_long(tensor)
        out: Any = None
        after = None
        result = [tensor]
        if self._comm.rank == options.rootRank:
            result = _one(outputs, "output_lists")
            self._check_list(result, "gather_list")
            if listed:
                out, _, after = received_parts(result)
            else:
                out, after = parts_of(result)
        if not listed:
            arguments: tuple[Any, ...] = (as_dense(tensor), out, options.rootRank)
            return self._run("gather", arguments, options.asyncOp, result, after)
        counts = [tensor.numel()] * self._comm.size
        arguments = (as_flat(tensor), out, counts, options.rootRank)
        return self._run("gather_v", arguments, options.asyncOp, result, after)

    def gather_single(self, output: Any, input: torch.Tensor, options: Any) -> Optional[Handle]:
        """Implements ``dist.gather_single``."""
        if self._comm.rank != options.rootRank:
            arguments: tuple[Any, ...] = (as_dense(input), None, options.rootRank)
            return self._run("gather", arguments, options.asyncOp, [input])
        out = Layout(output)
        arguments = (as_dense(input), out.dense, options.rootRank)
        return self._run("gather", arguments, options.asyncOp, [output], out.back)

    def scatter(self, outputs: Tensors, inputs: list[Tensors], options: Any) -> Optional[Handle]:
        """Implements ``dist.scatter``."""
        out = Layout(_one(outputs, "tensors"))
        parts: Any = None
        counts = None
        listed = _is_long(out.dense)
        if self._comm.rank == options.rootRank:
            given = _one(inputs, "input_lists")
            self._check_list(given, "scatter_list")
            parts, counts = sent_parts(given) if listed else (each_flat(given), None)
        if not listed:
            arguments: tuple[Any, ...] = (parts, out.dense, options.rootRank)
            return self._run("scatter", arguments, options.asyncOp, outputs, out.back)
        arguments = (parts, out.flat, counts, options.rootRank)
        return self._run("scatter_v", arguments, options.asyncOp, outputs, out.back)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_splits: list[int],
        input_splits: list[int],
        options: Any,
    ) -> Optional[Handle]:
        """Implements ``dist.all_to_all_single``. Splits count rows."""
        out = Layout(output)
        if not output_splits and not input_splits:
            arguments: tuple[Any, ...] = (as_dense(input), out.dense)
            return self._run("all_to_all", arguments, options.asyncOp, [output], out.back)
        size = self._comm.size
        sent = row_counts(input, input_splits, size, "input")
        came = row_counts(output, output_splits, size, "output")
        arguments = (as_flat(input), sent, out.flat, came)
        return self._run("all_to_all_v", arguments, options.asyncOp, [output], out.back)

    alltoall_base = all_to_all_single

    def alltoall(self, outputs: Tensors, inputs: Tensors, options: Any) -> Optional[Handle]:
        """Implements ``dist.all_to_all``. The tensors may differ in size."""
        self._check_list(outputs, "output_tensor_list")
        self._check_list(inputs, "input_tensor_list")
        out, came, after = received_parts(outputs)
        parts, sent = sent_parts(inputs)
        arguments = (parts, sent, out, came)
        return self._run("all_to_all_v", arguments, options.asyncOp, outputs, after)

    # --- Between two ranks ----------------------------------------------------------------------
    def send(self, tensors: Tensors, destination: int, tag: int) -> Handle:
        """Implements ``dist.send`` and ``dist.isend``."""
        tensor = _one(tensors, "tensors")
        source = as_dense(tensor)
        if not tensor.is_cuda:
            work = self._comm.send_async(source, destination, tag)
            return self._pending(work, tensors, Kind.SEND)
        batch: Optional[Batch] = self.made.batch
        if batch is not None:
            return batch.send(tensors, source, destination)
        stream = self._streams.own(tensor.get_device())
        work = self._comm.send_async(source, destination, tag, stream=stream)
        return self._started(self._on_own(stream, tensors, [source], work))

    def recv(self, tensors: Tensors, source: int, tag: int) -> Handle:
        """Implements ``dist.recv`` and ``dist.irecv``."""
        tensor = _one(tensors, "tensors")
        layout = Layout(tensor)
        out, after = layout.dense, layout.back
        if not tensor.is_cuda:
            work = self._comm.recv_async(out, source, tag)
            return self._pending(work, tensors, Kind.RECEIVE, after)
        batch: Optional[Batch] = self.made.batch
        if batch is not None:
            return batch.recv(tensors, out, source, after)
        stream = self._streams.own(tensor.get_device())
        work = self._comm.recv_async(out, source, tag, stream=stream)
        return self._started(self._on_own(stream, tensors, [out, tensor], work, after))

    def recv_anysource(self, tensors: Tensors, tag: int) -> Handle:
        """Implements ``dist.recv`` and ``dist.irecv`` without `src`; only on host memory."""
        if not self.hands_on:
            raise NotImplementedError(
                "recv without src: this PyTorch has no way to hear from a backend who sent; give src, "
                "or use hocket's own communicator (backend.communicator.recv)"
            )
        return self.recv(tensors, hocket.ANY_SOURCE, tag)

    def _check_list(self, tensors: Sequence[torch.Tensor], name: str) -> None:
        if len(tensors) != self._comm.size:
            raise hocket.InvalidArgument(
                f"{name} holds {len(tensors)} tensors, expected {self._comm.size}, one a rank"
            )


class _Blocking:
    """Stands for the options of a synchronous call."""

    asyncOp = False  # noqa: N815: PyTorch's name
