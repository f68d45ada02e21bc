"""The worker's side of `hocket.futures`: runs tasks until it is told to stop."""

from __future__ import annotations

import contextlib
import pickle
import time
from collections.abc import Callable
from typing import Any, Optional

from ._crew_member import Member
from ._futures_wire import BYE, FAILURE, FUNCTION, MAP, READY, RESULT, STOP, Incoming, Packer, send
from ._hocket import Communicator
from ._init import init
from ._spawn import failure_of

# The rank that hands out, in the pair's communicator.
_MASTER = 0
# Functions that are kept; the one that hands out counts on the same number.
KEPT_FUNCTIONS = 64

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

    def serve(self, initializer: Initializer, arguments: tuple[Any, ...]) -> None:
        """Run tasks until it is told to stop.

        Raises
        ------
        PeerDied
            The rank that hands out has ended.
        KeyboardInterrupt
            Ctrl-C has come while no task was there.
        """

        def begin() -> None:
            if initializer is not None:
                initializer(*arguments)

        self._send(self._outcome(READY, begin))
        while (kind := self._incoming.next()) != STOP:
            if kind == FUNCTION:
                self._keep_function()
            else:
                self._send(self._outcome(RESULT, self._chunk if kind == MAP else self._task))
        self._send(self._packer.pack(BYE, None))
        self._comm.close()

    def _keep_function(self) -> None:
        number, content = self._incoming.value()
        loaded: list[Any] = []

        def function() -> Any:  # what cannot be loaded fails in the tasks that call it
            if not loaded:
                loaded.append(pickle.loads(content))
            return loaded[0]

        self._functions[number % KEPT_FUNCTIONS] = function

    def _chunk(self) -> list[Any]:
        number, chunk = self._incoming.value()
        function = self._functions[number % KEPT_FUNCTIONS]()
        return [function(*arguments) for arguments in chunk]

    def _task(self) -> Any:
        function, arguments, named = self._incoming.value()
        return function(*arguments, **named)

    def _outcome(self, kind: int, body: Callable[[], Any]) -> list[Any]:
        """The messages that tell of the result, or of the exception, of `body`."""
        try:
            with self._guard():
                return self._packer.pack(kind, body())
        except BaseException as error:
            return self._packer.pack(FAILURE, failure_of(self._rank, time.monotonic_ns(), error))

    def _send(self, messages: list[Any]) -> None:
        for work in send(self._comm, messages, _MASTER):
            work.synchronize()


def _no_function() -> Any:
    raise RuntimeError("a task came before its function")


def serve_member(member: Member, rank: int, size: int, address: str, begins: bytes) -> None:
    """The task of a process that `Executor(n)` has started: to be a worker."""
    member.send("ready")
    comm = init(rank=rank, size=size, address=address, timeout=60, name="executor")
    pair = pairs_of(comm)[rank]
    worker = Worker(pair, rank, Packer(same_program=False), member.interruptible)
    worker.serve(*_beginning(begins))
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
