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
        """Give the call's future its value; the call has ended."""


class _Telling:
    """Counts the notifications under way, and stops new ones when Python ends.

    C++ code of other packages, such as PyTorch's futures, crashes when Python ends its thread
    inside it.
    """

    SECONDS = 2.0  # the longest wait of Python's end for notifications under way

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
    """Notifies handles that their calls have ended, in threads that start with the first such call.

    One thread always waits, so a handle may take as long as it likes.
    """

    def __init__(self, name: str = "hocket torch") -> None:
        self._name = name
        self._endings = _Endings()
        self._lock = threading.Lock()
        self._handles: dict[int, Handle] = {}
        self._keys = itertools.count()
        self._waiting = 0  # threads; guarded by the lock
        self._telling = _Telling()
        weakref.finalize(self, self._telling.stop)  # at the latest as Python ends

    def watch(self, work: Work, handle: Handle) -> None:
        """Have `handle.complete()` called when `work` has ended; once for each Work."""
        key = next(self._keys)
        self._handles[key] = handle
        with self._lock:
            self._keep_one_waiting()
        self._endings.watch(work, key)

    @property
    def has_stopped(self) -> bool:
        """True if handles are notified no longer, because Python ends."""
        return self._telling.has_stopped

    def close(self) -> None:
        """Watch no further calls. The threads end once the calls already watched have ended."""
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
                if self._waiting > 1:  # others have been started meanwhile, and are enough
                    return
                self._waiting += 1
