"""Ranks that are threads of this process."""

from __future__ import annotations

import threading
from typing import Any, Callable, TypeVar

from ._hocket import Communicator, _run_threads

T = TypeVar("T")


def run_threads(fn: Callable[..., T], n: int, *args: Any) -> list[T]:
    """Run ``fn(comm, *args)`` on `n` ranks that are threads of this process.

    For tests, notebooks, and work that releases the GIL.

    Parameters
    ----------
    fn : callable
        Called in each thread with a communicator of its own.
    n : int
        How many.
    *args
        Passed on, the same objects in every thread.

    Returns
    -------
    list
        What each rank returned, in order.

    Raises
    ------
    Exception
        The first one that a rank raised; the others are aborted.
    """
    results: dict[int, Any] = {}
    communicators: list[Communicator] = []
    failure: list[BaseException] = []

    begun = threading.Event()
    is_stopped = threading.Event()
    ended = threading.Event()

    def rank(comm: Communicator) -> None:
        communicators.append(comm)
        if is_stopped.is_set():
            comm.abort("interrupted")
        results[comm.rank] = fn(comm, *args)

    def run() -> None:
        begun.set()
        try:
            if not is_stopped.is_set():
                _run_threads(n, rank)
        except BaseException as error:  # raised again below, in the caller's thread
            failure.append(error)
        finally:
            ended.set()

    # Signals arrive in the main thread, which is therefore left free to be interrupted. One that comes
    # just before it sleeps does not wake it, so it never sleeps for long.
    runner = threading.Thread(target=run, name="hocket ranks")
    try:
        runner.start()
        while not ended.wait(0.05):
            pass
    except BaseException:
        is_stopped.set()
        # Its start may have been interrupted, at any point; what begins later ends at once.
        begun.wait(1)
        while begun.is_set() and not ended.wait(0.05):
            for comm in list(communicators):
                comm.abort("interrupted")
        raise
    runner.join()
    if failure:
        raise failure[0]
    return [results[rank] for rank in range(n)]
