"""Works under event loops, several at once, and callbacks."""

import asyncio
import gc
import os
import signal
import sys
import threading
import time
from datetime import timedelta

import numpy as np
import pytest
from helpers import threads, values
from processes import run_job

import hocket


def run_asyncio(main, *args):
    return asyncio.run(main(*args))


def run_trio(main, *args):
    trio = pytest.importorskip("trio", reason="trio is not installed")
    return trio.run(main, *args)


LOOPS = pytest.mark.parametrize("run", [run_asyncio, run_trio])


async def pause(seconds):
    if asyncio._get_running_loop() is not None:
        await asyncio.sleep(seconds)
    else:
        import trio

        await trio.sleep(seconds)


def on_loops(n, run, main):
    """`main(comm)` in an event loop of each rank."""
    threads(n, lambda comm: run(main, comm))


@LOOPS
def test_await_gives_the_result(run):
    async def main(comm):
        for i in range(20):
            x = values(comm.rank + i, 100)
            assert await comm.all_reduce_async(x) is x
            assert np.array_equal(x, sum(values(rank + i, 100) for rank in range(3)))
        assert await comm.barrier_async() is None

    on_loops(3, run, main)


@LOOPS
def test_await_of_what_has_ended_and_again(run):
    async def main(comm):
        work = comm.all_reduce_async(np.ones(3))
        work.wait()
        assert (await work).tolist() == (await work).tolist() == [2, 2, 2]

    on_loops(2, run, main)


@LOOPS
def test_the_loop_goes_on_meanwhile(run):
    async def main(comm):
        if comm.rank == 1:
            await pause(0.1)
            comm.send(np.ones(3), 0)
            return
        x = np.zeros(3)
        work = comm.recv_async(x, 1)
        turns = 0
        while not work.test():
            turns += 1
            await pause(0.001)
        await work
        assert turns > 5 and x.tolist() == [1, 1, 1]

    on_loops(2, run, main)


@LOOPS
def test_await_raises_the_error(run):
    seen = threading.Barrier(2)

    async def main(comm):
        if comm.rank == 0:
            with pytest.raises(hocket.DeadlineExceeded) as caught:
                await comm.recv_async(np.ones(3), 1, deadline=0.05)
            assert caught.value.missing == (1,)
        seen.wait(30)

    on_loops(2, run, main)


def test_many_tasks_of_one_loop():
    async def main(comm):
        async def one(tag):
            x = np.empty(4)
            if comm.rank == 0:
                await comm.recv_async(x, 1, tag=tag)
                assert np.array_equal(x, values(tag, 4))
            else:
                await comm.send_async(values(tag, 4), 0, tag=tag)

        tags = list(range(100))
        await asyncio.gather(*(one(tag) for tag in (tags if comm.rank == 0 else tags[::-1])))

    on_loops(2, run_asyncio, main)


def test_no_descriptor_stays_with_the_loop():
    before = set(os.listdir("/proc/self/fd"))

    async def main(comm):
        for _ in range(3):
            await comm.all_reduce_async(np.ones(3))

    on_loops(2, run_asyncio, main)
    gc.collect()
    assert len(set(os.listdir("/proc/self/fd")) - before) <= 1


def test_wait_for_gives_the_call_up():
    """As dropping it does: the communicator fails, on all ranks."""

    async def main(comm):
        if comm.rank == 0:
            work = comm.recv_async(np.ones(3), 1)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(work, 0.05)
            assert work.test() and repr(work) == "<hocket.Work of recv, given up>"
            assert isinstance(work.exception, hocket.Aborted)
            with pytest.raises(hocket.Aborted, match="given up"):
                work.wait()
        with pytest.raises(hocket.Aborted, match="gave up a call"):
            comm.recv(np.ones(3), 1 - comm.rank, tag=1)

    on_loops(2, run_asyncio, main)


def test_wait_for_of_what_comes_in_time():
    async def main(comm):
        x = np.full(3, comm.rank + 1.0)
        assert (await asyncio.wait_for(comm.all_reduce_async(x), 30)).tolist() == [3, 3, 3]

    on_loops(2, run_asyncio, main)


def test_a_shielded_call_goes_on():
    async def main(comm):
        if comm.rank == 1:
            comm.recv(np.empty(1), 0)
            comm.send(np.ones(3), 0)
            return
        task = asyncio.ensure_future(comm.recv_async(x := np.zeros(3), 1, tag=0))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(task), 0.05)
        comm.send(np.ones(1), 1)
        await task
        assert x.tolist() == [1, 1, 1]

    on_loops(2, run_asyncio, main)


def test_trio_cancels():
    trio = pytest.importorskip("trio", reason="trio is not installed")

    async def main(comm):
        if comm.rank == 0:
            with trio.move_on_after(0.05) as scope:
                await comm.recv_async(np.ones(3), 1)
            assert scope.cancelled_caught
        with pytest.raises(hocket.Aborted, match="gave up a call"):
            comm.recv(np.ones(3), 1 - comm.rank, tag=1)

    on_loops(2, run_trio, main)


@LOOPS
def test_receives_from_anybody(run):
    async def main(comm):
        if comm.rank > 0:
            for i in range(5):
                comm.send(values(comm.rank + i, (2, 3)), 0, tag=4)
            comm.barrier()
            return
        seen = []
        async for x, received in comm.receives((2, 3), tag=4, count=10):
            assert x.shape == (2, 3) and x.dtype == np.float64 and received.tag == 4
            nth = seen.count(received.source)
            assert np.array_equal(x, values(received.source + nth, (2, 3)))
            seen.append(received.source)
        assert sorted(seen) == [1] * 5 + [2] * 5
        comm.barrier()

    on_loops(3, run, main)


def test_leaving_the_loop_of_receives_gives_nothing_up():
    async def main(comm):
        if comm.rank == 0:
            async for x, _ in comm.receives(3):
                assert x.tolist() == [1, 1, 1]
                break
        else:
            comm.send(np.ones(3), 0)
        comm.barrier()

    on_loops(2, run_asyncio, main)


# --- Without a loop -----------------------------------------------------------------------------


def test_wait_all():
    def body(comm):
        works = [comm.all_reduce_async(values(comm.rank + i, 10 + i)) for i in range(20)]
        results = hocket.wait_all(works)
        for i, result in enumerate(results):
            assert np.array_equal(result, values(i, 10 + i) + values(i + 1, 10 + i))
        assert hocket.wait_all([]) == []

    threads(2, body)


def test_wait_any_and_some():
    def body(comm):
        if comm.rank == 0:
            boxes = [np.empty(2) for _ in range(5)]
            works = {i: comm.recv_async(box, 1, tag=i) for i, box in enumerate(boxes)}
            order = []
            while works:
                keys = list(works)
                comm.send(np.ones(1), 1)
                i = keys[hocket.wait_any([works[key] for key in keys])]
                works.pop(i).wait()
                assert np.array_equal(boxes[i], values(i, 2))
                order.append(i)
            assert order == [3, 1, 4, 0, 2]
            works = [comm.recv_async(boxes[i], 1, tag=i) for i in range(3)]
            with pytest.raises(TimeoutError):
                hocket.wait_some(works, timeout=0.02)
            with pytest.raises(TimeoutError):
                hocket.wait_all(works, timeout=0.02)
            comm.send(np.ones(1), 1)
            assert hocket.wait_some(works, timeout=30)
            hocket.wait_all(works)
            assert hocket.wait_some(works) == [0, 1, 2]
        else:
            for i in [3, 1, 4, 0, 2]:
                comm.recv(np.empty(1), 0)
                comm.send(values(i, 2), 0, tag=i)
            comm.recv(np.empty(1), 0)
            for i in range(3):
                comm.send(np.ones(2), 0, tag=i)

    threads(2, body)
    with pytest.raises(hocket.InvalidArgument, match="works is empty"):
        hocket.wait_any([])
    for wait in (hocket.wait_any, hocket.wait_some, hocket.wait_all):
        with pytest.raises(hocket.InvalidArgument, match=r"works\[0\] is an int, expected a Work"):
            wait([3])
        with pytest.raises(hocket.InvalidArgument, match="works is an int, expected a list of Work"):
            wait(3)
        with pytest.raises(hocket.InvalidArgument, match="timeout is 'soon', expected seconds"):
            wait([], timeout="soon")
        for timeout in (-1, float("nan"), timedelta(seconds=-1)):
            with pytest.raises(hocket.InvalidArgument, match="timeout is .* s, expected 0 s or more"):
                wait([], timeout=timeout)


def test_wait_any_can_be_interrupted():
    threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
    with hocket.init() as comm, pytest.raises(KeyboardInterrupt):
        own = comm.duplicate()
        hocket.wait_any([own.recv_async(np.ones(3), 0)])


def test_a_callback_is_called_once_the_call_has_ended():
    def body(comm):
        called = []
        done = threading.Event()

        def note(work):
            called.append((work.exception, work.wait().tolist(), threading.get_ident()))
            done.set()

        if comm.rank == 1:
            comm.recv(np.empty(1), 0)
        work = comm.all_reduce_async(np.ones(2))
        work.add_done_callback(note)
        del work  # the callback keeps it
        gc.collect()
        if comm.rank == 0:
            assert not called
            comm.send(np.ones(1), 1)
        assert done.wait(30) and len(called) == 1
        assert called[0][:2] == (None, [2, 2])
        if comm.rank == 0:
            assert called[0][2] != threading.get_ident()
        ended = comm.barrier_async()
        ended.wait()
        ended.add_done_callback(called.append)
        assert called[1] is ended

    threads(2, body)


def test_callbacks_may_wait_for_other_calls():
    def body(comm):
        own = comm.duplicate()
        total, done = [], threading.Event()

        def next_call(work):
            total.append(own.all_reduce(np.ones(1))[0])
            done.set()

        x = np.ones(1)
        if comm.rank == 0:
            work = comm.recv_async(x, 1)
            work.add_done_callback(next_call)
            time.sleep(0.01)
            comm.recv(x, 1, tag=1)
        else:
            time.sleep(0.05)
            comm.send(x, 0)
            comm.send_async(x, 0, tag=1).add_done_callback(next_call)
        assert done.wait(30) and total == [2]
        comm.barrier()

    threads(2, body)


@pytest.mark.parametrize("ended", [False, True])
def test_what_a_callback_raises_is_printed(monkeypatch, capfd, ended):
    # pytest's own hook takes what Python's does not. The two ranks print in turns: Python's hook
    # writes a line in several pieces.
    turn = threading.Lock()

    def prints(what):
        with turn:
            sys.__unraisablehook__(what)

    monkeypatch.setattr(sys, "unraisablehook", prints)
    printed = []

    def body(comm):
        def fail(work):
            raise KeyError("of the callback")

        work = comm.barrier_async()
        if ended:
            work.wait()
        work.add_done_callback(fail)
        work.wait()

    threads(2, body)
    until = time.monotonic() + 30
    while "".join(printed).count("KeyError: 'of the callback'") < 2 and time.monotonic() < until:
        time.sleep(0.01)
        printed.append(capfd.readouterr().err)
    text = "".join(printed)
    assert text.count("KeyError: 'of the callback'") == 2, text
    assert text.count("Exception ignored in: <function") == 2, text
    assert "UnraisableHookArgs" not in text


def test_what_a_callback_raises_is_told(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: told.append(what.exc_value.args))

    def body(comm):
        done = threading.Event()

        def fail(work):
            done.set()
            raise KeyError("of the callback")

        comm.barrier_async().add_done_callback(fail)
        assert done.wait(30)
        comm.barrier()

    threads(2, body)
    while len(told) < 2:
        time.sleep(0.01)
    assert told == [("of the callback",)] * 2


def test_watched_by_many():
    async def main(comm):
        if comm.rank == 1:
            await pause(0.05)
            comm.send(np.ones(3), 0)
            return
        work = comm.recv_async(np.zeros(3), 1)
        called = threading.Event()
        work.add_done_callback(lambda _: called.set())

        async def one():
            return (await work).tolist()

        assert await asyncio.gather(one(), one(), one()) == [[1, 1, 1]] * 3
        assert called.wait(30) and hocket.wait_any([work]) == 0

    on_loops(2, run_asyncio, main)


AT_THE_END = """
import sys, numpy as np, hocket
comm = hocket.init()
other = comm.duplicate()
def called(which):
    return lambda work: sys.stdout.write(f"{which} on {comm.rank}: {type(work.exception).__name__}\\n")
comm.all_reduce_async(np.ones(2_000_000)).add_done_callback(called("all_reduce"))
if comm.rank == 0:
    other.recv_async(np.ones(3), 1).add_done_callback(called("recv"))
"""


def test_callbacks_are_called_as_the_program_ends():
    job = run_job(2, "-c", AT_THE_END)
    assert job.returncode == 0, job.stdout + job.stderr
    assert "all_reduce on 0: NoneType" in job.stdout and "all_reduce on 1: NoneType" in job.stdout
    assert "recv on 0: Aborted" in job.stdout or "recv on 0: PeerDied" in job.stdout, job.stdout


def test_a_callback_that_cannot_be_called_is_refused():
    def body(comm):
        work = comm.barrier_async()
        with pytest.raises(hocket.InvalidArgument, match="fn is a str; give a function of the Work"):
            work.add_done_callback("print")
        work.wait()

    threads(2, body)
