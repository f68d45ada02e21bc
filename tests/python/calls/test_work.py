"""Work: several under way, results, errors, lifetimes."""

import gc
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from helpers import threads, values
from processes import with_package

import hocket


def test_many_under_way():
    def body(comm):
        works = [comm.all_reduce_async(values(comm.rank + i, 100 + i)) for i in range(20)]
        gc.collect()  # the arrays live by their Works alone
        for i in reversed(range(20)):
            wanted = sum(values(rank + i, 100 + i) for rank in range(3))
            assert np.array_equal(works[i].wait(), wanted)
            assert works[i].done and works[i].test() and works[i].exception is None
            assert np.array_equal(works[i].wait(), wanted)

    threads(3, body)


def test_wait_gives_up_and_the_call_goes_on():
    def body(comm):
        x = np.ones(3)
        if comm.rank == 0:
            work = comm.all_reduce_async(x)
            with pytest.raises(TimeoutError) as caught:
                work.wait(timeout=0.01)
            assert not isinstance(caught.value, hocket.Error)
            comm.send(x, 1)
            assert work.wait(timeout=30) is x
        else:
            comm.recv(np.empty(3), 0)
            comm.all_reduce(x)
        assert x.tolist() == [2, 2, 2]

    threads(2, body)


def test_error_of_a_work():
    seen = threading.Barrier(2)

    def body(comm):
        if comm.rank == 0:
            work = comm.all_reduce_async(np.ones(3), timeout=0.05)
            with pytest.raises(hocket.DeadlineExceeded):
                work.wait()
            assert isinstance(work.exception, hocket.DeadlineExceeded)
            assert work.exception.missing == (1,)
        seen.wait(30)

    threads(2, body)


def test_who_sent():
    def body(comm):
        n, x = comm.size, np.empty(5)
        if comm.rank == 0:
            for sender in range(1, n):
                work = comm.recv_async(x, tag=sender)
                assert work.received is None
                comm.send(x[:1], sender)
                work.wait(timeout=30)
                assert work.received == hocket.Received(sender, sender, 5)
                assert np.array_equal(x, values(sender, 5))
        else:
            comm.recv(x[:1], 0)
            work = comm.send_async(values(comm.rank, 5), 0, comm.rank)
            work.wait(timeout=30)
            assert work.received is None

    threads(3, body)


def test_a_started_call_keeps_the_arrays_of_the_prepared_one_exported():
    def body(comm):
        memory = bytearray(4)
        prepared = comm.prepare_broadcast(memory)
        if comm.rank == 0:
            work = prepared.start()  # done, perhaps, but not known to be
        else:
            comm.recv(np.empty(1), 0)
            work = prepared.start()
        del prepared
        gc.collect()
        with pytest.raises(BufferError):
            memory.append(0)
        if comm.rank == 0:
            comm.send(np.ones(1), 1)
        work.wait(timeout=30)
        del work
        memory.append(0)

    threads(2, body)


@pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="without a GIL an object goes when the thread that made it next runs Python, and that waits",
)
def test_a_work_is_dropped_in_one_thread_while_another_is_in_a_call():
    """The thread that drops the call waits for the other, which needs the GIL to look for
    signals.
    """
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parents[1] / "support" / "dropped_work.py")],
        env=with_package(),
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0 and done.stdout == "as it should\n", done.stdout + done.stderr


def test_what_they_look_like():
    def body(comm):
        x = np.ones(3)
        if comm.rank == 1:
            comm.recv(np.empty(1), 0)
        work = comm.all_reduce_async(x)
        if comm.rank == 0:
            assert repr(work) == "<hocket.Work of all_reduce, under way>"
            comm.send(np.ones(1), 1)
        work.wait(timeout=30)
        assert repr(work) == "<hocket.Work of all_reduce, finished>"
        barrier = comm.barrier_async()
        assert repr(barrier).startswith("<hocket.Work of barrier, ")
        barrier.wait(timeout=30)
        prepared = comm.prepare_all_reduce(x)
        assert repr(prepared) == "<hocket.Prepared of all_reduce>"
        started = prepared.start()
        started.wait(timeout=30)
        assert repr(started) == "<hocket.Work of all_reduce, finished>"
        assert repr(comm.symmetric) == '<hocket.SymmetricMemory of communicator "world">'
        assert repr(comm) == f'<hocket.Communicator "world", rank {comm.rank} of 2>'
        own = comm.duplicate()
        failing = own.recv_async(x, 1 - comm.rank, timeout=0.01)
        with pytest.raises(hocket.DeadlineExceeded):
            failing.wait()
        assert repr(failing).startswith("<hocket.Work of recv, failed: rank ")
        comm.barrier()
        own.close()
        assert repr(own).endswith(f'", closed, rank {comm.rank} of 2>')

    threads(2, body)


def test_a_thread_waits_while_another_makes_calls():
    def body(comm):
        for i in range(100):
            first, second = values(comm.rank + i, 40), values(comm.rank, 3)
            waiter = threading.Thread(target=comm.all_reduce_async(first).wait)
            waiter.start()
            comm.all_reduce(second)
            waiter.join(30)
            assert not waiter.is_alive()
            assert np.array_equal(first, values(i, 40) + values(i + 1, 40))
            assert np.array_equal(second, values(0, 3) + values(1, 3))

    threads(2, body)


class StreamLikeCuPy:
    ptr = 0


@pytest.mark.parametrize("name", ["all_reduce", "argmin"])
def test_a_prepared_call_on_the_host_may_be_given_a_stream(name):
    def body(comm):
        x = np.arange(3.0)
        prepared = getattr(comm, f"prepare_{name}")(x, stream=StreamLikeCuPy())
        result = prepared.start().wait()
        found = result if name == "all_reduce" else result[0]
        assert np.array_equal(found, np.arange(3.0) * (2 if name == "all_reduce" else 1))

    threads(2, body)
