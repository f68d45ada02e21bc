"""Futures of calls on host memory: each gets its value as its own call ends.

A callback of a future may make calls itself, and wait for their futures. So a thread that sets a
future's value first makes sure that another thread can handle further ends.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import torch

import hocket


class CallbackPlace:
    """The place of a callback in the order of its group's calls. A value.

    Places are compared as tuples: a callback that is attached inside a callback is part of that
    one.
    """

    def __init__(self, turns: CallbackOrder, place: tuple[int, ...]) -> None:
        self._turns = turns
        self.place = place
        self.inner = itertools.count()

    def __enter__(self) -> None:
        self._before = getattr(self._turns.running, "turn", None)
        self._turns.running.turn = self

    def __exit__(self, *_: object) -> None:
        self._turns.running.turn = self._before
        self._turns.end(self)


class CallbackOrder:
    """Keeps the calls of callbacks in one order on all ranks.

    Callbacks run when a call has ended, a moment that differs by rank, but collectives must come in
    the same order everywhere. So they come as if the callback had run at once when it was attached.
    A thread that makes a call waits until all earlier callbacks have run.
    """

    def __init__(self, comm: hocket.Communicator) -> None:
        self._comm = comm
        self._changed = threading.Condition()
        self.running = threading.local()  # `turn`: the turn of the running callback of this thread
        self._outer = itertools.count()
        self.open: dict[tuple[int, ...], CallbackPlace] = {}  # callbacks that have not run, by place

    def take(self) -> CallbackPlace:
        """Reserve a place for a callback that is attached now."""
        within = getattr(self.running, "turn", None)
        place = (next(self._outer),) if within is None else (*within.place, next(within.inner))
        turn = CallbackPlace(self, place)
        with self._changed:
            self.open[place] = turn
        return turn

    def end(self, turn: CallbackPlace) -> None:
        """It has run."""
        with self._changed:
            del self.open[turn.place]
            self._changed.notify_all()

    def come(self) -> None:
        """Returns when a collective may be called; to be asked only where some are `open`.

        Raises
        ------
        DeadlineExceeded
            A callback has not run, or does not end.
        """
        within = getattr(self.running, "turn", None)
        limit = self._comm.deadline
        with self._changed:
            if self._changed.wait_for(lambda: not self._any_before(within), min(limit, _LONG)):
                return
        raise hocket.DeadlineExceeded(
            f"a call on {self._comm.name} waited {limit:g} s for what was attached to futures of "
            "earlier calls (by then or add_done_callback), which has to run first; is one of these "
            "calls not made by all ranks, or does it wait for this thread?"
        )

    def _any_before(self, within: Any) -> bool:
        if within is None:
            return bool(self.open)
        mine = within.place
        for place in self.open:
            # Callbacks attached earlier or in this one; not those that contain this one.
            if (place < mine and mine[: len(place)] != place) or place[: len(mine)] == mine != place:
                return True
        return False


_LONG = 3e6  # s; the longest timeout that threads take


class _Failure:
    """The future's value after a failed call."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __repr__(self) -> str:
        return f"the error of a call ({type(self.error).__name__}: {self.error})"


_Future: Any = torch.futures.Future  # PyTorch's class, which takes a type argument
# The methods of its base in C++, without those of Python around them.
_initialize: Any = torch._C.Future.__init__
set_result: Any = torch._C.Future.set_result


class CallFuture(_Future):  # type: ignore[misc]
    """PyTorch's future, except that callbacks have their place in the order of calls."""

    def __init__(self, turns: CallbackOrder) -> None:
        _initialize(self, [])
        self._turns = turns

    def set_exception(self, error: BaseException) -> None:
        """Fail the future. PyTorch's C++ code takes the exception for the value, so it must
        print well there.
        """

        def unwrap(failure: _Failure) -> Any:
            raise failure.error

        self._set_unwrap_func(unwrap)
        self.set_result(_Failure(error))

    def then(self, callback: Callable[[Any], Any]) -> Any:
        """A future of the result of `callback(self)`, which is called when this one has its
        value.
        """
        following = CallFuture(self._turns)

        def run(_: Any) -> None:
            try:
                with turn:
                    value = callback(self)
            except BaseException as error:  # a waiter must get the error
                following.set_exception(error)
            else:
                following.set_result(value)

        turn = self._turns.take()
        super().add_done_callback(run)
        return following

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call `callback(self)` when this one has its value."""

        def run(_: Any) -> None:
            with turn:
                callback(self)

        turn = self._turns.take()
        super().add_done_callback(run)
