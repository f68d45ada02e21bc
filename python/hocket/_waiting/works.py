"""Waits for several calls: `await`, callbacks, and waits until one of several calls has ended."""

from __future__ import annotations

import atexit
import itertools
import numbers
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from .._calls.types import Received, Timeout, type_in_words
from .._hocket import Communicator, Work, _Endings, _run_time, _write_unraisable
from .._jobs.forked import children_end_here
from ..errors import Aborted, InvalidArgument
from .ends import Ends

if TYPE_CHECKING:  # asyncio takes long to import
    import asyncio

# Seconds between two tests of calls on GPUs, which do not signal their end.
_LOOK_SECONDS = 0.001
# Seconds that calls with callbacks get to end when the program ends. Their callbacks then get as
# many seconds.
_SECONDS_AT_END = 2.0
# Longest sleep of a thread before it checks for signals, in seconds.
_SIGNAL_SECONDS = 0.05


# --- Under an event loop --------------------------------------------------------------------------


class _Loop:
    """The calls that the tasks of one asyncio event loop await. They all share one descriptor."""

    def __init__(self) -> None:
        self._endings = _Endings()
        self._keys = itertools.count()
        self._waiting: dict[int, asyncio.Future[None]] = {}

    async def until_end(self, work: Work, loop: asyncio.AbstractEventLoop) -> None:
        """Return when the call has ended, with success or failure."""
        key, future = next(self._keys), loop.create_future()
        if not self._waiting:
            loop.add_reader(self._endings.fileno(), self._wake, loop)
        self._waiting[key] = future
        try:
            self._endings.watch(work, key)
            await future
        finally:
            if self._waiting.pop(key, None) is not None:
                self._rest(loop)

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        for key in self._endings.take():
            future = self._waiting.pop(key, None)
            if future is not None and not future.done():
                future.set_result(None)
        self._rest(loop)

    def _rest(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._waiting:
            loop.remove_reader(self._endings.fileno())


_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = weakref.WeakKeyDictionary()
_loops_lock = threading.Lock()


def _loop_of(loop: asyncio.AbstractEventLoop) -> _Loop:
    with _loops_lock:
        found = _loops.get(loop)
        if found is None:
            _loops[loop] = found = _Loop()
        return found


def _trio() -> Any:
    """Return the module trio if this thread runs under trio, else None."""
    trio = sys.modules.get("trio")
    if trio is None:
        return None
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return None
    return trio


async def finished(work: Work) -> Any:
    """Return what the blocking call returns. Cancelling the await gives the call up."""
    if not work.test():
        import asyncio

        trio = _trio()
        try:
            if work._is_on_gpu:
                await _look_until_end(work, trio.sleep if trio else asyncio.sleep)
            elif trio:
                endings = _Endings()
                endings.watch(work, 0)
                await trio.lowlevel.wait_readable(endings.fileno())
            else:
                loop = asyncio.get_running_loop()
                await _loop_of(loop).until_end(work, loop)
        except BaseException:
            work._give_up()
            raise
    try:
        return work.synchronize()
    except Aborted:
        await _let_ctrl_c_come()
        raise


async def _let_ctrl_c_come() -> None:
    """Wait a moment for Ctrl-C, which reaches one rank after the other.

    The first rank that gets it gives up its calls, and so aborts the calls of the other ranks. But
    the other ranks' tasks should end by their own Ctrl-C, not by Aborted.
    """
    import asyncio

    trio = _trio()
    await (trio.sleep if trio else asyncio.sleep)(_SIGNAL_SECONDS)


async def _look_until_end(work: Work, sleep: Callable[[float], Any]) -> None:
    while not work.test():
        await sleep(_LOOK_SECONDS)


async def receives(
    comm: Communicator,
    shape: Any,
    dtype: Any,
    source: int,
    tag: int,
    count: Optional[int],
    deadline: Timeout,
) -> AsyncIterator[tuple[Any, Received]]:
    """See `Communicator.receives`."""
    for _ in itertools.count() if count is None else range(count):
        try:
            work = comm.recv_async(np.empty(shape, dtype), source, tag, deadline=deadline)
        except Aborted:
            await _let_ctrl_c_come()
            raise
        x = await work
        received = work.received
        assert received is not None
        yield x, received


# --- In a thread ----------------------------------------------------------------------------------


class _Call:
    """A callback, and the call for whose end it waits. It keeps the call alive."""

    def __init__(self, work: Work, fn: Callable[[Work], object]) -> None:
        self._work = work
        self._fn = fn

    def complete(self) -> None:
        """Run the callback. The call has ended."""
        self._work.test()  # copies received data to its destination
        try:
            with children_end_here():
                self._fn(self._work)
        except BaseException as error:
            _write_unraisable(error, self._fn)
        with _callbacks_changed:
            _uncalled.discard(self)
            _callbacks_changed.notify_all()

    def end(self, until: float) -> None:
        """Wait until the call has ended, at most until time `until`. Then give it up."""
        if not _ends_quietly(self._work, until):
            self._work._give_up()


_callbacks: list[Ends] = []
_callbacks_changed = threading.Condition()
_uncalled: set[_Call] = set()  # callbacks of calls in host memory that have not run yet


def _end_callbacks() -> None:
    """End all calls that have callbacks, and run the callbacks. Called as the program ends."""
    until = time.monotonic() + _SECONDS_AT_END
    for call in list(_uncalled):
        call.end(until)
    with _callbacks_changed:
        _callbacks_changed.wait_for(lambda: not _uncalled, _SECONDS_AT_END)


def add_done_callback(work: Work, fn: Callable[[Work], object]) -> None:
    """See `Work.add_done_callback`."""
    if not callable(fn):
        raise InvalidArgument(f"fn is {type_in_words(fn)}; give a function of the Work")
    call = _Call(work, fn)
    if work.test():
        call.complete()
        return
    if work._is_on_gpu:
        # A GPU does not signal the end of a call, so a separate thread waits for it.
        def wait() -> None:
            _synchronize_quietly(work)
            call.complete()

        threading.Thread(target=wait, name="hocket callback", daemon=True).start()
        return
    with _callbacks_changed:
        if not _callbacks:
            _callbacks.append(Ends("hocket callbacks"))
            # Exit handlers run in reverse order, so this handler runs before that of `Ends`.
            atexit.register(_end_callbacks)
        _uncalled.add(call)
    try:
        _callbacks[0].watch(work, call)
    except BaseException:  # no thread could be started, for example
        with _callbacks_changed:
            _uncalled.discard(call)
            _callbacks_changed.notify_all()
        raise


def _synchronize_quietly(work: Work) -> None:
    try:
        work.synchronize()
    except Exception:
        pass  # the callback finds the error in the Work


def _ends_quietly(work: Work, until: float) -> bool:
    """Wait for a call until time `until`. Return whether it has ended, with success or failure."""
    try:
        work.wait(timeout=max(0.0, until - time.monotonic()))
    except Exception:  # the callback finds the error in the Work
        return work.test()
    return True


class _Until:
    """A point in time, measured like deadlines: time in which the process is stopped does not
    count. A value.
    """

    def __init__(self, timeout: Timeout) -> None:
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        if seconds is not None and not isinstance(seconds, numbers.Real):
            raise InvalidArgument(f"timeout is {timeout!r}, expected seconds")
        if seconds is not None and not seconds >= 0:
            raise InvalidArgument(f"timeout is {seconds:.3g} s, expected 0 s or more")
        self._at = None if seconds is None else _run_time() + float(seconds)

    def left(self) -> Optional[float]:
        """Return the seconds that are left; None for no limit."""
        return None if self._at is None else max(0.0, self._at - _run_time())

    @property
    def is_over(self) -> bool:
        """True if the point in time has passed."""
        return self._at is not None and _run_time() >= self._at


def _checked(works: Sequence[Work]) -> list[Work]:
    try:
        listed = list(works)
    except TypeError:
        raise InvalidArgument(f"works is {type_in_words(works)}, expected a list of Work") from None
    for i, work in enumerate(listed):
        if not isinstance(work, Work):
            raise InvalidArgument(f"works[{i}] is {type_in_words(work)}, expected a Work")
    return listed


def wait_all(works: Sequence[Work], timeout: Timeout = None) -> list[Any]:
    """Wait for all calls to end.

    Parameters
    ----------
    works : sequence of Work
        They may belong to several communicators.
    timeout : float or datetime.timedelta, optional
        Seconds that this function waits; each call's own deadline also applies.

    Returns
    -------
    list
        The results of the blocking calls, in order.

    Raises
    ------
    TimeoutError
        The timeout passed; the calls go on.
    Error
        The error of the first call in the list that has failed.
    """
    works, until = _checked(works), _Until(timeout)
    return [work.synchronize(until.left()) for work in works]


def wait_some(works: Sequence[Work], timeout: Timeout = None) -> list[int]:
    """Wait until at least one call has ended.

    Parameters
    ----------
    works : sequence of Work
        At least one.
    timeout : float or datetime.timedelta, optional
        Seconds that this function waits; each call's own deadline also applies.

    Returns
    -------
    list of int
        Indices in `works` of all calls that have ended, with success or failure.
        ``works[i].wait()`` returns the result.

    Raises
    ------
    TimeoutError
        The timeout passed; the calls go on.
    """
    works, until = _checked(works), _Until(timeout)
    if not works:
        raise InvalidArgument("works is empty, so that nothing can end")
    endings: Optional[_Endings] = None
    while True:
        ended = [i for i, work in enumerate(works) if work.test()]
        if ended:
            return ended
        if until.is_over:
            raise TimeoutError("no call has ended; they go on")
        if endings is None:
            endings = _Endings()
            for i, work in enumerate(works):
                endings.watch(work, i)
            look = _LOOK_SECONDS if any(w._is_on_gpu for w in works) else _SIGNAL_SECONDS
        left = until.left()
        endings.next(look if left is None else min(look, left))


def wait_any(works: Sequence[Work], timeout: Timeout = None) -> int:
    """Wait until one call has ended; return its index in `works`. Otherwise like `wait_some`."""
    return wait_some(works, timeout)[0]
