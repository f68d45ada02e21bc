"""Work: several under way, results, errors, lifetimes."""

import gc
import threading

import numpy as np
import pytest
from helpers import threads, values

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
                assert work.received == hocket.Received(sender, sender)
                assert np.array_equal(x, values(sender, 5))
        else:
            comm.recv(x[:1], 0)
            work = comm.send_async(values(comm.rank, 5), 0, comm.rank)
            work.wait(timeout=30)
            assert work.received is None

    threads(3, body)


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
