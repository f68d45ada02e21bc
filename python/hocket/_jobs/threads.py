"""Ranks that are threads of this process."""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import time
import traceback
from typing import Any, Callable, NoReturn, Optional, TypeVar

from .._hocket import Communicator, _run_threads
from .job import number_of_ranks, require_function

T = TypeVar("T")

_MOST = 2**31 - 1  # limit for this check; the library has its own


def run_threads(fn: Callable[..., T], n: int, *args: Any) -> list[T]:
    """Run ``fn(comm, *args)`` on `n` ranks that are threads of this process.

    For tests, notebooks, work that releases the GIL, and Python without one.

    Parameters
    ----------
    fn : callable
        Called in each thread with the communicator of its rank.
    n : int
        Number of threads.
    *args
        Passed on, the same objects in every thread.

    Returns
    -------
    list
        Each rank's return value, in order.

    Raises
    ------
    Exception
        The first exception of any rank; the others are aborted.
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
        process = os.getpid()
        try:
            results[comm.rank] = fn(comm, *args)
        except BaseException as error:
            if os.getpid() != process:
                _end_child(error)
            raise
        if os.getpid() != process:
            _end_child(None)

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
    # interrupt at any point can break a lock of `threading`, so this thread uses none. A signal
    # just before a sleep does not end that sleep, so each sleep is short.
    running.acquire()
    try:
        _thread.start_new_thread(run, ())
        while not ended:
            running.acquire(timeout=0.05)
    except BaseException:
        stopped.append(True)  # ranks that begin later end at once
        for _ in range(100):
            if begun:
                break
            time.sleep(0.01)
        while begun and not ended:
            for comm in list(communicators):
                comm.abort("interrupted")
            running.acquire(timeout=0.05)
        raise
    if failure and isinstance(failure[0], SystemExit):  # an exit of a rank does not end the caller
        raise RuntimeError(
            f"hocket.run_threads: a rank ended before its function had returned: SystemExit: {failure[0]}"
        ) from failure[0]
    if failure:
        raise failure[0]
    return [results[rank] for rank in range(n)]


def _end_child(error: Optional[BaseException]) -> NoReturn:
    """End a process that `fn` forked when `fn` returns there: the rest of this code is for the
    parent.
    """
    code: Any = 1
    if error is None:
        code = 0
    elif not isinstance(error, SystemExit):
        traceback.print_exception(type(error), error, error.__traceback__)
    elif error.code is None or isinstance(error.code, int):
        code = error.code or 0
    else:
        print(error.code, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code & 0xFF)
