"""Handles of calls with torch.distributed's interface."""

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

from ._futures import CallbackOrder, CallFuture, set_result
from ._texts import in_words


class Kind(enum.Enum):
    """The kind of call that a handle belongs to."""

    COLLECTIVE = enum.auto()
    SEND = enum.auto()
    RECEIVE = enum.auto()


def _seconds(timeout: Optional[timedelta]) -> Optional[float]:
    """Seconds; None if torch.distributed passes no limit for this call."""
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
        """It is."""
        return True

    def is_success(self) -> bool:
        """Return None: failures have been raised."""
        return True

    def synchronize(self) -> None:
        """Do nothing: the call has ended."""

    def result(self) -> list[torch.Tensor]:
        """The tensors of the call."""
        return self.tensors

    def get_future(self) -> Any:
        """A future that already has its value."""
        future: Any = torch.futures.Future()
        future.set_result(self.tensors)
        return future


def finished_of(tensors: list[torch.Tensor]) -> Finished:
    """The handle of a call on these tensors."""
    handle = Finished()
    handle.tensors = tensors
    return handle


class Shared:
    """State that the handles of a group share."""

    def __init__(self, comm: hocket.Communicator) -> None:
        self.ends = Ends()
        self.turns = CallbackOrder(comm)
        self.pending = PendingHandles()
        self.lock = threading.Lock()  # guards the making of futures
        # True if the program has seen the error that ended the group.
        self.has_raised = False


class _Rest:
    """The rest of a call after its end, such as copies of results; it is done once."""

    def __init__(self, after: Callable[[], None]) -> None:
        self._after: Optional[Callable[[], None]] = after
        self._lock = threading.Lock()

    def do(self, work: hocket.Work) -> None:
        with self._lock:
            after, self._after = self._after, None
            if after is not None and work.exception is None:
                after()


class Pending(Work):  # type: ignore[misc, unused-ignore]
    """A call on host memory that may be under way.

    It has no constructor of its own: `pending_of` and the straight path give it what differs from
    the values below.
    """

    shared: Shared
    work: hocket.Work
    tensors: list[torch.Tensor]
    kind = Kind.COLLECTIVE
    rest: Optional[_Rest] = None
    _future: Any = None

    def finish(self, timeout: Optional[float] = None) -> None:
        """Wait, then do the rest."""
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
        """Returns when the call has ended; raises its error. Its future then has its value."""
        self.finish(_seconds(timeout))
        future = self._future
        if future is not None and not future.done() and not self.shared.ends.has_stopped:
            future.wait()
        return True

    def is_completed(self) -> bool:
        """True if it has ended, in success or failure; the tensors then have their values."""
        if not self.work.test():
            return False
        if self.rest is not None:
            self.rest.do(self.work)
        return True

    def is_success(self) -> bool:
        """True if it has ended in success."""
        return self.is_completed() and self.work.exception is None

    def exception(self) -> Optional[BaseException]:
        """The error of a call that has ended."""
        return self.work.exception

    def source_rank(self) -> int:
        """The sender's rank in the group, once a `recv` has ended."""
        received = self.work.received
        if received is None:
            raise ValueError("source_rank() of what is not a recv that has ended well")
        return received.source

    _source_rank = source_rank

    def synchronize(self) -> None:
        """The same as `wait`: on host memory there is no stream to order after it."""
        self.wait()

    def result(self) -> list[torch.Tensor]:
        """The tensors of the call."""
        return self.tensors

    def get_future(self) -> Any:
        """A future that gets its value when the call ends; the same one each time.

        PyTorch's C++ code waits for a call and then takes the value without waiting.
        """
        with self.shared.lock:
            if self._future is not None:
                return self._future
            ordered = self.kind is Kind.COLLECTIVE
            self._future = CallFuture(self.shared.turns) if ordered else torch.futures.Future()
        if self.work.test():
            self.complete()
        else:
            self.shared.ends.watch(self.work, self)
        return self._future

    def complete(self) -> None:
        """The call has ended: give the future its value."""
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
    """The handle of a call on these tensors; `after` finishes it."""
    handle = Pending()
    handle.shared, handle.work, handle.tensors, handle.kind = shared, work, tensors, kind
    if after is not None:
        handle.rest = _Rest(after)
    return handle


class Together(Work):  # type: ignore[misc, unused-ignore]
    """Several calls as one."""

    def __init__(self, works: list[Any]) -> None:
        super().__init__()
        self._works = works

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Returns when all have ended; raises the first error."""
        for work in self._works:
            work.wait(timeout)
        return True

    def is_completed(self) -> bool:
        """True if all have ended."""
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        """True if all have ended in success."""
        return all(work.is_success() for work in self._works)

    def synchronize(self) -> None:
        """The same as `wait`."""
        self.wait()

    def result(self) -> list[torch.Tensor]:
        """The tensors of all calls."""
        return [tensor for work in self._works for tensor in work.result()]

    def get_future(self) -> Any:
        """A future that ends when all have ended, with their tensors."""
        every = torch.futures.collect_all([work.get_future() for work in self._works])
        return every.then(lambda all_of_them: (all_of_them.wait(), self.result())[1])


class PendingHandles:
    """Handles of calls under way. Programs drop them and go on, as PyTorch's own backends allow.
    hocket would give up a call whose Work is dropped, so this keeps them.
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
            if len(handles) >= self._sweep_at:  # a handle behind a long call
                left = [each for each in handles if not each.is_completed()]
                self._handles = collections.deque(left)
                self._sweep_at = max(self._SWEPT_AT_LEAST, 2 * len(left))

    def drain(self) -> None:
        """Wait for all but receives, which may never be answered. Raises the first error."""
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

    def settle(self) -> None:
        """Drop the first handles that have ended, in order."""
        if not self._handles:
            return
        with self._lock:
            while self._handles and self._handles[0].is_completed():
                self._handles.popleft()
