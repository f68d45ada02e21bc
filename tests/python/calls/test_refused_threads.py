"""The system refuses a thread: what needs it raises an error, and the next attempt works."""

import itertools
import threading
import time
import types

import numpy as np
import pytest
from helpers import threads

import hocket
from hocket._jobs.crew import Crew
from hocket._waiting import works
from hocket._waiting.ends import Ends
from hocket.futures import Executor
from hocket.futures._local import LocalWorkers
from hocket.futures._worker import _Batch


def refuse(monkeypatch, name, attempts):
    """Refuse these attempts to start a thread whose name begins with `name`. Return a list that
    gets the number of each refused attempt.
    """
    count, refused = itertools.count(), []
    start = threading.Thread.start

    def may_refuse(thread):
        if thread.name.startswith(name) and (number := next(count)) in attempts:
            refused.append(number)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", may_refuse)
    return refused


class Told:
    """A handle that knows whether it was notified. The first one may wait for others."""

    def __init__(self, until=None):
        self.event = threading.Event()
        self._until = until

    def complete(self):
        if self._until is not None:
            assert self._until.wait(20)
        self.event.set()


def pending(comm, tag):
    return comm.recv_async(np.zeros(1), 0, tag=tag)


def end(comm, tag):
    comm.send(np.ones(1), 0, tag=tag)


@pytest.mark.parametrize("attempts", [[], [0], [1], [0, 1], [1, 2, 3], [0, 2]])
def test_ends_are_told_also_after_a_thread_was_refused(monkeypatch, attempts):
    """The first attempts are those of calls of `watch`, the others those of threads that take an
    end.
    """

    def body(comm):
        ends = Ends("hocket refused")
        refused = refuse(monkeypatch, "hocket refused", attempts)
        unwatched = next(i for i in itertools.count() if i not in attempts)
        handles = [Told() for _ in range(6)]
        calls = [pending(comm, tag) for tag in range(6)]
        for i, (call, handle) in enumerate(zip(calls, handles)):
            if i < unwatched:
                with pytest.raises(RuntimeError, match="can't start new thread"):
                    ends.watch(call, handle)
                assert not ends._handles
            else:
                ends.watch(call, handle)
        for i, handle in enumerate(handles):
            end(comm, i)
            assert handle.event.wait(20) if i >= unwatched else calls[i].wait(20) is not None
        assert refused == attempts and not ends._handles
        assert not any(handle.event.is_set() for handle in handles[:unwatched])
        ends.close()

    threads(1, body)


def test_a_slow_handle_delays_others_only_while_no_thread_can_be_had(monkeypatch):
    def body(comm):
        ends = Ends("hocket refused")
        refuse(monkeypatch, "hocket refused", (1,))
        go = threading.Event()
        slow, second, third = Told(go), Told(), Told()
        calls = [pending(comm, tag) for tag in range(3)]
        ends.watch(calls[0], slow)
        ends.watch(calls[1], second)
        end(comm, 0)
        time.sleep(0.1)
        end(comm, 1)
        assert not second.event.wait(0.1)  # the only thread is with the first handle
        ends.watch(calls[2], third)  # starts another thread
        assert second.event.wait(20)
        go.set()
        assert slow.event.wait(20)
        end(comm, 2)
        assert third.event.wait(20)
        ends.close()

    threads(1, body)


def test_a_callback_that_was_refused_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(works, "_callbacks", [])

    def body(comm):
        refused = refuse(monkeypatch, "hocket callbacks", (0,))
        first, second = pending(comm, 0), pending(comm, 1)
        called = []
        with pytest.raises(RuntimeError, match="can't start new thread"):
            first.add_done_callback(lambda _: called.append("first"))
        assert refused == [0] and not works._uncalled
        done = threading.Event()
        second.add_done_callback(lambda _: done.set())
        end(comm, 0)
        end(comm, 1)
        assert done.wait(20) and not called
        first.add_done_callback(lambda _: called.append("again"))
        assert called == ["again"]

    threads(1, body)


# --- Executors --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hocket futures", "hocket output"])
def test_an_executor_that_cannot_start_leaves_no_process(monkeypatch, name):
    members = []
    complete = Crew.complete

    def remember(crew, n):
        started = complete(crew, n)
        members.extend(crew[i] for i in range(n))
        return started

    monkeypatch.setattr(Crew, "complete", remember)
    refused = refuse(monkeypatch, name, (0,))
    with pytest.raises(RuntimeError, match="can't start new thread"):
        Executor(2)
    assert refused == [0] and len(members) == 2
    until = time.monotonic() + 30
    while any(member.process.poll() is None for member in members):
        assert time.monotonic() < until
        time.sleep(0.02)
    with Executor(1) as pool:
        assert pool.submit(abs, -3).result() == 3


def test_a_replacement_that_cannot_be_awaited_is_replaced_itself(monkeypatch):
    refusals = []
    start = threading.Thread.start

    def may_refuse(thread):
        if getattr(thread._target, "__func__", None) is LocalWorkers._join and not refusals:
            refusals.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", may_refuse)
    with Executor(1) as pool:
        assert pool.submit(abs, -1).result(30) == 1
        pool._local.signal(9, [1])
        until = time.monotonic() + 40
        while not refusals or not pool.pids:
            assert time.monotonic() < until
            time.sleep(0.02)
        assert pool.submit(abs, -2).result(40) == 2
    assert len(refusals) == 1


def test_a_batch_runs_without_the_thread_that_guards_against_long_tasks(monkeypatch):
    ended = []
    ledger = types.SimpleNamespace(
        restart=lambda: None,
        begin_task=lambda: None,
        has_room=lambda _: True,
        end_task=lambda message, _: ended.append(message),
        ended=0,
    )
    worker = types.SimpleNamespace(
        outcome=lambda kind, _: [kind], tell=lambda *_: None, send=lambda _: None
    )
    batch = _Batch(ledger, worker)
    refused = refuse(monkeypatch, "hocket batch", (0,))
    batch.run([(1, memoryview(b"")), (2, memoryview(b""))])
    assert ended == [1, 2] and refused == [0]
    batch.close()
    batch.run([(3, memoryview(b"")), (4, memoryview(b""))])
    assert ended == [1, 2, 3, 4] and batch._thread is not None
    batch.close()
