"""Starts ranks as threads of this process."""

from __future__ import annotations

import _thread
import time
from typing import Any, Callable, TypeVar

from .._hocket import Communicator, _run_threads
from .forked import children_end_here
from .job import number_of_ranks, require_function

T = TypeVar("T")

_MOST = 2**31 - 1  # the limit of this check; the library has its own limit


def run_threads(fn: Callable[..., T], n: int, *args: Any) -> list[T]:
    """Run ``fn(comm, *args)`` on `n` ranks that are threads of this process.

    It is made for tests, notebooks, work that releases the GIL, and Python without a GIL.

    Parameters
    ----------
    fn : callable
        Called in each thread with the communicator of its rank.
    n : int
        Number of threads.
    *args
        Passed to `fn`; the same objects in every thread.

    Returns
    -------
    list
        Each rank's return value, in order of the ranks.

    Raises
    ------
    Exception
        The first exception of any rank. The calls of the other ranks are aborted.
    """
    require_function("hocket.run_threads", fn, n)
    n = number_of_ranks("hocket.run_threads", n, _MOST)
    results: dict[int, Any] = {}
    communicators: list[Communicator] = []
    failure: list[BaseException] = []
    begun: list[bool] = []
    stopped: list[bool] = []
    ended: list[bool] = []
    running = _thread.allocate_lock()

    def rank(comm: Communicator) -> None:
        communicators.append(comm)
        if stopped:
            comm.abort("interrupted")
        with children_end_here():
            results[comm.rank] = fn(comm, *args)

    def run() -> None:
        begun.append(True)
        try:
            if not stopped:
                _run_threads(n, rank)
        except BaseException as error:  # raised again below, in the caller's thread
            failure.append(error)
        finally:
            ended.append(True)
            running.release()

    # Signals arrive in the main thread, so the ranks run in other threads and leave it free. An
    # interrupt at any point can break a lock of `threading`, so this thread uses locks of
    # `_thread`. A signal that arrives just before a sleep does not end that sleep, so each sleep is
    # short.
    running.acquire()
    try:
        _thread.start_new_thread(run, ())
        while not ended:
            running.acquire(timeout=0.05)
    except BaseException:
        stopped.append(True)  # ranks that have not begun yet end at once
        for _ in range(100):
            if begun:
                break
            time.sleep(0.01)
        while begun and not ended:
            for comm in list(communicators):
                comm.abort("interrupted")
            running.acquire(timeout=0.05)
        raise
    if failure and isinstance(failure[0], SystemExit):  # a rank's exit does not end the caller
        raise RuntimeError(
            f"hocket.run_threads: a rank ended before its function had returned: SystemExit: {failure[0]}"
        ) from failure[0]
    if failure:
        raise failure[0]
    return [results[rank] for rank in range(n)]
