"""Tests that end in all the ways there are, for test_testing.py, which runs them by pytest."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import hocket
from hocket import testing


@pytest.mark.ranks(1, 2, 4)
def test_well(comm):
    x = np.full(10, comm.rank + 1.0)
    comm.all_reduce(x)
    assert (x == comm.size * (comm.size + 1) / 2).all()


@pytest.mark.ranks(3)
def test_fails(comm):
    print(f"seen by rank {comm.rank}\n", end="")  # one write, as ranks that are threads share the stream
    if comm.rank == 1:
        seen = [1, 2, 3]
        assert seen == [1, 2, comm.rank + 3]
    comm.barrier()


@pytest.mark.ranks(2)
async def test_async(comm):
    x = np.full(3, comm.rank + 1.0)
    await comm.all_reduce_async(x)
    assert (x == 3).all()


@pytest.mark.ranks(2)
async def test_async_fails(comm):
    await comm.barrier_async()
    assert comm.rank == 0


@pytest.mark.ranks(2)
async def test_yields(comm):
    yield comm


@pytest.mark.ranks(3)
def test_fails_while_others_compute(comm):
    if comm.rank == 2:
        raise KeyError("of rank 2")
    until = time.monotonic() + 30
    while time.monotonic() < until:
        pass


@pytest.mark.ranks(3)
def test_exits(comm):
    if comm.rank == 1:
        sys.exit(3)
    comm.barrier()


@pytest.mark.ranks(3)
def test_returns_early(comm):
    if comm.rank != 1:
        comm.barrier()


@pytest.mark.ranks(3)
def test_never_comes(comm):
    if comm.rank == 1:
        threading.Event().wait(5)
    comm.barrier()


@pytest.mark.ranks(2, patience=5)
def test_comes_late(comm):
    if comm.rank == 1:
        time.sleep(0.8)
    comm.barrier()


@pytest.mark.ranks(2)
def test_computes_long(comm):
    until = time.monotonic() + 0.8
    while comm.rank == 1 and time.monotonic() < until:
        pass
    comm.barrier()


@pytest.mark.ranks(2, timeout=0.7)
def test_time_is_over(comm):
    while True:
        comm.barrier()


@pytest.mark.ranks(2)
def test_skips(comm):
    if comm.rank == 1:
        pytest.skip("not on rank 1")
    comm.barrier()


@pytest.mark.ranks(2)
@pytest.mark.parametrize("k", [1, 2])
class TestInAClass:
    def test_method(self, comm, k, tmp_path):
        if comm.rank == 0:
            (tmp_path / "shared").write_text(str(k))
        comm.barrier()
        assert (tmp_path / "shared").read_text() == str(k)


@pytest.fixture
def too_early(comm):
    return comm.rank


@pytest.mark.ranks(2)
def test_communicator_in_a_fixture(too_early):
    pass


def test_unmarked(comm):
    pass


@pytest.mark.ranks(3, processes=True)
class TestFaults:
    def test_kill(self, comm):
        if comm.rank == 0:
            testing.kill(1, after=0.05)
        with pytest.raises(hocket.PeerDied) as caught:
            while True:
                comm.all_reduce(np.ones(3))
        assert (caught.value.rank, caught.value.signal) == (1, signal.SIGKILL)

    def test_stop(self, comm):
        if comm.rank == 0:
            testing.stop(1)
        with pytest.raises(hocket.DeadlineExceeded) as caught:
            comm.recv(np.ones(3), 1, deadline=0.7)
        assert caught.value.missing == (1,)

    def test_delay(self, comm):
        if comm.rank == 0:
            testing.delay(1, 0.7)
        comm.barrier()

    def test_no_such_rank(self, comm):
        testing.kill(7)

    def test_exits_hard(self, comm):
        if comm.rank == 2:
            os._exit(7)
        comm.barrier()

    def test_crashes(self, comm):
        if comm.rank == 2:
            os.kill(os.getpid(), signal.SIGSEGV)
        comm.barrier()


    @pytest.mark.parametrize("calls", [0, 1])
    def test_stops_itself(self, comm, calls):
        for _ in range(calls):
            comm.barrier()
        if comm.rank == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
        comm.barrier()

    def test_is_replaced(self, comm):
        if comm.rank == 0:
            os.execvp("sleep", ["sleep", "100"])
        comm.barrier()


@pytest.mark.ranks(2, processes=False)
def test_fault_of_a_thread(comm):
    testing.kill(1)


@pytest.mark.ranks(2)
def test_fixture_that_cannot_be_sent(comm, request):
    assert request is not None
