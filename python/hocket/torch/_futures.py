"""Futures of calls on host memory. Each future gets its value when its call ends.

A future's callback may make calls itself, and wait for their futures. So a thread that sets a
future's value first makes sure that another thread waits for further ends.
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

    Places are compared as tuples. A callback that is attached inside another callback has a place
    within that callback's place: (3, 0) lies within (3,).
    """

    def __init__(self, turns: CallbackOrder, place: tuple[int, ...]) -> None:
        self._turns = turns
        self.place = place
        self.inner: itertools.count[int] = itertools.count()

    def __enter__(self) -> None:
        self._before = getattr(self._turns.running, "turn", None)
        self._turns.running.turn = self

    def __exit__(self, *_: object) -> None:
        self._turns.running.turn = self._before
        self._turns.end(self)


class CallbackOrder:
    """Makes all ranks run the calls of callbacks in the same order.

    A callback runs when its call has ended, which is at different times on different ranks. But
    collectives must be made in the same order on all ranks. So callbacks make their calls as if
    each callback had run at once when it was attached. A thread that makes a call waits until all
    earlier callbacks have run.
    """

    def __init__(self, comm: hocket.Communicator) -> None:
        self._comm = comm
        self._changed = threading.Condition()
        # Its attribute `turn` is the place of the callback that the thread runs.
        self.running: threading.local = threading.local()
        self._outer = itertools.count()
        self.open: dict[tuple[int, ...], CallbackPlace] = {}  # callbacks that have not run, by place

    def take(self) -> CallbackPlace:
        """Reserve a place for a callback that is being attached."""
        within = getattr(self.running, "turn", None)
        place = (next(self._outer),) if within is None else (*within.place, next(within.inner))
        turn = CallbackPlace(self, place)
        with self._changed:
            self.open[place] = turn
        return turn

    def end(self, turn: CallbackPlace) -> None:
        """Note that the callback of this place has run."""
        with self._changed:
            del self.open[turn.place]
            self._changed.notify_all()

    def come(self) -> None:
        """Wait until this thread may make a collective call. Call it only if `open` is not empty.

        Raises
        ------
        DeadlineExceeded
            A callback has not run, or has not ended, within the communicator's deadline.
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
            # Wait for callbacks that were attached earlier, and for callbacks attached inside this
            # one. Do not wait for callbacks that contain this one.
            if (place < mine and mine[: len(place)] != place) or place[: len(mine)] == mine != place:
                return True
        return False


_LONG = 3e6  # seconds; the longest timeout that Python's locks accept


class _Failure:
    """A future's value after a failed call."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __repr__(self) -> str:
        return f"the error of a call ({type(self.error).__name__}: {self.error})"


_Future: Any = torch.futures.Future  # untyped, because PyTorch's class takes a type argument
# Methods of the C++ base class. Calling them directly skips the Python methods that wrap them.
_initialize: Any = torch._C.Future.__init__
set_result: Any = torch._C.Future.set_result


class CallFuture(_Future):  # type: ignore[misc]
    """PyTorch's future, but its callbacks have places in the order of the group's calls."""

    def __init__(self, turns: CallbackOrder) -> None:
        _initialize(self, [])
        self._turns = turns

    def set_exception(self, error: BaseException) -> None:
        """Fail the future. PyTorch's C++ code takes a `_Failure` for the value, so a `_Failure`
        must print well.
        """

        def unwrap(failure: _Failure) -> Any:
            raise failure.error

        self._set_unwrap_func(unwrap)
        self.set_result(_Failure(error))

    def then(self, callback: Callable[[Any], Any]) -> Any:
        """Return a future of the result of `callback(self)`, which is called when this future has
        its value.
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
        """Call `callback(self)` when this future has its value."""

        def run(_: Any) -> None:
            with turn:
                callback(self)

        turn = self._turns.take()
        super().add_done_callback(run)
