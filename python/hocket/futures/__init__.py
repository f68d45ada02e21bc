"""`concurrent.futures` with ranks as workers. The workers stay alive between tasks.

>>> from hocket.futures import Executor
>>> with Executor(4) as pool:                 # four processes of this host
...     list(pool.map(pow, range(4), [2] * 4))
[0, 1, 4, 9]
"""

from __future__ import annotations

import atexit
import concurrent.futures
import itertools
import os
import re
import signal
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, NoReturn, Optional, TypeVar, Union

from .._calls.types import type_in_words
from .._hocket import Communicator
from .._jobs.job import number_of_ranks
from ..errors import Error, InvalidArgument
from ._door import Door, own_group
from ._local import LocalWorkers, begins
from ._master import BrokenExecutor, Master
from ._tasks import Function, Task
from ._wire import MAP, TASK, Packer
from ._worker import Worker, pairs_of

__all__ = ["BrokenExecutor", "Executor"]

T = TypeVar("T")

# Seconds that interrupted tasks get to end after Ctrl-C.
_STOP_SECONDS = 5.0


class Executor(concurrent.futures.Executor):
    """Runs functions on other ranks, with the interface of `concurrent.futures`.

    ``Executor(4)`` starts four processes of this host, from a script or a notebook.
    ``Executor(comm)`` uses the ranks of a job. All ranks create it; rank 0 hands out the tasks, and
    the other ranks work until rank 0 shuts down::

        comm = hocket.init()
        with Executor(comm) as pool:
            if pool is not None:  # on rank 0
                results = list(pool.map(f, range(100)))

    A task goes to the first idle worker; short tasks are sent in batches. Arrays in arguments and
    results are not pickled. They are sent from their own memory, so do not change them until the
    task is done. If a worker dies, the future of its task raises a `hocket.PeerDied` that names the
    worker. The other workers go on, and a new process replaces the dead one.

    Parameters
    ----------
    workers : int or Communicator, optional
        The number of processes to start, by default one for each processor. Or a communicator of at
        least two ranks, which the program does not use until the executor has shut down.
    initializer : callable, optional
        Called once by each worker before its first task. If it fails, the executor is broken.
    initargs : tuple
        Arguments of `initializer`.
    retries : int
        How often a task is run again on another worker after its worker has died.
    replace : bool, optional
        Whether a dead worker is replaced. True by default for ``Executor(n)``, which starts a new
        process. With a communicator, all ranks pass the same value. True then admits processes that
        wait to join the job (``hocket run --join``).
    """

    def __init__(
        self,
        workers: Union[int, Communicator, None] = None,
        *,
        initializer: Optional[Callable[..., object]] = None,
        initargs: tuple[Any, ...] = (),
        retries: int = 0,
        replace: Optional[bool] = None,
    ) -> None:
        if initializer is not None and not callable(initializer):
            raise InvalidArgument(f"initializer is {type_in_words(initializer)}; give a function")
        if not isinstance(retries, int) or retries < 0:
            raise InvalidArgument(f"retries is {retries!r}, expected a number from 0 on")
        if replace not in (None, True, False):
            raise InvalidArgument(f"replace is {replace!r}, expected True or False")
        self._beginning = (initializer, tuple(initargs))
        self._owner = os.getpid()
        self._numbers = itertools.count(1)
        self._worker: Optional[Worker] = None
        self._local: Optional[LocalWorkers] = None
        self._door: Optional[Door] = None
        self._comm: Optional[Communicator] = None
        if isinstance(workers, Communicator):
            self._use(workers, retries, bool(replace))
        else:
            self._start(workers, retries, replace is not False)
        if self._worker is None:
            _masters.add(self._master)
            weakref.finalize(self, self._master.close)

    def _start(self, n: Optional[int], retries: int, replaces: bool) -> None:
        n = len(os.sched_getaffinity(0)) if n is None else number_of_ranks("Executor", n, 1023)
        local = LocalWorkers(n, begins(*self._beginning))
        self._local, self._packer = local, Packer(same_program=False)
        try:
            self._master = master = Master(
                local.pairs,
                self._packer,
                retries,
                local.how_it_ended,
                local.close,
                (lambda _: None) if replaces else None,  # LocalWorkers itself notices ends
            )
        except BaseException:
            local.close()
            raise
        try:
            if replaces:
                local.start(master.add, master.miss)
            else:
                local.start()
        except BaseException:
            master.close()
            raise

    def _use(self, comm: Communicator, retries: int, replaces: bool) -> None:
        if comm.size < 2:
            raise InvalidArgument(
                "Executor: the communicator has one rank, and nobody to work for it; start the "
                "program by `hocket run -n 4`, or give a number of workers: Executor(3)"
            )
        self._comm, self._packer = comm, Packer(same_program=True)
        pairs = pairs_of(comm)
        own = own_group(comm) if replaces else None
        if comm.rank == 0:
            self._master = Master(pairs, self._packer, retries, _how_it_ended, self._close_door)
            if own is not None:
                try:
                    self._door = Door(own, self._master.add, self._master.miss)
                except BaseException:
                    self._master.close()
                    raise
                self._master.replace = self._door.replace
        else:
            self._worker = Worker(pairs[comm.rank], comm.rank, self._packer)

    def _close_door(self) -> None:
        if self._door is not None:
            self._door.close()

    # --- The workers' side --------------------------------------------------------------------

    def serve(self) -> None:
        """Work until rank 0 shuts down. Ranks of ``Executor(comm)`` other than rank 0 call it.

        The ``with`` statement calls it, too.

        Raises
        ------
        PeerDied
            Rank 0 has ended.
        """
        if self._worker is None:
            raise InvalidArgument("serve is for the ranks that work, and this one hands out tasks")
        self._worker.serve(*self._beginning)

    # --- The side that hands out --------------------------------------------------------------

    @property
    def ranks(self) -> list[int]:
        """The ranks of the workers that are alive."""
        self._require_master()
        return self._master.ranks

    @property
    def pids(self) -> dict[int, int]:
        """The pids of the workers that are ready for tasks, by rank."""
        self._require_master()
        return self._master.pids

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run ``fn(*args, **kwargs)`` on a worker.

        Parameters
        ----------
        fn : callable
            If ``Executor(n)`` has started the workers, functions of ``__main__`` or of a notebook
            need the package cloudpickle.

        Returns
        -------
        concurrent.futures.Future
            If the worker dies, the future's exception is a `hocket.PeerDied` with ``rank``, ``pid``
            and ``signal``.

        Raises
        ------
        BrokenExecutor
            No worker is alive, or an initializer has failed.
        """
        self._require_master()
        if not callable(fn):
            raise InvalidArgument(f"submit: fn is {type_in_words(fn)}, which cannot be called")
        task = self._packed(_name_of(fn), TASK, (fn, args, kwargs))
        return task.future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: Optional[float] = None,
        chunksize: int = 1,
    ) -> Iterator[T]:
        """Run `fn` on the elements of the iterables, which are read before this returns.

        Parameters
        ----------
        fn : callable
            It is sent to each worker once.
        timeout : float, optional
            Seconds from now within which each result must come.
        chunksize : int
            Number of calls of `fn` in one task.

        Returns
        -------
        iterator
            The results, in order. The iterator raises the exception of the first call that has
            failed.
        """
        self._require_master()
        if not isinstance(chunksize, int) or chunksize < 1:
            raise InvalidArgument(f"chunksize is {chunksize!r}, expected at least 1")
        end = None if timeout is None else time.monotonic() + timeout
        function = Function(next(self._numbers), self._packer.bytes_of(fn), self._packer)
        text = _name_of(fn)
        elements = zip(*iterables)
        futures: list[Future[Any]] = []
        while chunk := list(itertools.islice(elements, chunksize)):
            value = (function.number, chunk)
            futures.append(self._packed(text, MAP, value, function).future)
        return _results(futures, end)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no further tasks, and stop the workers when their tasks have ended.

        Parameters
        ----------
        wait : bool
            True: return when all workers have stopped.
        cancel_futures : bool
            True: cancel the tasks that have not begun.
        """
        if self._worker is not None or self._owner != os.getpid():
            return
        if cancel_futures:
            self._master.cancel_pending()
        self._master.close()
        if wait:
            self._master.join()

    def __enter__(self) -> Optional[Executor]:  # type: ignore[override]
        if self._worker is None:
            return self
        self.serve()
        return None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if self._worker is None and kind is not None and not issubclass(kind, Exception):
            self._stop_now()
        else:
            self.shutdown()

    def __repr__(self) -> str:
        if self._worker is not None:
            return "<hocket.futures.Executor, of which this rank is a worker>"
        return f"<hocket.futures.Executor with ranks {self._master.ranks} as workers>"

    def __reduce__(self) -> NoReturn:
        raise InvalidArgument(
            "an Executor belongs to the process that made it, and a task cannot use it: hand out "
            "tasks on rank 0 alone"
        )

    # --- Inside -------------------------------------------------------------------------------

    def _require_master(self) -> None:
        if self._worker is not None:
            raise InvalidArgument(
                "this rank is a worker of the executor: rank 0 alone hands out tasks, in "
                "`with Executor(comm) as pool: if pool is not None: ...`"
            )
        if self._owner != os.getpid():
            raise InvalidArgument(
                "the executor belongs to the process that this one was forked from; make one here"
            )

    def _packed(
        self, text: str, kind: int, value: Any, function: Optional[Function] = None
    ) -> Task:
        """Submit a task. If pickling fails, its future gets the error, as in `concurrent.futures`.
        """
        try:
            messages = self._packer.pack(kind, value)
        except Exception as error:
            task = Task(text, [], function)
            task.future.set_exception(error)
            return task
        task = Task(text, messages, function)
        self._master.submit(task)
        return task

    def _stop_now(self) -> None:
        """After Ctrl-C: cancel waiting tasks, interrupt running tasks, kill workers that do not
        stop.
        """
        self._master.cancel_pending()
        self._master.close()
        if self._local is not None:
            self._local.signal(signal.SIGINT, self._master.busy_ranks)
        if self._master.join(_STOP_SECONDS):
            return
        if self._local is not None:
            self._local.signal(signal.SIGKILL, self._master.ranks)
        else:
            self._master.abandon()
        self._master.join()


def _name_of(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__qualname__", None) or type(fn).__qualname__


def _results(futures: list[Future[Any]], end: Optional[float]) -> Iterator[Any]:
    """Yield the results of all chunks, call by call. If the iterator is dropped, cancel the rest.
    """
    try:
        futures.reverse()
        while futures:
            left = None if end is None else max(0.0, end - time.monotonic())
            yield from futures.pop().result(left)
    finally:
        for future in futures:
            future.cancel()


def _how_it_ended(rank: int, error: Error) -> str:
    """Describe the end of a worker by the text of the error that reported it."""
    found = re.search(r"\(pid \d+\)(?: on \S+ \(.*?\))? (.*?) while it was needed", str(error))
    return found[1] if found else f"is lost: {error}"


_masters: weakref.WeakSet[Master] = weakref.WeakSet()


def _end_all() -> None:
    """Finish all tasks when the program ends, as `concurrent.futures` does."""
    for master in list(_masters):
        master.close()
    for master in list(_masters):
        master.join()


atexit.register(_end_all)
