"""Runs a test on ranks that are threads of this process."""

from __future__ import annotations

import _thread
import ctypes
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, Optional

from .._hocket import Communicator, _run_threads
from .._jobs.crew import processor_time
from ..errors import Error
from ._runs import END_SECONDS, LEAVE_SECONDS, End, Ends, Limits, Watch, now, summary_of, waits


class _Left(BaseException):
    """Raised in ranks that still run when the test has failed."""


class ThreadRun:
    """One run of one test. Use an object only once."""

    def __init__(self, n: int, body: Callable[[Communicator], Any], limits: Limits) -> None:
        self._n = n
        self._body = body
        self._limits = limits
        self._comms: dict[int, Communicator] = {}
        self._threads: dict[int, int] = {}  # thread idents of the ranks that have not ended
        self._numbers: dict[int, int] = {}  # the native thread ids of the ranks
        self._bad: list[End] = []
        self._stopped = False
        self._ended: list[Optional[BaseException]] = []
        self._running = _thread.allocate_lock()

    def run(self) -> Optional[Ends]:
        """Run the test. Return None if all ranks succeeded."""
        __tracebackhide__ = True
        self._running.acquire()
        _thread.start_new_thread(self._run_all, ())
        watch, begun = Watch(self._limits.patience), now()
        try:
            # Polls like hocket.run_threads, so that Python handles signals.
            while not self._running.acquire(timeout=Watch.LOOK_SECONDS):
                if not self._bad:
                    self._look(watch, begun)
                if self._bad and self._leave():
                    break
        except BaseException:
            self._stopped = True
            self._abort("interrupted")
            self._leave()
            raise
        if not self._bad and self._ended and self._ended[0] is not None:
            raise self._ended[0]  # the ranks were never started
        return Ends(self._n, self._bad) if self._bad else None

    def _run_all(self) -> None:
        error: Optional[BaseException] = None
        try:
            _run_threads(self._n, self._rank)
        except BaseException as caught:
            error = caught
        self._ended.append(error)
        self._running.release()

    def _rank(self, comm: Communicator) -> None:
        __tracebackhide__ = True
        rank = comm.rank
        self._numbers[rank] = threading.get_native_id()
        self._threads[rank] = _thread.get_ident()
        self._comms[rank] = comm
        try:
            if not self._stopped:
                self._body(comm)
            comm.close()  # raises errors of this rank's last calls on a GPU
        except _Left:
            pass
        except BaseException as error:
            self._bad.append(End(rank, now(), error, summary_of(error)))
            self._abort(f"the test has failed on rank {rank}: {summary_of(error)}", comm)
        finally:
            self._threads.pop(rank, None)

    def _abort(self, reason: str, first: Optional[Communicator] = None) -> None:
        for comm in [*filter(None, [first]), *self._comms.values()]:
            try:
                comm.abort(reason)
            except Error:
                pass

    def _look(self, watch: Watch, begun: float) -> None:
        there = set(self._threads)
        if len(there) + sum(rank not in there for rank in self._comms) < self._n:
            return  # not all have begun
        calls: list[str] = []
        for rank in there:
            try:
                calls = [call.call for call in self._comms[rank].last_calls()]
                break
            except (Error, KeyError):
                continue
        # A rank that waits in a call may spin, and this thread polls. The time of both does not
        # count as work.
        apart = [self._numbers[rank] for rank in there if rank < len(calls) and waits(calls[rank])]
        used = dict.fromkeys(there, processor_time(os.getpid(), [threading.get_native_id(), *apart]))
        late = watch.missing(calls, used, there)
        why = f"did nothing for {self._limits.patience:g} s, while others wait for it"
        if not late and now() - begun > self._limits.timeout:
            away = [rank for rank in there if rank >= len(calls) or not waits(calls[rank])]
            late = sorted(away) or sorted(there)
            why = f"has not ended after {self._limits.timeout:g} s"
        for rank in late:
            place, text = self._place_of(rank)
            self._bad.append(End(rank, now(), None, f"{why}; it is {place}", text, "late"))
        if late:
            self._abort(f"rank {late[0]} of the test {why}")

    def _place_of(self, rank: int) -> tuple[str, str]:
        """Return the rank's position in its program as one line, and its stack."""
        frame = sys._current_frames().get(self._threads.get(rank, 0))
        if frame is None:
            return "at its end", ""
        stack = traceback.extract_stack(frame)
        own = [entry for entry in stack if os.path.dirname(__file__) != os.path.dirname(entry.filename)]
        at = (own or list(stack))[-1]
        text = "".join(traceback.format_list(own))
        return f"at {at.filename}:{at.lineno} in {at.name}", f"rank {rank} is here:\n{text}"

    def _leave(self) -> bool:
        """Wait for the ranks to end, up to a limit. Return False if all ranks have ended."""
        if self._all_end_within(LEAVE_SECONDS):
            return False
        for thread in list(self._threads.values()):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread), ctypes.py_object(_Left)
            )
        if self._all_end_within(END_SECONDS - LEAVE_SECONDS):
            return False
        for rank in sorted(self._threads):
            if all(end.rank != rank for end in self._bad):
                place, text = self._place_of(rank)
                self._bad.append(End(rank, now(), None, f"still {place}", text, "late"))
        return True

    def _all_end_within(self, seconds: float) -> bool:
        """Return True if all ranks end in time. Ranks that already count as late are left out."""
        until = now() + seconds
        while not self._running.acquire(timeout=0.01):
            if now() > until or set(self._threads) <= {e.rank for e in self._bad if e.kind == "late"}:
                return False
        self._running.release()
        return True
