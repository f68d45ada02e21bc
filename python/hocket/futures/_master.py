"""The side of `hocket.futures` that hands out tasks and takes results."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import itertools
import pickle
import threading
from collections.abc import Callable
from typing import Any, Optional

from .._hocket import Communicator, _Endings
from .._jobs.spawn import Failure, RankError
from ..errors import Aborted, Error, InvalidArgument, PeerDied
from ..grid import NULL_RANK
from ._tasks import Outcome, Task, Times, Worker
from ._wire import BATCH_BYTES, BYE, FAILURE, NEWS, Packer, content_of, kind_of

# The key in `_Endings` that only wakes the thread. No worker has this key.
_WAKE = 0
# The longest expected duration of a batch, in seconds. Its outcomes may be reported only at its
# end.
_BATCH_SECONDS = 0.004
# A batch takes at most 1 / (_SHARES * workers) of the waiting tasks, so that all workers end at
# about the same time.
_SHARES = 2


class BrokenExecutor(concurrent.futures.BrokenExecutor, Error):
    """No task can be run any more: no worker is left, or an initializer has failed."""


class Master:
    """Hands tasks to workers, and outcomes to the tasks' futures. A resource; any thread may use
    it.

    A worker has one task at a time, or a batch of short tasks, so that tasks of uneven length are
    balanced. One thread waits for all workers. It ends when `close` has been called and all tasks
    have ended.

    Parameters
    ----------
    pairs : dict
        The communicator with each worker, by the worker's rank.
    retries : int
        How often a task is run again after its worker has died.
    how_it_ended : function
        Gets a worker's rank and the error that reported its end. Returns a text that describes the
        end.
    at_end : function
        Called when all workers have stopped.
    replace : function, optional
        Called with the rank of each lost worker. Each call is followed by a call of `add` or
        `miss`.
    """

    def __init__(
        self,
        pairs: dict[int, Communicator],
        packer: Packer,
        retries: int,
        how_it_ended: Callable[[int, Error], str],
        at_end: Callable[[], None],
        replace: Optional[Callable[[int], None]] = None,
    ) -> None:
        self._packer = packer
        self._retries = retries
        self._how_it_ended = how_it_ended
        self._at_end = at_end
        self._lock = threading.Lock()
        self._queue: collections.deque[Task] = collections.deque()
        self._keys = itertools.count(_WAKE + 1)
        self._workers: dict[int, Worker] = {}
        self.replace = replace
        self._expected = 0  # number of replacements that have not come yet
        self._has_ended = False
        self._idle: list[Worker] = []
        self._times = Times()
        self._interrupted: list[list[Outcome]] = []
        self._broken: Optional[BrokenExecutor] = None
        self._is_closing = False
        self._endings = _Endings()
        # A message to NULL_RANK has ended at once. So watching it wakes a thread that waits in
        # `_endings`.
        self._ended = next(iter(pairs.values())).send_async(b"", NULL_RANK)
        for rank, comm in pairs.items():
            worker = Worker(next(self._keys), rank, comm, self)
            worker.incoming.begin()
            self._take_in(worker)
        self._thread = threading.Thread(target=self._run, name="hocket futures", daemon=True)
        self._thread.start()

    @property
    def ranks(self) -> list[int]:
        """The ranks of the workers that are alive."""
        with self._lock:
            return sorted(worker.rank for worker in self._workers.values())

    @property
    def pids(self) -> dict[int, int]:
        """The pids of the workers that are ready, by rank."""
        with self._lock:
            found = ((worker.rank, worker.pid) for worker in self._workers.values())
            return {rank: pid for rank, pid in sorted(found) if pid is not None}

    @property
    def busy_ranks(self) -> list[int]:
        """The ranks of the workers that run a task."""
        with self._lock:
            return [worker.rank for worker in self._workers.values() if worker.tasks]

    def submit(self, task: Task) -> None:
        """Queue a task. A worker gets it as soon as one is idle."""
        with self._lock:
            if self._broken is not None:
                raise self._broken
            if self._is_closing:
                raise InvalidArgument("cannot schedule new futures after shutdown")
            self._queue.append(task)
            if self._idle:
                self._occupy(self._idle.pop())

    def add(self, rank: int, comm: Communicator) -> None:
        """Add the replacement of a dead worker. Any thread may call it. Raises Error if it dies."""
        worker = Worker(next(self._keys), rank, comm, self)
        worker.incoming.begin()
        with self._lock:
            self._expected -= 1
            if self._has_ended:
                raise InvalidArgument("the executor has ended")
            self._take_in(worker)

    def miss(self, why: str, cause: BaseException) -> None:
        """Note that a dead worker gets no replacement. Any thread may call it."""
        with self._lock:
            self._expected -= 1
            is_alone = not self._workers and self._expected == 0
            outcomes = self._failed(self._break(why, cause)) if is_alone else []
        self._wake()
        self._complete(outcomes)

    def _take_in(self, worker: Worker) -> None:
        self._workers[worker.key] = worker
        self._endings.watch(worker.incoming.work, worker.key)

    def cancel_pending(self) -> None:
        """Cancel all tasks that no worker has been given."""
        with self._lock:
            left = list(self._queue)
            self._queue.clear()
        for task in left:
            if task.future.cancel() or task.future.cancelled():
                task.future.set_running_or_notify_cancel()

    def close(self) -> None:
        """Accept no further tasks, and stop the workers when all tasks have ended. Never waits and
        takes no lock. It may be called again.
        """
        self._is_closing = True
        self._wake()

    def join(self, timeout: Optional[float] = None) -> bool:
        """Wait until all workers have stopped. Return False if the timeout passes. Call `close`
        before.
        """
        if threading.current_thread() is not self._thread:  # a future's callback may call it there
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def abandon(self) -> None:
        """Abort the communicators with all workers, which then count as lost."""
        with self._lock:
            workers = list(self._workers.values())
        for worker in workers:
            with contextlib.suppress(Error):
                worker.comm.abort("the executor was interrupted, and a task did not end")

    # --- Waiting for workers ------------------------------------------------------------------

    def visit(self, worker: Worker, seconds: float) -> bool:
        """Wait in this thread for a worker's next message, and handle it. Return False if another
        thread already waits for this worker.

        The executor's own thread is not woken by the message.
        """
        if not worker.turn.acquire(blocking=False):
            return False
        outcomes: list[Outcome] = []
        try:
            work = worker.incoming.work
            self._endings.forget(work)
            if work._ends_within(seconds):
                outcomes = self._look(worker)
        finally:
            self._leave(worker)
        if self._is_closing:
            self._wake()
        self._complete(outcomes)
        return True

    def _run(self) -> None:
        while self._goes_on():
            first = self._endings.next()
            for key in [first, *self._endings.take()]:
                worker = self._workers.get(key or _WAKE)
                # If another thread waits for this worker, that thread handles the message.
                if worker is not None and worker.turn.acquire(blocking=False):
                    outcomes: list[Outcome] = []
                    try:
                        if not worker.is_gone and worker.incoming.work.test():
                            outcomes = self._look(worker)
                    finally:
                        self._leave(worker)
                    self._complete(outcomes)
            while self._interrupted:
                self._complete(self._interrupted.pop())
            if self._is_closing:
                self._stop_idle()
        self._at_end()

    def _goes_on(self) -> bool:
        with self._lock:
            self._has_ended = not self._workers and not (
                self._expected and (self._queue or not self._is_closing)
            )
            return not self._has_ended

    def _leave(self, worker: Worker) -> None:
        """End this thread's turn with a worker, so that the executor's thread waits for it again.
        """
        worker.turn.release()
        if not worker.is_gone:
            self._endings.watch(worker.incoming.work, worker.key)

    def _wake(self) -> None:
        self._endings.watch(self._ended, _WAKE)

    def _look(self, worker: Worker) -> list[Outcome]:
        """Handle a received message part, or the worker's death. The caller holds the worker's
        turn.
        """
        if worker.is_gone:
            return []
        worker.taken = []
        try:
            return self._take(worker)
        except Error as failure:
            return self._lose(worker, failure)
        except BaseException as error:  # raised by a signal's handler
            why = Aborted(f"{error!r} came while its news was taken")
            self._complete([(task, None, why) for task in worker.taken])
            self._complete(self._lose(worker, why))
            raise

    def _take(self, worker: Worker) -> list[Outcome]:
        incoming = worker.incoming
        while (kind := incoming.advance()) is None:
            if not incoming.work.test():
                return []
        if kind == BYE:
            with self._lock:
                self._forget(worker)
            worker.comm.close()
            return []
        return self._hear(worker) if kind == NEWS else self._receive(worker, kind)

    def _forget(self, worker: Worker) -> None:
        worker.is_gone = True
        del self._workers[worker.key]
        if worker in self._idle:
            self._idle.remove(worker)
        if not self._workers:
            self._wake()

    def _hear(self, worker: Worker) -> list[Outcome]:
        """Handle news of a batch: the worker has ended some of its tasks, or returns tasks unbegun.
        """
        back, is_last = worker.incoming.value()
        outcomes = self._read(worker)
        try:
            worker.incoming.begin()
        except Error as failure:
            return [*outcomes, *self._lose(worker, failure)]
        with self._lock:
            self._queue.extendleft(worker.take_back(back))
            worker.has_batch = not is_last
            if is_last:
                self._occupy(worker)
            self._occupy_idle()
        return outcomes

    def _read(self, worker: Worker) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for task, message, seconds in worker.read():
            self._times.add(task.text, seconds)
            outcomes.append((task, *_value_of(kind_of(message), content_of(message))))
        return outcomes

    def _receive(self, worker: Worker, kind: int) -> list[Outcome]:
        """Handle the outcome of one task, or of the initializer."""
        value, error = _value_of(kind, *worker.incoming.parts())
        task = worker.take()
        outcomes: list[Outcome] = [] if task is None else [(task, value, error)]
        try:
            worker.incoming.begin()
        except Error as failure:
            return [*outcomes, *self._lose(worker, failure)]
        with self._lock:
            if task is None and error is not None:
                failed = self._break(f"the initializer of rank {worker.rank} failed", error)
                outcomes += self._failed(failed)
            if task is None:
                worker.pid = value
            if not worker.has_batch:
                self._occupy(worker)
        return outcomes

    def _occupy(self, worker: Worker) -> None:
        tasks = self._next_tasks(worker)
        if tasks:
            worker.give(tasks)
        else:
            self._idle.append(worker)

    def _occupy_idle(self) -> None:
        while self._queue and self._idle:
            self._occupy(self._idle.pop())

    def _next_tasks(self, worker: Worker) -> list[Task]:
        """Take the next task from the queue, or several short tasks that call one function."""
        tasks: list[Task] = []
        most = max(1, len(self._queue) // (_SHARES * len(self._workers)))
        seconds, size = 0.0, 0
        while self._queue and len(tasks) < most:
            task = self._queue[0]
            if tasks and (not task.is_short or task.function is not tasks[0].function):
                break
            seconds += self._times.of(task)
            size += len(task.messages[0])
            if tasks and (seconds > _BATCH_SECONDS or size > BATCH_BYTES):
                break
            self._queue.popleft()
            if task.may_begin():
                tasks.append(task)
            if not task.is_short or worker.ledger is None:
                break
        return tasks

    def _lose(self, worker: Worker, failure: Error) -> list[Outcome]:
        how = self._how_it_ended(worker.rank, failure)
        outcomes = self._read(worker)
        with self._lock:
            lost = worker.lose()
            error = self._loss(worker, failure, how, lost[0] if lost else None)
            again = [task for task in lost if task.attempts <= self._retries]
            self._queue.extendleft(worker.take_back(len(worker.tasks)))
            self._queue.extendleft(reversed(again))
            self._forget(worker)
            self._occupy_idle()
            self._expected += self.replace is not None
            is_alone = not self._workers and self._expected == 0
            failed = self._break("no worker is left", error) if is_alone else []
        worker.comm.close()
        if self.replace is not None:
            self.replace(worker.rank)
        for task in lost:
            if task in again:
                task.future.at = None
            else:
                outcomes.append((task, None, self._loss(worker, failure, how, task)))
        return [*outcomes, *self._failed(failed)]

    def _loss(self, worker: Worker, failure: Error, how: str, task: Optional[Task]) -> PeerDied:
        at = ""
        if task is not None:
            at = f" while it ran {task.text}"
            if task.attempts > 1:
                at += f" for the {task.attempts}. time"
            elif self._retries == 0:
                at += "; Executor(..., retries=1) runs such a task again, on another worker"
        pid = getattr(failure, "pid", -1)
        error = PeerDied(f"worker rank {worker.rank} (pid {pid}) {how}{at}")
        error.rank, error.pid, error.signal = worker.rank, pid, getattr(failure, "signal", 0)
        error.__cause__ = failure
        return error

    def _break(self, why: str, cause: BaseException) -> list[Task]:
        """Refuse tasks from now on. The caller holds the lock.

        Returns the tasks that the caller must fail after it has released the lock.
        """
        if self._broken is None:
            self._broken = BrokenExecutor(f"the executor takes no tasks any more: {why}: {cause}")
            self._broken.__cause__ = cause
        self._is_closing = True
        failed = [task for task in self._queue if task.may_begin()]
        self._queue.clear()
        return failed

    def _complete(self, outcomes: list[Outcome]) -> None:
        """Give futures their outcomes. Callbacks of the futures run here, and may submit tasks."""
        outcomes.reverse()
        try:
            while outcomes:
                task, value, error = outcomes[-1]
                task.future.at = None
                if task.future.done():
                    pass
                elif error is None:
                    task.future.set_result(value)
                else:
                    task.future.set_exception(error)
                outcomes.pop()
        except BaseException:  # raised by a signal's handler: the executor's thread does the rest
            self._interrupted.append(outcomes[::-1])
            self._wake()
            raise

    def _failed(self, tasks: list[Task]) -> list[Outcome]:
        return [(task, None, self._broken) for task in tasks]

    def _stop_idle(self) -> None:
        with self._lock:
            if self._queue:
                return
            for worker in self._idle:
                worker.stop(self._packer)
            self._idle.clear()


def _value_of(
    kind: int, content: Any, arrays: Optional[list[Any]] = None
) -> tuple[Any, Optional[BaseException]]:
    """Return the task's result, or its exception. If loading it fails, return that error."""
    try:
        value = pickle.loads(content, buffers=arrays)
        if kind != FAILURE:
            return value, None
        failure: Failure = pickle.loads(value)
    except BaseException as error:
        return None, error
    raised = failure.error
    if raised is None:
        raised = RuntimeError(f"rank {failure.rank}: {failure.summary}")
    raised.__cause__ = RankError(f"rank {failure.rank} failed:\n{failure.traceback}")
    return None, raised
