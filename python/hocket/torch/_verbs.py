"""Makes torch.distributed's calls by hocket: synchronous or asynchronous, on the host or a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from threading import local
from typing import Any, Optional, Union

import torch

import hocket

from ._error_texts import in_words, refusal
from ._streams import (
    OnStream,
    Streams,
    current_stream,
    is_current_capturing,
    on_stream,
    on_stream_of,
    used_on,
)
from ._work import Finished, Kind, Pending, Shared, finished_of, pending_of

Tensors = list[torch.Tensor]
Handle = Union[Finished, Pending, OnStream]
After = Optional[Callable[[], None]]


class Made(local):
    """One thread's part of the state of a process group.

    `handle` is the thread's last handle. While calls are coalesced, `collected` holds the handles of started calls, and `batch` the messages on GPUs.
    """

    handle: Optional[Handle] = None
    collected: Optional[list[Handle]] = None
    batch: Optional[Batch] = None


class Verbs:
    """Makes hocket's calls by name, and returns handles with PyTorch's interface.

    Part of `HocketBackend`, whose docstring also describes these methods.
    """

    def __init__(self, comm: hocket.Communicator) -> None:
        self.made: Made = Made()
        self.is_collecting = 0  # number of batches that threads have begun and not ended
        self._use(comm)
        # True if a HocketGroup, in Python, returns `made.handle` to the program.
        self.hands_on = False
        # True if PyTorch's Python code calls this backend directly; see `_finished`.
        self.is_called_directly = False

    def _use(self, comm: hocket.Communicator) -> None:
        """Make all later calls on this communicator."""
        self._comm = comm
        self._all_reduce: Any = comm.all_reduce
        self._start_all_reduce: Any = comm.all_reduce_async
        self._shared = Shared(comm)
        self._open_turns = self._shared.turns.open
        self._streams = Streams()

    def _told(self, error: Exception) -> Exception:
        """Return the error that replaces `error`, which a call has raised. If the call was refused
        or failed before its start, tell all ranks.
        """
        if isinstance(error, hocket.InvalidArgument):
            if error.status is not None:  # hocket itself has raised it, and told the ranks
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
        """Call the collective `name`. `after` copies the results to their destination."""
        if result[0].is_cuda:
            return self._on_gpu(name, arguments, is_async, result, after)
        if is_async:
            start = getattr(self._comm, name + "_async", None)
            if start is not None:
                return self._pending(start(*arguments), result, Kind.COLLECTIVE, after)
        getattr(self._comm, name)(*arguments)
        if after is not None:
            after()
        self._shared.pending.drop_ended()
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
        """Return the handle of work on the group's own stream. The work uses the tensors in `used`.
        """
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
        """Return the handle of a synchronous call, which has ended or is on the caller's stream.

        Return None if Python code calls the backend and the caller wants no handle (not
        `is_async`). PyTorch's own backends do this, too. C++ code does not accept None.
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
    """Messages on GPUs that are put on the stream together. One by one, each message would wait for
    the message before it.
    """

    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs
        self.outgoing: list[tuple[torch.Tensor, int]] = []
        self.incoming: list[tuple[torch.Tensor, int]] = []
        self._after: list[Callable[[], None]] = []
        self._handles: list[OnStream] = []

    def send(self, tensors: Tensors, source: torch.Tensor, destination: int) -> OnStream:
        """Add a message to send."""
        self.outgoing.append((source, destination))
        return self._add(tensors)

    def recv(self, tensors: Tensors, out: torch.Tensor, source: int, after: After) -> OnStream:
        """Add a message to receive. `after` copies the data to its destination."""
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
        """Put the messages on the stream, and return the handles of all of them."""
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
