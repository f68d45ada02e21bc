"""The fast path of the most frequent call: all_reduce of one dense tensor.

Between a program's kernels, a call runs with cold caches, where each function call costs some
microseconds. So this path is a single function, and calls only PyTorch's C++ functions.
"""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch._C._autograd import _profiler_enabled
from torch._C._distributed_c10d import AllreduceOptions

from ._calls import Calls
from ._ops import BY_NUMBER
from ._streams import OnStream, current_stream, hold, is_current_capturing, record
from ._verbs import Handle, Tensors
from ._work import Finished, Pending

_strided = torch.strided
_op_of = BY_NUMBER.get


class FastPath(Calls):
    """A group's calls, with the fast path before them.

    Part of `HocketBackend`, whose docstring also describes these calls.
    """

    _all_reduce_in_full: Any = Calls.allreduce

    def allreduce(
        self, tensors: Tensors, options: Any = None, *more: Any, **named: Any
    ) -> Optional[Handle]:
        """Implements ``dist.all_reduce``."""
        if (
            type(options) is not AllreduceOptions  # another form of the call
            or more
            or named
            or type(tensors) is not list
            or len(tensors) != 1
            or self._open_turns
            or self.is_collecting
            or _profiler_enabled()
        ):
            more = (*(() if options is None else (options,)), *more)
            handle: Optional[Handle] = self._all_reduce_in_full(tensors, *more, **named)
            return handle
        tensor = tensors[0]
        op = _op_of(hash(options.reduceOp))
        if (
            op is None
            or tensor.layout is not _strided
            or not tensor.is_contiguous()
            or tensor.is_neg()
            or tensor.is_conj()
        ):
            handle = self._all_reduce_in_full(tensors, options)
            return handle
        try:
            if not options.asyncOp:
                if tensor.is_cuda:
                    self._streams.use_current(tensor.get_device())
                    self._all_reduce(tensor, None, op)
                    return self._finished(tensors)
                self._all_reduce(tensor, None, op)
                self._shared.pending.drop_ended()
                if self.is_called_directly:
                    return None
                handle = Finished()
                handle.tensors = tensors
            elif tensor.is_cuda:
                if is_current_capturing():
                    handle = self._all_reduce_in_full(tensors, options)
                    return handle
                streams = self._streams
                device = tensor.get_device()
                lane = streams.lanes.by_device.get(device) or streams.new_lane(device)
                record(lane.event, current_stream(device))
                stream = lane.stream
                hold(lane.event, stream)
                streams.last = stream
                handle = OnStream()
                handle.work = self._start_all_reduce(tensor, None, op, None, lane.handle)
                tensor.record_stream(stream)
                handle.comm = self._comm
                handle.stream = stream
                handle.tensors = tensors
            else:
                handle = Pending()
                handle.work = self._start_all_reduce(tensor, None, op)
                handle.shared = self._shared
                handle.tensors = tensors
                self._shared.pending.add(handle)
        except Exception as error:
            told = self._told(error)
            if told is error:
                raise
            raise told from None
        if not self.is_called_directly:
            self.made.handle = handle
        return handle
