"""Workers of `hocket.futures` that are processes which the executor has started."""

from __future__ import annotations

import contextlib
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Optional

from .._hocket import Communicator
from .._jobs.crew import Crew, Event, Labels, fresh_address, how_it_ended
from .._jobs.init import init
from ..errors import Error, PeerDied, RendezvousError
from ._worker import pairs_of, serve_member

_JOIN_SECONDS = 60.0
# Seconds that a lost worker gets to end by itself, before it is described as lost.
_END_SECONDS = 3.0
# The most new processes in a row that may die before they are ready. After that none is started.
_MOST_FAILURES = 3

Came = Callable[[int, Communicator], None]
Missed = Callable[[str, BaseException], None]


class LocalWorkers:
    """Processes of this host, which are the ranks from 1 on. This process is rank 0. A resource.

    A thread shows the text that they print, until they have ended. If `start` was called with
    `came`, the thread also replaces processes that have died.

    Parameters
    ----------
    n : int
        Number of processes.
    begins : bytes
        The initializer and its arguments, pickled.
    """

    def __init__(self, n: int, begins: bytes) -> None:
        self._crew = Crew()
        self._labels = Labels(sys.stdout.write)
        self._begins = begins
        self._left = set(range(n))  # the processes whose output is still shown
        self._coming: dict[int, str] = {}  # new processes, and the address where each joins
        self._starting = set(range(n))  # processes that are not ready yet
        self._worlds: dict[int, Communicator] = {}  # communicators with replacements, by process
        self._joins: list[threading.Thread] = []
        self._failures = 0
        self._came: Optional[Came] = None
        self._missed: Optional[Missed] = None
        self._is_closing = False
        self._ends: dict[int, int] = {}  # exit codes, by pid
        self._has_ended = threading.Condition()
        address = fresh_address()
        try:
            self._crew.complete(n)
            for index in range(n):
                self._send_task(index, n + 1, address, index + 1)
            self._await_ready()
            self.comm: Communicator = init(
                rank=0, size=n + 1, address=address, timeout=_JOIN_SECONDS, name="executor"
            )
            self.pairs = pairs_of(self.comm)
        except BaseException:
            self._crew.close()
            raise
        self._thread: Optional[threading.Thread] = None  # once it has been started

    def start(self, came: Optional[Came] = None, missed: Optional[Missed] = None) -> None:
        """Show the text that the workers print. If `came` is given, replace workers that die.

        Parameters
        ----------
        came : function
            Called with the rank of a worker that has died, and a communicator with its replacement.
        missed : function
            Called with the reason if there is no replacement.
        """
        self._came, self._missed = came, missed
        thread = threading.Thread(target=self._show, name="hocket output", daemon=True)
        thread.start()
        self._thread = thread

    def how_it_ended(self, rank: int, error: Error) -> str:
        """Describe how a lost worker has ended."""
        pid = getattr(error, "pid", -1)
        with self._has_ended:
            if self._has_ended.wait_for(lambda: pid in self._ends, _END_SECONDS):
                return how_it_ended(self._ends[pid])
        return f"is lost: {error}"

    def signal(self, number: int, ranks: Iterable[int]) -> None:
        """Send a signal to workers. SIGINT interrupts their tasks."""
        for rank in ranks:
            with contextlib.suppress(KeyError):  # the rank's replacement is being started
                self._crew[rank - 1].kill(number)

    def close(self) -> None:
        """End the processes, which have been told to stop before. Any thread may call it."""
        self._is_closing = True
        if self._thread is not None:
            self._thread.join()
        for join in self._joins:
            join.join()
        for comm in [self.comm, *self._worlds.values()]:
            comm.close()
        self._crew.close()

    def _send_task(self, index: int, size: int, address: str, rank: int) -> None:
        task = pickle.dumps((serve_member, (index + 1, rank, size, address, self._begins)))
        self._crew[index].send("task", 0, task)

    def _await_ready(self) -> None:
        """Return when all processes have started."""
        waiting = set(self._left)
        until = time.monotonic() + _JOIN_SECONDS
        while waiting:
            for event in self._crew.events(sorted(self._left), 0.1):
                if event.kind == "output":
                    self._labels.print(event.member + 1, event.content)
                if event.kind == "ended":
                    raise RendezvousError(
                        f"worker rank {event.member + 1} {how_it_ended(event.content)} as it started; "
                        "see its output"
                    )
                if event.kind == "message":
                    waiting.discard(event.member)
            if time.monotonic() > until:
                raise RendezvousError(
                    f"worker rank {min(waiting) + 1} has not started within {_JOIN_SECONDS:g} s"
                )

    # --- In the thread ------------------------------------------------------------------------

    def _show(self) -> None:
        while self._left or not self._is_closing:
            for event in self._crew.events(sorted({*self._left, *self._coming}), 0.2):
                self._handle(event)
            sys.stdout.flush()
        self._labels.end()

    def _handle(self, event: Event) -> None:
        if event.kind == "output":
            self._labels.print(event.member + 1, event.content)
        elif event.kind == "ended":
            self._end(event.member, event.content)
        elif event.content[0] == "done":
            self._left.discard(event.member)
        elif event.content[0] == "working":
            self._failures = 0
            self._starting.discard(event.member)
        elif event.member in self._coming:  # a replacement has started
            address = self._coming.pop(event.member)
            self._left.add(event.member)
            join = threading.Thread(target=self._join, args=(event.member, address), daemon=True)
            try:
                join.start()
            except (RuntimeError, MemoryError):  # `_end` starts another replacement
                self.signal(signal.SIGKILL, [event.member + 1])
                return
            self._joins = [one for one in self._joins if one.is_alive()] + [join]

    def _end(self, index: int, code: int) -> None:
        with self._has_ended:
            self._ends[self._crew[index].pid] = code
            self._has_ended.notify_all()
        self._coming.pop(index, None)
        self._left.discard(index)
        if self._came is None or self._is_closing:
            return
        assert self._missed is not None
        if index in self._starting:
            self._failures += 1
        if self._failures > _MOST_FAILURES:
            how = f"worker rank {index + 1} {how_it_ended(code)} as it started; see its output"
            why = f"{self._failures} processes in a row have ended as they started"
            self._missed(why, PeerDied(how))
            return
        self._starting.add(index)
        self._crew.renew(index)
        self._coming[index] = fresh_address()
        self._send_task(index, 2, self._coming[index], 1)

    # --- In threads of their own --------------------------------------------------------------

    def _join(self, index: int, address: str) -> None:
        """Form a communicator with a replacement. The other workers go on meanwhile."""
        assert self._came is not None
        try:
            comm = init(rank=0, size=2, address=address, timeout=_JOIN_SECONDS, name="executor")
            pair = pairs_of(comm)[1]
            self._worlds[index] = comm
            self._came(index + 1, pair)
        except Error:  # the process died or does not join; the thread of `_show` sees its end
            self.signal(signal.SIGKILL, [index + 1])


def begins(initializer: Any, arguments: tuple[Any, ...]) -> bytes:
    """Pickle the initializer and its arguments for the processes."""
    from ._wire import Packer

    return Packer(same_program=False).bytes_of((initializer, arguments))
