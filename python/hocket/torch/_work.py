"""Handles of calls on host memory, with torch.distributed's interface."""

from __future__ import annotations

import collections
import enum
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Optional

import torch
from torch._C._distributed_c10d import Work

import hocket
from hocket._waiting.ends import Ends

from ._error_texts import in_words
from ._futures import CallbackOrder, CallFuture, set_result


class Kind(enum.Enum):
    """The kind of the call to which a handle belongs."""

    COLLECTIVE = enum.auto()
    SEND = enum.auto()
    RECEIVE = enum.auto()


def _seconds(timeout: Optional[timedelta]) -> Optional[float]:
    """Return the timeout in seconds. Return None if torch.distributed passes no limit for this
    call.
    """
    if timeout is None or timeout <= timedelta(0):
        return None
    return timeout.total_seconds()


class Finished(Work):  # type: ignore[misc, unused-ignore]
    """A call on host memory that has ended; `finished_of` makes it."""

    tensors: list[torch.Tensor]

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Do nothing: the call has ended."""
        return True

    def is_completed(self) -> bool:
        """Return True."""
        return True

    def is_success(self) -> bool:
        """Return True: a failed call would have raised its error."""
        return True

    def synchronize(self) -> None:
        """Do nothing: the call has ended."""

    def result(self) -> list[torch.Tensor]:
        """Return the tensors of the call."""
        return self.tensors

    def get_future(self) -> Any:
        """Return a future that already has its value."""
        future: Any = torch.futures.Future()
        future.set_result(self.tensors)
        return future


def finished_of(tensors: list[torch.Tensor]) -> Finished:
    """Return the handle of an ended call on these tensors."""
    handle = Finished()
    handle.tensors = tensors
    return handle


class Shared:
    """The state that all handles of a group share."""

    def __init__(self, comm: hocket.Communicator) -> None:
        self.ends: Ends = Ends()
        self.turns: CallbackOrder = CallbackOrder(comm)
        self.pending: PendingHandles = PendingHandles()
        self.lock: threading.Lock = threading.Lock()  # held while a handle's future is made
        # True if the program has seen the error that ended the group.
        self.has_raised = False


class _Rest:
    """Work to do once after a call has ended, such as copies of results."""

    def __init__(self, after: Callable[[], None]) -> None:
        self._after: Optional[Callable[[], None]] = after
        self._lock = threading.Lock()

    def do(self, work: hocket.Work) -> None:
        with self._lock:
            after, self._after = self._after, None
            if after is not None and work.exception is None:
                after()


class Pending(Work):  # type: ignore[misc, unused-ignore]
    """A call on host memory that may be pending.

    It has no constructor. `pending_of` and the fast path set the attributes that differ from the
    defaults below.
    """

    shared: Shared
    work: hocket.Work
    tensors: list[torch.Tensor]
    kind = Kind.COLLECTIVE
    rest: Optional[_Rest] = None
    _future: Any = None

    def finish(self, timeout: Optional[float] = None) -> None:
        """Wait for the call, then do the work that is due after it."""
        try:
            self.work.wait(timeout)
        except hocket.Error as error:
            self.shared.has_raised = True
            told = in_words(error)
            if told is error:
                raise
            raise told from None
        if self.rest is not None:
            self.rest.do(self.work)

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Wait until the call has ended and its future has its value. Raise the call's error."""
        self.finish(_seconds(timeout))
        future = self._future
        if future is not None and not future.done() and not self.shared.ends.has_stopped:
            future.wait()
        return True

    def is_completed(self) -> bool:
        """Return True if the call has ended, with success or failure. The tensors then have their
        values.
        """
        if not self.work.test():
            return False
        if self.rest is not None:
            self.rest.do(self.work)
        return True

    def is_success(self) -> bool:
        """Return True if the call has ended with success."""
        return self.is_completed() and self.work.exception is None

    def exception(self) -> Optional[BaseException]:
        """Return the error of a call that has ended."""
        return self.work.exception

    def source_rank(self) -> int:
        """Return the sender's rank in the group, once a `recv` has ended."""
        received = self.work.received
        if received is None:
            raise ValueError("source_rank() of what is not a recv that has ended well")
        return received.source

    _source_rank = source_rank

    def synchronize(self) -> None:
        """Do the same as `wait`: calls on host memory involve no stream."""
        self.wait()

    def result(self) -> list[torch.Tensor]:
        """Return the tensors of the call."""
        return self.tensors

    def get_future(self) -> Any:
        """Return a future that gets its value when the call ends. Every call returns the same
        future.

        PyTorch's C++ code waits for a call, and then takes the future's value without waiting.
        """
        with self.shared.lock:
            if self._future is not None:
                return self._future
            ordered = self.kind is Kind.COLLECTIVE
            self._future = CallFuture(self.shared.turns) if ordered else torch.futures.Future()
        if self.work.test():
            self.complete()
            return self._future
        try:
            self.shared.ends.watch(self.work, self)
        except BaseException as error:  # no thread could be started, for example
            # Another thread may have got this future already. The next call makes a new one.
            unwatched, self._future = self._future, None
            unwatched.set_exception(error)
            raise
        return self._future

    def complete(self) -> None:
        """Give the future its value. The call has ended."""
        try:
            self.finish()
        except Exception as error:
            self._future.set_exception(error)
        else:
            set_result(self._future, self.tensors)


def pending_of(
    shared: Shared,
    work: hocket.Work,
    tensors: list[torch.Tensor],
    kind: Kind,
    after: Optional[Callable[[], None]] = None,
) -> Pending:
    """Return the handle of a pending call on these tensors. `after` runs once the call has ended.
    """
    handle = Pending()
    handle.shared, handle.work, handle.tensors, handle.kind = shared, work, tensors, kind
    if after is not None:
        handle.rest = _Rest(after)
    return handle


class Together(Work):  # type: ignore[misc, unused-ignore]
    """One handle for several calls."""

    def __init__(self, works: list[Any]) -> None:
        super().__init__()
        self._works = works

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Wait until all calls have ended. Raise the first error."""
        for work in self._works:
            work.wait(timeout)
        return True

    def is_completed(self) -> bool:
        """Return True if all calls have ended."""
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        """Return True if all calls have ended with success."""
        return all(work.is_success() for work in self._works)

    def synchronize(self) -> None:
        """Do the same as `wait`."""
        self.wait()

    def result(self) -> list[torch.Tensor]:
        """Return the tensors of all calls."""
        return [tensor for work in self._works for tensor in work.result()]

    def get_future(self) -> Any:
        """Return a future that gets the tensors of all calls when all calls have ended."""
        every = torch.futures.collect_all([work.get_future() for work in self._works])
        return every.then(lambda all_of_them: (all_of_them.wait(), self.result())[1])


class PendingHandles:
    """Handles of pending calls. Programs may drop handles and go on, as with PyTorch's own
    backends. hocket would give up a call whose Work is dropped, so this object keeps the handles.
    """

    _SWEPT_AT_LEAST = 64

    def __init__(self) -> None:
        self._handles: collections.deque[Pending] = collections.deque()
        self._lock = threading.Lock()
        self._sweep_at = self._SWEPT_AT_LEAST

    def add(self, handle: Pending) -> None:
        """Keep a handle until its call has ended."""
        with self._lock:
            handles = self._handles
            while handles and handles[0].is_completed():
                handles.popleft()
            handles.append(handle)
            if len(handles) >= self._sweep_at:  # ended handles may stand behind one of a long call
                left = [each for each in handles if not each.is_completed()]
                self._handles = collections.deque(left)
                self._sweep_at = max(self._SWEPT_AT_LEAST, 2 * len(left))

    def drain(self) -> None:
        """Wait for all calls except receives, which may never end. Raise the first error."""
        with self._lock:
            handles = list(self._handles)
        errors = []
        for handle in handles:
            try:
                if handle.kind is not Kind.RECEIVE:
                    handle.finish()
            except hocket.Error as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def drop_ended(self) -> None:
        """Drop the first handles, in order, as long as their calls have ended."""
        if not self._handles:
            return
        with self._lock:
            while self._handles and self._handles[0].is_completed():
                self._handles.popleft()
