"""Calls on CUDA tensors: the streams on which they run, and their handles."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from datetime import timedelta
from threading import local
from typing import Any, Optional

import torch
from torch._C._distributed_c10d import Work

import hocket
from hocket import errors
from hocket._hocket import _run_time

from ._error_texts import in_words

_CODES = {
    "invalid_argument": errors.InvalidArgument,
    "peer_died": errors.PeerDied,
    "deadline_exceeded": errors.DeadlineExceeded,
    "mismatch": errors.Mismatch,
    "aborted": errors.Aborted,
    "device": errors.DeviceError,
}


def failure_of(comm: hocket.Communicator) -> Optional[hocket.Error]:
    """Return the error that ended a communicator. Return None while it works."""
    status = comm.status
    if status is None:
        return None
    error: hocket.Error = _CODES.get(status.code, errors.Error)(status.message)
    error.status = status
    return in_words(error)


# PyTorch's C++ functions. They are absent if PyTorch was built without CUDA.
_Future: Any = torch._C.Future
_current_device: Any = getattr(torch._C, "_cuda_getDevice", None)
_current_stream: Any = getattr(torch._C, "_cuda_getCurrentStream", None)
_set_stream: Any = getattr(torch._C, "_cuda_setStream", None)

_known: dict[Any, torch.cuda.Stream] = {}


def current_stream(device: int) -> torch.cuda.Stream:
    """Return PyTorch's current stream. Returns the same object for the same stream, and is faster.
    """
    place = _current_stream(device)
    stream = _known.get(place)
    if stream is None:
        stream = _known[place] = torch.cuda.current_stream(device)
    return stream


def is_capturing(stream: torch.cuda.Stream) -> bool:
    """Return True if work on the stream is being captured into a graph."""
    if hasattr(stream, "is_capturing"):
        return bool(stream.is_capturing())
    with on_stream(stream):  # older PyTorch can ask only about the current stream
        return bool(is_current_capturing())


# Tells whether work on the current stream is being captured. If it is, work on a group's own stream
# is captured, too, because that stream waits for the current stream.
is_current_capturing: Any = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)


# Methods of PyTorch's C++ class, without the Python methods that wrap them. Between a program's
# kernels these calls run with cold caches, where each function call costs some microseconds.
record: Any = getattr(torch._C._CudaEventBase, "record", torch.cuda.Event.record)
hold: Any = getattr(torch._C._CudaEventBase, "wait", torch.cuda.Event.wait)


class Lane:
    """A group's own stream on one GPU, as one thread uses it. A resource.

    `event` marks the thread's earlier work. A stream that waits for an event waits for the record
    that is the last at that moment. So the event can be recorded again at once. Making an event for
    each call takes longer than recording one.
    """

    __slots__ = ("event", "handle", "stream")

    def __init__(self, stream: torch.cuda.Stream) -> None:
        self.stream = stream
        self.handle = stream.cuda_stream  # the raw handle that hocket accepts
        self.event = torch.cuda.Event()


class _Lanes(local):
    """The lanes of a thread, by GPU."""

    def __init__(self) -> None:
        self.by_device: dict[int, Lane] = {}


class Streams:
    """Chooses the streams of a group's calls.

    Asynchronous calls run on the group's own stream, one for each GPU. They run after the caller's
    earlier work, and overlap with its later work. Synchronous calls run on the caller's stream.
    """

    def __init__(self) -> None:
        self._own: dict[int, torch.cuda.Stream] = {}
        self.lanes = _Lanes()
        self.last: Optional[torch.cuda.Stream] = None

    def own(self, device: int) -> torch.cuda.Stream:
        """Return the group's stream for an asynchronous call. It waits for the current stream."""
        lane = self.lanes.by_device.get(device) or self.new_lane(device)
        record(lane.event, current_stream(device))
        hold(lane.event, lane.stream)
        self.last = lane.stream
        return lane.stream

    def new_lane(self, device: int) -> Lane:
        """Make the lane of a GPU that this thread has not used yet."""
        stream = self._own.get(device)
        if stream is None:
            stream = self._own[device] = torch.cuda.Stream(device)
        lane = self.lanes.by_device[device] = Lane(stream)
        return lane

    def use_current(self, device: int) -> None:
        """Note that a synchronous call runs on the caller's stream."""
        stream = current_stream(device)
        own = self._own.get(device)
        # hocket orders its calls across streams, but cannot do so within a graph.
        if own is not None and is_capturing(stream) and is_capturing(own):
            stream.wait_stream(own)
        self.last = stream

    def synchronize(self) -> None:
        """Wait in this thread for all calls on the group's own streams."""
        for stream in self._own.values():
            stream.synchronize()

    def drain(self, comm: hocket.Communicator) -> Optional[hocket.Error]:
        """Wait in this thread for the last call, which hocket ends at its deadline at the latest.
        Return the error, if there is one.
        """
        if self.last is None or is_capturing(self.last):
            return None
        mark = self.last.record_event()
        failed_at = None
        while not mark.query():
            time.sleep(0.0001)
            if comm.status is None:
                continue
            failed_at = failed_at or time.monotonic()
            if time.monotonic() - failed_at > _LATER_ITS_OWN:
                break
        return failure_of(comm)


# Seconds after a failure. hocket's calls have ended then, and the program's own work ends
# meanwhile.
_LATER_ITS_OWN = 5.0


class OnStream(Work):  # type: ignore[misc, unused-ignore]
    """A call on CUDA tensors, which a stream carries out.

    It has no constructor. `on_stream_of` and the fast path set the attributes that differ from the
    defaults below. Between a program's kernels, each function call costs some microseconds.
    """

    comm: hocket.Communicator
    tensors: list[torch.Tensor]
    stream: torch.cuda.Stream
    # The Work of hocket, if the call has one.
    work: Optional[hocket.Work] = None
    # An event after the call and the work that finishes it. None if no work follows the call.
    end: Optional[torch.cuda.Event] = None
    is_captured = False
    # True if a future's value is one stacked tensor. NCCL's backend stacks the tensors of
    # all_gather, and PyTorch's hooks expect this on GPUs.
    stacks = False

    def ends_at(self, stream: torch.cuda.Stream, end: torch.cuda.Event) -> None:
        """Set the stream and the end of a call that was put on the stream after its handle was
        made.
        """
        self.stream, self.end = stream, end

    def _mark(self) -> torch.cuda.Event:
        """Return an event after the call. For a synchronous call, the first use makes it."""
        if self.end is None:
            self.end = self.stream.record_event()
        return self.end

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Make later work on the current stream wait for the call.

        If the group has already failed, raise its error. With a timeout, this thread also waits for
        the call to end, at most for that time.
        """
        current = current_stream(self.stream.device_index)
        if self.work is not None:
            self.work.wait(stream=current)
        elif not self.is_captured and (error := failure_of(self.comm)) is not None:
            raise error
        if current is not self.stream and (self.work is None or self.end is not None):
            current.wait_event(self._mark())
        if timeout is not None and timeout > timedelta(0) and not self.is_captured:
            self._wait_here(timeout.total_seconds())
        return True

    def _wait_here(self, seconds: float) -> None:
        until = _run_time() + seconds
        while not self.is_completed():
            if _run_time() > until:
                raise TimeoutError("the call is still under way; it goes on")
            time.sleep(0.00005)
        if (error := self.exception()) is not None:
            raise error

    def synchronize(self) -> None:
        """Do the same as `wait`."""
        self.wait()

    def is_completed(self) -> bool:
        """Return True if the GPU has finished the call.

        Raises
        ------
        RuntimeError
            The call is part of a graph, so the graph's replays make it. Or its stream is being
            captured.
        """
        if self.is_captured or is_capturing(self.stream):
            raise RuntimeError(
                "the call's stream is captured into a graph: what is captured is made by the graph's "
                "replays, and whether a call has ended cannot be asked meanwhile"
            )
        if self.work is not None and not self.work.test():
            return False
        if self.work is not None and self.end is None:
            return True
        return bool(self._mark().query())

    def is_success(self) -> bool:
        """Return True if the GPU has finished the call without an error."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Optional[BaseException]:
        """Return the group's error, or None if the group has not failed yet."""
        return failure_of(self.comm)

    def source_rank(self) -> int:
        """Return the sender's rank in the group, once a `recv` has ended."""
        received = None if self.work is None else self.work.received
        if received is None:
            raise ValueError("source_rank() of what is not a recv that has ended well")
        return received.source

    _source_rank = source_rank

    def result(self) -> list[torch.Tensor]:
        """Return the tensors of the call."""
        return self.tensors

    def get_future(self) -> Any:
        """Return a future that already has its value. The stream of a waiter waits for the call, as
        with `wait`.
        """
        stream = self.stream
        device = stream.device_index
        future: Any = _Future([stream.device])  # PyTorch's plain class, like other backends
        if self.stacks or _current_device() != device:
            with on_stream(stream):
                future.set_result([torch.stack(self.tensors)] if self.stacks else self.tensors)
            return future
        before = _current_stream(device)
        _set_stream(stream.stream_id, device, stream.device_type)
        try:
            future.set_result(self.tensors)
        finally:
            _set_stream(*before)
        return future


def on_stream_of(
    comm: hocket.Communicator,
    tensors: list[torch.Tensor],
    stream: torch.cuda.Stream,
    work: Optional[hocket.Work] = None,
    end: Optional[torch.cuda.Event] = None,
    is_captured: bool = False,
) -> OnStream:
    """Return a handle with these values."""
    handle = OnStream()
    handle.comm, handle.tensors, handle.stream = comm, tensors, stream
    handle.work, handle.end, handle.is_captured = work, end, is_captured
    return handle


class on_stream:  # noqa: N801: it is used as a function
    """``with on_stream(stream)`` makes it the current stream, like `torch.cuda.stream`.

    If the stream's GPU is the current one, it takes a quarter of the time of `torch.cuda.stream`.
    """

    __slots__ = ("_before", "_stream")

    def __init__(self, stream: torch.cuda.Stream) -> None:
        self._stream = stream

    def __enter__(self) -> None:
        device = self._stream.device_index
        if _current_device() == device:
            self._before: Any = _current_stream(device)
            stream = self._stream
            _set_stream(stream.stream_id, device, stream.device_type)
        else:
            self._before = torch.cuda.stream(self._stream)
            self._before.__enter__()

    def __exit__(self, *error: object) -> None:
        if isinstance(self._before, tuple):
            _set_stream(*self._before)
        else:
            self._before.__exit__(*error)


def used_on(stream: torch.cuda.Stream, things: Iterable[Any]) -> None:
    """Keep the memory of all tensors in `things` from being reused until the stream has passed the
    work queued so far.
    """
    last = None
    for tensor in _tensors_of(things):
        if tensor is not last:  # saves some repeated records, which would do no harm
            tensor.record_stream(stream)
        last = tensor


def _tensors_of(things: Iterable[Any]) -> Iterator[torch.Tensor]:
    for thing in things:
        if isinstance(thing, torch.Tensor):
            if thing.is_cuda:
                yield thing
        elif isinstance(thing, (list, tuple)):
            yield from _tensors_of(thing)
