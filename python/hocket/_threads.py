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

    def rank(comm: Communicator) -> None:
        communicators.append(comm)
        results[comm.rank] = fn(comm, *args)

    def run() -> None:
        try:
            _run_threads(n, rank)
        except BaseException as error:  # raised again below, in the caller's thread
            failure.append(error)

    # Signals arrive in the main thread, which is therefore left free to be interrupted.
    runner = threading.Thread(target=run, name="hocket ranks")
    runner.start()
    try:
        runner.join()
    except BaseException:
        for comm in communicators:
            comm.abort("interrupted")
        runner.join()
        raise
    if failure:
        raise failure[0]
    return [results[rank] for rank in range(n)]
