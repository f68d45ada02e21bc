"""Tasks and workers, as the side of `hocket.futures` that hands out knows them."""

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

# The worker's rank in the pair's communicator.
WORKER = 1
# A wait is made of short ones, between which signals are handled.
_PATIENCE_SECONDS = 0.05
_MOST_NAMES = 1000
_LATEST_COUNTS = 0.3


class Function:
    """A function that travels to a worker once, for many tasks. A value."""

    def __init__(self, number: int, content: bytes, packer: Packer) -> None:
        self.number = number
        self.messages = packer.pack(FUNCTION, (number, content))


class TaskFuture(Future[Any]):
    """A future whose waiter takes the outcome from the worker itself, without another thread."""

    at: Optional[Worker] = None  # the worker that has the task

    def result(self, timeout: Optional[float] = None) -> Any:
        """See `concurrent.futures.Future`."""
        return super().result(self._help(timeout))

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """See `concurrent.futures.Future`."""
        return super().exception(self._help(timeout))

    def _help(self, timeout: Optional[float]) -> Optional[float]:
        """Wait for the worker while this thread alone does; return the time that is left."""
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
    """A task, until its future has its outcome."""

    __slots__ = ("attempts", "function", "future", "has_begun", "messages", "text")

    def __init__(self, text: str, messages: list[Any], function: Optional[Function]) -> None:
        self.future = TaskFuture()
        self.text = text  # the name of what it calls
        self.messages = messages
        self.function = function
        self.attempts = 0
        self.has_begun = False

    @property
    def is_short(self) -> bool:
        """True if it may travel in a batch."""
        return len(self.messages) == 1

    def may_begin(self) -> bool:
        """False if it has been cancelled. Otherwise it can be cancelled no longer."""
        if not self.has_begun:
            self.has_begun = self.future.set_running_or_notify_cancel()
        return self.has_begun


class Worker:
    """One worker as the side that hands out knows it. Guarded by the master's lock.

    `turn` is held by the thread that waits for what the worker sends, and takes it.
    """

    def __init__(self, key: int, rank: int, comm: Communicator, master: Master) -> None:
        self._master = master
        self.key = key  # of `_Endings`; the rank may be that of a worker that has died
        self.turn = threading.Lock()
        self.is_gone = False
        self.pid: Optional[int] = None  # of the process, once it is ready
        self.rank = rank
        self.comm = comm
        self.incoming = Incoming(comm, WORKER)
        self.tasks: collections.deque[Task] = collections.deque()  # those that it has, in order
        self.ledger = Ledger.of(comm, WORKER)
        self.has_batch = False
        self._elsewhere: collections.deque[Task] = collections.deque()  # ended; not in the ledger
        self.taken: list[Task] = []  # of `tasks`, by the one who has the turn
        self._functions = [0] * KEPT_FUNCTIONS  # numbers of those that it has
        self._sends: list[Work] = []

    def visit(self, seconds: float) -> bool:
        """Wait for news of it in place of the master's thread; False if another thread does."""
        return self._master.visit(self, seconds)

    def give(self, tasks: list[Task]) -> None:
        """Send it tasks: a batch, or one. If it has died, the receive from it says so."""
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
        """The task whose outcome has come as a message."""
        for work in self._sends:
            with contextlib.suppress(Error):  # the next receive says so
                work.synchronize()
        self._sends.clear()
        if not self.tasks and not self._elsewhere:
            return None
        self.taken.append((self._elsewhere or self.tasks).popleft())
        return self.taken[-1]

    def read(self) -> list[tuple[Task, Any, float]]:
        """The tasks whose outcomes the ledger has since the last call, the outcomes and seconds."""
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
        """Those of its tasks that are lost, as it has died. The others have not begun.

        `read` comes first, and `take_back` afterwards.
        """
        lost = list(self._elsewhere)
        has_begun = not self.has_batch or (
            self.ledger is not None and self.ledger.begun > self.ledger.ended
        )
        if self.tasks and has_begun:
            lost.append(self.tasks.popleft())
        return lost

    def take_back(self, count: int) -> list[Task]:
        """The last tasks that it has, which it has not begun, the last one first."""
        back = [self.tasks.pop() for _ in range(count)]
        for task in back:
            task.attempts -= 1
            task.future.at = None
        return back

    def stop(self, packer: Packer) -> None:
        """Tell it to stop."""
        with contextlib.suppress(Error):
            send(self.comm, packer.pack(STOP, None), WORKER)


# A task, and its value or its error.
Outcome = tuple[Task, Any, Optional[BaseException]]


class Times:
    """How long tasks have taken, by the names of what they call. A value."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def add(self, text: str, seconds: float) -> None:
        """A task has taken so long. The latest ones count most."""
        before = self._seconds.get(text, seconds)
        if len(self._seconds) >= _MOST_NAMES:
            self._seconds.clear()
        self._seconds[text] = before + _LATEST_COUNTS * (seconds - before)

    def of(self, task: Task) -> float:
        """What to expect of a task."""
        return self._seconds.get(task.text, float("inf"))
