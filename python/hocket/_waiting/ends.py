"""Notifies handles of calls that have ended, in threads that start with the first such call."""

from __future__ import annotations

import contextlib
import itertools
import threading
import weakref
from typing import Optional, Protocol

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

    def tell(self, handles: dict[int, Handle], key: int) -> None:
        """Notify the handle with this key. This thread drops it before it counts as done, because
        the end of a handle may run C++ code, too.
        """
        with self._changed:
            if self._stopped:
                return
            self._under_way += 1
        try:
            handles.pop(key).complete()
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

    Each thread waits for an end and then notifies its handle. Another thread waits meanwhile, so a
    slow handle delays no other handle.
    """

    def __init__(self, name: str = "hocket torch") -> None:
        self._name = name
        self._endings = _Endings()
        self._lock = threading.Lock()
        self._handles: dict[int, Handle] = {}
        self._keys = itertools.count()
        self._waiting = 0  # number of waiting threads; guarded by the lock
        # The last thread that was started, until it waits; guarded by the lock.
        self._starting: Optional[threading.Thread] = None
        self._telling = _Telling()
        weakref.finalize(self, self._telling.stop)  # runs when Python ends, at the latest

    def watch(self, work: Work, handle: Handle) -> None:
        """Call `handle.complete()` once when `work` has ended.

        Raises
        ------
        RuntimeError
            No thread could be started. The handle is not notified.
        """
        key = next(self._keys)
        with self._lock:
            self._keep_one_waiting()
        self._handles[key] = handle
        try:
            self._endings.watch(work, key)
        except BaseException:
            self._handles.pop(key, None)
            raise

    @property
    def has_stopped(self) -> bool:
        """True if handles are not notified any more, because Python ends."""
        return self._telling.has_stopped

    def close(self) -> None:
        """Watch no further calls. The threads end once all watched calls have ended."""
        self._endings.close()

    def _keep_one_waiting(self) -> None:
        """Start a thread if none waits. The caller holds the lock."""
        if self._waiting > 0 or (self._starting is not None and self._starting.is_alive()):
            return
        self._starting = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._starting.start()

    def _run(self) -> None:
        with self._lock:
            self._waiting += 1
            self._starting = None
        while (key := self._endings.next()) is not None:
            with self._lock:
                self._waiting -= 1
                # Without another thread, the next ends wait until this thread waits again.
                with contextlib.suppress(RuntimeError, MemoryError):
                    self._keep_one_waiting()
            self._telling.tell(self._handles, key)
            with self._lock:
                if self._waiting > 1:  # other threads wait already, so this thread ends
                    return
                self._waiting += 1
