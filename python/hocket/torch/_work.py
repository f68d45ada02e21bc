"""Handles of calls, as torch.distributed has them."""

from __future__ import annotations

import collections
import queue
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Optional

import torch
from torch._C._distributed_c10d import Work

import hocket


def _seconds(timeout: Optional[timedelta]) -> Optional[float]:
    """None where torch.distributed says that there is no limit of its own."""
    if timeout is None or timeout <= timedelta(0):
        return None
    return timeout.total_seconds()


class Finished(Work):  # type: ignore[misc, unused-ignore]
    """A call that has ended, or that a GPU's stream carries out."""

    def __init__(self, result: list[torch.Tensor]) -> None:
        super().__init__()
        self._result = result

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Nothing is left to wait for; a stream goes on by itself."""
        return True

    def is_completed(self) -> bool:
        """It is."""
        return True

    def is_success(self) -> bool:
        """Failures have been raised."""
        return True

    def synchronize(self) -> None:
        """Nothing is left to wait for."""

    def result(self) -> list[torch.Tensor]:
        """The tensors of the call."""
        return self._result

    def get_future(self) -> Any:
        """A future that has its value."""
        devices: list[Any] = [t.device for t in self._result[:1] if t.is_cuda]
        future: Any = torch.futures.Future(devices=devices)
        future.set_result(self._result)
        return future


class Pending(Work):  # type: ignore[misc, unused-ignore]
    """A call on host memory that may be under way."""

    def __init__(
        self,
        work: hocket.Work,
        result: list[torch.Tensor],
        waiter: Waiter,
        after: Optional[Callable[[], None]] = None,
    ) -> None:
        super().__init__()
        self._work = work
        self._result = result
        self._waiter = waiter
        self._after = after  # what is left to do when the call has ended, once
        self._has_after = after is not None
        self._lock = threading.Lock()
        self._future: Any = None

    def finish(self, timeout: Optional[float] = None) -> None:
        """Wait, then do what is left to do."""
        self._work.wait(timeout)
        self._settle()

    def _settle(self) -> None:
        if not self._has_after:
            return
        with self._lock:
            after, self._after = self._after, None
            if after is not None and self._work.exception is None:
                after()

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Returns when the call has ended; raises its error."""
        self.finish(_seconds(timeout))
        return True

    def is_completed(self) -> bool:
        """Whether it has ended, well or not; the tensors then have their values."""
        if not self._work.test():
            return False
        self._settle()
        return True

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self.is_completed() and self._work.exception is None

    def exception(self) -> Optional[BaseException]:
        """The error of a call that has ended."""
        return self._work.exception

    def source_rank(self) -> int:
        """Who sent, in the group, once a `recv` has ended."""
        received = self._work.received
        if received is None:
            raise ValueError("source_rank() of what is not a recv that has ended well")
        return received.source

    _source_rank = source_rank

    def synchronize(self) -> None:
        """The same as `wait`: on host memory there is no stream to order after it."""
        self.finish()

    def result(self) -> list[torch.Tensor]:
        """The tensors of the call."""
        return self._result

    def get_future(self) -> Any:
        """A future that gets its value when the call ends; the same one each time."""
        with self._lock:
            if self._future is None:
                self._future = torch.futures.Future()
                self._waiter.watch(self, self._future)
            return self._future

    def complete(self, future: Any) -> None:
        """In the waiter's thread: end the future as the call ends."""
        try:
            self.finish()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(self._result)


class Together(Work):  # type: ignore[misc, unused-ignore]
    """Several calls as one."""

    def __init__(self, works: list[Pending]) -> None:
        super().__init__()
        self._works = works

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Returns when all have ended; raises the first error."""
        for work in self._works:
            work.wait(timeout)
        return True

    def is_completed(self) -> bool:
        """Whether all have ended."""
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        """Whether all have ended well."""
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


class Kept:
    """Handles of calls under way. Programs drop them and go on, as PyTorch's own backends let them,
    and a call of hocket's whose Work is dropped is given up."""

    _SWEPT_AT_LEAST = 64

    def __init__(self) -> None:
        self._handles: collections.deque[Pending] = collections.deque()
        self._lock = threading.Lock()
        self._sweep_at = self._SWEPT_AT_LEAST

    def add(self, handle: Pending) -> None:
        """Keep it until it has ended."""
        self.settle()
        with self._lock:
            self._handles.append(handle)
            if len(self._handles) >= self._sweep_at:  # behind one that takes long
                left = [each for each in self._handles if not each.is_completed()]
                self._handles = collections.deque(left)
                self._sweep_at = max(self._SWEPT_AT_LEAST, 2 * len(left))

    def settle(self) -> None:
        """Let go of those that have ended, in order."""
        if not self._handles:
            return
        with self._lock:
            while self._handles and self._handles[0].is_completed():
                self._handles.popleft()


class Waiter:
    """Gives futures their values, in a thread that is started for the first of them."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: Optional[threading.Thread] = None

    def watch(self, work: Pending, future: Any) -> None:
        """Have the future end as the work ends."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="hocket torch", daemon=True)
            self._thread.start()
        self._queue.put((work, future))

    def close(self) -> None:
        """End the thread once all futures have ended."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            work, future = item
            work.complete(future)
