"""The workers of `hocket.futures` that are processes which the executor has started."""

from __future__ import annotations

import pickle
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

from ._crew import Crew, Event, Labels, fresh_address, how_it_ended
from ._futures_worker import pairs_of, serve_member
from ._hocket import Communicator
from ._init import init
from .errors import Error, RendezvousError

_JOIN_SECONDS = 60.0


class LocalWorkers:
    """Processes of this host, the ranks from 1 on; this process is rank 0. A resource.

    A thread shows what they print, until they have ended.

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
        self._left = set(range(n))  # those that are at work
        address = fresh_address()
        try:
            self._crew.complete(n)
            for index in range(n):
                task = pickle.dumps((serve_member, (index + 1, n + 1, address, begins)))
                self._crew[index].send("task", 0, task)
            self._await_ready()
            self.comm: Communicator = init(
                rank=0, size=n + 1, address=address, timeout=_JOIN_SECONDS, name="executor"
            )
            self.pairs = pairs_of(self.comm)
        except BaseException:
            self._crew.close()
            raise
        self._thread = threading.Thread(target=self._show, name="hocket output", daemon=True)
        self._thread.start()

    def how_it_ended(self, rank: int, error: Error) -> str:
        """Describe the end of a worker that is lost."""
        return how_it_ended(self._crew[rank - 1].await_end())

    def signal(self, number: int, ranks: Iterable[int]) -> None:
        """Send workers a signal: SIGINT interrupts their tasks."""
        for rank in ranks:
            self._crew[rank - 1].kill(number)

    def pid(self, rank: int) -> int:
        """A worker's process."""
        return self._crew[rank - 1].pid

    def close(self) -> None:
        """End the processes, which have been told to stop. Any thread."""
        self._thread.join()
        self.comm.close()
        self._crew.close()

    def _await_ready(self) -> None:
        """Returns when all processes have started, which takes them a while."""
        waiting = set(self._left)
        until = time.monotonic() + _JOIN_SECONDS
        while waiting:
            for event in self._crew.events(sorted(self._left), 0.1):
                self._handle(event)
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

    def _show(self) -> None:
        while self._left:
            for event in self._crew.events(sorted(self._left), 0.5):
                self._handle(event)
            sys.stdout.flush()
        self._labels.end()

    def _handle(self, event: Event) -> None:
        if event.kind == "output":
            self._labels.print(event.member + 1, event.content)
        elif event.kind == "ended" or event.content[0] == "done":
            self._left.discard(event.member)


def begins(initializer: Any, arguments: tuple[Any, ...]) -> bytes:
    """The initializer and its arguments, for the processes."""
    from ._futures_wire import Packer

    return Packer(same_program=False).bytes_of((initializer, arguments))
