"""Calls that have ended are told of, in threads that are started for the first of them."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Protocol

from ._hocket import Work, _Endings


class Handle(Protocol):
    """What the ends of calls are told to."""

    def complete(self) -> None:
        """The call has ended: give its future the value."""


class _Telling:
    """Who is being told. As Python ends nobody is any more: other packages' code in C++, such as that of
    PyTorch's futures, does not survive it that Python then ends the thread."""

    SECONDS = 2.0  # that the end waits for those who are being told

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
    """Tells handles that their calls have ended, in threads that are started for the first of them.

    One of the threads waits at any time; whoever is called may take as long as it likes.
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
        """Whether nobody is told any more, as Python ends."""
        return self._telling.has_stopped

    def close(self) -> None:
        """No more will be watched: the threads end when all that is has ended."""
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
