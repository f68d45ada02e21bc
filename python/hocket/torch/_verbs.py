"""Makes calls of torch.distributed by hocket: synchronous or not, on host memory or a GPU's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from threading import local
from typing import Any, Optional, Union

import torch

import hocket

from ._streams import (
    OnStream,
    Streams,
    current_stream,
    is_current_capturing,
    on_stream,
    on_stream_of,
    used_on,
)
from ._texts import in_words, refusal
from ._work import Finished, Kind, Pending, Shared, finished_of, pending_of

Tensors = list[torch.Tensor]
Handle = Union[Finished, Pending, OnStream]
After = Optional[Callable[[], None]]


class Made(local):
    """The state of a group that belongs to one thread.

    `handle` is the last one, which a group with `hands_on` returns. While calls are coalesced,
    `collected` holds the started ones, and `batch` the messages on GPUs.
    """

    handle: Optional[Handle] = None
    collected: Optional[list[Handle]] = None
    batch: Optional[Batch] = None


class Verbs:
    """Makes hocket's calls by name and returns PyTorch's handles.

    Part of `HocketBackend`, which says what holds for them.
    """

    def __init__(self, comm: hocket.Communicator) -> None:
        self.made = Made()
        self.is_collecting = 0  # batches of calls that threads have begun
        self._use(comm)
        self.hands_on = False
        # True if PyTorch's Python code calls this backend itself: see `_finished`.
        self.is_called_directly = False

    def _use(self, comm: hocket.Communicator) -> None:
        """Make all later calls by this communicator."""
        self._comm = comm
        self._all_reduce: Any = comm.all_reduce
        self._start_all_reduce: Any = comm.all_reduce_async
        self._shared = Shared(comm)
        self._open_turns = self._shared.turns.open
        self._streams = Streams()

    def _told(self, error: Exception) -> Exception:
        """The error to raise for one that a call has raised. If the call has been refused or has
        failed before its start, all ranks are told.
        """
        if isinstance(error, hocket.InvalidArgument):
            if error.status is not None:  # hocket's own
                return refusal(error)
            try:
                self._comm.refuse(str(error))
            except hocket.Error as told:
                return told
        if isinstance(error, hocket.Error):
            self._shared.has_raised = True
            return in_words(error)
        with contextlib.suppress(hocket.Error):
            self._comm.refuse(f"{type(error).__name__}: {error}")
        return error

    def _run(
        self,
        name: str,
        arguments: tuple[Any, ...],
        is_async: bool,
        result: Tensors,
        after: After = None,
    ) -> Optional[Handle]:
        """Make the collective `name`; `after` copies results to their destination."""
        if result[0].is_cuda:
            return self._on_gpu(name, arguments, is_async, result, after)
        if is_async:
            start = getattr(self._comm, name + "_async", None)
            if start is not None:
                return self._pending(start(*arguments), result, Kind.COLLECTIVE, after)
        getattr(self._comm, name)(*arguments)
        if after is not None:
            after()
        self._shared.pending.settle()
        return self._finished(result, is_async)

    def _on_gpu(
        self,
        name: str,
        arguments: tuple[Any, ...],
        is_async: bool,
        result: Tensors,
        after: After = None,
    ) -> Optional[Handle]:
        device = result[0].get_device()
        if not is_async:
            self._streams.use_current(device)
            getattr(self._comm, name)(*arguments)
            if after is not None:
                after()
            return self._finished(result, is_async)
        stream = self._streams.own(device)
        start = getattr(self._comm, name + "_async", None)
        work = None
        if start is not None:
            work = start(*arguments, stream=stream)
        else:
            getattr(self._comm, name)(*arguments, stream=stream)
        return self._started(self._on_own(stream, result, [arguments, result], work, after))

    def _on_own(
        self,
        stream: torch.cuda.Stream,
        result: Tensors,
        used: Sequence[Any],
        work: Optional[hocket.Work] = None,
        after: After = None,
    ) -> OnStream:
        """The handle of work on the group's own stream that uses the tensors in `used`."""
        end = None
        captured = is_current_capturing()
        if after is not None:
            with on_stream(stream):
                after()
        if after is not None or work is None or captured:
            end = stream.record_event()
        used_on(stream, used)
        return on_stream_of(self._comm, result, stream, work, end, captured)

    def _started(self, handle: OnStream) -> OnStream:
        self.made.handle = handle
        collected = self.made.collected
        if collected is not None:
            collected.append(handle)
        return handle

    def _finished(self, result: Tensors, is_async: bool = False) -> Optional[Handle]:
        """The handle of a synchronous call that has been made here; `is_async`: its caller wants
        one.

        If Python calls the backend, other callers get None, as from PyTorch's own backends. The
        call has ended, or precedes later work on the caller's stream. C++ code does not take None.
        """
        if self.is_called_directly and not is_async and self.made.collected is None:
            return None
        if result and result[0].is_cuda:
            stream = current_stream(result[0].get_device())
            return self._started(on_stream_of(self._comm, result, stream))
        self.made.handle = handle = finished_of(result)
        return handle

    def _pending(
        self, work: hocket.Work, result: Tensors, kind: Kind, after: After = None
    ) -> Pending:
        self.made.handle = handle = pending_of(self._shared, work, result, kind, after)
        self._shared.pending.add(handle)
        collected = self.made.collected
        if collected is not None:
            collected.append(handle)
        return handle


class Batch:
    """Messages on GPUs that are put on the stream together. Singly, each would wait for the
    last.
    """

    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs
        self.outgoing: list[tuple[torch.Tensor, int]] = []
        self.incoming: list[tuple[torch.Tensor, int]] = []
        self._after: list[Callable[[], None]] = []
        self._handles: list[OnStream] = []

    def send(self, tensors: Tensors, source: torch.Tensor, destination: int) -> OnStream:
        """Adds one."""
        self.outgoing.append((source, destination))
        return self._add(tensors)

    def recv(self, tensors: Tensors, out: torch.Tensor, source: int, after: After) -> OnStream:
        """Add a message; `after` copies received data to its destination."""
        self.incoming.append((out, source))
        if after is not None:
            self._after.append(after)
        return self._add(tensors)

    def _add(self, tensors: Tensors) -> OnStream:
        stream = current_stream(tensors[0].get_device())
        handle = on_stream_of(self._verbs._comm, tensors, stream)
        self._verbs.made.handle = handle
        self._handles.append(handle)
        return handle

    def go(self) -> list[OnStream]:
        """Put the messages on the stream; return the handles of all."""
        if not self._handles:
            return []
        messages = [tensor for tensor, _ in self.outgoing + self.incoming]
        stream = self._verbs._streams.own(messages[0].get_device())
        self._verbs._comm.exchange(self.outgoing, self.incoming, stream=stream)
        with on_stream(stream):
            for after in self._after:
                after()
        used_on(stream, messages)
        end = stream.record_event()
        for handle in self._handles:
            handle.ends_at(stream, end)
        return self._handles
