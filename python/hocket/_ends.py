"""Calls that have ended are told of, in threads that are started for the first of them."""

from __future__ import annotations

import itertools
import threading
from typing import Protocol

from ._hocket import Work, _Endings


class Handle(Protocol):
    """What the ends of calls are told to."""

    def complete(self) -> None:
        """The call has ended: give its future the value."""


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

    def watch(self, work: Work, handle: Handle) -> None:
        """Have `handle.complete()` called when `work` has ended; once for each Work."""
        key = next(self._keys)
        self._handles[key] = handle
        with self._lock:
            self._keep_one_waiting()
        self._endings.watch(work, key)

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
            self._handles.pop(key).complete()
            with self._lock:
                if self._waiting > 1:  # others have been started meanwhile, and are enough
                    return
                self._waiting += 1
