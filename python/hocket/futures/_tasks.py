"""Tasks and workers, as the rank that hands out tasks sees them."""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Optional

from .._hocket import Communicator, Work
from ..errors import Error
from ._wire import ELSEWHERE, FUNCTION, STOP, Incoming, Ledger, Packer, batch_of, kind_of, send
from ._worker import KEPT_FUNCTIONS

if TYPE_CHECKING:
    from ._master import Master

# The worker's rank in the communicator of the worker and rank 0.
WORKER = 1
# Seconds. A long wait consists of waits of this length, and signals are handled between them.
_PATIENCE_SECONDS = 0.05
_MOST_NAMES = 1000
_LATEST_COUNTS = 0.3


class Function:
    """A function that is sent to each worker once, and called by many tasks. A value."""

    def __init__(self, number: int, content: bytes, packer: Packer) -> None:
        self.number = number
        self.messages = packer.pack(FUNCTION, (number, content))


class TaskFuture(Future[Any]):
    """A future whose waiting thread takes the outcome from the worker directly, without a switch to
    the executor's thread.
    """

    at: Optional[Worker] = None  # the worker that has the task; None: no worker has it

    def result(self, timeout: Optional[float] = None) -> Any:
        """See `concurrent.futures.Future`."""
        return super().result(self._help(timeout))

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """See `concurrent.futures.Future`."""
        return super().exception(self._help(timeout))

    def _help(self, timeout: Optional[float]) -> Optional[float]:
        """Wait for the worker, unless another thread waits for it. Return the time that is left."""
        if timeout is None:
            while (worker := self.at) is not None and worker.visit(_PATIENCE_SECONDS):
                pass
            return None
        until = time.monotonic() + timeout
        while (worker := self.at) is not None and time.monotonic() < until:
            if not worker.visit(min(_PATIENCE_SECONDS, max(0.0, until - time.monotonic()))):
                break
        return max(0.0, until - time.monotonic())


class Task:
    """A task, from `submit` until its future has the outcome."""

    __slots__ = ("attempts", "function", "future", "has_begun", "messages", "text")

    def __init__(self, text: str, messages: list[Any], function: Optional[Function]) -> None:
        self.future = TaskFuture()
        self.text = text  # the name of the function that the task calls
        self.messages = messages
        self.function = function
        self.attempts = 0
        self.has_begun = False

    @property
    def is_short(self) -> bool:
        """True if the task may be sent in a batch."""
        return len(self.messages) == 1

    def may_begin(self) -> bool:
        """Return False if the task was cancelled. If it was not, it cannot be cancelled any more.
        """
        if not self.has_begun:
            self.has_begun = self.future.set_running_or_notify_cancel()
        return self.has_begun


class Worker:
    """One worker, as the rank that hands out tasks sees it. Guarded by the master's lock.

    A thread holds `turn` while it waits for the worker's messages and handles them.
    """

    def __init__(self, key: int, rank: int, comm: Communicator, master: Master) -> None:
        self._master = master
        self.key = key  # in `_Endings`; a replacement has the same rank, but another key
        self.turn = threading.Lock()
        self.is_gone = False
        self.pid: Optional[int] = None  # the process's pid, once the worker is ready
        self.rank = rank
        self.comm = comm
        self.incoming = Incoming(comm, WORKER)
        self.tasks: collections.deque[Task] = collections.deque()  # the tasks that the worker has
        self.ledger = Ledger.of(comm, WORKER)
        self.has_batch = False
        self._elsewhere: collections.deque[Task] = collections.deque()  # outcomes come as messages
        self.taken: list[Task] = []  # tasks whose outcomes the holder of the turn has read
        self._functions = [0] * KEPT_FUNCTIONS  # the numbers of the functions that the worker keeps
        self._sends: list[Work] = []

    def visit(self, seconds: float) -> bool:
        """See `Master.visit`."""
        return self._master.visit(self, seconds)

    def give(self, tasks: list[Task]) -> None:
        """Send the worker one task or a batch. If it has died, the next receive from it fails."""
        self.tasks.extend(tasks)
        for task in tasks:
            task.attempts += 1
            task.future.at = self
        messages = tasks[0].messages
        if self.ledger is not None and tasks[0].is_short:
            self.has_batch = True
            self.ledger.restart()
            messages = batch_of([task.messages[0] for task in tasks])
        with contextlib.suppress(Error):
            function = tasks[0].function
            if function is not None:
                number = function.number
                if self._functions[number % KEPT_FUNCTIONS] != number:
                    self._functions[number % KEPT_FUNCTIONS] = number
                    self._sends += send(self.comm, function.messages, WORKER)
            self._sends += send(self.comm, messages, WORKER)

    def take(self) -> Optional[Task]:
        """Return the task whose outcome has come as a message of its own."""
        for work in self._sends:
            with contextlib.suppress(Error):  # the worker has died; the next receive fails
                work.synchronize()
        self._sends.clear()
        if not self.tasks and not self._elsewhere:
            return None
        self.taken.append((self._elsewhere or self.tasks).popleft())
        return self.taken[-1]

    def read(self) -> list[tuple[Task, Any, float]]:
        """Return the tasks that have ended since the last call, with outcomes and seconds."""
        found = []
        if self.has_batch:
            assert self.ledger is not None
            for message, seconds in self.ledger.read():
                task = self.tasks.popleft()
                if kind_of(message) == ELSEWHERE:
                    self._elsewhere.append(task)
                else:
                    self.taken.append(task)
                    found.append((task, message, seconds))
        return found

    def lose(self) -> list[Task]:
        """Return the tasks that the worker had begun when it died. Its other tasks can run
        elsewhere.

        Call `read` before, and `take_back` afterwards.
        """
        lost = list(self._elsewhere)
        has_begun = not self.has_batch or (
            self.ledger is not None and self.ledger.begun > self.ledger.ended
        )
        if self.tasks and has_begun:
            lost.append(self.tasks.popleft())
        return lost

    def take_back(self, count: int) -> list[Task]:
        """Remove the worker's last `count` tasks, which it has not begun. Return them, last one
        first.
        """
        back = [self.tasks.pop() for _ in range(count)]
        for task in back:
            task.attempts -= 1
            task.future.at = None
        return back

    def stop(self, packer: Packer) -> None:
        """Tell the worker to stop."""
        with contextlib.suppress(Error):
            send(self.comm, packer.pack(STOP, None), WORKER)


# A task, and its result or its error.
Outcome = tuple[Task, Any, Optional[BaseException]]


class Times:
    """The expected durations of tasks, by the names of their functions. A value."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def add(self, text: str, seconds: float) -> None:
        """Note how long a task took, in seconds. The latest durations have the most weight."""
        before = self._seconds.get(text, seconds)
        if len(self._seconds) >= _MOST_NAMES:
            self._seconds.clear()
        self._seconds[text] = before + _LATEST_COUNTS * (seconds - before)

    def of(self, task: Task) -> float:
        """Return the expected duration of a task, in seconds."""
        return self._seconds.get(task.text, float("inf"))
