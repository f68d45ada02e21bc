"""One process of a crew: it runs the tasks that its starter sends over a socket.

The main thread runs the tasks. A second thread listens, so that it can report the main thread's
state.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import io
import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from types import FrameType
from typing import Any, Optional

from .._hocket import Communicator
from ..errors import Error
from .crew_channel import Channel

_PR_SET_PDEATHSIG = 1


class Member:
    """This process as tasks see it. It keeps values for later tasks, and sends requests to the
    starter.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._sending = threading.Lock()
        self._answers: dict[int, queue.SimpleQueue[Any]] = {}
        self._tasks: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
        self._may_interrupt = False
        #: Values that tasks keep for later tasks, by name.
        self.kept: dict[str, Any] = {}
        #: The communicator of the job in which this process is a rank.
        self.comm: Optional[Communicator] = None

    def send(self, *message: Any) -> None:
        """Send plain values to the starter. Any thread may call it."""
        with self._sending:
            self._channel.send(pickle.dumps(message))

    def ask(self, *request: Any) -> Any:
        """Send a request to the starter, and return its answer. Any thread may call it."""
        number = id(request)
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._answers[number] = answers
        self.send("request", number, *request)
        return answers.get()

    def interruptible(self) -> Member:
        """Return a context in which an interrupt raises KeyboardInterrupt. Outside of it,
        interrupts are ignored.
        """
        return self

    def __enter__(self) -> None:
        self._may_interrupt = True

    def __exit__(self, *_: object) -> None:
        self._may_interrupt = False

    def run(self) -> None:
        """Run tasks until the starter is gone. The listening thread then kills this process."""
        signal.signal(signal.SIGINT, self._interrupt)
        threading.Thread(target=self._listen, name="hocket crew", daemon=True).start()
        while True:
            number, task = self._tasks.get()
            function, arguments = pickle.loads(task)
            self._begin(number)
            answer = function(self, *arguments)
            sys.stdout.flush()
            sys.stderr.flush()
            self.send("done", number, answer)

    def rest(self) -> None:
        """Tell the other ranks that this rank has ended its task. Does nothing while a thread of
        the task still runs.

        Ranks that wait for this rank then fail at once, instead of at their deadlines.
        """
        if self.comm is None or any(map(_is_of_the_task, threading.enumerate())):
            return
        with contextlib.suppress(Error):
            self.comm._end_task()

    def _begin(self, number: int) -> None:
        if number != 0 and self.comm is not None:
            with contextlib.suppress(Error):
                self.comm._begin_task(number)

    def _interrupt(self, _number: int, _frame: Optional[FrameType]) -> None:
        if self._may_interrupt:
            self._may_interrupt = False
            raise KeyboardInterrupt

    def _listen(self) -> None:
        try:
            while True:
                self._take(*pickle.loads(self._channel.receive()))
        except (EOFError, OSError):
            # The starter is gone, so no process waits for a result.
            os.kill(os.getpid(), signal.SIGKILL)

    def _take(self, kind: str, *rest: Any) -> None:
        if kind == "task":
            self._tasks.put(rest)
        elif kind == "paths":
            (sys.path[:],) = rest
        elif kind == "answer":
            number, content = rest
            self._answers.pop(number).put(content)
        elif kind == "abort":
            self._abort(*rest)
        elif kind == "pass":  # this rank does not take part in a task
            self._begin(*rest)
            self.rest()
        elif kind == "rest":
            self.rest()
        elif kind == "calls":
            self.send("calls", self._calls())
        elif kind == "stack":
            self.send("stack", stack_of(threading.main_thread()))

    def _abort(self, reason: str) -> None:
        comm = self.comm
        if comm is not None:
            with contextlib.suppress(Error):
                comm.abort(reason)

    def _calls(self) -> list[str]:
        """Return the last known call of each rank, as text."""
        comm = self.comm
        if comm is None:
            return []
        try:
            return [call.call for call in comm.last_calls()]
        except Error:
            return []


def _is_of_the_task(thread: threading.Thread) -> bool:
    """Return True if the thread may still make calls for the task. hocket's own threads never do.
    """
    return thread is not threading.main_thread() and not thread.name.startswith("hocket")


def stack_of(thread: threading.Thread) -> list[tuple[str, int, str, str]]:
    """Return a thread's stack as (file, line, function, text), outermost frame first."""
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return []
    return [
        (entry.filename, entry.lineno or 0, entry.name, entry.line or "")
        for entry in traceback.extract_stack(frame)
    ]


def end_with(parent: int) -> None:
    """Have the kernel end this process when `parent` ends, even while this process is stopped."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent ended before the request
        os.kill(os.getpid(), signal.SIGKILL)


def main(descriptor: int, parent: int) -> None:
    """Run this process as a member of the crew that `parent` has started."""
    if parent != 0:
        end_with(parent)
    os.set_inheritable(descriptor, False)
    faulthandler.enable()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    Member(Channel(descriptor)).run()

