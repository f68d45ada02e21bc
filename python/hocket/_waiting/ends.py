"""Notifies handles of calls that have ended, in threads that start with the first such call."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Protocol

from .._hocket import Work, _Endings


class Handle(Protocol):
    """An object that is notified when a call ends."""

    def complete(self) -> None:
        """Give the call's future its value. The call has ended."""


class _Telling:
    """Counts the notifications that are running. When Python ends, it waits for them and stops new
    ones.

    Python may end its threads at any point. C++ code of other packages, such as PyTorch's futures,
    crashes if Python ends its thread while the code runs.
    """

    SECONDS = 2.0  # how long Python's end waits for notifications that are running

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way = 0
        self._stopped = False

    def tell(self, handle: Handle) -> None:
        with self._changed:
            if self._stopped:
                return
            self._under_way += 1
        try:
            handle.complete()
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    @property
    def has_stopped(self) -> bool:
        return self._stopped

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.wait_for(lambda: self._under_way == 0, self.SECONDS)


class Ends:
    """Notifies handles that their calls have ended, in threads that start with the first watched
    call.

    One thread always waits for the next end, so a handle may take any time.
    """

    def __init__(self, name: str = "hocket torch") -> None:
        self._name = name
        self._endings = _Endings()
        self._lock = threading.Lock()
        self._handles: dict[int, Handle] = {}
        self._keys = itertools.count()
        self._waiting = 0  # number of waiting threads; guarded by the lock
        self._telling = _Telling()
        weakref.finalize(self, self._telling.stop)  # runs when Python ends, at the latest

    def watch(self, work: Work, handle: Handle) -> None:
        """Call `handle.complete()` once when `work` has ended."""
        key = next(self._keys)
        self._handles[key] = handle
        with self._lock:
            self._keep_one_waiting()
        self._endings.watch(work, key)

    @property
    def has_stopped(self) -> bool:
        """True if handles are not notified any more, because Python ends."""
        return self._telling.has_stopped

    def close(self) -> None:
        """Watch no further calls. The threads end once all watched calls have ended."""
        self._endings.close()

    def _keep_one_waiting(self) -> None:
        if self._waiting == 0:
            self._waiting = 1
            threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        while (key := self._endings.next()) is not None:
            with self._lock:
                self._waiting -= 1
                self._keep_one_waiting()
            self._telling.tell(self._handles.pop(key))
            with self._lock:
                if self._waiting > 1:  # other threads wait already, so this thread ends
                    return
                self._waiting += 1
