"""The worker's side of `hocket.futures`: runs tasks until it is told to stop."""

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

# The rank that hands out, in the pair's communicator.
_MASTER = 0
# Functions that are kept; the one that hands out counts on the same number.
KEPT_FUNCTIONS = 64
# A task that takes longer does not hold up the others of its batch.
_LONG_SECONDS = 0.005

_ELSEWHERE = Packer(same_program=True).pack(ELSEWHERE, None)[0]

Initializer = Optional[Callable[..., object]]


def pairs_of(comm: Communicator) -> dict[int, Communicator]:
    """A communicator for rank 0 and each other rank; this rank's own, by the other's rank.

    So the end of one rank concerns no other pair. Collective.
    """
    made = {rank: comm.new_group([_MASTER, rank]) for rank in range(1, comm.size)}
    return {rank: pair for rank, pair in made.items() if pair.is_member}


class Worker:
    """One worker, and its communicator with the rank that hands out tasks. A resource.

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
        """Run tasks until it is told to stop. Calls `begun` when the initializer has returned.

        Raises
        ------
        PeerDied
            The rank that hands out has ended.
        KeyboardInterrupt
            Ctrl-C has come while no task was there.
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
        """Run the task that `read` returns; return the messages that tell what came of it."""
        return self._outcome(RESULT, lambda: self._run(kind, read()))

    def tell(self, kind: int, value: Any) -> None:
        """Send the one that hands out a value."""
        self.send(self._packer.pack(kind, value))

    def send(self, messages: list[Any]) -> None:
        """Send it messages. One thread at a time."""
        for work in send(self._comm, messages, _MASTER):
            work.synchronize()

    def _keep_function(self) -> None:
        number, content = self._incoming.value()
        loaded: list[Any] = []

        def function() -> Any:  # what cannot be loaded fails in the tasks that call it
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
        """The messages that tell of the result, or of the exception, of `body`."""
        try:
            with self._guard():
                return self._packer.pack(kind, body())
        except BaseException as error:
            return self._packer.pack(FAILURE, failure_of(self._rank, time.monotonic_ns(), error))


class _Batch:
    """The tasks of a batch, one after the other. A resource of the worker's thread.

    While a task takes long, another thread gives back those that have not begun.
    """

    def __init__(self, ledger: Ledger, worker: Worker) -> None:
        self._ledger = ledger
        self._worker = worker
        self._left: collections.deque[tuple[int, memoryview]] = collections.deque()
        self._sending = threading.Lock()
        self._told = 0  # of how many outcomes; guarded by the lock
        self._taken = 0  # tasks, of all batches
        self._is_on = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def run(self, tasks: list[tuple[int, memoryview]]) -> None:
        """Run the tasks, but for those that are given back."""
        ledger, left, clock = self._ledger, self._left, time.perf_counter
        ledger.restart()
        self._told = 0
        left.extend(tasks)
        if len(tasks) > 1:
            self._guard_against_long_tasks()
        while left:
            try:
                kind, content = left.popleft()
            except IndexError:  # given back
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
        """End the other thread."""
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
            self._thread.start()
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
                with contextlib.suppress(Error):  # which the worker's thread meets, too
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
    """The task of a process that `Executor(n)` has started: to be its worker of that number."""
    member.send("ready")
    comm = init(rank=rank, size=size, address=address, timeout=60, name="executor")
    pair = pairs_of(comm)[rank]
    worker = Worker(pair, number, Packer(same_program=False), member.interruptible)
    worker.serve(*_beginning(begins), lambda: member.send("working"))
    comm.close()


def _beginning(begins: bytes) -> tuple[Initializer, tuple[Any, ...]]:
    """The initializer and its arguments; one that cannot be loaded fails as it is called."""
    try:
        initializer, arguments = pickle.loads(begins)
        return initializer, arguments
    except Exception as caught:
        error = caught

    def fail() -> None:
        raise error

    return fail, ()
