"""The worker's side of `hocket.futures`: runs tasks until rank 0 stops it."""

from __future__ import annotations

import collections
import contextlib
import functools
import os
import pickle
import threading
import time
from collections.abc import Callable
from typing import Any, Optional

from .._hocket import Communicator
from .._jobs.crew_member import Member
from .._jobs.init import init
from .._jobs.forked import children_end_here
from .._jobs.spawn import failure_of
from ..errors import Error
from ._wire import (
    BATCH,
    BYE,
    ELSEWHERE,
    FAILURE,
    FUNCTION,
    MAP,
    NEWS,
    READY,
    RESULT,
    STOP,
    Incoming,
    Ledger,
    Packer,
    send,
)

# The master's rank in the communicator of the worker and rank 0.
_MASTER = 0
# Number of functions that a worker keeps. The master relies on this number.
KEPT_FUNCTIONS = 64
# Seconds. If a task takes longer, the worker returns the rest of its batch to the master.
_LONG_SECONDS = 0.005

_ELSEWHERE = Packer(same_program=True).pack(ELSEWHERE, None)[0]

Initializer = Optional[Callable[..., object]]


def pairs_of(comm: Communicator) -> dict[int, Communicator]:
    """Make a communicator of rank 0 and rank r for each other rank r. Return this rank's
    communicators, by the other rank r.

    If a rank dies, only its own pair ends. Collective.
    """
    made = {rank: comm.new_group([_MASTER, rank]) for rank in range(1, comm.size)}
    return {rank: pair for rank, pair in made.items() if pair.is_member}


class Worker:
    """One worker, and its communicator with rank 0, which hands out tasks. A resource.

    Parameters
    ----------
    guard : function
        Makes the context in which tasks run.
    """

    def __init__(
        self,
        comm: Communicator,
        rank: int,
        packer: Packer,
        guard: Callable[[], Any] = contextlib.nullcontext,
    ) -> None:
        self._comm = comm
        self._rank = rank
        self._packer = packer
        self._guard = guard
        self._incoming = Incoming(comm, _MASTER)
        self._functions: list[Callable[[], Any]] = [_no_function] * KEPT_FUNCTIONS
        ledger = Ledger.of(comm, comm.rank)
        self._batch = None if ledger is None else _Batch(ledger, self)

    def serve(
        self,
        initializer: Initializer,
        arguments: tuple[Any, ...],
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        """Run tasks until rank 0 stops the worker. Call `begun` when the initializer has returned.

        Raises
        ------
        PeerDied
            Rank 0 has ended.
        KeyboardInterrupt
            Ctrl-C has come while the worker had no task.
        """

        def begin() -> int:
            if initializer is not None:
                initializer(*arguments)
            begun()
            return os.getpid()

        self.send(self._outcome(READY, begin))
        try:
            while (kind := self._incoming.next()) != STOP:
                if kind == FUNCTION:
                    self._keep_function()
                elif kind == BATCH:
                    assert self._batch is not None
                    self._batch.run(self._incoming.batch())
                else:
                    self.send(self.outcome(kind, self._incoming.value))
        finally:
            if self._batch is not None:
                self._batch.close()
        self.tell(BYE, None)
        self._comm.close()

    def outcome(self, kind: int, read: Callable[[], Any]) -> list[Any]:
        """Run the task that `read` returns. Return the messages with its outcome."""
        return self._outcome(RESULT, lambda: self._run(kind, read()))

    def tell(self, kind: int, value: Any) -> None:
        """Pack a value, and send it to the master."""
        self.send(self._packer.pack(kind, value))

    def send(self, messages: list[Any]) -> None:
        """Send packed messages to the master. One thread at a time may call it."""
        for work in send(self._comm, messages, _MASTER):
            work.synchronize()

    def _keep_function(self) -> None:
        number, content = self._incoming.value()
        loaded: list[Any] = []

        def function() -> Any:  # if it cannot be loaded, the tasks that call it fail
            if not loaded:
                loaded.append(pickle.loads(content))
            return loaded[0]

        self._functions[number % KEPT_FUNCTIONS] = function

    def _run(self, kind: int, task: Any) -> Any:
        if kind == MAP:
            number, chunk = task
            function = self._functions[number % KEPT_FUNCTIONS]()
            return [function(*arguments) for arguments in chunk]
        function, arguments, named = task
        return function(*arguments, **named)

    def _outcome(self, kind: int, body: Callable[[], Any]) -> list[Any]:
        """Call `body`. Return the messages with its result, or with its exception."""
        try:
            with self._guard(), children_end_here():
                return self._packer.pack(kind, body())
        except BaseException as error:
            return self._packer.pack(FAILURE, failure_of(self._rank, time.monotonic_ns(), error))


class _Batch:
    """Runs the tasks of a batch one after the other. A resource of the worker's thread.

    While a task takes long, another thread returns to the master the tasks that have not begun. If
    the system refuses this thread, those tasks wait until the long task has ended.
    """

    def __init__(self, ledger: Ledger, worker: Worker) -> None:
        self._ledger = ledger
        self._worker = worker
        self._left: collections.deque[tuple[int, memoryview]] = collections.deque()
        self._sending = threading.Lock()
        self._told = 0  # number of outcomes that the master knows of; guarded by the lock
        self._taken = 0  # number of tasks of all batches
        self._is_on = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def run(self, tasks: list[tuple[int, memoryview]]) -> None:
        """Run the tasks, except those that the other thread returns to the master."""
        ledger, left, clock = self._ledger, self._left, time.perf_counter
        ledger.restart()
        self._told = 0
        left.extend(tasks)
        if len(tasks) > 1:
            self._guard_against_long_tasks()
        while left:
            try:
                kind, content = left.popleft()
            except IndexError:  # the other thread has returned the rest
                break
            self._taken += 1
            ledger.begin_task()
            begin = clock()
            messages = self._worker.outcome(kind, functools.partial(pickle.loads, content))
            seconds = clock() - begin
            if len(messages) == 1 and ledger.has_room(messages[0]):
                ledger.end_task(messages[0], seconds)
            else:
                ledger.end_task(_ELSEWHERE, seconds)
                with self._sending:
                    self._tell(0, is_last=False)
                    self._worker.send(messages)
        with self._sending:
            self._tell(0, is_last=True)

    def close(self) -> None:
        """End the thread that watches for long tasks."""
        if self._thread is not None:
            thread, self._thread = self._thread, None
            self._is_on.set()
            thread.join()

    def _tell(self, given_back: int, is_last: bool) -> None:
        self._told = self._ledger.ended
        self._worker.tell(NEWS, (given_back, is_last))

    def _guard_against_long_tasks(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="hocket batch", daemon=True)
            try:
                self._thread.start()
            except (RuntimeError, MemoryError):
                self._thread = None  # the next batch tries again
                return
        if not self._is_on.is_set():
            self._is_on.set()

    def _watch(self) -> None:
        while self._thread is not None:
            taken = self._taken
            time.sleep(_LONG_SECONDS)
            if taken != self._taken:
                continue
            self._is_on.clear()
            if self._thread is not None:
                with contextlib.suppress(Error):  # the worker's thread gets the same error
                    self._give_back()
                self._is_on.wait()

    def _give_back(self) -> None:
        with self._sending:
            back = 0
            with contextlib.suppress(IndexError):
                while True:
                    self._left.pop()
                    back += 1
            if back or self._told < self._ledger.ended:
                self._tell(back, is_last=False)


def _no_function() -> Any:
    raise RuntimeError("a task came before its function")


def serve_member(
    member: Member, number: int, rank: int, size: int, address: str, begins: bytes
) -> None:
    """Run in a process that `Executor(n)` has started, as its worker with this number."""
    member.send("ready")
    comm = init(rank=rank, size=size, address=address, timeout=60, name="executor")
    pair = pairs_of(comm)[rank]
    worker = Worker(pair, number, Packer(same_program=False), member.interruptible)
    worker.serve(*_beginning(begins), lambda: member.send("working"))
    comm.close()


def _beginning(begins: bytes) -> tuple[Initializer, tuple[Any, ...]]:
    """Unpickle the initializer and its arguments. If that fails, return a function that raises the
    error.
    """
    try:
        initializer, arguments = pickle.loads(begins)
        return initializer, arguments
    except Exception as caught:
        error = caught

    def fail() -> None:
        raise error

    return fail, ()
